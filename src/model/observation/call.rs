//! What was gathered of one session's call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::seen::{CallStatus, Left, Observation, Person, Role, RoomSight, Source, Span};
use crate::model::time::Time;

/// The most joins that are kept of a session's SIP legs. A session dials once, or twice with
/// the heal of a trunk; a restarted platform joins its leg again. The callee's go before
/// others.
const LEGS_MAX: usize = 16;

/// The most agents that are kept: one is right, two are a fault that shows.
const AGENTS_MAX: usize = 8;

/// The most rooms of one name that are kept: late joins make a deleted one anew.
const ROOMS_MAX: usize = 8;

/// Everything that was seen of a session's call, merged by meaning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The rooms of its name, by sid.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rooms: BTreeMap<String, RoomSeen>,
    /// SIP legs, by participant sid: the callee's joins and those of others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub legs: BTreeMap<String, Leg>,
    /// Agents, by participant sid.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Agent>,
    /// Whether there were more of them than are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// When webhooks told of it, by the platform's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Span>,
    /// When looks showed it, by ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked: Option<Span>,
}

/// A room of the session's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomSeen {
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Time>,
    /// When it was finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Time>,
}

/// One join of a SIP leg.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "separate facts, each of which once true stays true"
)]
pub struct Leg {
    /// Whether its identity is the session's; another's is a leg that we did not dial.
    #[serde(default)]
    pub ours: bool,
    /// Its identity.
    #[serde(default)]
    pub identity: String,
    /// The room's sid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// LiveKit's id of the SIP call (`SCL_…`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// When it was first seen, by whoever saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Time>,
    /// When it joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<Time>,
    /// It was ever seen `dialing`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dialing: bool,
    /// It was ever seen `ringing`: an INVITE left and the phone rang.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ringing: bool,
    /// It was ever seen `active` or `automation`: it was answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
    /// It was ever seen `hangup`: it was answered, and over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hangup: bool,
    /// When and why it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}

/// One join of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its identity.
    #[serde(default)]
    pub identity: String,
    /// The name that it registered with; none of a worker without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<Time>,
    /// When and why it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}

impl Call {
    /// Takes an observation in; whether that said anything new.
    pub fn merge(&mut self, seen: &Observation) -> bool {
        let before = self.clone();
        let span = match seen.source {
            Source::Webhook => &mut self.told,
            Source::Look => &mut self.looked,
        };
        span.get_or_insert(Span::at(seen.at)).reach(seen.at);
        if let Some(room) = &seen.room {
            self.take_room(room);
        }
        let room = seen.room.as_ref().map(|room| room.sid.as_str());
        for person in &seen.people {
            self.take_person(person, room, seen.at);
        }
        *self != before
    }

    fn take_room(&mut self, seen: &RoomSight) {
        let room = self.rooms.entry(seen.sid.clone()).or_default();
        earliest(&mut room.created, seen.created);
        earliest(&mut room.finished, seen.finished);
        if self.rooms.len() > ROOMS_MAX {
            self.rooms.pop_last();
            self.more = true;
        }
    }

    fn take_person(&mut self, seen: &Person, room: Option<&str>, at: Time) {
        match &seen.role {
            Role::Leg { ours, call, status } => {
                let leg = self.legs.entry(seen.sid.clone()).or_default();
                leg.ours |= ours;
                least(&mut leg.room, room);
                least(&mut leg.call, call.as_deref());
                earliest(&mut leg.first, Some(at));
                leg.is(*status);
                leg.identity.clone_from(&seen.identity);
                earliest(&mut leg.joined, seen.joined);
                leave(&mut leg.left, seen.left);
                self.drop_legs();
            }
            Role::Agent(name) => {
                let agent = self.agents.entry(seen.sid.clone()).or_default();
                least(&mut agent.name, name.as_deref());
                agent.identity.clone_from(&seen.identity);
                earliest(&mut agent.joined, seen.joined);
                leave(&mut agent.left, seen.left);
                if self.agents.len() > AGENTS_MAX {
                    self.agents.pop_last();
                    self.more = true;
                }
            }
            Role::Other => {}
        }
    }

