//! A world for simulation: one [`Platform`](super::platform) in the paused time of a
//! runtime, with a wire and a clock for each node in it.
//!
//! The client, the table of verdicts and everything above them are the real ones; only
//! HTTP is left out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use secrecy::ExposeSecret;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::platform::{
    CallTicket, Delivery, Fault, FaultError, HookTicket, Output, Phone, Platform, Reply, Settings,
    State,
};
use crate::model::time::Time;
use crate::provider::twirp;
use crate::provider::wire::{self, Answer, Lost, Wire};
use crate::runtime::clock::Clock;
use crate::runtime::life::Life;

/// How long a request or an answer is under way.
const LATENCY: Duration = Duration::from_millis(1);

/// The answer to a request that waits; `None` where the connection breaks.
type Waiting = BTreeMap<CallTicket, oneshot::Sender<Option<super::platform::Response>>>;

/// A receiver of webhooks in a world.
#[async_trait]
pub trait Hears: fmt::Debug + Send + Sync {
    /// Takes one, and answers with an HTTP status; `None`: the connection breaks.
    async fn hear(&self, authorization: &str, body: &[u8]) -> Option<u16>;
}

/// Who hears at once what happens to phones.
pub trait Watches: fmt::Debug + Send + Sync {
    /// This happened.
    fn saw(&self, phone: &Phone);
}

/// What becomes of a webhook that is under way.
type Delivering = BoxFuture<'static, (HookTicket, Delivery)>;

/// One platform, and the time since it began.
pub struct World {
    platform: Mutex<Platform>,
    hears: Mutex<Option<Arc<dyn Hears>>>,
    watches: OnceLock<Arc<dyn Watches>>,
    waiting: Mutex<Waiting>,
    begun: Instant,
    wall_start: i64,
    news: Notify,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl World {
    /// With a platform set up like this.
    #[must_use]
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            wall_start: settings.wall_start_micros,
            platform: Mutex::new(Platform::new(settings)),
            hears: Mutex::default(),
            watches: OnceLock::new(),
            waiting: Mutex::default(),
            begun: Instant::now(),
            news: Notify::new(),
        })
    }

    /// From now on webhooks go to `hears`; without one, a receiver takes everything.
    pub fn tell(&self, hears: Arc<dyn Hears>) {
        *self.hears.lock().unwrap_or_else(PoisonError::into_inner) = Some(hears);
    }

    /// From now on `watches` hears of phones, at the moment at which something happens to
    /// them. Set once; a second one is not heard.
    pub fn watch(&self, watches: Arc<dyn Watches>) {
        if self.watches.set(watches).is_ok() {
            self.platform().keep_phones();
        }
    }

    /// Tells of phones, outside the platform's lock.
    fn told(&self) {
        let Some(watches) = self.watches.get() else {
            return;
        };
        let phones = self.platform().phones();
        for phone in &phones {
            watches.saw(phone);
        }
    }

    /// Lets the platform's time pass, for ever: run it as a task.
    pub async fn run(self: Arc<Self>) {
        let mut flying = FuturesUnordered::new();
        loop {
            let next = {
                let now = self.now();
                let mut platform = self.platform();
                let due = platform.due(now);
                for output in due {
                    flying.extend(self.bring(&mut platform, now, output));
                }
                platform.next_due()
            };
            self.told();
            let woken = self.news.notified();
            let due = async {
                match next {
                    Some(at) => sleep_until(self.begun + at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some((ticket, delivery)) = flying.next(), if !flying.is_empty() => {
                    let now = self.now();
                    self.platform().delivered(now, ticket, delivery);
                    self.told();
                }
                () = woken => {}
                () = due => {}
            }
        }
    }

    /// Hands an output out; a webhook is then under way.
    fn bring(&self, platform: &mut Platform, now: Duration, output: Output) -> Option<Delivering> {
        match output {
            Output::Answer(ticket, response) => self.answer(ticket, Some(response)),
            Output::Cut(ticket) => self.answer(ticket, None),
            Output::Webhook(hook) => {
                let hears = self.hears.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(hears) = hears.clone() else {
                    platform.delivered(now, hook.ticket, status(200));
                    return None;
                };
                return Some(Box::pin(async move {
                    sleep(LATENCY).await;
                    let taken = hears.hear(&hook.authorization, &hook.body).await;
                    sleep(LATENCY).await;
                    (hook.ticket, taken.map_or(Delivery::Lost, status))
                }));
            }
        }
        None
    }

    fn answer(&self, ticket: CallTicket, response: Option<super::platform::Response>) {
        let waiting = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&ticket);
        if let Some(waiting) = waiting {
            // Whoever waited may have gone; the platform does not care.
            drop(waiting.send(response));
        }
    }

    /// The platform's counters and rooms.
    #[must_use]
    pub fn state(&self) -> State {
        self.platform().state()
    }

    /// The names of the rooms that live.
    #[must_use]
    pub fn living(&self) -> Vec<String> {
        self.platform().living()
    }

    /// Throws a fault.
    ///
    /// # Errors
    ///
    /// If there is no fault of this name.
    pub fn fault(&self, fault: Fault) -> Result<(), FaultError> {
        let now = self.now();
        let done = self.platform().fault(now, fault);
        self.told();
        self.news.notify_one();
        done
    }

    /// A wall clock of this world.
    #[must_use]
    pub fn clock(self: &Arc<Self>) -> Arc<WorldClock> {
        Arc::new(WorldClock {
            world: Arc::clone(self),
            step: AtomicI64::new(0),
        })
    }

    /// The way of a node to this world's platform.
    #[must_use]
    pub fn line(self: &Arc<Self>, life: Life) -> Arc<Line> {
        Arc::new(Line {
            world: Arc::clone(self),
            life,
        })
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    // A std mutex, since nothing is awaited while it is held.
    fn platform(&self) -> MutexGuard<'_, Platform> {
        self.platform.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a request to the platform and waits for its answer.
    async fn ask(&self, request: super::platform::Request) -> Option<super::platform::Response> {
        let reply = self.platform().handle(self.now(), request);
        // Also what is answered at once may have put something on the platform's agenda: a room
        // that is made ends by itself, a dispatched agent joins.
        self.news.notify_one();
        self.told();
        let (ticket, answer) = match reply {
            Reply::Now(response) => return Some(response),
            Reply::Later(ticket) => {
                let (tell, answer) = oneshot::channel();
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.insert(ticket, tell);
                (ticket, answer)
            }
        };
        let _gone = scopeguard::guard((), |()| {
            let waits = self
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&ticket);
            if waits.is_some() {
                self.platform().gone(self.now(), ticket);
                self.told();
            }
        });
        answer.await.ok().flatten()
    }
}

