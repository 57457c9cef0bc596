//! From a receipt to an observation: pure.
//!
//! Partition and session come from the room's name, since a room that a late join made has no
//! metadata. Metadata says whose a room of an unknown session is, and whose it is not.

use serde_json::Value;

use super::event::{Object, Type, reason};
use crate::model::id::{Deployment, Nonce, Partition, RoomName, SessionId};
use crate::model::observation::{
    CallStatus, Left, LeftReason, Observation, Person, Role, RoomSight, Source,
};
use crate::model::time::Time;
use crate::provider::{Metadata, RoutingMetadata};

/// What a receipt says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Something of a room whose name has the form of ours.
    Seen(Box<Sight>),
    /// Something of a room that is not ours.
    Foreign,
    /// Nothing of calls.
    Ignored,
    /// Nothing that this version can read.
    Unread(&'static str),
}

/// An observation of a room, and whose it says that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The partition, from the room's name.
    pub partition: Partition,
    /// The session, from the room's name.
    pub session: SessionId,
    /// What its metadata says.
    pub owner: Owner,
    /// What was seen.
    pub seen: Observation,
    /// Why not all of it was read, if it was not.
    pub unread: Option<&'static str>,
}

/// Whose a room is by its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// Ours, of this session.
    Ours(Box<RoutingMetadata>),
    /// It does not say: it has none, as a room that a late join made, or somebody in the room
    /// wrote something else into it.
    Unsaid,
}

impl Owner {
    /// The nonce of the try, if it says.
    #[must_use]
    pub fn nonce(&self) -> Option<Nonce> {
        match self {
            Self::Ours(routing) => Some(routing.nonce),
            Self::Unsaid => None,
        }
    }
}

/// Reads `body`, which arrived at `received`, for the installation `ours`.
#[must_use]
pub fn read(body: &Value, received: Time, ours: &Deployment) -> Said {
    let Some(event) = Object::of(body) else {
        return Said::Unread("the body is no object");
    };
    let kind = match Type::read(event.long_text("event")) {
        Type::Other => return Said::Ignored,
        Type::Unknown => return Said::Unread("an event of an unknown type"),
        known @ (Type::RoomStarted
        | Type::RoomFinished
        | Type::Present
        | Type::Left
        | Type::Aborted) => known,
    };
    let Some(room) = event.object("room") else {
        return Said::Unread("an event without a room");
    };
    let name = room.long_text("name");
    let Some((partition, session)) = ours_by_name(name) else {
        return Said::Foreign;
    };
    let Some(owner) = owner(room.long_text("metadata"), session, ours) else {
        return Said::Foreign;
    };
    let at = event.seconds("createdAt").unwrap_or(received);
    let seen = RoomSight {
        sid: room.text("sid").unwrap_or_default().to_owned(),
        created: room.time("creationTime"),
        finished: (kind == Type::RoomFinished).then_some(at),
    };
    let (person, unread) = match event.object("participant") {
        Some(participant) => person(participant, kind, at, session),
        None => (None, None),
    };
    Said::Seen(Box::new(Sight {
        partition,
        session,
        owner,
        seen: Observation {
            at,
            source: Source::Webhook,
            room: (!seen.sid.is_empty()).then_some(seen),
            people: person.into_iter().collect(),
        },
        unread,
    }))
}

/// The name must be ours to the letter: another spelling of the same session is another room.
fn ours_by_name(name: &str) -> Option<(Partition, SessionId)> {
    let (partition, session) = RoomName::parse(name)?;
    (session.room(partition).as_str() == name).then_some((partition, session))
}

/// `None`: another installation's, or another session's.
fn owner(metadata: &str, session: SessionId, ours: &Deployment) -> Option<Owner> {
    match Metadata::read(metadata, ours) {
        Metadata::Ours(routing) => (routing.session == session).then_some(Owner::Ours(routing)),
        Metadata::NotJson => Some(Owner::Unsaid),
        Metadata::Foreign => {
            let json: Value = serde_json::from_str(metadata).unwrap_or_default();
            let other = json.get("deployment").and_then(Value::as_str);
            other
                .is_none_or(|other| other == ours.as_str())
                .then_some(Owner::Unsaid)
        }
    }
}

