//! A wire that a test has tapped: it sees each request, and may answer it in the platform's
//! place.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ringonce::provider::twirp;
use ringonce::provider::wire::{Answer, Lost, Method, Reply, Request, Wire};
use ringonce::runtime::life::Life;
use ringonce::runtime::tasks::Tasks;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::world::{Alive, Lab};

/// What is made of a request.
#[derive(Debug)]
pub(crate) enum Made {
    /// The platform has it, and answers.
    Through,
    /// The platform has it and does what it does, but this is the answer, after so long.
    Answered(Duration, Answer),
    /// The platform has it, and its answer is changed on the way back.
    Changed(fn(Answer) -> Answer),
    /// The platform never sees it; this is the answer, after so long.
    Instead(Duration, Answer),
    /// The platform never sees it, and no answer comes.
    Silence,
}

type Rule = Box<dyn Fn(&mut Request, usize) -> Made + Send + Sync>;

/// The tapped wire of one node.
pub(crate) struct Tap {
    line: Arc<dyn Wire>,
    rule: Rule,
    /// The bodies of the requests, by method, as they were sent.
    asked: Mutex<BTreeMap<Method, Vec<Vec<u8>>>>,
    tasks: Tasks,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

impl Tap {
    /// A node of `lab` behind a tap. `rule` is told how many requests of the same method came
    /// before.
    pub(crate) async fn node(
        lab: &Lab,
        rule: impl Fn(&mut Request, usize) -> Made + Send + Sync + 'static,
    ) -> (Alive, Arc<Self>) {
        let life = Life::new();
        let tap = Arc::new(Self {
            line: lab.world.line(life.clone()),
            rule: Box::new(rule),
            asked: Mutex::default(),
            tasks: Tasks::default(),
        });
        let store = Arc::new(lab.store.reopen());
        let wire = Arc::clone(&tap);
        let alive = lab.node_over(wire, store, None, life).await;
        (alive, tap)
    }

    fn note(&self, request: &Request) {
        let mut asked = self.asked.lock().unwrap();
        let of = asked.entry(request.method).or_default();
        of.push(request.body.clone());
    }

    /// One whose tap makes something of the requests of one method.
    pub(crate) async fn on(
        lab: &Lab,
        method: Method,
        make: impl Fn(usize) -> Made + Send + Sync + 'static,
    ) -> (Alive, Arc<Self>) {
        Self::node(lab, move |request, before| {
            if request.method == method {
                make(before)
            } else {
                Made::Through
            }
        })
        .await
    }

    /// The bodies that were sent to this method.
    pub(crate) fn asked(&self, method: Method) -> Vec<Vec<u8>> {
        let asked = self.asked.lock().unwrap();
        asked.get(&method).cloned().unwrap_or_default()
    }

    /// How often this method was asked.
    pub(crate) fn count(&self, method: Method) -> usize {
        self.asked(method).len()
    }
}

#[async_trait]
impl Wire for Tap {
    async fn send(&self, mut request: Request) -> Reply {
        let before = self.count(request.method);
        let made = (self.rule)(&mut request, before);
        self.note(&request);
        let patience = request.timeout;
        let answer = async {
            match made {
                Made::Through => return self.line.send(request).await,
                Made::Answered(after, answer) => {
                    let line = Arc::clone(&self.line);
                    let passed = async move { drop(line.send(request).await) };
                    self.tasks.spawn("passed on", passed);
                    sleep(after).await;
                    no_date(answer)
                }
                Made::Changed(change) => {
                    let Reply { answer, date } = self.line.send(request).await;
                    let answer = change(answer);
                    Reply { answer, date }
                }
                Made::Instead(after, answer) => {
                    sleep(after).await;
                    no_date(answer)
                }
                Made::Silence => std::future::pending().await,
            }
        };
        let timed_out = no_date(Answer::Lost(Lost::Timeout));
        timeout(patience, answer).await.unwrap_or(timed_out)
    }
}

const fn no_date(answer: Answer) -> Reply {
    Reply { answer, date: None }
}

/// A Twirp error, read as the transport reads one.
pub(crate) fn refused(status: u16, code: &str, msg: &str) -> Answer {
    error(status, &json!({"code": code, "msg": msg}))
}

/// One with a carrier's status in it.
pub(crate) fn carrier(status: u16, code: &str, sip: u16, phrase: &str) -> Answer {
    let meta = json!({"sip_status_code": sip.to_string(), "sip_status": phrase});
    error(
        status,
        &json!({"code": code, "msg": "sip status", "meta": meta}),
    )
}

fn error(status: u16, body: &Value) -> Answer {
    let body = body.to_string().into_bytes();
    twirp::read(status, Some("application/json"), body)
}

/// A page of something that stands before the platform.
pub(crate) fn page(status: u16, text: &str) -> Answer {
    twirp::read(status, Some("text/html"), text.as_bytes().to_vec())
}

/// Milliseconds.
pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Seconds.
pub(crate) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