const fn status(status: u16) -> Delivery {
    Delivery::Status {
        status,
        retry_after: None,
    }
}

/// A wall clock that may step.
#[derive(Debug)]
pub struct WorldClock {
    world: Arc<World>,
    step: AtomicI64,
}

impl WorldClock {
    /// Steps by so many microseconds, forwards or backwards.
    pub fn step(&self, micros: i64) {
        self.step.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for WorldClock {
    fn now(&self) -> Time {
        let passed = i64::try_from(self.world.now().as_micros()).unwrap_or(i64::MAX);
        let step = self.step.load(Ordering::SeqCst);
        Time::from_micros(
            self.world
                .wall_start
                .saturating_add(passed)
                .saturating_add(step),
        )
    }
}

/// A node's wire: it ends with the node's life.
#[derive(Debug)]
pub struct Line {
    world: Arc<World>,
    life: Life,
}

#[async_trait]
impl Wire for Line {
    async fn send(&self, request: wire::Request) -> wire::Reply {
        self.life.pass().await;
        let asked = super::platform::Request {
            path: request.method.path().to_owned(),
            authorization: Some(format!("Bearer {}", request.token.expose_secret())),
            content_type: "application/protobuf".to_owned(),
            timeout_ms: request
                .server_deadline
                .map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX)),
            body: request.body,
        };
        let exchange = async {
            sleep(LATENCY).await;
            // What is under way when its sender dies arrives all the same.
            let answer = self.world.ask(asked).await;
            sleep(LATENCY).await;
            answer
        };
        let reply = match timeout(request.timeout, exchange).await {
            Ok(Some(response)) => wire::Reply {
                answer: twirp::read(response.status, Some(response.content_type), response.body),
                date: Some(Time::from_secs(response.date)),
            },
            Ok(None) => wire::Reply {
                answer: Answer::Lost(Lost::Broken),
                date: None,
            },
            Err(_) => wire::Reply {
                answer: Answer::Lost(Lost::Timeout),
                date: None,
            },
        };
        self.life.pass().await;
        reply
    }
}
