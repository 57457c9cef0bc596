"""Plays a queue that delivers at least once, to the task of celery_task.py on a real worker.

It is started while the service is down; whoever starts it brings the service back when the
first line is there.
"""

import time

from celery.contrib.testing.worker import start_worker
from celery_task import app, decide, place_call, service
from ringonce.v1 import attempt_pb2, placement_service_pb2

# The broker and the results are within this process; a deployment names its own.
app.conf.update(broker_url="memory://", result_backend="cache+memory://")
ADA = {"workspace": "demo", "contact_id": "ada", "outreach_id": "welcome"}
# Rings for two seconds, and nobody answers.
first = decide(**ADA, attempt_id="ada-1", to="+12025550108", ringing_timeout="2s")
# To the same person, who is busy, from a queue that keeps its message until it is settled.
other = decide(**ADA, attempt_id="ada-2", to="+12025550186", keep="KEEP_RETURN")
wrong = decide(**ADA, attempt_id="ada-3", to="not a number")


def say(what, answer):
    print(f"{what}: {answer}", flush=True)


def state(delivery):
    return delivery.get(timeout=60)["state"]


def put_back(delivery):
    """Waits until the task has put its message back into the queue."""
    end = time.monotonic() + 30
    while delivery.state != "RETRY" and time.monotonic() < end:
        time.sleep(0.02)
    return delivery.state


def await_state(attempt_id, wanted):
    request = placement_service_pb2.WatchAttemptsRequest(
        workspace="demo", attempt_id=attempt_id, states=[wanted], snapshot=True
    )
    changes = service().WatchAttempts(request, timeout=60)
    next(change for change in changes if change.HasField("attempt"))


with start_worker(app, pool="solo", perform_ping_check=False):
    delivery = place_call.delay(first)
    say("while the service is down", put_back(delivery))
    say("when it is back", state(delivery))
    await_state("ada-1", attempt_pb2.Attempt.STATE_DIALING)
    say("while it rings", state(place_call.delay(first)))
    later = place_call.delay(other)
    say("another call to the same person", put_back(later))
    await_state("ada-1", attempt_pb2.Attempt.STATE_NOT_CONNECTED)
    say("when it is over", state(place_call.delay(first)))
    say("that other call in its turn", state(later))
    say("a message that is wrong", type(place_call.delay(wrong).get(propagate=False)).__name__)
