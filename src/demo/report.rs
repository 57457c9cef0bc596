//! What a side came to, counted by its platform.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::rooms::Logged;
use super::script::{Call, Scene};
use super::side::View;

/// What became of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The attempt, or the message.
    pub attempt: String,
    /// What happened to it, by script.
    pub scene: &'static str,
    /// How it ended, in a word or two.
    pub outcome: String,
    /// Why, in a sentence.
    pub why: String,
    /// The SIP calls that the platform counted.
    pub sip_calls: u32,
    /// How often the queue delivered it.
    pub deliveries: u32,
}

/// What a side came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The calls that were intended.
    pub attempts: usize,
    /// SIP calls, counted by the platform.
    pub sip_calls: u32,
    /// SIP calls beyond the first of a call.
    pub double_rings: u32,
    /// Persons who had two calls at the same moment, whoever made them.
    pub contacts_called_twice_at_once: usize,
    /// Rooms that the platform still has, and that nobody will delete.
    pub leaked_rooms: usize,
    /// Calls of which it is not known whether they were placed.
    pub uncertain: usize,
    /// What kept a phone from ringing once more, and how often.
    pub prevented: BTreeMap<String, u64>,
    /// Rooms that the server's log says were made; absent where there is no such log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rooms_created: Option<usize>,
    /// Rooms that it says are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rooms_deleted: Option<usize>,
    /// From the first process to the last count.
    pub elapsed_seconds: f64,
    /// Each call.
    pub calls: Vec<Told>,
    /// The other side, where both were played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naive: Option<Box<Report>>,
}

impl Report {
    /// Counts a side by the last look at it.
    pub(super) fn of(calls: &[Call], view: &View, deliveries: impl Fn(&Call) -> u32) -> Self {
        let told = |call: &Call| {
            let seen = view.seen(call);
            Told {
                attempt: call.id.clone(),
                scene: call.scene.title(),
                outcome: seen.word,
                why: seen.why,
                sip_calls: view.sip_calls(call),
                deliveries: deliveries(call),
            }
        };
        let told: Vec<Told> = calls.iter().map(told).collect();
        let mut contacts: Vec<&str> = calls.iter().map(|call| call.contact.as_str()).collect();
        contacts.dedup();
        let twice = |contact: &&str| view.most_at_once(contact) > 1;
        Self {
            attempts: calls.len(),
            sip_calls: told.iter().map(|call| call.sip_calls).sum(),
            double_rings: told
                .iter()
                .map(|call| call.sip_calls.saturating_sub(1))
                .sum(),
            contacts_called_twice_at_once: contacts.into_iter().filter(twice).count(),
            leaked_rooms: view.platform.rooms.len(),
            uncertain: calls
                .iter()
                .filter(|call| view.seen(call).uncertain)
                .count(),
            prevented: BTreeMap::new(),
            rooms_created: None,
            rooms_deleted: None,
            elapsed_seconds: 0.0,
            calls: told,
            naive: None,
        }
    }

    /// With what the server's log tells.
    pub(super) fn with_log(mut self, calls: &[Call], view: &View, logged: &Logged) -> Self {
        self.rooms_created = Some(logged.created.len());
        self.rooms_deleted = Some(logged.deleted.len());
        for (state, count) in &logged.redelivered {
            let reason = format!("redelivered_{}", state.to_lowercase());
            *self.prevented.entry(reason).or_default() += count;
        }
        for call in calls {
            let seen = view.seen(call);
            // The other causes of waiting are about pace, and about a next try.
            let held = ["CONTACT_RESERVED", "NUMBER_IN_USE"];
            for rule in held
                .into_iter()
                .filter(|rule| seen.kept.iter().any(|k| k == rule))
            {
                *self.prevented.entry(rule.to_lowercase()).or_default() += 1;
            }
            if call.scene == Scene::NoAgent && view.sip_calls(call) == 0 {
                *self.prevented.entry("no_agent".to_owned()).or_default() += 1;
            }
        }
        self
    }

    /// With what a worker says that it prevented.
    pub(super) fn preventing(self, prevented: BTreeMap<String, u64>) -> Self {
        Self { prevented, ..self }
    }

    /// With the time that it took.
    pub(super) fn after(mut self, elapsed: Duration) -> Self {
        self.elapsed_seconds = (elapsed.as_secs_f64() * 10.0).round() / 10.0;
        self
    }

    /// Whether every promise was kept: no call rang twice, nobody was called twice at once,
    /// and no room is left, neither on the platform nor in the log.
    #[must_use]
    pub fn kept(&self) -> bool {
        self.double_rings == 0
            && self.contacts_called_twice_at_once == 0
            && self.leaked_rooms == 0
            && self.rooms_created == self.rooms_deleted
    }
}
