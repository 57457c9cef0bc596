//! What happened and what lives, for tests and for whoever looks at the sandbox.

use std::collections::BTreeMap;

use livekit_protocol as lk;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine::Platform;

/// The SIP calls of one session, attempt and number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SipCall {
    /// The participant's attribute `ringonce.session`; its identity where there is none.
    pub session: String,
    /// The attempt, from the room's metadata; empty where it has none.
    pub attempt: String,
    /// The number dialed.
    pub to: String,
    /// How many INVITEs left.
    pub count: u32,
    /// Of the last one: `dialing`, `ringing`, `active`; when it is over `not_connected`
    /// or `ended`.
    pub status: String,
}

/// A room that lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomView {
    /// Its name.
    pub name: String,
    /// Its id.
    pub sid: String,
    /// The identities of those inside.
    pub participants: Vec<String>,
}

/// How the webhooks fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookCounts {
    /// Events that a receiver took.
    pub sent: u64,
    /// Tries after a first one.
    pub retried: u64,
    /// Events given up.
    pub dropped: u64,
}

/// Phones that rang or talked at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegPeak {
    /// Now.
    pub now: u32,
    /// At most, ever. More than one for a contact is a double ring.
    pub most: u32,
}

/// The view of a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The SIP calls, by session, attempt and number.
    pub sip_calls: Vec<SipCall>,
    /// The rooms that live.
    pub rooms: Vec<RoomView>,
    /// How the webhooks fared.
    pub webhooks: WebhookCounts,
    /// `CreateSIPParticipant` received, by session; also those that were refused.
    pub dials: BTreeMap<String, u32>,
    /// Requests by method.
    pub requests: BTreeMap<String, u64>,
    /// Legs by number.
    pub legs_by_number: BTreeMap<String, LegPeak>,
    /// Legs by contact, as `workspace/contact` from the room's metadata.
    pub legs_by_contact: BTreeMap<String, LegPeak>,
}

impl State {
    pub(super) fn of(platform: &Platform) -> Self {
        let counts = &platform.counts;
        Self {
            sip_calls: counts.sip_calls.values().cloned().collect(),
            rooms: platform
                .rooms
                .values()
                .map(|room| RoomView {
                    name: room.record.name.clone(),
                    sid: room.record.sid.clone(),
                    participants: room
                        .people
                        .iter()
                        .map(|person| person.info.identity.clone())
                        .collect(),
                })
                .collect(),
            webhooks: platform.hooks.counts,
            dials: counts.dials.clone(),
            requests: counts.requests(),
            legs_by_number: counts.by_number.clone(),
            legs_by_contact: counts.by_contact.clone(),
        }
    }
}

type Key = (String, String, String);

/// A phone that rings or talks, for the counts.
#[derive(Debug)]
pub(super) struct Leg {
    key: Key,
    contact: Option<String>,
    answered: bool,
}

/// Something that happened to a phone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phone {
    /// The session that the dial named.
    pub session: String,
    /// The number dialed.
    pub to: String,
    /// What happened.
    pub what: PhoneEvent,
}

/// What happened to a phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhoneEvent {
    /// An INVITE left: from here on it may ring.
    Starts,
    /// It was answered.
    Answered,
    /// Somebody listed the people of its room.
    Listed {
        /// Whether the list says that it was answered.
        answered: bool,
    },
    /// It is silent.
    Ends {
        /// Whether somebody talked.
        answered: bool,
        /// Whether the bridge was put out of its room, and hung up for that.
        put_out: bool,
    },
}

impl Leg {
    pub(super) fn session(&self) -> &str {
        &self.key.0
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    /// What happened to phones, while somebody wants to know.
    pub(super) phones: Option<Vec<Phone>>,
    sip_calls: BTreeMap<Key, SipCall>,
    dials: BTreeMap<String, u32>,
    requests: BTreeMap<&'static str, u64>,
    by_number: BTreeMap<String, LegPeak>,
    by_contact: BTreeMap<String, LegPeak>,
}

impl Counts {
    pub(super) fn request(&mut self, method: &'static str) {
        *self.requests.entry(method).or_default() += 1;
    }

