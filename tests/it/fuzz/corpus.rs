//! What is bent: what LiveKit was recorded to send and to answer, and sound requests.

use livekit_protocol as livekit;
use prost::Message as _;
use ringonce::api::{RequestLimits, proto};
use ringonce::inbox::token::Signers;
use ringonce::model::id::{Deployment, Partition, SessionId};
use ringonce::model::time::Time;
use secrecy::ExposeSecret as _;
use serde_json::Value;

use crate::inbox::sign;
use crate::world::credentials;

const WEBHOOKS: &str = include_str!("../../fixtures/livekit/webhooks.jsonl");
const ANSWERS: &str = include_str!("../../fixtures/livekit/twirp.jsonl");

/// When all tokens are good.
pub(super) const NOW: i64 = 1_800_000_000;

/// The inputs.
pub(super) struct Corpus {
    /// Events, half of them of a room of ours.
    pub(super) events: Vec<Value>,
    /// Genuine tokens.
    pub(super) tokens: Vec<Box<str>>,
    /// Claims, as they are signed.
    pub(super) claims: Vec<Box<str>>,
    /// Recorded answers: status and body.
    pub(super) answers: Vec<(u16, Vec<u8>)>,
    /// Protobuf answers to each kind of request.
    pub(super) lists: Vec<Box<[u8]>>,
    /// Requests to place a call.
    pub(super) requests: Vec<Box<[u8]>>,
    pub(super) signers: Signers,
    pub(super) limits: RequestLimits,
}

pub(super) fn deployment() -> Deployment {
    "d-1".parse().unwrap()
}

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

impl Corpus {
    pub(super) fn new() -> Self {
        let (ws, id) = ("w".parse().unwrap(), "a".parse().unwrap());
        let session = SessionId::of(&deployment(), &ws, &id, 1);
        let mut events = Vec::new();
        for mut line in lines(WEBHOOKS) {
            let foreign = line["body"].take();
            let mut ours = foreign.clone();
            ours["room"]["name"] = session.room(Partition(0)).as_str().into();
            events.extend([foreign, ours]);
        }
        let tokens = events.iter().take(40).map(|event| {
            let body = event.to_string();
            sign::over(body.as_bytes(), NOW).into_boxed_str()
        });
        let answers = lines(ANSWERS).map(|line| {
            let status = line["http_status"].as_u64().unwrap_or(200);
            (
                u16::try_from(status).unwrap(),
                line["body"].to_string().into_bytes(),
            )
        });
        let own = credentials();
        let claims = format!(
            "{{\"iss\":\"{}\",\"nbf\":{NOW},\"exp\":{},\"sha256\":\
             \"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\"}}",
            own.key,
            NOW + 300
        );
        let secret = own.secret.expose_secret().to_owned();
        Self {
            tokens: tokens.collect(),
            events,
            claims: vec![claims.into_boxed_str()],
            answers: answers.collect(),
            lists: lists(),
            requests: requests(),
            limits: RequestLimits::default(),
            signers: Signers::new(
                [(own.key, secret.into())].into(),
                std::time::Duration::from_mins(1),
            ),
        }
    }
}

fn lists() -> Vec<Box<[u8]>> {
    let rooms = livekit::ListRoomsResponse {
        rooms: vec![livekit::Room {
            sid: "RM_1".to_owned(),
            name: "ringonce-0-x".to_owned(),
            metadata: "{\"v\":1,\"deployment\":\"d-1\"}".to_owned(),
            creation_time: NOW,
            ..Default::default()
        }],
    };
    let people = livekit::ListParticipantsResponse {
        participants: vec![livekit::ParticipantInfo {
            sid: "PA_1".to_owned(),
            identity: "callee-x".to_owned(),
            attributes: [("sip.callStatus".to_owned(), "active".to_owned())].into(),
            ..Default::default()
        }],
    };
    let leg = livekit::SipParticipantInfo {
        sip_call_id: "SCL_1".to_owned(),
        participant_id: "PA_1".to_owned(),
        ..Default::default()
    };
    let of = |bytes: Vec<u8>| bytes.into_boxed_slice();
    vec![
        of(rooms.encode_to_vec()),
        of(people.encode_to_vec()),
        of(leg.encode_to_vec()),
    ]
}

fn requests() -> Vec<Box<[u8]>> {
    let intended = pbjson_types::Timestamp {
        seconds: NOW,
        nanos: 0,
    };
    let least = proto::PlaceCallRequest {
        workspace: "w".to_owned(),
        attempt_id: "a1".to_owned(),
        contact_id: "c1".to_owned(),
        outreach_id: "o1".to_owned(),
        to: "+12025550100".to_owned(),
        intend_time: Some(intended),
        ..Default::default()
    };
    let most = proto::PlaceCallRequest {
        campaign_id: "spring".to_owned(),
        from: "+12025550199".to_owned(),
        trunk: "main".to_owned(),
        dial_digits: "ww12#".to_owned(),
        sip_headers: [("X-Case".to_owned(), "7".to_owned())].into(),
        contact_time_zone: "Europe/Berlin".to_owned(),
        priority: 3,
        labels: [("k".to_owned(), "v".to_owned())].into(),
        ringing_timeout: Some(std::time::Duration::from_secs(20).into()),
        follows: Some(proto::Follows {
            attempt_id: "a0".to_owned(),
            reason: "asked for it".to_owned(),
        }),
        agent: Some(proto::Agent {
            name: "caller".to_owned(),
            metadata: "{}".to_owned(),
            ..Default::default()
        }),
        ..least.clone()
    };
    [least, most]
        .map(|request| request.encode_to_vec().into_boxed_slice())
        .into()
}

pub(super) fn now() -> Time {
    Time::from_secs(NOW)
}
