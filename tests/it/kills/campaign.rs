//! A campaign behind a queue that delivers at least once: again after a failure, again at the
//! same time, and again after the acknowledgement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ringonce::api::{proto, timestamp};
use ringonce::runtime::clock::{Clock as _, SystemClock};
use ringonce::runtime::tasks::Tasks;
use tokio::time::{sleep, timeout};
use tonic::transport::Channel;

use super::ms;
use super::stand::WORKSPACE;

type Client = proto::placement_service_client::PlacementServiceClient<Channel>;

/// Answers and talks, answers and hangs up, busy with and without a ring, declines, rings on,
/// does not exist, carrier out of service, connection cut while it rings, answers unheard,
/// answered late.
const CALLEES: [u8; 12] = [0, 1, 86, 89, 3, 8, 4, 53, 99, 98, 97, 80];
/// How long a delivery waits for an answer, on a host that is busy.
const DELIVERY: Duration = Duration::from_secs(5);
/// How long all messages may take to be acknowledged once nothing is killed any more.
const ACKNOWLEDGED: Duration = Duration::from_mins(1);

/// The messages and their consumers.
pub(super) struct Campaign {
    shared: Arc<Shared>,
    chance: StdRng,
    sent: Vec<Message>,
    tasks: Tasks,
}

#[derive(Debug, Clone)]
struct Message {
    attempt: String,
    contact: String,
    to: String,
    intended: pbjson_types::Timestamp,
}

struct Shared {
    client: Client,
    /// Whose delivery was answered by the ledger, whatever the answer.
    decided: Mutex<BTreeSet<String>>,
    /// What the last delivery of each message came to that is not acknowledged.
    refused: Mutex<BTreeMap<String, String>>,
    deliveries: AtomicU64,
    unanswered: AtomicU64,
    /// From then on nobody delivers what was acknowledged.
    over: AtomicBool,
}

impl Campaign {
    pub(super) fn new(seed: u64, channel: Channel) -> Self {
        Self {
            shared: Arc::new(Shared {
                client: Client::new(channel),
                decided: Mutex::default(),
                refused: Mutex::default(),
                deliveries: AtomicU64::new(0),
                unanswered: AtomicU64::new(0),
                over: AtomicBool::new(false),
            }),
            chance: StdRng::seed_from_u64(seed ^ 1),
            sent: Vec::new(),
            tasks: Tasks::default(),
        }
    }

    /// So many more messages, of which some are for a contact or a number of another one.
    pub(super) fn send(&mut self, count: usize) {
        for _ in 0..count {
            let message = self.draw();
            self.sent.push(message.clone());
            for _ in 0..self.chance.random_range(1..=2) {
                let chance = StdRng::seed_from_u64(self.chance.random());
                let consumer = consume(Arc::clone(&self.shared), message.clone(), chance);
                self.tasks.spawn("consumer", consumer);
            }
        }
    }

    fn draw(&mut self) -> Message {
        let n = self.sent.len();
        let script = CALLEES[self.chance.random_range(0..CALLEES.len())];
        let mut message = Message {
            attempt: format!("a{n}"),
            contact: format!("c{n}"),
            to: format!("+999{n:08}{script:02}"),
            intended: timestamp(SystemClock.now()),
        };
        let recent = self.sent.len().saturating_sub(20)..self.sent.len();
        if !recent.is_empty() && self.chance.random_bool(0.3) {
            let other = &self.sent[self.chance.random_range(recent)];
            if self.chance.random_bool(0.5) {
                message.contact.clone_from(&other.contact);
            } else {
                message.to.clone_from(&other.to);
            }
        }
        message
    }

    /// Deliveries of which nothing was heard yet.
    pub(super) fn unanswered(&self) -> u64 {
        self.shared.unanswered.load(Ordering::SeqCst)
    }

    pub(super) fn deliveries(&self) -> u64 {
        self.shared.deliveries.load(Ordering::SeqCst)
    }

    pub(super) fn messages(&self) -> usize {
        self.sent.len()
    }

    /// The attempts of which a caller heard that they are known.
    pub(super) fn decided(&self) -> BTreeSet<String> {
        self.shared.decided.lock().unwrap().clone()
    }

    /// Waits until every message was acknowledged.
    pub(super) async fn settles(&self) {
        self.shared.over.store(true, Ordering::SeqCst);
        let all = self.tasks.idle(ACKNOWLEDGED).await;
        let refused = self.shared.refused.lock().unwrap();
        assert!(
            all,
            "P5: {} messages are not acknowledged after {ACKNOWLEDGED:?}, as {:?}",
            refused.len(),
            refused.first_key_value()
        );
    }
}

/// One consumer of one message.
async fn consume(shared: Arc<Shared>, message: Message, mut chance: StdRng) {
    let mut more: u32 = chance.random_range(0..4);
    loop {
        let wait = chance.random_bool(0.5);
        let acknowledged = shared.deliver(&message, wait).await;
        if acknowledged && (more == 0 || shared.over.load(Ordering::SeqCst)) {
            return;
        }
        if acknowledged {
            more -= 1;
        }
        sleep(ms(chance.random_range(20..600))).await;
    }
}

impl Shared {
    /// Whether it was acknowledged.
    async fn deliver(&self, message: &Message, wait: bool) -> bool {
        let wait = if wait {
            proto::Wait::DialOver
        } else {
            proto::Wait::Accepted
        };
        let request = proto::PlaceCallRequest {
            workspace: WORKSPACE.to_owned(),
            attempt_id: message.attempt.clone(),
            contact_id: message.contact.clone(),
            outreach_id: message.attempt.clone(),
            to: message.to.clone(),
            intend_time: Some(message.intended),
            wait: wait.into(),
            ..proto::PlaceCallRequest::default()
        };
        let mut client = self.client.clone();
        self.deliveries.fetch_add(1, Ordering::SeqCst);
        self.unanswered.fetch_add(1, Ordering::SeqCst);
        let answer = timeout(DELIVERY, client.place_call(request)).await;
        self.unanswered.fetch_sub(1, Ordering::SeqCst);
        // Whatever failed is delivered again: what it was is the judge's business, not the queue's.
        let id = message.attempt.clone();
        let mut refused = self.refused.lock().unwrap();
        match answer {
            Ok(Ok(attempt)) => {
                self.decided.lock().unwrap().insert(id.clone());
                let attempt = attempt.into_inner();
                if attempt.next() == proto::attempt::Next::Ack {
                    refused.remove(&id);
                    return true;
                }
                refused.insert(id, attempt.state().as_str_name().to_owned());
            }
            Ok(Err(status)) => drop(refused.insert(id, status.to_string())),
            Err(_late) => drop(refused.insert(id, "no answer".to_owned())),
        }
        false
    }
}
