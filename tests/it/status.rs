//! What a node counts, and says: duplicates, the time between the two markers, webhooks that
//! do not come, and why.

mod platform;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringonce::admission::cancel::CancelCommand;
use ringonce::inbox::Taken;
use ringonce::model::attempt::{Mode, Passage, State};
use ringonce::model::id::CampaignId;
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use crate::world::{Alive, Lab};

const ANSWERS: &str = "+12025550100";
const BUSY: &str = "+12025550186";
const RINGS: &str = "+12025550108";

/// Every event of the log, by its fields.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Ear {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        self.0.lock().unwrap().push(fields);
    }
}

impl Ear {
    fn heard(&self, name: &str) -> Vec<BTreeMap<&'static str, String>> {
        let all = self.0.lock().unwrap();
        let named = |fields: &&BTreeMap<_, _>| fields.get("event").is_some_and(|e| e == name);
        all.iter().filter(named).cloned().collect()
    }
}

fn listen() -> (Ear, tracing::subscriber::DefaultGuard) {
    let ear = Ear::default();
    let subscriber = tracing_subscriber::registry().with(ear.clone());
    (ear, tracing::subscriber::set_default(subscriber))
}

fn of(alive: &Alive, passage: Passage) -> u64 {
    let status = alive.node.status();
    status.redelivered.by_passage[passage.name()]
}