    /// Which are kept depends on what they are, never on the order in which they came.
    fn drop_legs(&mut self) {
        if self.legs.len() <= LEGS_MAX {
            return;
        }
        let worst = self
            .legs
            .iter()
            .max_by_key(|(sid, leg)| (!leg.ours, (*sid).clone()))
            .map(|(sid, _)| sid.clone());
        if let Some(sid) = worst {
            self.legs.remove(&sid);
        }
        self.more = true;
    }

    /// The callee's leg and its sid: the last join of the session's identity, which supersedes
    /// the earlier ones.
    #[must_use]
    pub fn leg(&self) -> Option<(&str, &Leg)> {
        self.callees()
            .max_by_key(|(sid, leg)| (leg.joined.or(leg.first), *sid))
    }

    /// Every join of the session's identity, with its sid.
    pub fn callees(&self) -> impl Iterator<Item = (&str, &Leg)> {
        self.legs
            .iter()
            .filter(|(_, leg)| leg.ours)
            .map(|(sid, leg)| (sid.as_str(), leg))
    }

    /// SIP legs in the session's room that we did not dial, with their sids.
    pub fn foreign(&self) -> impl Iterator<Item = (&str, &Leg)> {
        self.legs
            .iter()
            .filter(|(_, leg)| !leg.ours)
            .map(|(sid, leg)| (sid.as_str(), leg))
    }

    /// Whether the phone was ever seen to ring: answered counts.
    #[must_use]
    pub fn rang(&self) -> bool {
        self.callees()
            .any(|(_, leg)| leg.ringing || leg.was_answered())
    }

    /// A join of the callee that was seen answered, the last of them.
    #[must_use]
    pub fn answered(&self) -> Option<(&str, &Leg)> {
        self.callees()
            .filter(|(_, leg)| leg.was_answered())
            .max_by_key(|(sid, leg)| (leg.joined.or(leg.first), *sid))
    }

    /// Whether a leg is over: it left, or its room was finished.
    #[must_use]
    pub fn is_over(&self, leg: &Leg) -> bool {
        let room = leg.room.as_ref().and_then(|sid| self.rooms.get(sid));
        leg.left.is_some() || room.is_some_and(|room| room.finished.is_some())
    }

    /// The callee's leg, if the last of them is over: it left for good, or its room was
    /// finished. A join that only made place for another, or that a server's end cut off, is
    /// not: it comes back under another sid.
    #[must_use]
    pub fn ended(&self) -> Option<(&str, &Leg)> {
        let (sid, leg) = self.leg()?;
        let room = leg.room.as_ref().and_then(|room| self.rooms.get(room));
        let finished = room.is_some_and(|room| room.finished.is_some());
        let left = leg.left.is_some_and(|left| left.reason.is_for_good());
        (finished || left).then_some((sid, leg))
    }

    /// LiveKit's id of the SIP call, as soon as anything showed it.
    #[must_use]
    pub fn call_id(&self) -> Option<&str> {
        self.leg()
            .and_then(|(_, leg)| leg.call.as_deref())
            .or_else(|| self.callees().find_map(|(_, leg)| leg.call.as_deref()))
    }

    /// Agents that joined and have not left, with their sids.
    pub fn agents_in(&self) -> impl Iterator<Item = (&str, &Agent)> {
        self.agents
            .iter()
            .filter(|(_, agent)| agent.left.is_none())
            .map(|(sid, agent)| (sid.as_str(), agent))
    }
}

impl Leg {
    /// Whether anything proves that it was answered.
    #[must_use]
    pub const fn was_answered(&self) -> bool {
        self.answered || self.hangup
    }

