//! Plays the script on one side, the same on both: what differs is the worker.

use serde_json::json;

use super::run::Error;
use super::script::{Call, STORM, Scene};
use super::side::Side;
use super::times::PACE;
use crate::lab::stack;

/// So many webhooks arrive twice, since their answers are lost.
const WEBHOOKS_TWICE: u32 = 12;

/// Everything up to the last message; what then still moves is waited for by the caller.
pub(super) async fn play(side: &Side) -> Result<(), Error> {
    side.say("a campaign begins");
    campaign(side).await?;
    side.say("twelve calls in one moment");
    for call in of(side, Scene::Overload) {
        side.queue.send(call, None);
    }
    over(side).await?;
    outage(side).await?;
    kill(side).await?;
    flush(side).await?;
    over(side).await?;
    side.say("the queue delivers everything once more");
    // Whatever was acknowledged may be delivered again: so the queue's manual says.
    for call in side.calls.iter() {
        side.queue.again(call).await;
    }
    Ok(())
}

/// The calls that are asked for one after the other, each with what happens to it.
async fn campaign(side: &Side) -> Result<(), Error> {
    // The first call of a process is slower than the others, which would catch up with it and
    // dial in one moment.
    for call in of(side, Scene::Answered) {
        side.queue.send(call.clone(), None);
        side.ringing(&call).await?;
    }
    // Each webhook from here on comes twice, until so many have.
    let twice = json!({"name": "webhook_answer_lost", "times": WEBHOOKS_TWICE});
    side.sandbox.throw(&twice).await?;
    let mut pace = tokio::time::interval(PACE);
    for scene in Scene::ALL {
        if matches!(
            scene,
            Scene::Answered | Scene::Overload | Scene::Outage | Scene::Killed | Scene::TrunkFlush
        ) {
            continue;
        }
        for call in of(side, scene) {
            pace.tick().await;
            if scene == Scene::LostReply {
                lose_reply(side, &call).await?;
            }
            if scene == Scene::CallerGone {
                let (rings, ringing) = (side.clone(), call.clone());
                let gone = Box::pin(async move {
                    // A phone that never rings shows in the table.
                    drop(rings.ringing(&ringing).await);
                });
                side.queue.send(call, Some(gone));
            } else {
                side.queue.send(call, None);
            }
        }
    }
    for call in of(side, Scene::Storm) {
        side.ringing(&call).await?;
        side.queue.storm(&call, STORM);
    }
    for call in of(side, Scene::Canceled) {
        side.ringing(&call).await?;
        side.worker.cancel(&call).await;
    }
    Ok(())
}

/// The dial is carried out and its answer gets lost, once.
async fn lose_reply(side: &Side, call: &Call) -> Result<(), stack::Error> {
    let fault = json!({
        "name": "lose_reply",
        "method": "CreateSIPParticipant",
        "to": call.to,
    });
    side.sandbox.throw(&fault).await
}

/// A call whose reply is lost while no webhook arrives: nobody tells what became of it, so it
/// has to be looked for.
async fn outage(side: &Side) -> Result<(), Error> {
    side.say("no webhook arrives any more");
    let outage = |times| json!({"name": "webhook_outage", "times": times});
    side.sandbox.throw(&outage(u32::MAX)).await?;
    let calls = of(side, Scene::Outage);
    for call in calls.clone() {
        lose_reply(side, &call).await?;
        side.queue.send(call, None);
    }
    over(side).await?;
    side.until("the end of a call that nobody tells of", |view| {
        calls.iter().all(|call| {
            let seen = view.seen(call);
            seen.over || seen.failed
        })
    })
    .await?;
    side.sandbox.throw(&outage(0)).await?;
    Ok(())
}

/// Three phones ring, the server dies, and comes back to a queue that delivers again.
async fn kill(side: &Side) -> Result<(), Error> {
    side.say("three phones ring");
    let calls = of(side, Scene::Killed);
    for call in calls.clone() {
        side.queue.send(call, None);
    }
    // On a slow host one may ring a little later than the others, and still one rings.
    side.until("three ringing phones", |view| {
        calls.iter().all(|call| view.sip_calls(call) > 0)
            && calls.iter().any(|call| view.rings(call))
    })
    .await?;
    side.say("kill -9 while three phones ring");
    side.worker.kill().await?;
    side.worker.restart().await?;
    side.say("started again; the queue delivers what was not acknowledged");
    over(side).await
}

/// The platform forgets its trunks; the next dial names one that is not there.
async fn flush(side: &Side) -> Result<(), Error> {
    side.say("the platform has lost its trunks");
    side.sandbox.throw(&json!({"name": "trunk_flush"})).await?;
    for call in of(side, Scene::TrunkFlush) {
        side.queue.send(call, None);
    }
    Ok(())
}

/// Waits until the queue has nothing to deliver.
async fn over(side: &Side) -> Result<(), Error> {
    let queue = side.queue.clone();
    side.until("an empty queue", |_| queue.is_empty()).await?;
    Ok(())
}

fn of(side: &Side, scene: Scene) -> Vec<Call> {
    let calls = side.calls.iter().filter(|call| call.scene == scene);
    calls.cloned().collect()
}
