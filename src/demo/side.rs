//! One side of the demo: a worker, its queue and its platform, looked at all the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::queue::{Queue, Seen, Worker};
use super::script::{Call, WORKSPACE};
use super::times::PATIENCE;
use crate::lab::platform::State;
use crate::lab::stack::Sandbox;
use crate::runtime::tasks::Tasks;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// What was seen last.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// What the platform counted.
    pub(super) platform: State,
    /// What the worker makes of its calls, by id.
    pub(super) seen: BTreeMap<String, Seen>,
}

impl View {
    /// The SIP calls that the platform counted for a call, by its number: whatever room and
    /// session they were in.
    pub(super) fn sip_calls(&self, call: &Call) -> u32 {
        self.legs(call).map(|leg| leg.count).sum()
    }

    /// Whether a phone of this call rings now.
    pub(super) fn rings(&self, call: &Call) -> bool {
        self.legs(call).any(|leg| leg.status == "ringing")
    }

    /// Whether a phone of this call rings or talks now.
    pub(super) fn lives(&self, call: &Call) -> bool {
        let legs = &self.platform.legs_by_number;
        legs.get(&call.to).is_some_and(|legs| legs.now > 0)
    }

    /// How many phones of one person rang or talked at once, at most.
    pub(super) fn most_at_once(&self, contact: &str) -> u32 {
        let legs = &self.platform.legs_by_contact;
        legs.get(&format!("{WORKSPACE}/{contact}"))
            .map_or(0, |legs| legs.most)
    }

    /// What the worker makes of a call.
    pub(super) fn seen(&self, call: &Call) -> Seen {
        self.seen.get(&call.id).cloned().unwrap_or_default()
    }

    fn legs(&self, call: &Call) -> impl Iterator<Item = &crate::lab::platform::SipCall> {
        self.platform
            .sip_calls
            .iter()
            .filter(|leg| leg.to == call.to)
    }
}

/// A worker, its queue, its platform.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) worker: Arc<dyn Worker>,
    pub(super) queue: Queue,
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) calls: Arc<Vec<Call>>,
    view: watch::Receiver<View>,
    act: watch::Sender<&'static str>,
}

/// A scene that did not come about.
#[derive(Debug, thiserror::Error)]
#[error("{0} did not come about; is this host very busy?")]
pub struct Late(pub String);

impl Side {
    /// Begins to look.
    pub(super) async fn open(
        worker: Arc<dyn Worker>,
        sandbox: Arc<Sandbox>,
        calls: Arc<Vec<Call>>,
        tasks: &Tasks,
    ) -> Result<Self, crate::lab::stack::Error> {
        let first = View {
            platform: sandbox.state().await?,
            seen: BTreeMap::new(),
        };
        let (views, view) = watch::channel(first);
        let looking = look(Arc::clone(&worker), Arc::clone(&sandbox), views);
        tasks.spawn("demo-look", looking);
        Ok(Self {
            queue: Queue::new(Arc::clone(&worker), tasks.clone()),
            worker,
            sandbox,
            calls,
            view,
            act: watch::Sender::new("starting"),
        })
    }

    /// Says what is being played.
    pub(super) fn say(&self, act: &'static str) {
        self.act.send_replace(act);
    }

    /// What is being played.
    pub(super) fn act(&self) -> &'static str {
        *self.act.borrow()
    }

    /// What was seen last.
    pub(super) fn view(&self) -> View {
        self.view.borrow().clone()
    }

    /// How often the queue has delivered a call's message.
    pub(super) fn deliveries(&self, call: &Call) -> u32 {
        self.queue.message(&call.id).deliveries
    }

    /// Waits until what is seen looks so.
    pub(super) async fn until(
        &self,
        what: &str,
        looks: impl Fn(&View) -> bool,
    ) -> Result<View, Late> {
        let mut view = self.view.clone();
        match tokio::time::timeout(PATIENCE, view.wait_for(looks)).await {
            Ok(Ok(found)) => Ok(found.clone()),
            Ok(Err(_)) | Err(_) => Err(Late(what.to_owned())),
        }
    }

    /// Waits until a phone of this call rings.
    pub(super) async fn ringing(&self, call: &Call) -> Result<(), Late> {
        let what = format!("a ringing phone for {}", call.id);
        self.until(&what, |view| view.rings(call)).await.map(drop)
    }
}

/// Looks until nobody wants to know any more. A platform that cannot be asked shows what it
/// showed last; the waits for it have their own limit.
async fn look(worker: Arc<dyn Worker>, sandbox: Arc<Sandbox>, views: watch::Sender<View>) {
    let mut pace = tokio::time::interval(LOOK);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !views.is_closed() {
        pace.tick().await;
        let seen = worker.look().await;
        let platform = sandbox.state().await.ok();
        views.send_modify(|view| {
            if let Some(seen) = seen {
                view.seen = seen;
            }
            if let Some(platform) = platform {
                view.platform = platform;
            }
        });
    }
}
