//! Every recorded answer to a dial, with the verdict that it must have.

use std::collections::BTreeMap;

use ringonce::model::disposition::Disposition as D;
use ringonce::provider::classify::{trunk_missing, verdict};
use ringonce::provider::wire::Answer;
use serde_json::Value;

use super::answers::{brief, context, done, over, page, twirp};

const RECORDED: &str = include_str!("../../fixtures/livekit/twirp.jsonl");

/// The carrier's SIP status, and the verdict on it.
const CARRIER: [(u16, D); 22] = [
    (302, D::Redirected),
    (400, D::CarrierRefused),
    (401, D::TrunkAuth),
    (402, D::CarrierRefused),
    (403, D::CarrierRefused),
    (404, D::WrongNumber),
    (408, D::NoAnswer),
    (410, D::WrongNumber),
    (480, D::Unavailable),
    (484, D::WrongNumber),
    (486, D::Busy),
    (487, D::StoppedOnPlatform),
    (488, D::MediaMismatch),
    (500, D::CarrierFailure),
    (501, D::CarrierFailure),
    (503, D::CarrierFailure),
    (504, D::NoAnswer),
    (600, D::Busy),
    (603, D::Declined),
    (604, D::WrongNumber),
    (607, D::Blocked),
    (608, D::Blocked),
];

/// The scenario, its ringing timeout in seconds, and the verdict on it. That a dial did not wait
/// for an answer cannot be told from its answer, so every dial here waits.
const SCENARIOS: [(&str, u64, &str); 22] = [
    ("trunk missing", 30, "not dialed: TrunkNotFound"),
    (
        "answered after 1.2 s",
        30,
        "answered SCL_XSvakaWahfcp PA_baWBnNrW79bB",
    ),
    (
        "wait_until_answered false",
        30,
        "answered SCL_JZmzvWpn6kxj PA_9L8XAztmGWeK",
    ),
    (
        "rang, ringing_timeout 6 s",
        6,
        "not connected: NoAnswer 0 Canceled",
    ),
    (
        "100 Trying only, ringing_timeout 6 s",
        6,
        "not connected: NoAnswer 0 Canceled",
    ),
    (
        "carrier silent (transaction timer)",
        45,
        "not connected: NoAnswer 0 Silent",
    ),
    (
        "200 OK without a common codec",
        30,
        "not connected: MediaMismatch 0 Over",
    ),
    (
        "room deleted at 3 s while ringing",
        30,
        "uncertain: TornDown",
    ),
    (
        "participant removed at 3 s while ringing",
        30,
        "uncertain: TornDown",
    ),
    (
        "X-Twirp-Timeout-Ms 5000 while ringing",
        30,
        "uncertain: DeadlineExceeded",
    ),
    ("same identity again: first call", 30, "uncertain: TornDown"),
    (
        "same identity again: second call",
        5,
        "not connected: NoAnswer 0 Canceled",
    ),
    (
        "trunk host dead, UDP, ringing_timeout 10 s",
        10,
        "not connected: NoAnswer 0 Canceled",
    ),
    (
        "trunk host dead, TCP",
        30,
        "not connected: TrunkUnreachable 0 Silent",
    ),
    (
        "trunk host unknown to DNS",
        30,
        "not connected: TrunkUnreachable 0 Silent",
    ),
    (
        "token without the grant",
        30,
        "not dialed: CredentialsRefused",
    ),
    (
        "token with a bad signature",
        30,
        "not dialed: CredentialsRefused",
    ),
    ("token expired", 30, "not dialed: CredentialsRefused"),
    (
        "no SIP bridge running",
        30,
        "not dialed: PlatformOverloaded",
    ),
    (
        "SIP bridge killed while ringing, X-Twirp-Timeout-Ms 20000",
        30,
        "uncertain: DeadlineExceeded",
    ),
    ("callee number empty", 30, "not dialed: RequestRejected"),
    ("callee is a SIP URI", 30, "not dialed: RequestRejected"),
];

/// Every verdict that is written out, by scenario.
fn expected() -> BTreeMap<String, (u64, String)> {
    let carrier = CARRIER.into_iter().map(|(code, disposition)| {
        // LiveKit keeps the status to itself when it was challenged.
        let kept = if code == 401 { 0 } else { code };
        (
            format!("carrier status {code}"),
            (30, over(disposition, kept)),
        )
    });
    let rest = SCENARIOS
        .into_iter()
        .map(|(scenario, ring, wanted)| (scenario.to_owned(), (ring, wanted.to_owned())));
    carrier.chain(rest).collect()
}

/// The answer as the protobuf client gets it.
fn recorded(line: &Value) -> Answer {
    let status = u16::try_from(line["http_status"].as_u64().unwrap()).unwrap();
    let body = &line["body"];
    if status == 200 {
        let id = |name: &str| body[name].as_str().unwrap_or_default();
        return done(id("sip_call_id"), id("participant_id"));
    }
    match body.as_str() {
        Some(text) => page(status, text),
        None => twirp(status, body),
    }
}

#[test]
fn every_recorded_dial_has_its_verdict() {
    let mut expected = expected();
    let mut missing = 0;
    for line in RECORDED.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["rpc"] != "SIP/CreateSIPParticipant" {
            continue;
        }
        let scenario = line["scenario"].as_str().unwrap();
        let (ring, wanted) = expected
            .remove(scenario)
            .unwrap_or_else(|| panic!("no verdict is written out for {scenario:?}"));
        let answer = recorded(&line);
        let context = context(line["seconds"].as_f64().unwrap(), ring);
        assert_eq!(brief(&verdict(&answer, &context)), wanted, "{scenario}");
        missing += usize::from(trunk_missing(&answer));
    }
    assert!(expected.is_empty(), "not recorded: {expected:?}");
    assert_eq!(missing, 1, "one recorded dial found its trunk missing");
}

/// The other methods' recorded errors are read by the same reader as the dial's.
#[test]
fn every_recorded_error_is_read_with_its_status() {
    for line in RECORDED.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let status = line["http_status"].as_u64().unwrap();
        match recorded(&line) {
            Answer::Done(_) => assert_eq!(status, 200),
            Answer::Refused(refusal) => {
                assert_eq!(u64::from(refusal.status), status);
                assert_eq!(refusal.code, line["body"]["code"]);
            }
            Answer::Strange(read) => {
                assert_eq!(u64::from(read), status);
                assert!(line["body"].is_string(), "{line}");
            }
            other @ (Answer::NotSent(_) | Answer::Lost(_)) => panic!("{other:?}"),
        }
    }
}