    /// Requests by method.
    pub(super) fn requests(&self) -> BTreeMap<String, u64> {
        let owned = |(method, count): (&&str, &u64)| ((*method).to_owned(), *count);
        self.requests.iter().map(owned).collect()
    }

    pub(super) fn dial(&mut self, dial: &lk::CreateSipParticipantRequest) {
        *self.dials.entry(session(dial)).or_default() += 1;
    }

    /// An INVITE leaves.
    pub(super) fn leg_starts(
        &mut self,
        dial: &lk::CreateSipParticipantRequest,
        room_metadata: &str,
    ) -> Leg {
        let metadata: Value = serde_json::from_str(room_metadata).unwrap_or_default();
        let told = |key: &str| metadata.get(key).and_then(Value::as_str).map(str::to_owned);
        let key = (
            session(dial),
            told("attempt").unwrap_or_default(),
            dial.sip_call_to.clone(),
        );
        let call = self
            .sip_calls
            .entry(key.clone())
            .or_insert_with(|| SipCall {
                session: key.0.clone(),
                attempt: key.1.clone(),
                to: key.2.clone(),
                count: 0,
                status: String::new(),
            });
        call.count += 1;
        let contact = told("contact")
            .map(|contact| format!("{}/{contact}", told("workspace").unwrap_or_default()));
        rises(&mut self.by_number, &key.2);
        if let Some(contact) = &contact {
            rises(&mut self.by_contact, contact);
        }
        let leg = Leg {
            key,
            contact,
            answered: false,
        };
        self.tell(&leg, PhoneEvent::Starts);
        leg
    }

    /// The callee of `leg` answered.
    pub(super) fn leg_answered(&mut self, leg: &mut Leg) {
        leg.answered = true;
        self.tell(leg, PhoneEvent::Answered);
    }

    /// The people of its room were listed.
    pub(super) fn leg_listed(&mut self, leg: &Leg, answered: bool) {
        self.tell(leg, PhoneEvent::Listed { answered });
    }

    fn tell(&mut self, leg: &Leg, what: PhoneEvent) {
        let (session, _, to) = &leg.key;
        if let Some(phones) = &mut self.phones {
            phones.push(Phone {
                session: session.clone(),
                to: to.clone(),
                what,
            });
        }
    }

    pub(super) fn leg_is(&mut self, leg: &Leg, status: &str) {
        if let Some(call) = self.sip_calls.get_mut(&leg.key) {
            status.clone_into(&mut call.status);
        }
    }

    pub(super) fn leg_ends(&mut self, leg: &Leg, put_out: bool) {
        let answered = leg.answered;
        self.tell(leg, PhoneEvent::Ends { answered, put_out });
        if let Some(call) = self.sip_calls.get_mut(&leg.key) {
            let over = if call.status == "active" {
                "ended"
            } else {
                "not_connected"
            };
            over.clone_into(&mut call.status);
        }
        falls(&mut self.by_number, &leg.key.2);
        if let Some(contact) = &leg.contact {
            falls(&mut self.by_contact, contact);
        }
    }
}

fn session(dial: &lk::CreateSipParticipantRequest) -> String {
    dial.participant_attributes
        .get("ringonce.session")
        .unwrap_or(&dial.participant_identity)
        .clone()
}

fn rises(legs: &mut BTreeMap<String, LegPeak>, key: &str) {
    let peak = legs.entry(key.to_owned()).or_default();
    peak.now += 1;
    peak.most = peak.most.max(peak.now);
}

fn falls(legs: &mut BTreeMap<String, LegPeak>, key: &str) {
    if let Some(peak) = legs.get_mut(key) {
        peak.now = peak.now.saturating_sub(1);
    }
}
