//! Nodes in a simulated world: the harness of the tests that prove promises.

mod log;
mod strike;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringonce::config::Config;
use ringonce::lab::platform::{Fault, Settings, State as Seen};
use ringonce::lab::world::{World, WorldClock};
use ringonce::ledger::seal::Keys;
use ringonce::ledger::store::memory::Memory;
use ringonce::ledger::store::mortal::Mortal;
use ringonce::ledger::store::{Epoch, Store};
use ringonce::model::attempt::{AgentWanted, Attempt, Gate, Keep, Spec, State};
use ringonce::model::disposition::Disposition;
use ringonce::model::id::{AttemptId, Workspace};
use ringonce::model::request::{Private, Request};
use ringonce::model::time::Time;
use ringonce::node::{Ground, Node};
use ringonce::provider::Credentials;
use ringonce::provider::wire::Wire;
use ringonce::runtime::clock::Clock;
use ringonce::runtime::ids::RandomIds;
use ringonce::runtime::life::Life;
use ringonce::runtime::tasks::{Polls, Tasks};
use uuid::Uuid;

pub(crate) use log::RoomLog;
pub(crate) use strike::{Act, Strike};

/// A world with one store, in which nodes come and go.
pub(crate) struct Lab {
    pub(crate) world: Arc<World>,
    pub(crate) store: Memory,
    pub(crate) config: Arc<Config>,
    pub(crate) clock: Arc<WorldClock>,
    /// Whether a node that opens the store may take its predecessor for dead.
    pub(crate) alone: bool,
    /// What was logged of rooms.
    pub(crate) rooms: RoomLog,
    seed: u64,
    /// How many nodes there have been: each has chances of its own.
    nodes: Cell<u64>,
    epoch: Epoch,
    _tasks: Tasks,
}

/// A node and the switch that ends it.
pub(crate) struct Alive {
    pub(crate) node: Node,
    pub(crate) life: Life,
}

impl Alive {
    /// As `kill -9`: the ports go dead, then everything is dropped.
    pub(crate) async fn kill(self) {
        self.life.end();
        self.node.tasks().abort_all();
        assert!(
            self.node.tasks().idle(Duration::from_secs(1)).await,
            "a task outlived its node"
        );
    }

    pub(crate) async fn place(&self, request: Request) -> Attempt {
        self.node.admission().place(request).await.unwrap().0
    }

    pub(crate) async fn attempt(&self, id: &str) -> Attempt {
        let found = self
            .node
            .ledger()
            .attempt(&workspace(), &id.parse().unwrap())
            .await
            .unwrap();
        found.expect("the attempt is in the ledger").0
    }

    /// Waits until the attempt is as `until` says.
    pub(crate) async fn until(&self, id: &str, until: impl Fn(&Attempt) -> bool) -> Attempt {
        self.until_within(id, Duration::from_hours(2), until).await
    }

    pub(crate) async fn until_within(
        &self,
        id: &str,
        limit: Duration,
        until: impl Fn(&Attempt) -> bool,
    ) -> Attempt {
        let id: AttemptId = id.parse().unwrap();
        let mut news = self.node.ledger().watch(&workspace(), &id);
        let wait = async {
            loop {
                let found = self.node.ledger().attempt(&workspace(), &id).await.unwrap();
                if let Some((attempt, _)) = found.filter(|(attempt, _)| until(attempt)) {
                    return attempt;
                }
                news.changed().await.unwrap();
            }
        };
        let Ok(attempt) = tokio::time::timeout(limit, wait).await else {
            panic!("it stays {:?}", self.attempt(id.as_str()).await);
        };
        attempt
    }

    pub(crate) async fn until_state(&self, id: &str, state: State) -> Attempt {
        self.until(id, |attempt| attempt.state == state).await
    }

    pub(crate) async fn until_settled(&self, id: &str) -> Attempt {
        self.until(id, |attempt| {
            attempt.state.settled()
                || matches!(attempt.state, State::Uncertain | State::NeedsReview)
        })
        .await
    }
}

