//! One look at LiveKit when a process starts, so that a wrong address, secret or trunk is
//! said at once and not by the first call that waits. It delays nothing and decides nothing.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::watch;

use crate::model::id::TrunkName;
use crate::provider::trunks::TrunkError;
use crate::provider::{Client, Refused, Trouble};

/// Looks for every configured trunk, and says in the log what is wrong and what to do. Ends
/// early when the process drains.
pub async fn look(
    client: Arc<Client>,
    trunks: Vec<TrunkName>,
    mut draining: watch::Receiver<bool>,
) {
    // Asked together, so that one list answers all of them.
    let found = join_all(trunks.iter().map(|name| client.resolve_trunk(name)));
    let found = tokio::select! {
        biased;
        // An error means that the node is gone, and so is the reason to look.
        _ = draining.wait_for(|drains| *drains) => return,
        found = found => found,
    };
    let mut silent = None;
    for (name, found) in trunks.iter().zip(found) {
        match found {
            Ok(_) => {}
            Err(why @ (TrunkError::NotFound | TrunkError::Ambiguous(_) | TrunkError::NoNumber)) => {
                tracing::warn!(
                    event = "trunk.unusable",
                    trunk = name.as_str(),
                    why = %why,
                    "a configured trunk cannot be dialed with; give LiveKit exactly one outbound \
                     trunk of this name, with a number, or correct [trunks]"
                );
            }
            // The same for every trunk, so it is said once.
            Err(why @ (TrunkError::Refused(_) | TrunkError::Unclear(_))) => silent = Some(why),
        }
    }
    if let Some(why) = silent {
        let health = client.health();
        // What failed once is over where LiveKit answers by now.
        let failing = health.failing_since.and(health.failed);
        say(why, failing.map(|failed| failed.why));
    }
}

/// Says that the trunks could not be listed, by what was wrong with the request where that is
/// known: a refusal is not told from an address at which nobody listens by `why` alone.
fn say(why: TrunkError, trouble: Option<Trouble>) {
    if why == TrunkError::Refused(Refused::Credentials) {
        tracing::error!(
            event = "livekit.credentials",
            "LiveKit refuses the API key, its secret or this host's clock; nothing is dialed \
             until that is mended: check livekit.api_key, livekit.api_secret and the clocks"
        );
    } else {
        let remedy = trouble.map_or(
            "LiveKit answers, and not this: see its own log",
            Trouble::explain,
        );
        tracing::warn!(
            event = "livekit.unreachable",
            failure = trouble.map_or("", Trouble::name),
            "{why}: {remedy}; calls wait until they can be"
        );
    }
}
