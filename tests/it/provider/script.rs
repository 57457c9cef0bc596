//! A wire that answers from a script, and a client over it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use livekit_protocol as proto;
use prost::Message;
use ringonce::model::id::{Partition, RoomName, SessionId, TrunkName};
use ringonce::model::time::Time;
use ringonce::provider::client::{Client, Limits};
use ringonce::provider::token::Credentials;
use ringonce::provider::wire::{Answer, Method, Refusal, Reply, Request, Wire};
use ringonce::runtime::clock::{Clock, SystemClock};
use secrecy::SecretString;

/// Answers in the order of the script; out of answers is a fault of the test.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) answers: Mutex<VecDeque<Answer>>,
    pub(super) asked: Mutex<Vec<Request>>,
    pub(super) date: Option<Time>,
}

#[async_trait]
impl Wire for Script {
    async fn send(&self, request: Request) -> Reply {
        // Others get their turn, as on a network.
        tokio::task::yield_now().await;
        self.asked.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front();
        Reply {
            answer: answer.expect("the script has an answer for every request"),
            date: self.date,
        }
    }
}

impl Script {
    pub(super) fn methods(&self) -> Vec<Method> {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .map(|r| r.method)
            .collect()
    }

    pub(super) fn left(&self) -> usize {
        self.answers.lock().unwrap().len()
    }
}

#[derive(Debug)]
pub(super) struct At(pub(super) Time);

impl Clock for At {
    fn now(&self) -> Time {
        self.0
    }
}

pub(super) fn credentials() -> Credentials {
    Credentials {
        key: "devkey".to_owned(),
        secret: SecretString::from("a secret of at least thirty-two bytes"),
    }
}

pub(super) fn client(answers: impl IntoIterator<Item = Answer>) -> (Client, Arc<Script>) {
    let script = Arc::new(Script {
        answers: Mutex::new(answers.into_iter().collect()),
        date: Time::parse("2026-11-29T12:00:00Z"),
        ..Script::default()
    });
    let client = Client::new(
        script.clone(),
        credentials(),
        Arc::new(SystemClock),
        Limits::default(),
    );
    (client, script)
}

pub(super) fn room() -> RoomName {
    session().room(Partition(0))
}

pub(super) fn session() -> SessionId {
    SessionId::parse("6f0b1d5e-4c1a-4d07-9a39-1b8e72f455d1").unwrap()
}

pub(super) fn main_trunk() -> TrunkName {
    "main".parse().unwrap()
}

pub(super) fn done(message: &impl Message) -> Answer {
    Answer::Done(message.encode_to_vec())
}

pub(super) fn twirp(status: u16, code: &str, msg: &str) -> Answer {
    Answer::Refused(Refusal {
        status,
        code: code.to_owned(),
        msg: format!("twirp error unknown: {msg}"),
        ..Refusal::default()
    })
}

pub(super) fn trunks(listed: &[(&str, &str, &[&str])]) -> Answer {
    let items = listed
        .iter()
        .map(|(id, name, numbers)| proto::SipOutboundTrunkInfo {
            sip_trunk_id: (*id).to_owned(),
            name: (*name).to_owned(),
            numbers: numbers.iter().map(|n| (*n).to_owned()).collect(),
            ..Default::default()
        });
    done(&proto::ListSipOutboundTrunkResponse {
        items: items.collect(),
    })
}

pub(super) fn one(id: &str) -> Answer {
    trunks(&[(id, "main", &["+12025550100"])])
}