impl Lab {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(seed, "", |_| {})
    }

    /// With a configuration over the defaults and a platform that is set up anew.
    pub(crate) fn with(seed: u64, config: &str, set: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings {
            seed,
            ..Settings::default()
        };
        set(&mut settings);
        let world = World::new(settings);
        let tasks = Tasks::default();
        tasks.spawn("world", Arc::clone(&world).run());
        let clock = world.clock();
        let since = clock.now().minus(Duration::from_hours(1));
        let epoch = Epoch {
            id: Uuid::from_u128(7),
            since,
        };
        // The numbers for load have no country.
        let config = format!("{config}\n[numbers]\ntest_prefixes = [\"+999\"]\n");
        let config = Arc::new(Config::from_toml(&config).unwrap());
        Self {
            world,
            store: Memory::new(1, epoch),
            config,
            clock,
            alone: false,
            rooms: RoomLog::listen(),
            seed,
            nodes: Cell::new(0),
            epoch,
            _tasks: tasks,
        }
    }

    pub(crate) async fn node(&self) -> Alive {
        self.node_with(None).await
    }

    pub(crate) async fn node_with(&self, polls: Option<Arc<dyn Polls>>) -> Alive {
        self.node_on(Arc::new(self.store.reopen()), polls, Life::new())
            .await
    }

    pub(crate) async fn node_on(
        &self,
        store: Arc<dyn Store>,
        polls: Option<Arc<dyn Polls>>,
        life: Life,
    ) -> Alive {
        let wire = self.world.line(life.clone());
        self.node_over(wire, store, polls, life).await
    }

    /// With a wire of its own to the platform.
    pub(crate) async fn node_over(
        &self,
        wire: Arc<dyn Wire>,
        store: Arc<dyn Store>,
        polls: Option<Arc<dyn Polls>>,
        life: Life,
    ) -> Alive {
        self.nodes.set(self.nodes.get() + 1);
        let chance = self.seed.wrapping_mul(1_000).wrapping_add(self.nodes.get());
        let ground = Ground {
            store: Arc::new(Mortal::new(life.clone(), store).alone(self.alone)),
            keys: Keys::random(&RandomIds::seeded(1)),
            wire,
            credentials: credentials(),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            ids: Arc::new(RandomIds::seeded(chance)),
            tasks: Tasks::new(polls),
        };
        let node = Node::start(Arc::clone(&self.config), ground).await.unwrap();
        Alive { node, life }
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn seen(&self) -> Seen {
        self.world.state()
    }

    pub(crate) fn fault(&self, fault: Fault) {
        self.world.fault(fault).unwrap();
    }

    /// A call of attempt, contact and outreach of one name.
    pub(crate) fn call(&self, name: &str, to: &str) -> Request {
        let now = self.now();
        Request {
            workspace: workspace(),
            attempt: name.parse().unwrap(),
            spec: Spec {
                contact: name.parse().unwrap(),
                outreach: name.parse().unwrap(),
                campaign: None,
                follows: None,
                intend_time: now,
                expire_time: now.plus(Duration::from_hours(1)),
                keep: Keep::UntilExpiry,
                trunk: "main".parse().unwrap(),
                agent: AgentWanted {
                    name: "caller".parse().unwrap(),
                    gate: Gate::Joined,
                    join_ms: 10_000,
                },
                ringing_ms: 45_000,
                max_call_ms: 3_600_000,
                time_zone: None,
                priority: 0,
                labels: BTreeMap::new(),
            },
            private: Private {
                to: to.parse().unwrap(),
                from: None,
                dial_digits: String::new(),
                sip_headers: BTreeMap::new(),
                agent_metadata: String::new(),
            },
        }
    }

    /// Asserts the promises that hold at any moment, from the platform's own counters.
    pub(crate) fn assert_promises(&self) {
        let seen = self.seen();
        let mut by_attempt: BTreeMap<&str, u32> = BTreeMap::new();
        for call in &seen.sip_calls {
            *by_attempt.entry(&call.attempt).or_default() += call.count;
        }
        for (attempt, count) in by_attempt {
            assert!(
                count <= 1,
                "P1: {attempt} rang {count} times: {:?}",
                seen.sip_calls
            );
        }
        for (who, legs) in seen.legs_by_contact.iter().chain(&seen.legs_by_number) {
            assert!(legs.most <= 1, "P2: {} legs at once to {who}", legs.most);
        }
    }

    /// Asserts that what the ledger says of an attempt is what the platform did.
    pub(crate) fn assert_true(&self, attempt: &Attempt) {
        let rang = self.sip_calls_of(attempt.id.as_str());
        let started = attempt.settled.as_ref().map(|s| s.call_started);
        let is_true = match attempt.state {
            // What nobody saw, or nobody could find out, may have rung or not.
            State::NotConnected if !known(attempt) => rang <= 1,
            State::Answered | State::Ended | State::NotConnected => rang == 1,
            State::Dialing | State::Uncertain | State::NeedsReview => rang <= 1,
            // A stop that meets the bridge on its way into the room is answered as one that
            // meets a ringing phone: a call may then be told that was not started.
            State::Canceled if started == Some(true) => rang <= 1,
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::NotDialed
            | State::Canceled => rang == 0,
        };
        assert!(is_true, "{rang} SIP calls and {attempt:?}");
    }

    /// Asserts that no attempt is in a passing state whose time is over. What only an outer
    /// event can end is looked at by lease, which the attempt does not show.
    pub(crate) fn assert_moves(&self, attempt: &Attempt) {
        let passes = match attempt.state {
            State::Queued | State::Deferred | State::Reserved | State::Dialing => true,
            State::Refused
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview
            | State::Canceled => false,
        };
        let over = |due: Time| due.plus(Duration::from_secs(10)) < self.now();
        assert!(
            !(passes && attempt.due().is_some_and(over)),
            "it is {} and overdue: {attempt:?}",
            self.now()
        );
    }

    pub(crate) fn sip_calls_of(&self, attempt: &str) -> u32 {
        let seen = self.seen();
        let of = seen.sip_calls.iter().filter(|call| call.attempt == attempt);
        of.map(|call| call.count).sum()
    }

    pub(crate) fn dials(&self) -> u32 {
        self.seen().dials.values().sum()
    }

    pub(crate) fn requests(&self, method: &str) -> u64 {
        self.seen().requests.get(method).copied().unwrap_or(0)
    }

    pub(crate) fn sip_calls(&self) -> u32 {
        self.seen().sip_calls.iter().map(|call| call.count).sum()
    }

    /// Waits until the platform has no room of the name's attempt, or of any.
    pub(crate) async fn until_no_rooms(&self, limit: Duration) {
        let end = tokio::time::Instant::now() + limit;
        while !self.seen().rooms.is_empty() {
            assert!(
                tokio::time::Instant::now() < end,
                "P3: rooms left: {:?}",
                self.seen().rooms
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Whether its end says that a call was started.
fn known(attempt: &Attempt) -> bool {
    let disposition = attempt.settled.as_ref().map(|s| s.disposition);
    !matches!(
        disposition,
        Some(Disposition::NoTrace | Disposition::Unresolved)
    )
}

pub(crate) fn workspace() -> Workspace {
    "w".parse().unwrap()
}

pub(crate) fn credentials() -> Credentials {
    Credentials {
        key: "devkey".to_owned(),
        secret: "devsecret_that_is_at_least_32_chars_long".to_owned().into(),
    }
}
