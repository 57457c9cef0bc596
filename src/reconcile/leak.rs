//! Whether a room is a leak, and why: pure.
//!
//! A leak is a room that should not be there and that nobody is about to see to. What is
//! merely on its way (its try ended a moment ago, its horizon has not passed) is none, or
//! whoever watches for leaks would be woken by every call.

use crate::ledger::record::{Room, RoomState};
use crate::model::attempt::{Attempt, State};
use crate::model::id::{AttemptId, Deployment, SessionId, Workspace};
use crate::model::time::Time;
use crate::provider::{Metadata, RoomSeen};

/// A room as the ledger and the platform have it together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Whose it is: this deployment's.
    pub deployment: Deployment,
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt whose try it was made for.
    pub attempt: AttemptId,
    /// That try.
    pub session: SessionId,
    /// The attempt's state; `None` if the ledger does not know the attempt.
    pub attempt_state: Option<State>,
    /// Whether it is the room of the attempt's present try, and that one is not over.
    pub owned: bool,
    /// What the ledger says of it; `None` if it has no record.
    pub record: Option<RoomState>,
    /// Whether the platform lists it.
    pub listed: bool,
    /// Who is in it.
    pub leg: Leg,
    /// When it was planned, or else when the platform made it.
    pub created_at: Option<Time>,
    /// From then on the platform can no longer make it anew by a late join.
    pub horizon: Option<Time>,
    /// Why it is a leak, if it is one.
    pub leak: Option<Leak>,
}

/// Who is in a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// Not asked, or the platform did not say.
    Unknown,
    /// No SIP leg that lives.
    None,
    /// A phone that is dialed, rings or is answered.
    Lives,
}

/// Why a room is a leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leak {
    /// Its metadata is ours and the ledger has no record of it.
    NoRecord,
    /// It has the name of a room of ours and not our nonce: of a history that this store has
    /// lost, or somebody else's. It is not ours to delete.
    OtherHistory,
    /// It is recorded as wanted, and no live attempt owns it.
    NoOwner,
    /// It is to be deleted, and that has failed or is overdue.
    NotDeleted,
    /// It was gone and is listed after its horizon: a late join made it anew.
    CameBack,
}

/// What is known of one room, read in this order: the platform's list, then record and
/// attempt at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    /// As the platform lists it.
    pub(super) listed: Option<&'a RoomSeen>,
    /// As the ledger records it.
    pub(super) record: Option<&'a Room>,
    /// The attempt that it was made for.
    pub(super) attempt: Option<&'a Attempt>,
}

/// Where a room stands; `None` if it is not this deployment's, and then it is nobody's
/// business here. Who is in it is not looked at: a leg makes no room wanted.
#[must_use]
pub(super) fn judge(facts: Facts<'_>, ours: &Deployment, now: Time) -> Option<Standing> {
    let routing = facts
        .listed
        .and_then(|seen| match Metadata::read(&seen.metadata, ours) {
            Metadata::Ours(routing) => Some(routing),
            Metadata::Foreign | Metadata::NotJson => None,
        });
    let (workspace, attempt, session) = match (facts.record, &routing) {
        (Some(record), _) => (&record.workspace, &record.attempt, record.session),
        (None, Some(routing)) => (&routing.workspace, &routing.attempt, routing.session),
        // Without a record a name alone proves nothing: two deployments make names alike.
        (None, None) => return None,
    };
    let name = match (facts.record, facts.listed) {
        (Some(record), _) => record.name.as_str().to_owned(),
        (None, seen) => seen.map(|seen| seen.name.clone()).unwrap_or_default(),
    };
    let owned = facts.attempt.is_some_and(|attempt| {
        let present = attempt.placed.as_ref().map(|placed| placed.session);
        present == Some(session) && attempt.state.holds()
    });
    Some(Standing {
        name,
        deployment: ours.clone(),
        workspace: workspace.clone(),
        attempt: attempt.clone(),
        session,
        attempt_state: facts.attempt.map(|attempt| attempt.state),
        owned,
        record: facts.record.map(|record| record.state),
        listed: facts.listed.is_some(),
        leg: Leg::Unknown,
        created_at: facts
            .record
            .map(|record| record.planned_at)
            .or_else(|| facts.listed.and_then(|seen| seen.created_at)),
        horizon: facts.record.and_then(|record| record.horizon),
        leak: match facts.record {
            None => Some(Leak::NoRecord),
            Some(record) => leak(record, facts.listed, ours, owned, now),
        },
    })
}

