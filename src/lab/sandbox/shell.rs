//! The platform behind a lock, with real time: requests in, answers out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method, Response};
use axum::routing::{any, get, post};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::line::Line;
use crate::lab::platform::{
    self, CallTicket, Delivery, Fault, Hook, HookTicket, Output, Platform, Reply, Settings,
};

/// LiveKit's limit on a body, in bytes.
const BODY_LIMIT: usize = 10 * 1024 * 1024;

/// What becomes of a request.
enum Fate {
    Answered(platform::Response),
    Cut,
}

struct Held {
    platform: Platform,
    waiters: HashMap<CallTicket, oneshot::Sender<Fate>>,
}

/// A platform that is being served.
pub(super) struct Shell {
    held: Mutex<Held>,
    start: Instant,
    /// Changes when something earlier may have become due.
    poke: watch::Sender<()>,
    over: watch::Sender<bool>,
    // Unbounded, since the platform limits each room's queue and has one event in flight
    // a room.
    hooks: mpsc::UnboundedSender<Hook>,
}

impl Shell {
    pub(super) fn new(settings: Settings) -> (Arc<Self>, mpsc::UnboundedReceiver<Hook>) {
        let (hooks, receiver) = mpsc::unbounded_channel();
        let shell = Self {
            held: Mutex::new(Held {
                platform: Platform::new(settings),
                waiters: HashMap::new(),
            }),
            start: Instant::now(),
            poke: watch::Sender::new(()),
            over: watch::Sender::new(false),
            hooks,
        };
        (Arc::new(shell), receiver)
    }

