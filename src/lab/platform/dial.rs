//! `CreateSIPParticipant` up to the moment when the call is accepted, in the order of
//! livekit-server: grant, validation, trunk, numbers, bridge, capacity.

use std::time::Duration;

use livekit_protocol as lk;

use super::agenda::{Event, Step};
use super::answer::{Code, Refusal};
use super::callees::script;
use super::calls::{Call, Stage};
use super::faults::Unbridged;
use super::machine::Platform;
use super::message::CallTicket;
use super::serve::Caller;
use super::trunks::no_trunk;

/// In bytes; a longer one cannot join a room.
const IDENTITY_LIMIT: usize = 256;
/// How long the bridge takes to send one digit, and to wait for one `w`.
const DIGIT: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(500);

impl Platform {
    /// Accepts a dial: the phone may ring from now on, whatever becomes of the caller.
    pub(super) fn dial(
        &mut self,
        caller: &Caller,
        dial: lk::CreateSipParticipantRequest,
    ) -> Result<CallTicket, Refusal> {
        self.counts.dial(&dial);
        caller.may(caller.claims.sip.call)?;
        validate(&dial)?;
        let (from, host) = self.route(&dial)?;
        self.bridge(&dial.sip_call_to)?;
        let times = &self.settings.times;
        let asked = caller.timeout_ms.map(Duration::from_millis);
        let default = if dial.wait_until_answered {
            times.deadline_waiting
        } else {
            times.deadline
        };
        let deadline = self.now + asked.unwrap_or(default);
        let ringing = span(dial.ringing_timeout.as_ref()).unwrap_or(times.ringing);
        let longest = span(dial.max_call_duration.as_ref())
            .map_or(times.max_call, |asked| asked.min(times.max_call));
        let join_at = self.now + times.join;
        let identity = if dial.participant_identity.is_empty() {
            format!("sip_{}", dial.sip_call_to)
        } else {
            dial.participant_identity.clone()
        };
        let ticket = self.ticket();
        let call = Call {
            ticket: Some(ticket),
            format: caller.format,
            script: script(&dial.sip_call_to),
            stage: Stage::Joining,
            killed: false,
            digits: digits(&dial.dtmf),
            participant: String::new(),
            sip_call_id: self.sid("SCL_"),
            identity,
            from,
            host,
            ringing,
            longest,
            leg: None,
            dial,
        };
        self.next_call += 1;
        let id = self.next_call;
        self.calls.insert(id, call);
        self.agenda.put(join_at, Event::Call(id, Step::Join));
        self.agenda.put(deadline, Event::Call(id, Step::Deadline));
        Ok(ticket)
    }

    /// The number to call from, and the trunk's host. A stored trunk wins over one that
    /// came with the request.
    fn route(&self, dial: &lk::CreateSipParticipantRequest) -> Result<(String, String), Refusal> {
        let trunk = if dial.sip_trunk_id.is_empty() {
            None
        } else {
            Some(self.trunks.get(&dial.sip_trunk_id).ok_or_else(no_trunk)?)
        };
        let number = if dial.sip_number.is_empty() {
            trunk.and_then(|trunk| trunk.numbers.first())
        } else {
            Some(&dial.sip_number)
        };
        let Some(number) = number else {
            let msg = "no numbers on outbound trunk".to_owned();
            return Err(Refusal::own(Code::FailedPrecondition, msg));
        };
        let inline = dial.trunk.as_ref().map(|trunk| &trunk.hostname);
        let Some(host) = trunk.map(|trunk| &trunk.address).or(inline) else {
            let msg = "invalid request URI: address must be set";
            return Err(Refusal::inner(Code::InvalidArgument, msg));
        };
        Ok((number.clone(), host.clone()))
    }

    /// Whether a bridge takes the call. Refusals here prove that no INVITE left.
    fn bridge(&mut self, to: &str) -> Result<(), Refusal> {
        let exhausted = || Refusal::inner(Code::Unavailable, "cpu exhausted");
        match self.faults.unbridged(to) {
            Some(Unbridged::Absent) => {
                return Err(Refusal::no_response().after(self.settings.times.no_bridge));
            }
            Some(Unbridged::Overload) => return Err(exhausted()),
            None => {}
        }
        let second = self.now.as_secs();
        if self.dials_in_second.0 != second {
            self.dials_in_second = (second, 0);
        }
        self.dials_in_second.1 += 1;
        match self.settings.capacity {
            Some(capacity) if self.dials_in_second.1 > capacity => Err(exhausted()),
            Some(_) | None => Ok(()),
        }
    }
}

fn validate(dial: &lk::CreateSipParticipantRequest) -> Result<(), Refusal> {
    let invalid = |msg: &str| Err(Refusal::own(Code::InvalidArgument, msg.to_owned()));
    if dial.sip_trunk_id.is_empty() && dial.trunk.is_none() && dial.sip_number.is_empty() {
        return invalid("missing sip trunk id and sip number");
    }
    if let Some(trunk) = &dial.trunk {
        if trunk.hostname.is_empty() {
            return invalid("no outbound hostname specified");
        }
        if trunk.hostname.contains('@') || trunk.hostname.starts_with("sip:") {
            return invalid("trunk hostname should be a hostname or IP, not SIP URI");
        }
    }
    if dial.sip_call_to.is_empty() {
        return invalid("missing sip callee number");
    }
    if dial.sip_call_to.contains('@') {
        return invalid("SipCallTo should be a phone number or SIP user, not a full SIP URI");
    }
    if dial.room_name.is_empty() {
        return invalid("missing room name");
    }
    if dial.participant_identity.len() > IDENTITY_LIMIT {
        let msg = "update room failed: participant identity length exceeds limits";
        return Err(Refusal::inner(Code::Internal, msg));
    }
    Ok(())
}

/// A positive span; LiveKit takes zero and less as unset.
fn span(asked: Option<&pbjson_types::Duration>) -> Option<Duration> {
    let asked = asked?;
    let seconds = u64::try_from(asked.seconds).ok()?;
    let nanos = u32::try_from(asked.nanos).ok()?;
    Some(Duration::new(seconds, nanos)).filter(|span| !span.is_zero())
}

/// How long the digits take that are sent after the answer, before the reply.
fn digits(dtmf: &str) -> Duration {
    dtmf.chars()
        .map(|digit| if digit == 'w' { PAUSE } else { DIGIT })
        .sum()
}
