//! What teams write first: a lock with an expiry, an exists check, and three bare calls.
//!
//! It is no caricature. It checks before it calls, it locks, it knows a busy line from a
//! fault, it sets timeouts, and whoever reviews it finds nothing missing. What is wrong with
//! it is where it stands: a lock that expires is no proof that its holder has stopped, and an
//! error is no proof that no phone rings. It runs inside this process; a kill drops its tasks
//! and its memory, and leaves what is elsewhere: the lock store, the results, the platform.

mod livekit;
mod shared;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use self::livekit::{Failed, LiveKit};
use self::shared::{Lock, Shared};
use super::queue::{Heard, Seen, Worker};
use super::script::Call;
use crate::config::Credentials;
use crate::lab::stack::Error;
use crate::runtime::clock::Clock;
use crate::runtime::ids::Ids;

/// What a process of it holds in memory.
#[derive(Debug, Default)]
struct Memory {
    /// The trunk's id, as deployments have it in their environment.
    trunk: Option<String>,
    /// The room of each call, for whoever cancels.
    rooms: BTreeMap<String, String>,
}

/// A worker of that kind, and what it shares with its successors.
pub(super) struct Naive {
    livekit: LiveKit,
    shared: Shared,
    memory: Mutex<Memory>,
    /// Whether a process of it runs.
    alive: watch::Sender<bool>,
    ids: Arc<dyn Ids>,
}

impl fmt::Debug for Naive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Naive").finish_non_exhaustive()
    }
}

impl Naive {
    /// Starts it.
    pub(super) async fn start(
        url: &str,
        credentials: Credentials,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        ringing: Duration,
    ) -> Result<Self, Error> {
        let naive = Self {
            livekit: LiveKit::new(url, credentials, clock, ringing)?,
            shared: Shared::default(),
            memory: Mutex::default(),
            alive: watch::Sender::new(false),
            ids,
        };
        naive.restart().await?;
        Ok(naive)
    }

    async fn work(&self, call: &Call) -> Heard {
        // The exists check: what was placed is not placed again.
        if self.shared.is_done(&call.id) {
            return Heard::Ack;
        }
        // `SET call:{id} NX PX …`, named after the message, since that is what may come twice.
        if self.shared.lock(&call.id) == Lock::Taken {
            return Heard::Failed;
        }
        let placed = self.place(call).await;
        // Not reached when this process dies: the expiry is for that.
        self.shared.unlock(&call.id);
        match placed {
            Ok(()) => self.shared.done(&call.id, "answered"),
            // What the carrier said is final: nobody calls a busy line again on purpose.
            Err(Failed::Sip(status)) => self.shared.done(&call.id, &format!("SIP {status}")),
            Err(Failed::RangOut) => self.shared.done(&call.id, "no answer"),
            // It did not work, so the queue shall deliver it again.
            Err(Failed::Error(why)) => {
                self.shared.failed(&call.id, &why);
                return Heard::Failed;
            }
        }
        Heard::Ack
    }

    /// The three calls, as in LiveKit's own outbound example: room, agent, phone. No room
    /// is deleted here, since LiveKit closes what is empty.
    async fn place(&self, call: &Call) -> Result<(), Failed> {
        let room = format!("outbound-{}", self.ids.uuid().simple());
        let trunk = {
            let mut memory = self.memory();
            memory.rooms.insert(call.id.clone(), room.clone());
            memory.trunk.clone().unwrap_or_default()
        };
        self.livekit.create_room(&room, call).await?;
        self.livekit.create_dispatch(&room, call.agent).await?;
        self.livekit
            .create_sip_participant(&room, &trunk, call)
            .await
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Worker for Naive {
    async fn deliver(&self, call: &Call) -> Heard {
        let mut alive = self.alive.subscribe();
        if !*alive.borrow_and_update() {
            return Heard::Nothing;
        }
        tokio::select! {
            biased;
            _ = alive.changed() => Heard::Nothing,
            heard = self.work(call) => heard,
        }
    }

    async fn cancel(&self, call: &Call) -> Heard {
        let room = self.memory().rooms.get(&call.id).cloned();
        match room {
            Some(room) if self.livekit.delete_room(&room).await.is_ok() => Heard::Ack,
            Some(_) | None => Heard::Failed,
        }
    }

    async fn kill(&self) -> Result<(), Error> {
        self.alive.send_replace(false);
        *self.memory() = Memory::default();
        Ok(())
    }

    async fn restart(&self) -> Result<(), Error> {
        let trunk = self.livekit.first_trunk().await?;
        self.memory().trunk = Some(trunk);
        self.alive.send_replace(true);
        Ok(())
    }

    fn prevented(&self) -> BTreeMap<String, u64> {
        self.shared.prevented()
    }

    async fn look(&self) -> Option<BTreeMap<String, Seen>> {
        Some(self.shared.seen())
    }
}