/// Why the room of a record is a leak, if it is one.
fn leak(
    record: &Room,
    listed: Option<&RoomSeen>,
    ours: &Deployment,
    owned: bool,
    now: Time,
) -> Option<Leak> {
    if listed.is_some_and(|seen| !is_ours(record, &seen.metadata, ours)) {
        return Some(Leak::OtherHistory);
    }
    if owned {
        return None;
    }
    let may_not_appear = record.horizon.unwrap_or(record.planned_at) <= now;
    match record.state {
        RoomState::Planned | RoomState::Created => Some(Leak::NoOwner),
        RoomState::Closing => {
            // What was never confirmed and is not listed is waited for until its horizon: that
            // is not a deletion which failed.
            let there = listed.is_some() || record.sid.is_some() || may_not_appear;
            let overdue = record.setbacks > 0 || record.due.is_none_or(|due| due <= now);
            (there && overdue).then_some(Leak::NotDeleted)
        }
        RoomState::Gone => (listed.is_some() && may_not_appear).then_some(Leak::CameBack),
        RoomState::Tombstone => listed.is_some().then_some(Leak::CameBack),
    }
}

/// Whether a listed room is the recorded one: by its nonce, or without metadata, as a late
/// join makes it.
fn is_ours(record: &Room, metadata: &str, ours: &Deployment) -> bool {
    match Metadata::read(metadata, ours) {
        Metadata::Ours(routing) => {
            routing.session == record.session && routing.nonce == record.nonce
        }
        Metadata::NotJson => metadata.is_empty(),
        Metadata::Foreign => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::id::{Nonce, Partition};

    const NOW: Time = Time::from_secs(1_000);

    fn ours() -> Deployment {
        "d".parse().unwrap()
    }

    fn record(state: RoomState) -> Room {
        let workspace: Workspace = "w".parse().unwrap();
        let attempt: AttemptId = "a".parse().unwrap();
        let session = SessionId::of(&ours(), &workspace, &attempt, 1);
        Room {
            workspace,
            attempt,
            session,
            name: session.room(Partition(0)),
            nonce: Nonce(uuid::Uuid::from_u128(7)),
            state,
            planned_at: Time::from_secs(500),
            sid: Some("RM_1".to_owned()),
            trunk: None,
            cause: None,
            horizon: Some(NOW.plus(Duration::from_mins(1))),
            due: Some(NOW.plus(Duration::from_secs(1))),
            setbacks: 0,
            leg_seen: false,
            rest: serde_json::Map::new(),
        }
    }

    fn seen(record: &Room) -> RoomSeen {
        RoomSeen {
            name: record.name.to_string(),
            sid: "RM_1".to_owned(),
            metadata: String::new(),
            created_at: None,
        }
    }

    /// Why the room leaks whose attempt is forgotten, and whether it does where it is not
    /// listed.
    fn leaks(record: &Room) -> (Option<Leak>, Option<Leak>) {
        let of = |listed: Option<&RoomSeen>| {
            let facts = Facts {
                listed,
                record: Some(record),
                attempt: None,
            };
            judge(facts, &ours(), NOW).expect("it is recorded").leak
        };
        (of(Some(&seen(record))), of(None))
    }

    #[test]
    fn what_nobody_owns_is_a_leak_wherever_it_is() {
        for state in [RoomState::Planned, RoomState::Created] {
            let both = (Some(Leak::NoOwner), Some(Leak::NoOwner));
            assert_eq!(leaks(&record(state)), both);
        }
    }

    #[test]
    fn a_deletion_is_overdue_when_it_failed_or_nobody_came() {
        let mut room = record(RoomState::Closing);
        assert_eq!(leaks(&room), (None, None), "it is not due yet");
        room.due = Some(NOW);
        let both = (Some(Leak::NotDeleted), Some(Leak::NotDeleted));
        assert_eq!(leaks(&room), both);
        room.due = Some(NOW.plus(Duration::from_secs(9)));
        room.setbacks = 1;
        assert_eq!(leaks(&room), both);
        // What was never confirmed may appear until its horizon; to wait for it is no failure.
        room.sid = None;
        assert_eq!(leaks(&room), (Some(Leak::NotDeleted), None));
        room.horizon = Some(NOW);
        assert_eq!(leaks(&room), both);
    }

    #[test]
    fn what_came_back_is_a_leak_once_nothing_more_can_come() {
        let mut room = record(RoomState::Gone);
        assert_eq!(
            leaks(&room),
            (None, None),
            "it is looked for after its horizon"
        );
        room.horizon = Some(NOW);
        assert_eq!(leaks(&room), (Some(Leak::CameBack), None));
        let buried = record(RoomState::Tombstone);
        assert_eq!(leaks(&buried), (Some(Leak::CameBack), None));
    }

    #[test]
    fn without_a_record_metadata_alone_says_whose_it_is() {
        let mut stranger = seen(&record(RoomState::Created));
        for metadata in ["", "hello", r#"{"v":1,"deployment":"e"}"#] {
            stranger.metadata = metadata.to_owned();
            let facts = Facts {
                listed: Some(&stranger),
                record: None,
                attempt: None,
            };
            assert_eq!(judge(facts, &ours(), NOW), None, "{metadata}");
        }
    }
}
