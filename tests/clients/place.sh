#!/usr/bin/env bash
# Places a call with grpcurl alone: the service tells its own interface, by reflection.
#
#   place.sh ATTEMPT CONTACT OUTREACH NUMBER INTEND_TIME
#
# INTEND_TIME is when the call was decided, as 2026-01-31T12:00:00Z: it belongs to the
# message, and is the same on every repetition. It prints the attempt's state. Its exit code
# says what to do with the message:
#
#   0    drop it: the attempt is settled, or the service keeps it
#   75   send the very same again later (EX_TEMPFAIL); not before the time on stderr, if any
#   65   the message is wrong (EX_DATAERR): a person must look
set -euo pipefail

if (($# != 5)); then
    echo "usage: ${0##*/} ATTEMPT CONTACT OUTREACH NUMBER INTEND_TIME" >&2
    exit 64
fi
# None of the five may hold anything that JSON would want escaped.
for value in "$@"; do
    if [[ ! $value =~ ^[A-Za-z0-9._:+-]+$ ]]; then
        echo "not an id, number or time" >&2
        exit 65
    fi
done
server=${RINGONCE_SERVER:-127.0.0.1:7081}
request=$(printf '{"workspace":"%s","attemptId":"%s","contactId":"%s","outreachId":"%s","to":"%s","intendTime":"%s"}' \
    "${RINGONCE_WORKSPACE:-demo}" "$@")

# By stdin, since everybody on the host can read a command line, and the number is in there.
code=0
attempt=$(grpcurl -plaintext -max-time 10 -d @ "${server#http://}" \
    ringonce.v1.PlacementService/PlaceCall <<<"$request" 2>&1) || code=$?
if ((code != 0)); then
    echo "$attempt" >&2
fi
case $code in
    0) ;;
    # INVALID_ARGUMENT (3) and FAILED_PRECONDITION (9), to which grpcurl adds 64.
    67 | 73) exit 65 ;;
    # Of its own grpcurl ends with 1: it cannot connect, or the proto has no place for what the
    # message says, as for a time that is none, which no repetition changes.
    1) if [[ $attempt == *"error getting request data"* ]]; then exit 65; else exit 75; fi ;;
    # Perhaps it was decided, perhaps not: the same id finds out, and never rings twice.
    *) exit 75 ;;
esac

# field NAME: its value. The attempt's own fields are indented by two.
field() {
    sed -n "s/^  \"$1\": \"\(.*\)\",\{0,1\}$/\1/p" <<<"$attempt"
}
field state
if [[ $(field next) == NEXT_REPEAT ]]; then
    echo "not before $(field nextTime)" >&2
    exit 75
fi