    fn is(&mut self, status: Option<CallStatus>) {
        match status {
            Some(CallStatus::Dialing) => self.dialing = true,
            Some(CallStatus::Ringing) => self.ringing = true,
            Some(CallStatus::Active | CallStatus::Automation) => self.answered = true,
            Some(CallStatus::Hangup) => self.hangup = true,
            Some(CallStatus::Other) | None => {}
        }
    }
}

fn earliest(known: &mut Option<Time>, seen: Option<Time>) {
    *known = match (*known, seen) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}

/// Of two texts that should be one, the lesser: symmetric.
fn least(known: &mut Option<String>, seen: Option<&str>) {
    if let Some(seen) = seen
        && known.as_deref().is_none_or(|known| seen < known)
    {
        *known = Some(seen.to_owned());
    }
}

fn leave(known: &mut Option<Left>, seen: Option<Left>) {
    *known = match (*known, seen) {
        (Some(a), Some(b)) => Some(a.best(b)),
        (a, b) => a.or(b),
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::observation::LeftReason;

    fn person(n: u8, role: u8, joined: u8, left: u8) -> Person {
        let statuses = [
            CallStatus::Dialing,
            CallStatus::Ringing,
            CallStatus::Active,
            CallStatus::Hangup,
        ];
        // As on the platform: one sid is one join of one participant.
        let kind = n % 3;
        Person {
            sid: format!("PA_{n}"),
            identity: format!("i-{kind}"),
            role: match kind {
                0 | 1 => Role::Leg {
                    ours: kind == 0,
                    call: (role > 1).then(|| format!("SCL_{n}")),
                    status: statuses.get(usize::from(role)).copied(),
                },
                _ => Role::Agent((role > 0).then(|| "bot".to_owned())),
            },
            joined: (joined > 0).then(|| Time::from_secs(i64::from(n))),
            left: (left > 0).then(|| Left {
                at: Time::from_secs(i64::from(left)),
                reason: if left > 2 {
                    LeftReason::Unknown
                } else {
                    LeftReason::UserRejected
                },
            }),
        }
    }

    fn observations() -> impl Strategy<Value = Vec<Observation>> {
        let one = (
            0_u8..80,
            0_u8..5,
            0_u8..2,
            0_u8..4,
            0_u8..12,
            0_i64..9,
            any::<bool>(),
        );
        let one = one.prop_map(|(n, role, joined, left, room, at, look)| Observation {
            at: Time::from_secs(at),
            source: if look { Source::Look } else { Source::Webhook },
            room: (room > 0).then(|| RoomSight {
                sid: format!("RM_{room}"),
                created: None,
                finished: (room > 6).then(|| Time::from_secs(at)),
            }),
            people: vec![person(n, role, joined, left)],
        });
        proptest::collection::vec(one, 1..60)
    }

    fn gathered<'a>(seen: impl IntoIterator<Item = &'a Observation>) -> Call {
        let mut call = Call::default();
        for observation in seen {
            call.merge(observation);
        }
        call
    }

    proptest! {
        #[test]
        fn neither_order_nor_repetition_shows(
            (seen, shuffled) in observations()
                .prop_flat_map(|seen| (Just(seen.clone()), Just(seen).prop_shuffle()))
        ) {
            let once = gathered(&seen);
            prop_assert_eq!(&gathered(&shuffled), &once);
            prop_assert_eq!(&gathered(seen.iter().rev().chain(&shuffled)), &once);
            let mut again = once;
            for observation in &seen {
                prop_assert!(!again.merge(observation), "it says nothing new");
            }
        }

        #[test]
        fn what_is_kept_is_bounded_and_reads_back(seen in observations()) {
            let call = gathered(&seen);
            prop_assert!(call.legs.len() <= LEGS_MAX && call.agents.len() <= AGENTS_MAX);
            prop_assert!(call.rooms.len() <= ROOMS_MAX);
            let text = serde_json::to_string(&call).unwrap();
            prop_assert_eq!(serde_json::from_str::<Call>(&text).unwrap(), call);
        }
    }

    #[test]
    fn a_later_join_supersedes_an_earlier_one() {
        let mut call = Call::default();
        for n in [9, 3] {
            call.merge(&Observation {
                at: Time::from_secs(1),
                source: Source::Webhook,
                room: None,
                people: vec![person(n, 0, 1, 0)],
            });
        }
        assert_eq!(call.leg().map(|(sid, _)| sid), Some("PA_9"));
    }
}
