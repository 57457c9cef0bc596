//! Who is called, when and how.

use std::collections::BTreeMap;
use std::time::Duration;

use super::chance::Chance;
use super::plan::Plan;
use crate::model::attempt::{AgentWanted, Follows, Gate, Keep, Spec};
use crate::model::id::BadId;
use crate::model::phone::E164;
use crate::model::request::{Private, Request};
use crate::model::time::Time;

/// The scripts of the sandbox's numbers, the frequent ones more than once.
const SCRIPTS: [u8; 40] = [
    0, 0, 0, 1, 1, 1, 3, 4, 4, 5, 6, 8, 8, 10, 11, 11, 12, 13, 14, 15, 16, 18, 48, 53, 80, 86, 86,
    87, 89, 96, 96, 97, 97, 98, 98, 98, 99, 99, 99, 41,
];

/// A call that will be asked for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// When, since the world began.
    pub(super) at: Duration,
    number: usize,
    workspace: usize,
    contact: usize,
    to: usize,
    script: u8,
    agent: &'static str,
    ringing: Duration,
    expires: Duration,
    keep: Keep,
    priority: u8,
    follows: bool,
}

/// All calls of a world, in the order of their time.
pub(super) fn wanted(plan: &Plan) -> Vec<Wanted> {
    let chance = Chance::new(plan.seed, "calls");
    let scripts: Vec<u8> = (0..plan.contacts).map(|_| chance.of(0, &SCRIPTS)).collect();
    let mut calls: Vec<Wanted> = Vec::with_capacity(plan.calls);
    for number in 0..plan.calls {
        let mut call = one(plan, &chance, number);
        // Another scheduler may want the same contact at the same moment.
        if let Some(last) = calls.last().filter(|_| chance.hits(0.2)) {
            (call.workspace, call.contact) = (last.workspace, last.contact);
            call.at = last.at + chance.millis(0, 3);
            call.follows = chance.hits(0.3);
        }
        // Most people have a number of their own; some are reached by another's.
        call.to = match chance.below(10) {
            0 => chance.index(plan.contacts),
            1 => (call.contact + 1) % plan.contacts,
            _ => call.contact,
        };
        call.script = scripts.get(call.to).copied().unwrap_or(0);
        calls.push(call);
    }
    calls
}

fn one(plan: &Plan, chance: &Chance, number: usize) -> Wanted {
    let s = Duration::from_secs;
    Wanted {
        at: chance.span(Duration::ZERO, plan.span),
        number,
        workspace: chance.index(2),
        contact: chance.index(plan.contacts),
        to: 0,
        script: 0,
        agent: match chance.below(25) {
            0 => "tardy",
            1 => "leaver",
            2 => "twins",
            _ => "caller",
        },
        ringing: chance.of(s(45), &[s(10), s(20)]),
        expires: chance.span(s(60), s(900)),
        keep: if chance.hits(0.2) {
            Keep::Return
        } else {
            Keep::UntilExpiry
        },
        priority: u8::try_from(chance.below(10)).unwrap_or(0),
        follows: false,
    }
}

impl Wanted {
    /// The id of its attempt.
    pub(super) fn id(&self) -> String {
        format!("a{}", self.number)
    }

    /// How the judge calls it.
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.workspace(), self.id())
    }

    /// The same key for somebody else, who answers.
    pub(super) fn of_another_contact(&self) -> Self {
        Self {
            contact: self.contact + 1_000_000,
            to: self.to + 1_000_000,
            script: 0,
            ..self.clone()
        }
    }

    /// The workspace that it is in.
    pub(super) const fn workspace(&self) -> &'static str {
        if self.workspace == 0 { "w" } else { "v" }
    }

    /// The request, as a scheduler that decides `now` makes it once and repeats it.
    ///
    /// # Errors
    ///
    /// If a name of the simulation is none.
    pub(super) fn request(&self, now: Time) -> Result<Request, BadId> {
        let id = self.id();
        let before = self.number.saturating_sub(1);
        let follows = self.follows.then(|| {
            Ok(Follows {
                attempt: format!("a{before}").parse()?,
                reason: "asked to be called again".to_owned(),
            })
        });
        Ok(Request {
            workspace: self.workspace().parse()?,
            attempt: id.parse()?,
            spec: Spec {
                contact: format!("c{}", self.contact).parse()?,
                outreach: format!("o{}", self.number).parse()?,
                campaign: Some(format!("campaign-{}", self.number % 5).parse()?),
                follows: follows.transpose()?,
                intend_time: now,
                expire_time: now.plus(self.expires),
                keep: self.keep,
                trunk: "main".parse()?,
                agent: AgentWanted {
                    name: self.agent.parse()?,
                    gate: Gate::Joined,
                    join_ms: 10_000,
                },
                ringing_ms: u64::try_from(self.ringing.as_millis()).unwrap_or(45_000),
                max_call_ms: 3_600_000,
                time_zone: None,
                priority: self.priority,
                labels: BTreeMap::new(),
            },
            private: Private {
                to: self.number(),
                from: None,
                dial_digits: String::new(),
                sip_headers: BTreeMap::new(),
                agent_metadata: String::new(),
            },
        })
    }

    fn number(&self) -> E164 {
        let text = format!("+999{:08}{:02}", self.to, self.script);
        text.parse()
            .expect("thirteen digits behind a plus are a number")
    }
}
