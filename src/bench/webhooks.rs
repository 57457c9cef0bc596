//! Webhooks that are acknowledged once they are durable, over connections that stay open, as
//! LiveKit holds them: how many at most, in a closed loop, and how far behind the projection is
//! then; and how long one takes at the rate that is asked for, whatever becomes of the others.
//!
//! Each is an event of its own about the callee of a call that rings: what it says is merged
//! into that call's record. Signing is none of the time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::load::{self, Act, Callee};
use super::placements::{float, per};
use super::report::{Report, Target};
use super::stand::{KEY, Kind, SECRET, Stand};
use super::{Error, Ground, Plan, Section};
use crate::api::proto;
use crate::model::id::RoomName;

const SECTION: &str = Section::Webhooks.name();

/// Calls that ring meanwhile: one commit of the projection is about one of them.
const CALLS: u64 = 200;

/// Where webhooks go.
const PATH: &str = "/webhooks/livekit";

/// An answer's head is no longer than this.
const HEAD_MAX: usize = 1024;

pub(super) async fn measure(
    ground: &Ground,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stand = Stand::start(ground, Kind::Plain).await?;
    let rooms = rooms(ground, plan, &stand).await?;
    let act = posting(ground, &stand, rooms);
    let (mut rate, mut p50, mut p99, mut cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut backlog, mut behind, mut count) = (Vec::new(), Vec::new(), 0);
    let mut steady = Steady::default();
    for _ in 0..plan.blocks {
        let used = stand.processor_time()?;
        let numbers = stand.numbers();
        let act = Arc::clone(&act);
        let in_flight = plan.webhooks_in_flight;
        let done = load::closed(ground, numbers, in_flight, plan.block, Arc::clone(&act)).await?;
        backlog.push(waiting(&stand).await?);
        let began = Instant::now();
        all_read(&stand).await?;
        behind.push(began.elapsed().as_secs_f64());
        let used = stand.processor_time()?.saturating_sub(used);
        count += done.count();
        rate.push(done.rate());
        p50.push(load::share_ms(&done, 0.5));
        p99.push(load::share_ms(&done, 0.99));
        cpu.push(used.as_secs_f64() * 1e6 * per(done.count()));
        steady.block(ground, plan, &stand, act).await?;
    }
    let mut add = |name, values, target| report.add(SECTION, name, count, values, target);
    add(
        ("acknowledged durably", "1/s"),
        rate,
        Some(Target::AtLeast(5_000.0)),
    );
    add(("time then, p50", "ms"), p50, None);
    add(("time then, p99", "ms"), p99, None);
    add(("not yet applied at the end", "count"), backlog, None);
    add(
        ("until all are applied", "s"),
        behind,
        Some(Target::AtMost(1.0)),
    );
    add(("cpu of serve, all applied", "µs each"), cpu, None);
    steady.tell(plan.webhook_rate, report);
    Ok(())
}

/// Blocks at [`Plan::webhook_rate`].
#[derive(Default)]
struct Steady {
    count: u64,
    p50: Vec<f64>,
    p99: Vec<f64>,
    late: Vec<f64>,
}

impl Steady {
    async fn block(
        &mut self,
        ground: &Ground,
        plan: &Plan,
        stand: &Stand,
        act: Act,
    ) -> Result<(), Error> {
        let count = load::count(plan.webhook_rate, plan.block);
        let done = load::open(ground, stand.take(count), count, plan.webhook_rate, act).await?;
        all_read(stand).await?;
        self.count += done.count();
        self.p50.push(load::share_ms(&done, 0.5));
        self.p99.push(load::share_ms(&done, 0.99));
        self.late.push(load::late_ms(&done, 0.99));
        Ok(())
    }

    fn tell(self, rate: f64, report: &mut Report) {
        let mut add = |name, values, target| report.add(SECTION, name, self.count, values, target);
        add(("steady load", "1/s"), vec![rate], None);
        add(("time at it, p50", "ms"), self.p50, None);
        let target = Some(Target::AtMost(20.0));
        add(("time at it, p99", "ms"), self.p99, target);
        add(("late beginnings, p99", "ms"), self.late, None);
    }
}

/// Waits until every webhook that is kept is applied.
async fn all_read(stand: &Stand) -> Result<(), Error> {
    let began = Instant::now();
    while waiting(stand).await? > 0.5 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if began.elapsed() > Duration::from_mins(3) {
            return Err(Error::Late("the reading of all webhooks"));
        }
    }
    Ok(())
}

