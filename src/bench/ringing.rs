//! Many calls that ring at once in one service, and none of them late.
//!
//! Few of them in one service, and many in another: the memory of one is the slope between
//! the two. When an INVITE left and when a leg was over is the platform's word, when the
//! marker was written and when the call was settled is the service's; both read the same
//! host's clock.

use std::collections::BTreeMap;

use tonic::Request;

use super::load::{self, Callee, WORKSPACE};
use super::placements::{float, no_rooms};
use super::report::{Report, Target, share};
use super::stand::{Kind, Stand};
use super::{Error, Ground, Plan, Section};
use crate::api::proto;
use crate::lab::platform::CallTimes;

/// Attempts on a page of a list.
const PAGE: i32 = 500;

/// What one number of ringing calls showed.
struct Rung {
    count: u64,
    kilobytes: u64,
    /// From the marker to the INVITE, in seconds.
    dialed: Vec<f64>,
    /// From the end of the leg to the settled attempt, in seconds.
    settled: Vec<f64>,
}

pub(super) async fn measure(
    ground: &Ground,
    plan: &Plan,
    report: &mut Report,
    tls: bool,
) -> Result<(), Error> {
    let section = if tls {
        Section::RingingTls.name()
    } else {
        Section::Ringing.name()
    };
    let [few, many] = plan.ringing;
    let few = ring(ground, plan, few, tls).await?;
    let many = ring(ground, plan, many, tls).await?;
    let slope = (float(many.kilobytes) - float(few.kilobytes)) / float(many.count - few.count);
    let mut add = |name, values, target| report.add(section, name, many.count, values, target);
    let most = |value| Some(Target::AtMost(value));
    add(("memory of a ringing call", "kB"), vec![slope], most(40.0));
    add(("memory, few", "kB"), vec![float(few.kilobytes)], None);
    add(("memory, many", "kB"), vec![float(many.kilobytes)], None);
    let (p99, last) = (share(&many.dialed, 0.99), share(&many.dialed, 1.0));
    add(("INVITE after its marker, p99", "s"), vec![p99], None);
    add(
        ("INVITE after its marker, last", "s"),
        vec![last],
        most(1.0),
    );
    let (p99, last) = (share(&many.settled, 0.99), share(&many.settled, 1.0));
    add(("settled after its end, p99", "s"), vec![p99], None);
    add(("settled after its end, last", "s"), vec![last], most(1.0));
    Ok(())
}

async fn ring(ground: &Ground, plan: &Plan, count: u64, tls: bool) -> Result<Rung, Error> {
    let mut stand = Stand::start(ground, if tls { Kind::Tls } else { Kind::Plain }).await?;
    let placing = |callee, wait| {
        let intended = ground.clock.now();
        load::placing(stand.clients(), callee, wait, plan.ring, intended)
    };
    // What the first call alone costs (the tables of numbers, the trunk's id) is none of a
    // ringing call's, and would let the others wait.
    let first = placing(Callee::Busy, proto::Wait::DialOver);
    load::open(ground, stand.take(1), 1, 1.0, first).await?;
    no_rooms(&stand).await?;
    let placing = placing(Callee::Rings, proto::Wait::Accepted);
    let first = stand.take(count);
    let rate = float(count) / (plan.ring.as_secs_f64() / 2.0);
    load::open(ground, first, count, rate, placing).await?;
    let wanted = usize::try_from(count).unwrap_or(usize::MAX);
    stand
        .until("that all phones ring at once", |tally| tally.legs >= wanted)
        .await?;
    let kilobytes = stand.resident()?;
    stand
        .until("that all phones are silent", |tally| tally.legs == 0)
        .await?;
    no_rooms(&stand).await?;
    let calls = stand.timings().await?.calls;
    let mut rung = Rung {
        count,
        kilobytes,
        dialed: Vec::new(),
        settled: Vec::new(),
    };
    attempts(&stand, |attempt| rung.take(&attempt, &calls)).await?;
    // The first call is among them.
    if rung.settled.len() <= wanted {
        return Err(Error::Late("the settling of all calls"));
    }
    Ok(rung)
}

impl Rung {
    fn take(&mut self, attempt: &proto::Attempt, calls: &BTreeMap<String, CallTimes>) {
        let Some(times) = calls.get(&attempt.session) else {
            return;
        };
        let seconds = |from: i64, to: i64| {
            #[expect(clippy::cast_precision_loss, reason = "no span is 2^52 µs long")]
            let micros = (to - from) as f64;
            micros / 1e6
        };
        if let Some(marker) = attempt.attempt_marker_time.as_ref() {
            self.dialed.push(seconds(micros(marker), times.invite));
        }
        if let (Some(end), Some(settled)) = (times.end, attempt.end_time.as_ref()) {
            self.settled.push(seconds(end, micros(settled)));
        }
    }
}

pub(super) fn micros(time: &pbjson_types::Timestamp) -> i64 {
    time.seconds * 1_000_000 + i64::from(time.nanos / 1_000)
}

/// Every attempt of the load.
pub(super) async fn attempts(
    stand: &Stand,
    mut each: impl FnMut(proto::Attempt),
) -> Result<(), Error> {
    let Some(mut client) = stand.clients().pop() else {
        return Err(Error::Late("a connection"));
    };
    let mut token = String::new();
    loop {
        let list = proto::ListAttemptsRequest {
            workspace: WORKSPACE.to_owned(),
            page_size: PAGE,
            page_token: token,
            ..proto::ListAttemptsRequest::default()
        };
        let page = client.list_attempts(Request::new(list)).await;
        let page = page.map_err(|status| Error::Refused(status.message().to_owned()))?;
        let page = page.into_inner();
        page.attempts.into_iter().for_each(&mut each);
        token = page.next_page_token;
        if token.is_empty() {
            return Ok(());
        }
    }
}
