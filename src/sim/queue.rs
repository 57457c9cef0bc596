//! The queue in front: it delivers at least once, and now and then loses, doubles or delays.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::calls::Wanted;
use super::chance::Chance;
use super::stage::Stage;
use crate::admission::PlaceError;
use crate::model::attempt::{Attempt, Next};
use crate::model::request::Request;

/// How long a consumer waits for the answer to its `PlaceCall`.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// How long a message stays invisible that nobody acknowledged.
const INVISIBLE: Duration = Duration::from_secs(30);

/// The least delay with which a queue delivers again: a clock that is off, or a process that
/// is dead, names a time that has passed.
const SOONEST: Duration = Duration::from_secs(1);

/// How long a refusal for lost history is put off; it does not happen here.
const LOST_AGAIN: Duration = Duration::from_mins(1);

/// One message, from its first delivery to its acknowledgement.
pub(super) async fn message(stage: Arc<Stage>, call: Wanted, begun: Instant, chance: Chance) {
    sleep_until(begun + call.at).await;
    let Ok(request) = call.request(stage.now()) else {
        return;
    };
    let wrong = stage.plan.storm.queue;
    if chance.hits(wrong / 10.0) {
        return;
    }
    while stage.now() <= request.spec.expire_time.plus(INVISIBLE) {
        if chance.hits(wrong) {
            sleep(chance.millis(1, 10_000)).await;
        }
        if chance.hits(wrong) {
            twice(&stage, &request, &chance);
        }
        let answer = deliver(&stage, &chance, request.clone()).await;
        match answer {
            Some(Ok(attempt)) if !chance.hits(wrong) => {
                match attempt.next(stage.now(), LOST_AGAIN) {
                    Next::Ack => return,
                    Next::Repeat(at) => {
                        sleep(at.since(stage.now()).max(SOONEST)).await;
                    }
                }
            }
            // Another call has the key: its message came first.
            Some(Err(PlaceError::IdReused { .. })) => return,
            // Nothing was decided, or the acknowledgement was lost.
            Some(Ok(_)) => sleep(INVISIBLE).await,
            Some(Err(_)) | None => sleep(chance.millis(200, 8_000)).await,
        }
    }
}

/// A second consumer has the same message.
fn twice(stage: &Arc<Stage>, request: &Request, chance: &Chance) {
    let (stage_of, request, chance) = (Arc::clone(stage), request.clone(), chance.clone());
    stage.tasks.spawn("again", async move {
        sleep(chance.millis(0, 5_000)).await;
        drop(deliver(&stage_of, &chance, request).await);
    });
}

/// Hands a request to a node that lives. `None`: no answer came.
pub(super) async fn deliver(
    stage: &Stage,
    chance: &Chance,
    request: Request,
) -> Option<Result<Attempt, PlaceError>> {
    let alive = stage.any(chance)?;
    let (tell, told) = oneshot::channel();
    let admission = Arc::clone(alive.node.admission());
    // In a task of the node, so that it dies with it.
    alive.node.tasks().spawn("delivery", async move {
        let placed = Box::pin(admission.place(request)).await;
        // Whoever asked may have lost its patience.
        drop(tell.send(placed.map(|(attempt, _)| attempt)));
    });
    timeout(PATIENCE, told).await.ok()?.ok()
}
