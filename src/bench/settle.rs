//! How soon a call whose reply was lost is settled by looking, without any webhook: with the
//! process that dialed it, and with one that was started after a `kill -9`.
//!
//! All times are short (`config/example/quick.toml`), and so is the horizon; what is promised
//! beyond it is not.

use std::time::Duration;

use super::load::{self, Callee};
use super::placements::float;
use super::report::{Report, Target, share};
use super::ringing::{attempts, micros};
use super::stand::{Kind, Stand};
use super::{Error, Ground, Plan, Section};
use crate::api::proto;
use crate::api::proto::attempt::State;
use crate::model::time::Time;

const SECTION: &str = Section::Settle.name();

/// How long these phones may ring.
const RING: Duration = Duration::from_secs(2);

/// From the marker to the horizon when no answer came: `send_by` 1 s, the token's leeway 2 s,
/// the platform's deadline of the ring and 1 s, and the slack of 1 s, of the short times.
const HORIZON: Duration = Duration::from_secs(5).saturating_add(RING);

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_mins(2);

pub(super) async fn measure(
    ground: &Ground,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), Error> {
    let stays = lost(ground, plan, false).await?;
    let restarted = lost(ground, plan, true).await?;
    for (name, late) in [
        ("after the horizon", stays),
        ("after start and horizon", restarted),
    ] {
        let count = late.len() as u64;
        let last = vec![share(&late, 1.0)];
        let target = Some(Target::AtMost(5.0));
        report.add(SECTION, (name, "s"), count, last, target);
    }
    Ok(())
}

/// By how much later than its horizon each is settled, in seconds; counted from the start of
/// the second process if there is one.
async fn lost(ground: &Ground, plan: &Plan, restart: bool) -> Result<Vec<f64>, Error> {
    let mut stand = Stand::start(ground, Kind::Quick).await?;
    let count = plan.lost;
    for callee in [Callee::Lost, Callee::Cut] {
        let (wait, now) = (proto::Wait::Accepted, ground.clock.now());
        let placing = load::placing(stand.clients(), callee, wait, RING, now);
        let first = stand.take(count);
        load::open(ground, first, count, float(count), placing).await?;
    }
    let mut started = None;
    if restart {
        stand
            .until("phones that ring", |tally| tally.legs > 0)
            .await?;
        stand.kill().await?;
        stand.start_again(ground).await?;
        started = Some(ground.clock.now());
    }
    let began = tokio::time::Instant::now();
    loop {
        let (mut late, mut open) = (Vec::new(), 0);
        attempts(&stand, |attempt| match settled(&attempt, started) {
            Some(seconds) => late.push(seconds),
            None => open += usize::from(!attempt.settled),
        })
        .await?;
        if open == 0 && !late.is_empty() {
            return Ok(late);
        }
        if began.elapsed() > PATIENCE {
            return Err(Error::Late("the settling of all lost replies"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// How much later than it may it left UNCERTAIN; `None` if it did not, or never was in it.
fn settled(attempt: &proto::Attempt, started: Option<Time>) -> Option<f64> {
    let history = &attempt.history;
    let lost = history.iter().position(|t| t.to() == State::Uncertain)?;
    let left = history.get(lost + 1)?.time.as_ref().map(micros)?;
    let marker = attempt.attempt_marker_time.as_ref().map(micros)?;
    let from = started.map_or(marker, |at| at.as_micros().max(marker));
    let span = Duration::from_micros(u64::try_from(left - from).unwrap_or_default());
    Some(span.as_secs_f64() - HORIZON.as_secs_f64())
}