fn person(
    participant: Object<'_>,
    event: Type,
    at: Time,
    session: SessionId,
) -> (Option<Person>, Option<&'static str>) {
    let Some(sid) = participant.text("sid") else {
        return (None, None);
    };
    let identity = participant.text("identity").unwrap_or_default();
    let ours = identity == session.identity();
    let attribute = |name: &str| {
        let attributes = participant.object("attributes")?;
        attributes.text(name).map(str::to_owned)
    };
    let kind = participant.name("kind");
    let (role, known) = match kind.as_deref() {
        // Track events name no kind; the identity is the session's alone.
        _ if ours => (leg(true, &attribute), true),
        Some("SIP" | "3") => (leg(false, &attribute), true),
        Some("AGENT" | "4") => {
            let name = attribute("lk.agent.name").or_else(|| attribute("lk.agent_name"));
            (Role::Agent(name), true)
        }
        None
        | Some(
            "STANDARD" | "INGRESS" | "EGRESS" | "CONNECTOR" | "BRIDGE" | "0" | "1" | "2" | "7"
            | "8",
        ) => (Role::Other, true),
        Some(_) => (Role::Other, false),
    };
    let left = matches!(event, Type::Left | Type::Aborted).then(|| reason(participant, event));
    let unread = match (known, left) {
        (false, _) => Some("a participant of an unknown kind"),
        (true, Some((_, false))) => Some("a participant left for an unknown reason"),
        (true, Some((_, true)) | None) => None,
    };
    let person = Person {
        sid: sid.to_owned(),
        identity: identity.to_owned(),
        role,
        joined: participant.time("joinedAt"),
        left: left.map(|(reason, _): (LeftReason, bool)| Left { at, reason }),
    };
    (Some(person), unread)
}

