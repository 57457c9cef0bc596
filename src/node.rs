//! The composition root: everything of one process but its sockets.

mod status;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::admission::queue::Bell;
use crate::admission::{Admission, Pace};
use crate::config::Config;
use crate::inbox::Inbox;
use crate::ledger::open::OpenError;
use crate::ledger::seal::Keys;
use crate::ledger::store::Store;
use crate::ledger::{self, Ledger, News, Observer, PageCursor, Patience};
use crate::model::attempt::ReviewCause;
use crate::model::id::{TrunkName, Workspace};
use crate::model::phone::NumberRules;
use crate::model::time::Time;
use crate::placement::janitor::{self, Janitor};
use crate::placement::rooms::Rooms;
use crate::placement::settle::Settler;
use crate::placement::{self, Placement};
use crate::provider::wire::Wire;
use crate::provider::{Client, Credentials, Limits};
use crate::reconcile::inventory::Inventory;
use crate::reconcile::{Reconciler, preflight, review, trim};
use crate::runtime::clock::Clock;
use crate::runtime::ids::Ids;
use crate::runtime::stop::{Stop, StopSender, stop};
use crate::runtime::tasks::Tasks;
use crate::telemetry::counters::Counters;

/// How many attempts are open.
pub use crate::ledger::Tally;
/// Whether LiveKit answers.
pub use crate::provider::health;
/// What the inventory of rooms tells.
pub use crate::reconcile::inventory::{Leak, Leg, LookError, RoomFilter, RoomPage, Standing};
pub use crate::reconcile::removal::{NotDeleted, Removal};
/// What waits for a person.
pub use crate::reconcile::review::{NotResolved, Resolve, ReviewGroup, Reviews};
/// What it has counted.
pub use crate::telemetry::{histogram, redeliveries};
pub use status::{Status, Told};

/// What a node stands on: its ports, and what would otherwise be global.
#[derive(Debug)]
pub struct Ground {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The keys under which numbers are sealed and looked up.
    pub keys: Keys,
    /// The way to the platform.
    pub wire: Arc<dyn Wire>,
    /// The platform's API key and secret.
    pub credentials: Credentials,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub ids: Arc<dyn Ids>,
    /// Where tasks run.
    pub tasks: Tasks,
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    client: Arc<Client>,
    admission: Arc<Admission>,
    pace: Arc<Pace>,
    reconciler: Arc<Reconciler>,
    inventory: Inventory,
    inbox: Arc<Inbox>,
    counters: Arc<Counters>,
    /// When it was started: its counters count from then on.
    since: Time,
    tasks: Tasks,
    drain: StopSender,
    stop: StopSender,
}

impl Node {
    /// Starts everything; it opens no socket. What was open in the ledger is known before
    /// this returns, and is taken up in the background.
    ///
    /// # Errors
    ///
    /// If the ledger does not open.
    pub async fn start(config: Arc<Config>, ground: Ground) -> Result<Self, OpenError> {
        let Ground { clock, tasks, .. } = ground;
        let began = clock.now();
        let pace = Pace::new(Arc::clone(&config));
        let bell = Arc::new(Bell::default());
        let observers: Vec<Arc<dyn Observer>> = vec![pace.clone(), bell.clone()];
        let watches = Reconciler::watches(&config);
        let hear = [observers.clone(), vec![watches.clone()]].concat();
        let memory = (ground.store, ground.keys, ground.ids);
        let ledger = remember(&config, memory, Arc::clone(&clock), News::new(hear)).await?;
        let signer = ground.credentials.clone();
        let client = Client::new(ground.wire, ground.credentials, clock, limits(&config));
        let client = Arc::new(client);
        let rooms = Arc::new(Rooms::new(Arc::clone(&client), Arc::clone(&ledger)));
        let counters = Arc::new(Counters::default());
        let settler = Arc::new(Settler::new(&ledger, &config, &counters));
        let ((drain, draining), (stop, stopping)) = (stop(), stop());
        let (janitor, queue) = Janitor::new(config.janitor.queue);
        let placement = Placement::new(
            Arc::clone(&ledger),
            Arc::clone(&rooms),
            Arc::clone(&settler),
            Arc::clone(&pace),
            janitor,
            Arc::clone(&config),
            numbers(&config),
            tasks.clone(),
            draining.clone(),
        );
        let admission = Arc::new(Admission::new(
            Arc::clone(&ledger),
            Arc::clone(&pace),
            bell,
            Arc::new(placement),
            Arc::clone(&config),
            numbers(&config),
            Arc::clone(&counters),
        ));
        let reconciler = Arc::new(Reconciler::new(
            Arc::clone(&ledger),
            Arc::clone(&rooms),
            Arc::clone(&settler),
            watches,
            Arc::clone(&config),
        ));
        let inventory = Inventory::new(Arc::clone(&ledger), Arc::clone(&rooms), &config);
        let inbox = Inbox::new(&ledger, &rooms, &settler, &config, signer);
        reconciler.tell_of_open(&observers).await?;
        let cleaning = janitor::run(queue, settler, rooms, tasks.clone(), stopping.clone());
        tasks.spawn("janitor", cleaning);
        reconciler.start(&tasks, &stopping);
        tasks.keep("inbox", &inbox, &stopping, Inbox::run);
        tasks.keep("trim", &ledger, &stopping, move |ledger, stop| {
            trim::run(ledger, Arc::clone(&config), stop)
        });
        tasks.keep("queue", &admission, &draining, Admission::run_queue);
        Ok(Self {
            client,
            admission,
            pace,
            reconciler,
            inventory,
            inbox,
            counters,
            since: began,
            tasks,
            drain,
            stop,
        })
    }