#[tokio::test(start_paused = true)]
async fn redeliveries_are_events_and_those_in_flight_and_those_placed_are_counted_apart() {
    let lab = Lab::new(1);
    let (ear, _guard) = listen();
    let alive = lab.node().await;
    let mut call = lab.call("a", ANSWERS);
    call.spec.campaign = Some("spring".parse().unwrap());
    alive.place(call.clone()).await;
    assert!(
        ear.heard("attempt.redelivered").is_empty(),
        "it is the first"
    );
    alive.place(call.clone()).await;
    alive.until_state("a", State::Dialing).await;
    alive.place(call.clone()).await;
    alive.place(call.clone()).await;
    alive.until_state("a", State::Answered).await;
    alive.place(call.clone()).await;
    alive.until_state("a", State::Ended).await;
    alive.place(call.clone()).await;
    let counted = Passage::ALL.map(|passage| of(&alive, passage));
    assert_eq!(
        counted,
        [1, 2, 0, 2, 0],
        "open, in flight, unclear, placed, over"
    );
    let heard = ear.heard("attempt.redelivered");
    assert_eq!(heard.len(), 5);
    for event in &heard {
        let field = |name| event.get(name).map(String::as_str);
        assert_eq!(
            (field("attempt"), field("campaign")),
            (Some("a"), Some("spring"))
        );
        assert!(!format!("{event:?}").contains("2025550100"), "{event:?}");
    }
    assert_eq!(lab.sip_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_time_between_the_markers_is_counted_once_for_each_call_that_is_answered() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    for (id, to) in [("a", ANSWERS), ("b", BUSY), ("c", "+12025550198")] {
        alive.place(lab.call(id, to)).await;
    }
    let answered = alive.until_state("a", State::Answered).await;
    let placed = answered.placed.unwrap();
    let took = placed.answer.unwrap().at.since(placed.marker.unwrap().at);
    let spans = alive.node.status().between_markers;
    assert_eq!(spans.count(), 1, "a busy call has no placement marker");
    assert_eq!(u128::from(spans.sum_ms), took.as_millis());
    // The second one is placed by the reconciler's proof.
    alive.until_state("c", State::Answered).await;
    alive.until_state("a", State::Ended).await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(alive.node.status().between_markers.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_faster_than_the_phones_is_named_once_with_the_remedy() {
    let lab = Lab::new(1);
    let (ear, _guard) = listen();
    let alive = lab.node().await;
    let calls: Vec<_> = [("a", "+12025550108"), ("b", "+9990000000008")]
        .into_iter()
        .map(|(id, to)| {
            let mut call = lab.call(id, to);
            call.spec.campaign = Some("hasty".parse().unwrap());
            call
        })
        .collect();
    for call in &calls {
        alive.place(call.clone()).await;
        alive
            .until_state(call.attempt.as_str(), State::Dialing)
            .await;
    }
    for _ in 0..3 {
        sleep(Duration::from_secs(10)).await;
        for call in &calls {
            alive.place(call.clone()).await;
        }
    }
    let short = alive.node.status().redelivered.short;
    let [hasty] = short.as_slice() else {
        panic!("one campaign: {short:?}");
    };
    assert_eq!(hasty.campaign, Some("hasty".parse::<CampaignId>().unwrap()));
    assert_eq!(hasty.count, 6);
    assert!(hasty.least <= Duration::from_secs(11), "{hasty:?}");
    assert_eq!(hasty.ring, Duration::from_secs(45));
    let said = ear.heard("redelivery.short");
    assert_eq!(said.len(), 1, "once in a while: {said:?}");
    assert!(
        said[0]["message"].contains("visibility timeout"),
        "{said:?}"
    );
    assert_eq!(lab.dials(), 2);
}

/// Without webhooks calls settle by looking; with tokens of a wrong key the status says that.
#[tokio::test(start_paused = true)]
async fn webhooks_that_are_off_are_said_loudly_with_the_likely_reasons() {
    let lab = Lab::with(1, "[reconcile]\nwebhook_silence = \"1m\"\n", |settings| {
        settings.times.talk = Duration::from_secs(90);
    });
    let (ear, _guard) = listen();
    let alive = lab.node().await;
    assert!(!alive.node.status().told.silent, "nothing is missed yet");
    for n in 0..4 {
        let call = lab.call(&format!("a{n}"), &format!("+9990000000{n}00"));
        alive.place(call).await;
    }
    for n in 0..4 {
        alive.until_state(&format!("a{n}"), State::Ended).await;
    }
    let told = alive.node.status().told;
    assert!(told.silent, "{told:?}");
    assert!(told.gaps.values().sum::<u64>() >= 4, "{told:?}");
    let first = |told: &[&str]| {
        told.first()
            .map(|why| why.split(':').next().unwrap().to_owned())
    };
    assert_eq!(first(&told.why).as_deref(), Some("URL"));
    let said = ear.heard("webhook.silence");
    assert!(!said.is_empty());
    for word in ["webhook.urls", "webhook.api_key", "clocks", "30 s"] {
        assert!(said[0]["message"].contains(word), "{word}: {said:?}");
    }
    let refused = alive.node.inbox().take(Some(b"Bearer a.b.c"), b"{}").await;
    assert!(matches!(refused, Taken::Refused(_)));
    let told = alive.node.status().told;
    assert_eq!(
        first(&told.why).as_deref(),
        Some("KEY"),
        "what was seen comes first"
    );
    assert_eq!(told.counts["malformed_token"], 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_open_is_counted_by_state_and_the_oldest_uncertain_one_is_named() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let counted = async |state: State| {
        let tallies = alive.node.open_attempts().await.unwrap();
        let found = tallies.into_iter().find(|tally| tally.state == state);
        found.unwrap()
    };
    // The first two ring, and then their connections break.
    for (id, to) in [("a", "+12025550199"), ("b", "+9990000000199"), ("c", RINGS)] {
        alive.place(lab.call(id, to)).await;
        sleep(Duration::from_secs(1)).await;
    }
    let mut waits = lab.call("d", ANSWERS);
    waits.spec.contact = "c".parse().unwrap();
    alive.place(waits).await;
    for id in ["a", "b"] {
        alive.until_state(id, State::Uncertain).await;
    }
    assert_eq!(counted(State::Queued).await.count, 1);
    assert_eq!(counted(State::Dialing).await.count, 1);
    let uncertain = counted(State::Uncertain).await;
    assert_eq!((uncertain.count, uncertain.more), (2, false));
    let oldest = uncertain.oldest.unwrap();
    assert_eq!(oldest.id.as_str(), "a");
    assert!(oldest.placed.as_ref().unwrap().horizon().unwrap() > lab.now());
    let ledger = alive.node.ledger();
    let least = ledger.tally(State::Uncertain, 1).await.unwrap();
    assert_eq!((least.count, least.more), (1, true), "at least one");
}

#[tokio::test(start_paused = true)]
async fn a_try_that_was_canceled_is_not_said_to_have_failed() {
    let lab = Lab::new(1);
    let (ear, _guard) = listen();
    let alive = lab.node().await;
    let call = lab.call("a", ANSWERS);
    alive.place(call.clone()).await;
    alive.place(call).await;
    let again = ear.heard("attempt.redelivered");
    assert!(
        again[0]["message"].contains("nothing of it had been dialed"),
        "{again:?}"
    );
    let command = CancelCommand {
        workspace: crate::world::workspace(),
        attempt: "a".parse().unwrap(),
        mode: Mode::StopRinging,
        allow_missing: false,
        reason: String::new(),
        requested_by: String::new(),
    };
    alive.node.admission().cancel(&command).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(ear.heard("try.canceled").len(), 1);
    assert!(
        ear.heard("try.failed").is_empty(),
        "{:?}",
        ear.heard("try.failed")
    );
    let begun = ear.heard("room.created");
    assert!(
        begun[0]["message"].contains("about to be made"),
        "{begun:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_finds_in_flight_what_another_process_dialed() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let call = lab.call("a", RINGS);
    alive.place(call.clone()).await;
    alive.until_state("a", State::Dialing).await;
    sleep(Duration::from_secs(3)).await;
    alive.kill().await;
    let alive = lab.node().await;
    alive.place(call.clone()).await;
    assert_eq!(
        of(&alive, Passage::InFlight),
        1,
        "{:?}",
        alive.node.status()
    );
    let window = alive
        .attempt("a")
        .await
        .placed
        .unwrap()
        .marker
        .unwrap()
        .window_end;
    sleep(window.since(lab.now())).await;
    alive.place(call).await;
    assert_eq!(of(&alive, Passage::InFlight), 1, "the window has ended");
    assert_eq!(lab.dials(), 1);
}
