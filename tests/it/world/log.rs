//! The paired room events, as they are logged.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

/// Hears of rooms for as long as it lives, on the thread that made it.
pub(crate) struct RoomLog {
    heard: Arc<Mutex<BTreeMap<String, Heard>>>,
    stuck: Arc<Mutex<Vec<String>>>,
    events: Arc<Mutex<BTreeMap<String, u32>>>,
    _guard: DefaultGuard,
}

/// What was said of one room.
#[derive(Debug, Default, Clone)]
struct Heard {
    planned: u32,
    confirmed: u32,
    /// The causes of its ends.
    ends: Vec<String>,
}

struct Ear {
    heard: Arc<Mutex<BTreeMap<String, Heard>>>,
    stuck: Arc<Mutex<Vec<String>>>,
    events: Arc<Mutex<BTreeMap<String, u32>>>,
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Ear {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let of = |name| fields.0.get(name).cloned().unwrap_or_default();
        *self.events.lock().unwrap().entry(of("event")).or_default() += 1;
        if of("event") == "room.stuck" {
            self.stuck.lock().unwrap().push(of("room"));
        }
        if event.metadata().target() != "ringonce::rooms" {
            return;
        }
        let mut heard = self.heard.lock().unwrap();
        let room = heard.entry(of("room")).or_default();
        match (of("event").as_str(), of("confirmed").as_str()) {
            ("room.created", "false") => room.planned += 1,
            ("room.created", _) => room.confirmed += 1,
            ("room.deleted", _) => room.ends.push(of("cause")),
            other => panic!("an event of rooms that is none: {other:?}"),
        }
    }
}

impl RoomLog {
    pub(crate) fn listen() -> Self {
        let (heard, stuck, events) = (Arc::default(), Arc::default(), Arc::default());
        let ear = Ear {
            heard: Arc::clone(&heard),
            stuck: Arc::clone(&stuck),
            events: Arc::clone(&events),
        };
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(ear));
        Self {
            heard,
            stuck,
            events,
            _guard: guard,
        }
    }

    /// Asserts that each room that was begun has ended, once.
    pub(crate) fn assert_paired(&self) {
        self.assert(|ends| ends == 1);
    }

    /// Asserts that each room that was begun has ended; whoever crashed between an end and
    /// its record tells it again.
    pub(crate) fn assert_closed(&self) {
        self.assert(|ends| ends >= 1);
    }

    /// The causes of all ends, in the order of the rooms' names.
    pub(crate) fn causes(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.values().flat_map(|room| room.ends.clone()).collect()
    }

    /// The rooms of which an alarm said that they cannot be deleted, once for each alarm.
    pub(crate) fn stuck(&self) -> Vec<String> {
        self.stuck.lock().unwrap().clone()
    }

    /// How often an event was logged.
    pub(crate) fn said(&self, event: &str) -> u32 {
        let events = self.events.lock().unwrap();
        events.get(event).copied().unwrap_or(0)
    }

    fn assert(&self, sound: impl Fn(usize) -> bool) {
        for (name, room) in self.heard.lock().unwrap().iter() {
            let ends = room.ends.iter().filter(|cause| *cause != "late").count();
            assert!(room.planned <= 1, "P3: {name} began twice: {room:?}");
            assert!(
                room.planned == 0 || sound(ends),
                "P3: {name} has {ends} ends: {room:?}"
            );
        }
    }
}
