//! The stage: the platform, the store, the nodes on it, and the sky over them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::armed::Armed;
use super::chance::Chance;
use super::judge::Judge;
use super::plan::Plan;
use super::store::{Faulty, LEASE};
use super::violation::Invariant;
use crate::config::Config;
use crate::lab::platform::{Behaviour, Settings, Worker};
use crate::lab::world::{World, WorldClock};
use crate::ledger::seal::Keys;
use crate::ledger::store::Epoch;
use crate::ledger::store::memory::Memory;
use crate::ledger::store::mortal::Mortal;
use crate::model::time::Time;
use crate::node::{Ground, Node};
use crate::provider::Credentials;
use crate::runtime::clock::Clock;
use crate::runtime::ids::RandomIds;
use crate::runtime::life::Life;
use crate::runtime::tasks::{Polls, Tasks};

/// The numbers of the sandbox have no country, and the reconciler's answers are awaited.
const CONFIG: &str = "[deployment]\nname = \"sim\"\n[numbers]\ntest_prefixes = [\"+999\"]\n";

/// Whether anything goes wrong at the moment.
#[derive(Debug)]
pub(super) struct Sky {
    clear_from: Instant,
    store_out: Mutex<Instant>,
}

impl Sky {
    fn new(span: Duration) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            clear_from: now + span,
            store_out: Mutex::new(now),
        })
    }

    /// From some moment on nothing goes wrong any more, so that everything must come right.
    pub(super) fn is_clear(&self) -> bool {
        Instant::now() >= self.clear_from
    }

    /// When that is.
    pub(super) fn clear_from(&self) -> Instant {
        self.clear_from
    }

    /// Until when the store refuses everything.
    pub(super) fn store_out_until(&self) -> Instant {
        *self.lock()
    }

    /// The store refuses everything for so long.
    pub(super) fn store_out(&self, span: Duration) {
        *self.lock() = (Instant::now() + span).min(self.clear_from);
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Instant> {
        self.store_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node that lives.
#[derive(Debug)]
pub(super) struct Alive {
    pub(super) node: Node,
    pub(super) armed: Arc<Armed>,
    life: Life,
}

/// The place of a process: nodes come and go in it, the wall clock stays.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: usize,
    pub(super) clock: Arc<WorldClock>,
    alive: Mutex<Option<Arc<Alive>>>,
    chance: Chance,
}

impl Slot {
    /// The node that lives here now.
    pub(super) fn alive(&self) -> Option<Arc<Alive>> {
        self.lock().clone()
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Alive>>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything that a world stands on.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) plan: Plan,
    pub(super) world: Arc<World>,
    pub(super) judge: Arc<Judge>,
    pub(super) sky: Arc<Sky>,
    pub(super) slots: Vec<Slot>,
    /// What the simulation itself does.
    pub(super) tasks: Tasks,
    /// A clock that never steps.
    pub(super) clock: Arc<WorldClock>,
    store: Memory,
    config: Arc<Config>,
}

impl Stage {
    /// The stage of a plan, with nobody on it yet.
    ///
    /// # Errors
    ///
    /// If the configuration of the simulation is none.
    pub(super) fn new(plan: Plan, settles: bool) -> anyhow::Result<Arc<Self>> {
        let config = Config::from_toml(CONFIG)?;
        let world = World::new(settings(&plan));
        let clock = world.clock();
        let judge = Judge::new(plan.seed, plan.calls, clock.now(), settles);
        let since = clock.now().minus(Duration::from_hours(1));
        let epoch = Epoch {
            id: Uuid::from_u128(7),
            since,
        };
        let store = Memory::new(1, epoch);
        store.witnessed(Arc::clone(&judge) as _);
        world.watch(Arc::clone(&judge) as _);
        let slots = (0..plan.nodes).map(|number| Slot {
            number,
            clock: world.clock(),
            alive: Mutex::default(),
            chance: Chance::new(plan.seed, &format!("slot {number}")),
        });
        Ok(Arc::new(Self {
            slots: slots.collect(),
            sky: Sky::new(plan.span),
            tasks: Tasks::default(),
            config: Arc::new(config),
            plan,
            world,
            judge,
            clock,
            store,
        }))
    }

    /// A node that lives, if one does.
    pub(super) fn any(&self, chance: &Chance) -> Option<Arc<Alive>> {
        let alive: Vec<_> = self.slots.iter().filter_map(Slot::alive).collect();
        alive.get(chance.index(alive.len())).cloned()
    }

    /// The time now, by a clock that never steps.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Keeps a node alive in `slot`: when it dies, its port is dead, its futures drop, and
    /// another one starts a little later.
    pub(super) async fn keep(self: Arc<Self>, at: usize) {
        let Some(slot) = self.slots.get(at) else {
            return;
        };
        let mut starts = 0;
        loop {
            starts += 1;
            let Some(alive) = self.start(slot, starts).await else {
                sleep(Duration::from_secs(1)).await;
                continue;
            };
            *slot.lock() = Some(Arc::clone(&alive));
            self.judge.did(LEASE, || format!("node {at} starts"));
            alive.armed.died().await;
            *slot.lock() = None;
            self.panics(&alive);
            self.judge.did(LEASE, || format!("node {at} dies"));
            alive.node.tasks().abort_all();
            if !alive.node.tasks().idle(Duration::from_secs(1)).await {
                let what = "a task outlived its node".to_owned();
                self.judge.broken(Invariant::NoPanic, what);
            }
            let long = if slot.chance.hits(0.1) {
                300_000
            } else {
                20_000
            };
            let down = slot.chance.millis(1, long);
            let down = (Instant::now() + down).min(self.sky.clear_from());
            let reach = down.saturating_duration_since(Instant::now()) + LEASE;
            self.judge.did(reach, || format!("node {at} is down"));
            tokio::time::sleep_until(down).await;
        }
    }

    async fn start(&self, slot: &Slot, starts: u64) -> Option<Arc<Alive>> {
        let life = Life::new();
        let armed = Armed::new(life.clone());
        let faulty = Faulty {
            share: self.plan.storm.store,
            sky: Arc::clone(&self.sky),
            judge: Arc::clone(&self.judge),
            chance: slot.chance.clone(),
            armed: Arc::clone(&armed),
        };
        let store = Arc::new(self.store.reopen().scripted(Arc::new(faulty)));
        let seed = self.plan.seed ^ (starts << 8) ^ ((slot.number as u64) << 56);
        let ground = Ground {
            store: Arc::new(Mortal::new(life.clone(), store).alone(self.plan.alone)),
            keys: Keys::random(&RandomIds::seeded(1)),
            wire: self.world.line(life.clone()),
            credentials: Credentials {
                key: "devkey".to_owned(),
                secret: "devsecret_that_is_at_least_32_chars_long".to_owned().into(),
            },
            clock: Arc::clone(&slot.clock) as Arc<dyn Clock>,
            ids: Arc::new(RandomIds::seeded(seed)),
            tasks: Tasks::new(Some(Arc::clone(&armed) as Arc<dyn Polls>)),
        };
        let node = Node::start(Arc::clone(&self.config), ground).await.ok()?;
        Some(Arc::new(Alive { node, armed, life }))
    }

    /// Nothing panics in a node but what was made to.
    fn panics(&self, alive: &Alive) {
        let (all, made) = (alive.node.tasks().panics(), alive.armed.panics());
        if all > made {
            let what = format!("{} tasks of a node panicked by themselves", all - made);
            self.judge.broken(Invariant::NoPanic, what);
        }
    }

    /// Everything dies at once, at the end of a world.
    pub(super) fn strike(&self) {
        for alive in self.slots.iter().filter_map(Slot::alive) {
            self.panics(&alive);
            alive.life.end();
            alive.node.tasks().abort_all();
        }
        self.tasks.abort_all();
    }
}

/// The platform: beside the agent that comes, others that come late, twice, or go away.
fn settings(plan: &Plan) -> Settings {
    let ms = Duration::from_millis;
    let mut settings = Settings {
        seed: plan.seed,
        webhooks: plan.webhooks,
        ..Settings::default()
    };
    settings.workers.extend([
        Worker::new("tardy", Behaviour::Late { after: ms(20_000) }),
        Worker::new(
            "leaver",
            Behaviour::Leaves {
                join: ms(400),
                after: ms(8_000),
            },
        ),
        Worker::new("twins", Behaviour::Doubled { after: ms(400) }),
    ]);
    settings
}
