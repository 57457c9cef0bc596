"""A Celery task that places a call. The queue may deliver its message as often as it likes:
the task asks for the attempt that the message names, and does what the answer's `next` says.
"""

import functools
import os
import random
import uuid
from datetime import datetime, timezone

import celery
import grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc.error_details_pb2 import RetryInfo
from grpc_status import rpc_status
from ringonce.v1 import attempt_pb2, placement_service_pb2, placement_service_pb2_grpc

app = celery.Celery("calls")
# These errors say that the message itself is wrong: they fail the task, for a person to see.
WRONG = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}


@functools.cache
def service():
    """One channel a process, made at the first use: a channel does not survive a fork."""
    address = os.environ["RINGONCE_SERVER"].removeprefix("http://")
    return placement_service_pb2_grpc.PlacementServiceStub(grpc.insecure_channel(address))


def decide(**call):
    """The scheduler's side: a message that names its attempt and when it was decided, so that
    every delivery of it asks for the same call."""
    now = datetime.now(timezone.utc).isoformat()
    return {"attempt_id": str(uuid.uuid4()), "intend_time": now, **call}


def pause(error, retries):
    """How many seconds to wait: as the service asks, or ever longer, up to a minute."""
    status, asked = rpc_status.from_call(error), RetryInfo()
    if status and any(detail.Unpack(asked) for detail in status.details):
        return asked.retry_delay.ToTimedelta().total_seconds()
    return random.uniform(0.5, 1) * min(2**retries, 60)


# A worker that dies gives the message back. Retries need no limit: once the attempt's time is
# over, the service says so.
@app.task(bind=True, acks_late=True, reject_on_worker_lost=True, max_retries=None)
def place_call(self, message):
    call = ParseDict(message, placement_service_pb2.PlaceCallRequest())
    try:
        attempt = service().PlaceCall(call, timeout=10)
    except grpc.RpcError as error:
        if error.code() in WRONG:
            raise ValueError(error.details()) from error
        # Perhaps it was decided, perhaps not. The same id finds out, and never rings twice.
        raise self.retry(countdown=pause(error, self.request.retries)) from error
    if attempt.next == attempt_pb2.Attempt.NEXT_REPEAT:
        raise self.retry(eta=attempt.next_time.ToDatetime(tzinfo=timezone.utc))
    return MessageToDict(attempt)  # settled, or kept by the service: the message is done
