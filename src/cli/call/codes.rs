//! What the exit codes of `ringonce call …` mean, as `--help` says it; the table of README.md
//! has the same.

/// Of `call place`.
pub(super) const PLACE: &str = "\
Exit codes:
  0  answered, ended, or accepted where no more was waited for
  1  not connected, not dialed, or canceled
  2  wrong usage
  3  refused or deferred
  4  uncertain, or a person must look; or no answer before the deadline: the same again is safe
  5  unreachable, or nothing was decided: also if the attempt id was used for another call
  6  still queued, reserved or dialing when the wait ended";

/// How `call cancel` is written: one attempt, or all of some kind.
pub(super) const CANCEL_USAGE: &str = "\
ringonce call cancel --workspace <ID> --attempt <ID> [OPTIONS]
       ringonce call cancel --workspace <ID> [--campaign <ID>] [--contact <ID>]
           [--outreach <ID>] [--dry-run] [OPTIONS]
           (at least one of the three; of several only attempts that match all)";

/// Of `call get`.
pub(super) const GET: &str = "\
Exit codes:
  0  shown, whatever its state: that is in the text, or under `state` with --output json
  1  no such attempt
  2  wrong usage
  4  no answer before the deadline
  5  unreachable";

/// Of `call list`.
pub(super) const LIST: &str = "\
Exit codes:
  0  listed, also if there is none
  2  wrong usage
  4  no answer before the deadline
  5  unreachable";

/// Of `call watch`.
pub(super) const WATCH: &str = "\
Exit codes:
  0  nobody reads its output any more
  2  wrong usage, or a cursor that is too old or of another workspace
  4  --deadline passed, which is how a watch with one ends: what it watches goes on; or the
     connection broke
  5  unreachable, the service shuts down, or too many watches are open
After 4 and 5 the same with --after and the last cursor goes on; it is said on stderr.";

/// Of `call cancel`.
pub(super) const CANCEL: &str = "\
Exit codes:
  0  canceled: nothing is dialed, or it was stopped or hung up; also if it was canceled before
  1  too late: it was over by itself, or had gone further than --mode reaches; or no such attempt
  2  wrong usage
  4  no answer before the deadline: the same again is safe
  5  unreachable, or nothing was decided
  6  being stopped: what became of it will be known later
With --campaign, --contact or --outreach: 0 if all are done or too late, or if there is none; 6 if
some are being stopped.";