    /// Looks at LiveKit in the background, for these trunks, and logs what is wrong and what
    /// to do. It delays nothing and decides nothing, so a simulation goes without it.
    pub fn preflight(&self, trunks: Vec<TrunkName>) {
        let looking = preflight::look(Arc::clone(&self.client), trunks, self.draining());
        self.tasks.spawn("preflight", looking);
    }

    /// What decides requests.
    #[must_use]
    pub fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> &Arc<Ledger> {
        self.admission.ledger()
    }

    /// How fast it dials.
    #[must_use]
    pub fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    /// What settles what is open.
    #[must_use]
    pub fn reconciler(&self) -> &Arc<Reconciler> {
        &self.reconciler
    }

    /// The rooms, as ledger and platform have them together.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Attempts of a workspace that wait for a person, all or those of one cause.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn reviews(
        &self,
        workspace: &Workspace,
        cause: Option<ReviewCause>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<Reviews, ledger::Error> {
        review::reviews(self.ledger(), workspace, cause, after, limit).await
    }

    /// What takes webhooks; also while it drains, since what rings goes on.
    #[must_use]
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Is asked when the node shuts down.
    #[must_use]
    pub fn stopping(&self) -> Stop {
        self.stop.listen()
    }

    /// Its tasks.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Turns true when nothing new is admitted any more.
    #[must_use]
    pub fn draining(&self) -> watch::Receiver<bool> {
        self.drain.watch()
    }

    /// From now on nothing is admitted, and tries without a marker stop.
    pub fn begin_drain(&self) {
        self.drain.ask();
    }

    /// Waits, for at most `limit`, until every dial is settled; whether that came true. Calls
    /// that still ring go on in LiveKit, and the next start reconciles them.
    pub async fn settle(&self, limit: Duration) -> bool {
        self.tasks.idle_named(placement::TASK, limit).await
    }

    /// Ends its loops, and after `slack` whatever still runs; then the store.
    pub async fn shut_down(&self, slack: Duration) {
        self.begin_drain();
        self.stop.ask();
        if !self.tasks.idle(slack).await {
            self.tasks.abort_all();
        }
        self.ledger().close().await;
    }
}

/// Opens the ledger.
async fn remember(
    config: &Config,
    (store, keys, ids): (Arc<dyn Store>, Keys, Arc<dyn Ids>),
    clock: Arc<dyn Clock>,
    news: News,
) -> Result<Arc<Ledger>, OpenError> {
    let (name, store_config) = (config.deployment.name.clone(), &config.store);
    let patience = Patience {
        retry_for: store_config.retry_for,
        retry_backoff: store_config.retry_backoff,
        conflicts_max: store_config.conflicts_max,
    };
    let ledger = Ledger::open(store, keys, name, clock, ids, news, patience).await?;
    Ok(Arc::new(ledger))
}

fn limits(config: &Config) -> Limits {
    let livekit = &config.livekit;
    Limits {
        timeout: livekit.request_timeout,
        sends: livekit.request_retries.saturating_add(1),
        pause: livekit.retry_backoff,
        token_ttl: livekit.token_ttl,
        trunk_cache: livekit.trunk_cache,
        clock_skew_max: livekit.clock_skew_max,
        ..Limits::default()
    }
}

fn numbers(config: &Config) -> NumberRules {
    NumberRules {
        test_prefixes: config.numbers.test_prefixes.clone(),
        countries: config.numbers.countries.clone(),
        premium: config.numbers.allow_premium,
    }
}
