//! The script: which calls are intended, and what happens to each.

use std::time::Duration;

/// The tenant of the demo.
pub(super) const WORKSPACE: &str = "demo";
/// The agent that the sandbox has a worker for.
const AGENT: &str = "caller";
/// An agent that nobody runs.
const NOBODY: &str = "nobody";
/// What the sandbox takes in a second; the campaign stays below it until it does not.
pub(super) const CAPACITY: u32 = 8;
/// Calls that are asked for in one moment.
const BURST: usize = 12;
/// Deliveries of one message in one moment, while its phone rings.
pub(super) const STORM: u32 = 20;
/// Phones that ring when the server is killed.
const KILLED: usize = 3;

/// What happens to a call; one row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scene {
    /// It is answered.
    Answered,
    /// 486.
    Busy,
    /// 603.
    Declined,
    /// 404.
    WrongNumber,
    /// 503.
    CarrierFailure,
    /// It rings out, and the queue delivers again while it rings.
    NoAnswer,
    /// While it rings, its message is delivered many times at once.
    Storm,
    /// Two campaigns want one person at the same moment.
    TwoCampaigns,
    /// Nobody runs its agent.
    NoAgent,
    /// It is answered, and the platform's reply is lost.
    LostReply,
    /// Whoever asked hangs up while it rings.
    CallerGone,
    /// It is canceled while it rings.
    Canceled,
    /// More calls at once than the platform takes.
    Overload,
    /// Its reply is lost, and no webhook arrives either.
    Outage,
    /// The server is killed while phones ring.
    Killed,
    /// The platform has lost its trunks and made them again under other ids.
    TrunkFlush,
}

impl Scene {
    /// Every scene, in the order in which it is played.
    pub(super) const ALL: [Self; 16] = [
        Self::Answered,
        Self::Busy,
        Self::Declined,
        Self::WrongNumber,
        Self::CarrierFailure,
        Self::NoAnswer,
        Self::Storm,
        Self::TwoCampaigns,
        Self::NoAgent,
        Self::LostReply,
        Self::CallerGone,
        Self::Canceled,
        Self::Overload,
        Self::Outage,
        Self::Killed,
        Self::TrunkFlush,
    ];

    /// What happens, in a line.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Answered => "a person answers",
            Self::Busy => "the line is busy",
            Self::Declined => "the person declines",
            Self::WrongNumber => "the number is wrong",
            Self::CarrierFailure => "the carrier fails",
            Self::NoAnswer => "nobody answers; delivered again",
            Self::Storm => "delivered twenty times at once",
            Self::TwoCampaigns => "two campaigns want one person",
            Self::NoAgent => "the agent never joins",
            Self::LostReply => "answered, and the reply is lost",
            Self::CallerGone => "the client leaves while it rings",
            Self::Canceled => "canceled while it rings",
            Self::Overload => "twelve at once, room for eight",
            Self::Outage => "no reply, and no webhook either",
            Self::Killed => "kill -9 while three phones ring",
            Self::TrunkFlush => "the platform loses its trunks",
        }
    }

    /// The calls of this scene, by their ids' end, contact and number's end.
    fn calls(self) -> Vec<Call> {
        let one = |id: &str, contact: &str, digits: &str| {
            let to = format!("+120255501{digits}");
            Call::new(self, id, contact, to)
        };
        let many = |count: usize, id: &str, script: &str| {
            (1..=count)
                .map(|n| {
                    let name = format!("{id}-{n}");
                    let to = format!("+999{:02}0000{n:02}{script}", self as u8);
                    Call::new(self, &name, &name, to)
                })
                .collect()
        };
        match self {
            Self::Answered => vec![one("answered", "ada", "00")],
            Self::Busy => vec![one("busy", "ben", "86")],
            Self::Declined => vec![one("declined", "cleo", "03")],
            Self::WrongNumber => vec![one("wrong-number", "dan", "04")],
            Self::CarrierFailure => vec![one("carrier-failure", "eve", "53")],
            Self::NoAnswer => vec![one("no-answer", "finn", "08")],
            Self::Storm => vec![rings(self, "storm", "mia")],
            // Two numbers of one person: no lock on a number would see it.
            Self::TwoCampaigns => {
                let second = one("survey", "gus", "20");
                vec![rings(self, "renewal", "gus"), second]
            }
            Self::NoAgent => vec![Call {
                agent: NOBODY,
                join_timeout: Some(Duration::from_millis(500)),
                ..one("no-agent", "hana", "21")
            }],
            Self::LostReply => vec![one("lost-reply", "ida", "22")],
            Self::CallerGone => vec![one("caller-gone", "jon", "23")],
            Self::Canceled => vec![rings(self, "canceled", "kim")],
            Self::Overload => many(BURST, "burst", "00"),
            Self::Outage => vec![one("outage", "noa", "24")],
            Self::Killed => many(KILLED, "killed", "08"),
            Self::TrunkFlush => {
                let to = format!("+999{:02}00000086", self as u8);
                vec![Call::new(self, "trunk-flush", "lou", to)]
            }
        }
    }
}

/// A call that rings and is never answered: only one number of the block for fiction does.
fn rings(scene: Scene, id: &str, contact: &str) -> Call {
    let to = format!("+999{:02}00000008", scene as u8);
    Call::new(scene, id, contact, to)
}

/// One intended call. No two have the same number, so that the platform's count by number
/// is the count by call, whatever a worker tells the platform.
#[derive(Clone)]
pub(super) struct Call {
    /// The id of the attempt, and of the queue's message.
    pub(super) id: String,
    /// Whom.
    pub(super) contact: String,
    /// The number.
    pub(super) to: String,
    /// The agent.
    pub(super) agent: &'static str,
    /// How long the agent may take; the server's own time if `None`.
    pub(super) join_timeout: Option<Duration>,
    /// What happens to it.
    pub(super) scene: Scene,
}

// The number is not shown.
impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("scene", &self.scene)
            .finish_non_exhaustive()
    }
}

impl Call {
    fn new(scene: Scene, id: &str, contact: &str, to: String) -> Self {
        Self {
            id: id.to_owned(),
            contact: contact.to_owned(),
            to,
            agent: AGENT,
            join_timeout: None,
            scene,
        }
    }
}

/// All calls, in the order in which they are asked for.
pub(super) fn calls() -> Vec<Call> {
    Scene::ALL.into_iter().flat_map(Scene::calls).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_call_has_its_own_id_and_number() {
        let calls = calls();
        let ids: BTreeSet<_> = calls.iter().map(|call| &call.id).collect();
        let numbers: BTreeSet<_> = calls.iter().map(|call| &call.to).collect();
        assert_eq!((ids.len(), numbers.len()), (calls.len(), calls.len()));
    }
}