/// Rooms of calls that ring for the whole section.
async fn rooms(ground: &Ground, plan: &Plan, stand: &Stand) -> Result<Vec<String>, Error> {
    let intended = ground.clock.now();
    let ring = Duration::from_secs(80);
    let wait = proto::Wait::Accepted;
    let placing = load::placing(stand.clients(), Callee::Rings, wait, ring, intended);
    let first = stand.take(CALLS);
    let done = load::open(ground, first, CALLS, plan.rate, placing).await?;
    Ok(done.each.into_iter().map(|one| one.room).collect())
}

/// How many webhooks are kept and not yet applied, as the service counts them.
async fn waiting(stand: &Stand) -> Result<f64, Error> {
    let told = stand.status().await?.webhooks.unwrap_or_default();
    let of = |name: &str| told.counts.get(name).copied().unwrap_or_default();
    let read = of("applied") + of("foreign") + of("ignored") + of("unread");
    let waits = u64::try_from(of("kept") - read).unwrap_or_default();
    Ok(float(waits))
}

/// Connections at most, of the 1,024 that the service takes (`webhooks.connections_max`). A webhook
/// that has to wait for one is under way all the same, and its time counts.
const CONNECTIONS: usize = 512;

/// Posts the event `n` over a connection that is free, or else a new one.
fn posting(ground: &Ground, stand: &Stand, rooms: Vec<String>) -> Act {
    let address = stand.serve.ready()["webhook"].as_str().unwrap_or_default();
    let address = address.to_owned();
    let free: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let (clock, rooms) = (Arc::clone(&ground.clock), Arc::new(rooms));
    Arc::new(move |n| {
        let (free, address) = (Arc::clone(&free), address.clone());
        let places = Arc::clone(&places);
        let place = usize::try_from(n).unwrap_or_default() % rooms.len().max(1);
        let room = rooms.get(place).cloned().unwrap_or_default();
        let request = request(n, &room, clock.now().as_secs());
        Box::pin(async move {
            let held = places.acquire().await;
            let _held = held.map_err(|_| Error::Late("a connection"))?;
            let lock = || free.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = lock().pop();
            let mut stream = match kept {
                Some(stream) => stream,
                None => TcpStream::connect(&address).await?,
            };
            stream.write_all(&request).await?;
            answered(&mut stream).await?;
            lock().push(stream);
            Ok(room)
        })
    })
}

/// Reads an answer without a body; anything but a 200 is an error.
async fn answered(stream: &mut TcpStream) -> Result<(), Error> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_MAX {
        if stream.read_buf(&mut head).await? == 0 {
            return Err(Error::Refused(
                "a webhook's connection was closed".to_owned(),
            ));
        }
    }
    if head.starts_with(b"HTTP/1.1 200") {
        return Ok(());
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Err(Error::Refused(String::from_utf8_lossy(line).into_owned()))
}

/// A signed request, as LiveKit writes one.
fn request(n: u64, room: &str, now: i64) -> Vec<u8> {
    let identity = RoomName::parse(room).map(|(_, session)| session.identity());
    let body = json!({
        "event": "participant_joined",
        "id": format!("EV_{n}"),
        "createdAt": now.to_string(),
        "room": {"sid": "RM_bench", "name": room, "emptyTimeout": 300, "departureTimeout": 20,
            "creationTime": now.to_string()},
        "participant": {"sid": format!("PA_{}", n % 3), "state": "ACTIVE", "kind": "SIP",
            "identity": identity.unwrap_or_default(), "joinedAt": now.to_string(),
            "attributes": {"sip.callID": "SCL_bench", "sip.callStatus": "dialing",
                "sip.phoneNumber": "+12025550100", "sip.trunkID": "ST_bench"}},
    })
    .to_string();
    let token = token(body.as_bytes(), now);
    format!(
        "POST {PATH} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/webhook+json\r\n\
         authorization: {token}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn token(body: &[u8], now: i64) -> String {
    let claims = json!({
        "iss": KEY,
        "nbf": now,
        "exp": now + 300,
        "sha256": STANDARD.encode(Sha256::digest(body)),
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&json!({"alg": "HS256"})), part(&claims));
    let mut mac =
        Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(message.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    format!("{message}.{signature}")
}
