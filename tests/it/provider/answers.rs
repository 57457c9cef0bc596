//! Answers to a dial as they come off the wire, and verdicts in one line.

use std::time::Duration;

use livekit_protocol as proto;
use prost::Message;
use ringonce::model::disposition::Disposition;
use ringonce::model::verdict::Verdict;
use ringonce::provider::classify::DialContext;
use ringonce::provider::twirp::{PROTOBUF, read};
use ringonce::provider::wire::Answer;
use serde_json::Value;

pub(super) fn context(elapsed: f64, ring: u64) -> DialContext {
    DialContext {
        elapsed: Duration::from_secs_f64(elapsed),
        ringing_timeout: Duration::from_secs(ring),
        ring_slack: Duration::from_secs(8),
        // The recorded carrier refuses at once, since it is a script and no exchange.
        fast_reject: Duration::from_millis(500),
        stop_recorded: false,
    }
}

pub(super) fn twirp(status: u16, body: &Value) -> Answer {
    read(status, Some("application/json"), body.to_string().into())
}

pub(super) fn page(status: u16, body: &str) -> Answer {
    read(status, Some("text/html"), body.as_bytes().to_vec())
}

pub(super) fn done(call: &str, participant: &str) -> Answer {
    let info = proto::SipParticipantInfo {
        sip_call_id: call.to_owned(),
        participant_id: participant.to_owned(),
        ..Default::default()
    };
    read(200, Some(PROTOBUF), info.encode_to_vec())
}

/// A verdict in one line.
pub(super) fn brief(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Answered(leg) => format!("answered {} {}", leg.call, leg.participant),
        Verdict::NotDialed(why) => format!("not dialed: {why:?}"),
        Verdict::NotConnected(end) => {
            let sip = end.sip.as_ref().map_or(0, |sip| sip.code);
            format!("not connected: {:?} {sip} {:?}", end.disposition, end.after)
        }
        Verdict::Uncertain(why) => format!("uncertain: {why:?}"),
    }
}

pub(super) fn over(disposition: Disposition, sip: u16) -> String {
    format!("not connected: {disposition:?} {sip} Over")
}
