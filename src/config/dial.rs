//! `[dial]`: the one request that rings a phone, and every time that follows from it.

use std::time::Duration;

use super::reader::Reader;
use super::units::{DAY, HOUR, MILLISECOND, MINUTE, SECOND};
use crate::model::id::{AgentName, TrunkName};

/// The one request that rings a phone, and every time that follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dial {
    /// The trunk of a request that names none.
    pub trunk: TrunkName,
    /// The agent of a request that names none; `None`: the request must.
    pub agent: Option<AgentName>,
    /// How long it rings when the request does not say.
    pub ringing_timeout: Duration,
    /// The shortest ringing that a request may ask for.
    pub ringing_timeout_min: Duration,
    /// The longest ringing that a request may ask for.
    pub ringing_timeout_max: Duration,
    /// The longest call when the request does not say.
    pub max_call_duration: Duration,
    /// The longest call that a request may ask for.
    pub max_call_duration_max: Duration,
    /// A call's maximum must exceed its ringing by more than this.
    pub max_call_duration_margin: Duration,
    /// Signs of `dial_digits` at most.
    pub digits_max: usize,
    /// How long after the minting of its token the dial may still be sent.
    pub send_by: Duration,
    /// Server's deadline = ringing + digits + this.
    pub server_slack: Duration,
    /// Client's timeout = server's deadline + this.
    pub client_slack: Duration,
    /// The schedulers' queues redeliver what is not acknowledged within ringing + this.
    pub acknowledgement: Duration,
    /// Window = max(ringing + acknowledgement, client's timeout + this).
    pub window_slack: Duration,
    /// Horizon without an answer = `send_by` + token leeway + server's deadline + this.
    pub no_answer_slack: Duration,
    /// Horizon after `deadline_exceeded` = the answer + this.
    pub deadline_exceeded_slack: Duration,
    /// Horizon after another unclear answer = the answer + server's deadline + this.
    pub unclear_slack: Duration,
    /// How long before the end of the ringing the participant is looked at once.
    pub look_before_ring_end: Duration,
    /// "sip request timed out" is `NO_ANSWER` between the ringing's end and this much later.
    pub ring_answer_slack: Duration,
    /// A 480 that comes sooner than this is the carrier's lack of a channel, no person.
    pub fast_reject: Duration,
    /// How long contact and number are kept after an end for which a CANCEL was sent.
    pub hold_after_cancel: Duration,
    /// How long they are kept when none was, or nobody knows.
    pub hold_after_silence: Duration,
    /// Dials of this process that may be pending at once.
    pub in_flight: u32,
    /// Whether LiveKit keeps the number out of the room's attributes.
    pub hide_phone_number: bool,
}

impl Dial {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("dial");
        let slack = MILLISECOND..=HOUR;
        // The interface promises no more, and 80 s is LiveKit's own deadline for a dial that
        // waits for its answer.
        let ringing = MILLISECOND..=SECOND * 80;
        Self {
            trunk: s.parsed("trunk", "main"),
            agent: s.optional_parsed("agent", "caller"),
            ringing_timeout: s.duration("ringing_timeout", ringing.clone()),
            ringing_timeout_min: s.duration("ringing_timeout_min", ringing.clone()),
            ringing_timeout_max: s.duration("ringing_timeout_max", ringing),
            max_call_duration: s.duration("max_call_duration", SECOND..=DAY),
            max_call_duration_max: s.duration("max_call_duration_max", SECOND..=DAY),
            max_call_duration_margin: s.duration("max_call_duration_margin", Duration::ZERO..=HOUR),
            digits_max: s.number("digits_max", 0..=256),
            send_by: s.duration("send_by", MILLISECOND..=MINUTE),
            server_slack: s.duration("server_slack", slack.clone()),
            client_slack: s.duration("client_slack", slack.clone()),
            acknowledgement: s.duration("acknowledgement", Duration::ZERO..=HOUR),
            window_slack: s.duration("window_slack", slack.clone()),
            no_answer_slack: s.duration("no_answer_slack", slack.clone()),
            deadline_exceeded_slack: s.duration("deadline_exceeded_slack", slack.clone()),
            unclear_slack: s.duration("unclear_slack", slack.clone()),
            look_before_ring_end: s.duration("look_before_ring_end", MILLISECOND..=MINUTE),
            ring_answer_slack: s.duration("ring_answer_slack", MILLISECOND..=MINUTE),
            fast_reject: s.duration("fast_reject", Duration::ZERO..=MINUTE),
            hold_after_cancel: s.duration("hold_after_cancel", slack.clone()),
            hold_after_silence: s.duration("hold_after_silence", slack),
            in_flight: s.number("in_flight", 1..=100_000),
            hide_phone_number: s.flag("hide_phone_number"),
        }
    }
}
