"""Reads every change of a workspace's attempts, in order, through restarts of either side.

    watch.py WORKSPACE CURSOR_FILE

A change is handled before its cursor is kept, so that none is lost: after a crash in between
it comes again. It holds the whole attempt, so handling it twice can be made harmless.
"""

import os
import pathlib
import sys
import time

import grpc
from google.protobuf.json_format import MessageToDict
from ringonce.v1 import placement_service_pb2, placement_service_pb2_grpc

# A peer that is gone without a word breaks the stream within half a minute.
KEEPALIVE = [("grpc.keepalive_time_ms", 20_000), ("grpc.keepalive_timeout_ms", 10_000)]


def handle(change):
    attempt = MessageToDict(change.attempt)  # which also reads states newer than this program
    print(attempt["attemptId"], attempt["state"], change.cause, flush=True)


def keep(cursor, file):
    """Replaces the file as a whole: there is always one cursor in it, the old or the new."""
    fresh = file.with_suffix(".new")
    fresh.write_text(cursor)
    fresh.replace(file)


def read(service, workspace, file):
    """Reads one stream to its end. Without a cursor it begins with all attempts as they are."""
    cursor = file.read_text() if file.exists() else ""
    for change in service.WatchAttempts(
        placement_service_pb2.WatchAttemptsRequest(
            workspace=workspace, after=cursor, snapshot=not cursor
        )
    ):
        if change.HasField("attempt"):  # a bookmark has none
            handle(change)
        if change.cursor:  # a part of the snapshot has none
            keep(change.cursor, file)


workspace, file = sys.argv[1], pathlib.Path(sys.argv[2])
address = os.environ["RINGONCE_SERVER"].removeprefix("http://")
service = placement_service_pb2_grpc.PlacementServiceStub(grpc.insecure_channel(address, KEEPALIVE))
while True:
    try:
        read(service, workspace, file)
    except grpc.RpcError as error:
        print(f"the stream broke: {error.code().name}", file=sys.stderr, flush=True)
        if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
            raise  # what is wrong stays wrong
        if error.code() == grpc.StatusCode.OUT_OF_RANGE:
            file.unlink()  # the log does not go back that far: begin with all attempts
    time.sleep(1)