    /// Lets the platform's time pass, until the end.
    pub(super) async fn run(self: Arc<Self>) {
        let mut poked = self.poke.subscribe();
        loop {
            poked.mark_unchanged();
            let next = {
                let mut held = self.lock();
                self.route(&mut held);
                held.platform.next_due()
            };
            let sleep = async {
                match next {
                    Some(next) => tokio::time::sleep_until(self.start + next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.ended() => return,
                poked = poked.changed() => if poked.is_err() { return },
                () = sleep => {}
            }
        }
    }

    /// The end: who waits loses its connection, and nobody is answered any more.
    pub(super) fn end(&self) {
        self.over.send_replace(true);
        self.lock().waiters.clear();
    }

    /// Returns at the end.
    pub(super) async fn ended(&self) {
        let mut over = self.over.subscribe();
        // The sender lives in this shell, so the wait cannot fail.
        if over.wait_for(|over| *over).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn delivered(&self, ticket: HookTicket, delivery: Delivery) {
        let mut held = self.lock();
        held.platform.delivered(self.now(), ticket, delivery);
        self.act(&mut held);
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    // A std mutex, since nothing is awaited while it is held.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out what is due, and wakes the clock if the next thing comes earlier now.
    fn act(&self, held: &mut Held) {
        self.route(held);
        self.poke.send_replace(());
    }

    fn route(&self, held: &mut Held) {
        for output in held.platform.due(self.now()) {
            let (ticket, fate) = match output {
                Output::Answer(ticket, response) => (ticket, Fate::Answered(response)),
                Output::Cut(ticket) => (ticket, Fate::Cut),
                Output::Webhook(hook) => {
                    // Without a courier nobody listens; then none is made either.
                    if self.hooks.send(hook).is_err() {
                        tracing::debug!("no courier takes the webhook");
                    }
                    continue;
                }
            };
            // A client that has gone does not listen any more.
            if let Some(waiter) = held.waiters.remove(&ticket) {
                drop(waiter.send(fate));
            }
        }
    }

    async fn ask(&self, request: platform::Request) -> Fate {
        if *self.over.borrow() {
            return Fate::Cut;
        }
        let (ticket, waiter) = {
            let mut held = self.lock();
            let reply = held.platform.handle(self.now(), request);
            let waiting = match reply {
                Reply::Now(response) => {
                    self.act(&mut held);
                    return Fate::Answered(response);
                }
                Reply::Later(ticket) => {
                    let (sender, waiter) = oneshot::channel();
                    held.waiters.insert(ticket, sender);
                    (ticket, waiter)
                }
            };
            self.act(&mut held);
            waiting
        };
        // If the client goes away, this future is dropped while it waits.
        let gone = scopeguard::guard((), |()| {
            let mut held = self.lock();
            held.waiters.remove(&ticket);
            held.platform.gone(self.now(), ticket);
        });
        let fate = waiter.await.unwrap_or(Fate::Cut);
        scopeguard::ScopeGuard::into_inner(gone);
        fate
    }
}

/// The routes of the sandbox.
pub(super) fn router(shell: Arc<Shell>) -> Router {
    Router::new()
        .route("/sandbox/state", get(state))
        .route("/sandbox/tally", get(tally))
        .route("/sandbox/timings", get(timings))
        .route("/sandbox/faults", post(faults))
        .fallback(any(twirp))
        .with_state(shell)
}

async fn twirp(
    State(shell): State<Arc<Shell>>,
    ConnectInfo(line): ConnectInfo<Line>,
    request: Request,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        let msg = format!(
            "unsupported method \"{}\" (only POST is allowed)",
            parts.method
        );
        let body = serde_json::json!({"code": "bad_route", "msg": msg});
        return json(404, &body);
    }
    let Ok(body) = axum::body::to_bytes(body, BODY_LIMIT).await else {
        return answer(
            413,
            "text/plain; charset=utf-8",
            None,
            "request body too large".into(),
        );
    };
    let began = Instant::now();
    let request = platform::Request {
        path: parts.uri.path().to_owned(),
        authorization: header(&parts.headers, "authorization"),
        content_type: header(&parts.headers, "content-type").unwrap_or_default(),
        timeout_ms: header(&parts.headers, "x-twirp-timeout-ms")
            .and_then(|value| value.parse().ok()),
        body: body.into(),
    };
    let subject = shell.lock().platform.subject(&request);
    let fate = shell.ask(request).await;
    if let Some(subject) = subject {
        shell.lock().platform.took(subject, began.elapsed());
    }
    match fate {
        Fate::Answered(said) => answer(
            said.status,
            said.content_type,
            Some(said.date),
            said.body.into(),
        ),
        Fate::Cut => {
            line.cut();
            answer(500, "text/plain", None, Body::empty())
        }
    }
}

async fn state(State(shell): State<Arc<Shell>>) -> Response<Body> {
    let state = {
        let mut held = shell.lock();
        shell.route(&mut held);
        held.platform.state()
    };
    shown(serde_json::to_value(&state))
}

fn shown(value: Result<serde_json::Value, serde_json::Error>) -> Response<Body> {
    match value {
        Ok(value) => json(200, &value),
        Err(_) => answer(500, "text/plain", None, Body::empty()),
    }
}

async fn tally(State(shell): State<Arc<Shell>>) -> Response<Body> {
    let tally = {
        let mut held = shell.lock();
        shell.route(&mut held);
        held.platform.tally()
    };
    shown(serde_json::to_value(&tally))
}

async fn timings(State(shell): State<Arc<Shell>>) -> Response<Body> {
    let timings = shell.lock().platform.timings().clone();
    shown(serde_json::to_value(&timings))
}

async fn faults(State(shell): State<Arc<Shell>>, request: Request) -> Response<Body> {
    let refused = |why: String| json(400, &serde_json::json!({"error": why}));
    let Ok(body) = axum::body::to_bytes(request.into_body(), BODY_LIMIT).await else {
        return refused("the body is too long".to_owned());
    };
    let fault: Fault = match serde_json::from_slice(&body) {
        Ok(fault) => fault,
        Err(error) => return refused(error.to_string()),
    };
    let mut held = shell.lock();
    let thrown = held.platform.fault(shell.now(), fault);
    shell.act(&mut held);
    match thrown {
        Ok(()) => json(200, &serde_json::json!({})),
        Err(error) => refused(error.to_string()),
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn json(status: u16, body: &serde_json::Value) -> Response<Body> {
    answer(status, "application/json", None, body.to_string().into())
}

fn answer(status: u16, content_type: &str, date: Option<i64>, body: Body) -> Response<Body> {
    let mut builder = Response::builder()
        .status(status)
        .header("content-type", content_type);
    if let Some(date) = date.and_then(http_date) {
        builder = builder.header("date", date);
    }
    builder.body(body).unwrap_or_default()
}

/// The platform's wall clock as HTTP writes it (RFC 9110, 5.6.7): a clock that is off
/// shows here.
fn http_date(seconds: i64) -> Option<String> {
    let moment = jiff::Timestamp::from_second(seconds).ok()?;
    jiff::fmt::rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&moment)
        .ok()
}
