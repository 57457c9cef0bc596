//! Load: many at once, or at a steady rate whatever becomes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tonic::{Code, Request};

use super::report::share;
use super::stand::Client;
use super::{Error, Ground};
use crate::api::proto;
use crate::model::time::Time;

/// How often a call is sent again that was not decided, and the pause before.
const TRIES: u32 = 100;
const AGAIN: Duration = Duration::from_millis(50);

/// The workspace of all load.
pub(super) const WORKSPACE: &str = "bench";

/// What is done for the number `n`, and gives the name of its room.
pub(super) type Act = Arc<dyn Fn(u64) -> BoxFuture<'static, Result<String, Error>> + Send + Sync>;

/// What was done.
#[derive(Debug)]
pub(super) struct Done {
    /// From the first beginning to the last end.
    pub(super) span: Duration,
    /// Each one.
    pub(super) each: Vec<One>,
}

/// One that was done.
#[derive(Debug)]
pub(super) struct One {
    pub(super) room: String,
    /// From its beginning, as it was planned, to its end.
    pub(super) took: Duration,
    /// How much later than planned it was begun: the doing of whoever makes the load.
    pub(super) late: Duration,
}

impl Done {
    /// How many.
    pub(super) fn count(&self) -> u64 {
        self.each.len() as u64
    }

    /// How many in a second.
    #[expect(clippy::cast_precision_loss, reason = "no block has 2^52 of them")]
    pub(super) fn rate(&self) -> f64 {
        self.each.len() as f64 / self.span.as_secs_f64()
    }
}

/// The time in milliseconds below which `part` of them took.
pub(super) fn share_ms(done: &Done, part: f64) -> f64 {
    let ms = |one: &One| one.took.as_secs_f64() * 1000.0;
    let took: Vec<f64> = done.each.iter().map(ms).collect();
    share(&took, part)
}

/// The time in milliseconds below which `part` of the beginnings were late.
pub(super) fn late_ms(done: &Done, part: f64) -> f64 {
    let ms = |one: &One| one.late.as_secs_f64() * 1000.0;
    let late: Vec<f64> = done.each.iter().map(ms).collect();
    share(&late, part)
}

/// How many there are in `span` at `rate` a second; one at least.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "some ten thousand"
)]
pub(super) fn count(rate: f64, span: Duration) -> u64 {
    (rate * span.as_secs_f64()).max(1.0) as u64
}

/// Does `act` for one number after the other, `in_flight` at once, for `span`.
pub(super) async fn closed(
    ground: &Ground,
    numbers: Arc<AtomicU64>,
    in_flight: usize,
    span: Duration,
    act: Act,
) -> Result<Done, Error> {
    let began = Instant::now();
    let end = began + span;
    let (told, mut hears) = mpsc::unbounded_channel();
    for _ in 0..in_flight {
        let (told, act, numbers) = (told.clone(), Arc::clone(&act), Arc::clone(&numbers));
        ground.tasks.spawn("bench.closed", async move {
            while Instant::now() < end {
                let mine = Instant::now();
                let done = act(numbers.fetch_add(1, Ordering::Relaxed)).await;
                let over = done.is_err();
                let one = done.map(|room| One {
                    room,
                    took: mine.elapsed(),
                    late: Duration::ZERO,
                });
                if told.send(one).is_err() || over {
                    return;
                }
            }
        });
    }
    drop(told);
    let mut each = Vec::new();
    while let Some(one) = hears.recv().await {
        each.push(one?);
    }
    let span = began.elapsed();
    Ok(Done { span, each })
}

/// Does `act` for `count` numbers from `first`, one every 1/`rate` seconds, whether the
/// earlier ones are done or not.
pub(super) async fn open(
    ground: &Ground,
    first: u64,
    count: u64,
    rate: f64,
    act: Act,
) -> Result<Done, Error> {
    let (told, mut hears) = mpsc::unbounded_channel();
    // The runtime's timer goes in whole milliseconds. The plan begins just before one of
    // them, or every beginning would be late by what is left of it.
    sleep(Duration::from_millis(2)).await;
    let now = Instant::now();
    let began = now.checked_sub(Duration::from_micros(300)).unwrap_or(now);
    for n in 0..count {
        #[expect(clippy::cast_precision_loss, reason = "no block has 2^52 of them")]
        let planned = began + Duration::from_secs_f64(n as f64 / rate);
        sleep_until(planned).await;
        let late = planned.elapsed();
        let (told, act) = (told.clone(), Arc::clone(&act));
        ground.tasks.spawn("bench.open", async move {
            let done = act(first + n).await;
            let one = done.map(|room| One {
                room,
                took: planned.elapsed(),
                late,
            });
            // Whoever measures has given up after another one's error.
            drop(told.send(one));
        });
    }
    drop(told);
    let mut each = Vec::new();
    while let Some(one) = hears.recv().await {
        each.push(one?);
    }
    let span = began.elapsed();
    Ok(Done { span, each })
}

/// What a callee of the load does, by the last two digits.
#[derive(Debug, Clone, Copy)]
pub(super) enum Callee {
    /// Busy at once.
    Busy,
    /// Rings and never answers.
    Rings,
    /// Answers, and the reply is lost.
    Lost,
    /// Rings, and then the connection breaks.
    Cut,
}

impl Callee {
    const fn digits(self) -> u8 {
        match self {
            Self::Busy => 89,
            Self::Rings => 8,
            Self::Lost => 98,
            Self::Cut => 99,
        }
    }
}

/// The number of the callee `n`.
pub(super) fn number(n: u64, callee: Callee) -> String {
    format!("+999{:08}{:02}", n % 100_000_000, callee.digits())
}

/// The id of the attempt `n`.
pub(super) fn attempt(n: u64) -> String {
    format!("attempt-{n}")
}

/// The request for the attempt `n`, the same each time.
pub(super) fn request(
    n: u64,
    callee: Callee,
    wait: proto::Wait,
    ring: Duration,
    intended: Time,
) -> proto::PlaceCallRequest {
    proto::PlaceCallRequest {
        workspace: WORKSPACE.to_owned(),
        attempt_id: attempt(n),
        contact_id: format!("contact-{n}"),
        outreach_id: "bench".to_owned(),
        campaign_id: "bench".to_owned(),
        to: number(n, callee),
        intend_time: Some(crate::api::timestamp(intended)),
        wait: wait.into(),
        ringing_timeout: Some(pbjson_types::Duration {
            seconds: i64::try_from(ring.as_secs()).unwrap_or(i64::MAX),
            nanos: 0,
        }),
        ..proto::PlaceCallRequest::default()
    }
}

/// Places the call `n`, and gives the name of its room.
pub(super) fn placing(
    clients: Vec<Client>,
    callee: Callee,
    wait: proto::Wait,
    ring: Duration,
    intended: Time,
) -> Act {
    Arc::new(move |n| {
        let at = usize::try_from(n).unwrap_or_default() % clients.len().max(1);
        let client = clients.get(at).cloned();
        let message = request(n, callee, wait, ring, intended);
        Box::pin(async move {
            let Some(mut client) = client else {
                return Err(Error::Late("a connection"));
            };
            let mut tries = 0;
            loop {
                match client.place_call(Request::new(message.clone())).await {
                    Ok(answer) => return Ok(answer.into_inner().room),
                    // As every client may: nothing was decided. The time counts.
                    Err(status) if status.code() == Code::Unavailable && tries < TRIES => {
                        tries += 1;
                        sleep(AGAIN).await;
                    }
                    Err(status) => return Err(Error::Refused(status.message().to_owned())),
                }
            }
        })
    })
}