fn leg(ours: bool, attribute: &dyn Fn(&str) -> Option<String>) -> Role {
    Role::Leg {
        ours,
        call: attribute("sip.callID"),
        status: attribute("sip.callStatus").map(|text| CallStatus::read(&text)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::observation::Call;

    const RECEIVED: Time = Time::from_secs(1_800_000_000);

    fn ours() -> Deployment {
        "d-1".parse().unwrap()
    }

    fn session() -> SessionId {
        let (ws, id) = ("w".parse().unwrap(), "a".parse().unwrap());
        SessionId::of(&ours(), &ws, &id, 1)
    }

    fn body(event: &str, metadata: &str) -> Value {
        json!({
            "event": event,
            "id": "EV_1",
            "createdAt": "1795967305",
            "room": {
                "sid": "RM_1",
                "name": session().room(Partition(0)).as_str(),
                "creationTime": "1795967300",
                "metadata": metadata,
            },
            "participant": {"sid": "PA_1", "identity": session().identity(), "kind": "SIP"},
        })
    }

    fn sight(body: &Value) -> Sight {
        match read(body, RECEIVED, &ours()) {
            Said::Seen(sight) => *sight,
            said @ (Said::Foreign | Said::Ignored | Said::Unread(_)) => panic!("{said:?}"),
        }
    }

    #[test]
    fn a_room_of_our_name_with_foreign_metadata_is_left_alone() {
        for metadata in [
            r#"{"deployment":"d-2"}"#,
            r#"{"v":1,"deployment":"elsewhere"}"#,
        ] {
            let body = body("participant_joined", metadata);
            assert_eq!(read(&body, RECEIVED, &ours()), Said::Foreign);
        }
        for metadata in ["", "hello", "[]", "{}", r#"{"deployment":7}"#] {
            assert_eq!(
                sight(&body("participant_joined", metadata)).owner,
                Owner::Unsaid
            );
        }
        let mut other = body("participant_joined", "");
        for name in ["", "room", "ringonce-0-x", "ringonce-00-", "RINGONCE"] {
            other["room"]["name"] = name.into();
            assert_eq!(read(&other, RECEIVED, &ours()), Said::Foreign, "{name}");
        }
        let shouted = format!("ringonce-0-{}", session().to_string().to_uppercase());
        other["room"]["name"] = shouted.into();
        assert_eq!(read(&other, RECEIVED, &ours()), Said::Foreign);
    }

    #[test]
    fn r24_what_is_new_is_passed_over_and_what_is_unknown_is_noted() {
        let mut newer = body("participant_left", "");
        newer["zzz"] = json!([1, {"a": null}]);
        newer["room"]["version"] = json!({"unixMicro": "1760000000000000", "ticks": 1});
        newer["participant"]["disconnectReason"] = "USER_REJECTED".into();
        let known = sight(&newer);
        assert_eq!(known.unread, None);
        newer["participant"]["disconnectReason"] = "ABDUCTED".into();
        let unknown = sight(&newer);
        assert!(unknown.unread.is_some());
        // A later version that knows the reason learns it from the same receipt.
        let mut call = Call::default();
        call.merge(&unknown.seen);
        assert!(call.merge(&known.seen));
        let (_, leg) = call.leg().unwrap();
        assert_eq!(leg.left.unwrap().reason, LeftReason::UserRejected);
        newer["event"] = "participant_levitated".into();
        assert!(matches!(read(&newer, RECEIVED, &ours()), Said::Unread(_)));
        newer["event"] = "egress_ended".into();
        assert_eq!(read(&newer, RECEIVED, &ours()), Said::Ignored);
    }

    #[test]
    fn r27_an_aborted_join_is_no_end_and_r28_sids_tell_joins_apart() {
        let aborted = sight(&body("participant_connection_aborted", ""));
        let left = aborted.seen.people.first().and_then(|person| person.left);
        assert_eq!(left.map(|left| left.reason), Some(LeftReason::Aborted));
        let mut call = Call::default();
        for (event, sid, joined) in [
            ("participant_joined", "PA_1", "100"),
            ("participant_joined", "PA_2", "104"),
            ("participant_left", "PA_1", "100"),
        ] {
            let mut body = body(event, "");
            body["participant"]["sid"] = sid.into();
            body["participant"]["joinedAt"] = joined.into();
            call.merge(&sight(&body).seen);
        }
        let (sid, leg) = call.leg().unwrap();
        assert_eq!((sid, leg.left), ("PA_2", None), "the later join lives");
    }

    #[test]
    fn who_is_in_the_room_is_told_apart() {
        let with = |identity: &str, kind: Value| {
            let mut body = body("participant_joined", "");
            body["participant"]["identity"] = identity.into();
            body["participant"]["kind"] = kind;
            let role = sight(&body).seen.people.first().map(|p| p.role.clone());
            role.unwrap()
        };
        let identity = session().identity();
        let is_leg =
            |role: &Role, own: bool| matches!(role, Role::Leg { ours, .. } if *ours == own);
        assert!(is_leg(&with(&identity, json!("SIP")), true));
        assert!(is_leg(&with(&identity, Value::Null), true), "a track event");
        assert!(is_leg(&with("sip_other", json!("SIP")), false));
        assert!(is_leg(&with("sip_other", json!(3)), false));
        assert_eq!(with("agent-1", json!("AGENT")), Role::Agent(None));
        assert_eq!(with("somebody", Value::Null), Role::Other);
    }

    proptest::proptest! {
        #[test]
        fn no_json_makes_it_panic(text in "\\PC{0,80}", number in proptest::prelude::any::<i64>()) {
            let mut body = body("participant_left", &text);
            body["createdAt"] = number.into();
            body["participant"]["joinedAtMs"] = number.into();
            body["participant"]["kind"] = text.clone().into();
            body["participant"]["attributes"] = json!({"sip.callStatus": text});
            let _said = read(&body, RECEIVED, &ours());
            let loose: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            let _said = read(&loose, RECEIVED, &ours());
        }
    }
}
