//! Targets that need a node: bodies into its inbox, and whole requests on a socket before it.
//! What is not genuinely signed is never answered 2xx, and nothing of it is stored.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringonce::inbox::{Taken, http};
use ringonce::lab::platform::Behaviour;
use ringonce::ledger::receipt::Receipt;
use ringonce::ledger::store::Store as _;
use ringonce::model::id::Partition;
use ringonce::runtime::stop::{StopSender, stop};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::corpus::Corpus;
use super::mutate::Mutator;
use crate::inbox::sign;
use crate::world::{Alive, Lab};

/// No answer takes longer, on however busy a host.
const PATIENCE: Duration = Duration::from_secs(30);

/// A longer agent's wait than any run: what the attempt of the room does, webhooks made it do.
const CONFIG: &str = "[deployment]\nname = \"d-1\"\n[agent]\njoin_timeout = \"100s\"\n\
    [webhooks]\nread_timeout = \"500ms\"\n";

/// A node whose only attempt waits for its agent, and a listener before it.
pub(super) struct Served {
    lab: Lab,
    alive: Alive,
    address: SocketAddr,
    room: String,
    /// The hashes of what was genuinely signed.
    genuine: BTreeSet<[u8; 32]>,
    _stop: StopSender,
}

impl Served {
    pub(super) async fn new() -> Self {
        let lab = Lab::with(1, CONFIG, |settings| {
            for worker in &mut settings.workers {
                worker.behaviour = Behaviour::Absent;
            }
        });
        let alive = lab.node().await;
        let mut call = lab.call("a", "+9990000000000");
        call.spec.agent.join_ms = 100_000;
        let placed = alive.place(call).await.placed.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = stop();
        let tasks = alive.node.tasks();
        let (inbox, limits) = (Arc::clone(alive.node.inbox()), lab.config.webhooks.clone());
        let serving = http::serve(listener, inbox, limits, tasks.clone(), stopping);
        tasks.spawn("webhooks", serving);
        Self {
            room: placed.room.as_str().to_owned(),
            lab,
            alive,
            address,
            genuine: BTreeSet::new(),
            _stop: stop,
        }
    }

    /// An event of our room, and its token.
    fn event(&self, chance: &mut Mutator, corpus: &Corpus) -> Value {
        let mut event = chance.of(&corpus.events).clone();
        event["room"]["name"] = self.room.as_str().into();
        event
    }

    fn sign(&mut self, body: &[u8]) -> String {
        self.genuine.insert(Sha256::digest(body).into());
        sign::over(body, self.lab.now().as_secs())
    }

    /// A body or a token that was bent after it was signed is refused; what was bent before is
    /// taken or is no event.
    pub(super) async fn body(&mut self, chance: &mut Mutator, corpus: &Corpus) {
        let (event, other) = (self.event(chance, corpus), chance.of(&corpus.events));
        let sound = event.to_string().into_bytes();
        let inbox = Arc::clone(self.alive.node.inbox());
        match chance.below(3) {
            0 => {
                let token = sign::over(&sound, self.lab.now().as_secs());
                let bent = chance.bytes(&sound, other.to_string().as_bytes());
                if bent != sound {
                    let became = inbox.take(Some(token.as_bytes()), &bent).await;
                    assert_eq!(became.status(), 401, "bytes that were not signed");
                }
            }
            1 => {
                let token = sign::over(&sound, self.lab.now().as_secs());
                let bent = chance.bytes(token.as_bytes(), b"Bearer ");
                let text = String::from_utf8_lossy(&bent).into_owned();
                if text.strip_prefix("Bearer ").unwrap_or(&text).trim() != token {
                    let became = inbox.take(Some(&bent), &sound).await;
                    assert_eq!(became.status(), 401, "a token that was not made");
                }
            }
            _ => {
                let bent = match chance.below(2) {
                    0 => chance.json(&event, other).to_string().into_bytes(),
                    _ => chance.bytes(&sound, other.to_string().as_bytes()),
                };
                let token = self.sign(&bent);
                let became = inbox.take(Some(token.as_bytes()), &bent).await;
                let right = matches!(became, Taken::Kept | Taken::Known | Taken::NoEvent);
                assert!(right, "{became:?}");
            }
        }
    }

    /// A request whose bytes were bent, on a socket: an answer or an end, and a 2xx only for
    /// what was signed.
    pub(super) async fn request(&mut self, chance: &mut Mutator, corpus: &Corpus) {
        let body = self.event(chance, corpus).to_string().into_bytes();
        let forged = chance.below(2) == 0;
        let token = if forged {
            let token = sign::over(&body, self.lab.now().as_secs());
            let half = token.len() / 2;
            token[..half].to_owned() + &token[half..].to_ascii_uppercase()
        } else {
            self.sign(&body)
        };
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\nauthorization: {token}\r\n\
             connection: close\r\n\r\n",
            http::PATH,
            body.len()
        );
        let word = chance.word();
        let mut request = chance.bytes(head.as_bytes(), word);
        request.extend(&body);
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // A server that refuses early may have closed it.
        let sent = stream.write_all(&request).await;
        drop(sent.and(stream.shutdown().await));
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        drop(read.expect("an answer, or an end"));
        let answered = String::from_utf8_lossy(&answer);
        let kept = answered
            .split(' ')
            .nth(1)
            .is_some_and(|code| code.starts_with('2'));
        assert!(!(kept && forged), "a forged token is answered 2xx");
    }

    /// All that was taken is applied, and nothing came of it but what may.
    pub(super) async fn judge(&self) {
        sign::until_read(&self.alive).await;
        let store = self.lab.store.reopen();
        let mut after = None;
        loop {
            let scan = Receipt::latest(after, 500);
            let page = store.scan(Partition(0), &scan).await.unwrap();
            for record in &page.records {
                let receipt = Receipt::of(record).unwrap();
                let genuine = self.genuine.iter().any(|hash| hex(hash) == receipt.hash);
                assert!(genuine, "{} is stored and was never signed", receipt.id);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(self.alive.node.tasks().panics(), 0);
        assert_eq!(self.lab.dials(), 0, "a webhook dialed");
        let placed = self.alive.attempt("a").await.placed.unwrap();
        assert!(
            placed.marker.is_none() && placed.answer.is_none(),
            "{placed:?}"
        );
    }
}

fn hex(hash: &[u8; 32]) -> String {
    use std::fmt::Write as _;
    hash.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}
