//! Very many calls whose replies were lost at once, in a world whose time is paused: how long
//! after their horizon the last is settled, with a budget of 15 requests a second.
//!
//! Their rooms are gone, so that one `ListRooms` by names tells of many. The world is
//! [`crate::lab::world`]; its seconds are the platform's, not those of this host.

use std::sync::Arc;
use std::time::Duration;

use super::report::{Report, Target};
use super::stand::{KEY, SECRET};
use super::{Error, Plan, Section};
use crate::api::{self, RequestLimits};
use crate::config::Config;
use crate::lab::platform::Settings;
use crate::lab::world::World;
use crate::ledger::record::{Contact, Held, Number, Room, RoomState, Session, contact_key};
use crate::ledger::record::{keys_of, number_key, session_key};
use crate::ledger::seal::Keys;
use crate::ledger::store::memory::Memory;
use crate::ledger::store::{Epoch, Store};
use crate::ledger::{Change, Decision, Ledger};
use crate::model::attempt::{Attempt, Cause, Keyed, Placed, State};
use crate::model::id::{Nonce, SessionId, Workspace};
use crate::model::verdict::Unclear;
use crate::model::window::Marker;
use crate::node::{Ground, Node};
use crate::provider::Credentials;
use crate::runtime::clock::Clock;
use crate::runtime::ids::RandomIds;
use crate::runtime::life::Life;
use crate::runtime::tasks::Tasks;

const SECTION: &str = Section::Uncertain.name();

/// How many requests a second the reconciler may send.
const BUDGET: &str = "[reconcile]\nrequests_per_second = 15\n[numbers]\n\
    test_prefixes = [\"+999\"]\n[dial]\nagent = \"caller\"\n";

/// From the marker to the horizon.
const HORIZON: Duration = Duration::from_secs(145);

/// Between two looks at the ledger.
const PACE: Duration = Duration::from_secs(1);

pub(super) fn measure(plan: &Plan, report: &mut Report) -> Result<(), Error> {
    let count = plan.uncertain;
    let build = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
    };
    // Its world has a runtime of its own, so this one has nothing to do meanwhile.
    let seconds = tokio::task::block_in_place(|| build()?.block_on(Box::pin(play(count))))?;
    let target = Some(Target::AtMost(60.0));
    let name = ("last after its horizon", "s");
    report.add(SECTION, name, u64::from(count), vec![seconds], target);
    let note = "The section `uncertain` plays a world with paused time: its seconds are counted \
        in that world.";
    report.notes.push(note.to_owned());
    Ok(())
}

/// The seconds from the horizon to the last settling.
async fn play(count: u32) -> Result<f64, Error> {
    let world = World::new(Settings::default());
    let tasks = Tasks::default();
    tasks.spawn("world", Arc::clone(&world).run());
    let clock: Arc<dyn Clock> = world.clock();
    let epoch = Epoch {
        id: uuid::Uuid::from_u128(7),
        since: clock.now().minus(Duration::from_hours(1)),
    };
    let store = Memory::new(1, epoch);
    let node = start(&world, &store, &clock, 1).await?;
    let ws: Workspace = "bench".parse().map_err(|_| unfit("a workspace"))?;
    let trunk = trunk(&node, &clock, &ws).await?;
    for n in 0..count {
        lose(node.ledger(), &clock, &ws, &trunk, epoch, n).await?;
    }
    // Whoever dialed them is gone; the next process finds them.
    node.tasks().abort_all();
    node.tasks().idle(PACE).await;
    let horizon = clock.now().plus(HORIZON);
    let node = start(&world, &store, &clock, 2).await?;
    let ledger = node.ledger();
    loop {
        let mut open = 0;
        for p in ledger.partitions() {
            let found = ledger.in_state(p, State::Uncertain, None, 1).await;
            open += found
                .map_err(|error| Error::Refused(error.to_string()))?
                .0
                .len();
        }
        if open == 0 {
            return Ok(clock.now().since(horizon).as_secs_f64());
        }
        if clock.now() > horizon.plus(Duration::from_hours(1)) {
            return Err(Error::Late("the settling of all that was uncertain"));
        }
        tokio::time::sleep(PACE).await;
    }
}

const fn unfit(what: &'static str) -> Error {
    Error::Late(what)
}

fn config() -> Result<Config, Error> {
    Config::from_toml(BUDGET).map_err(|_| unfit("a sound configuration"))
}

async fn start(
    world: &Arc<World>,
    store: &Memory,
    clock: &Arc<dyn Clock>,
    seed: u64,
) -> Result<Node, Error> {
    let store: Arc<dyn Store> = Arc::new(store.reopen());
    let ground = Ground {
        store,
        keys: Keys::random(&RandomIds::seeded(1)),
        wire: world.line(Life::new()),
        credentials: Credentials {
            key: KEY.to_owned(),
            secret: SECRET.into(),
        },
        clock: Arc::clone(clock),
        ids: Arc::new(RandomIds::seeded(seed)),
        tasks: Tasks::default(),
    };
    let started = Node::start(Arc::new(config()?), ground).await;
    started.map_err(|error| Error::Refused(error.to_string()))
}

/// The id of the trunk, as a real dial recorded it.
async fn trunk(node: &Node, clock: &Arc<dyn Clock>, ws: &Workspace) -> Result<String, Error> {
    let refused = |text: String| Error::Refused(text);
    let message = super::load::request(
        0,
        super::load::Callee::Busy,
        api::proto::Wait::Accepted,
        Duration::from_secs(45),
        clock.now(),
    );
    let limits = RequestLimits::from(&config()?);
    let request = api::place_call(message, &limits, clock.now());
    let request = request.map_err(|wrong| refused(format!("{wrong:?}")))?;
    let placed = node.admission().place(request).await;
    let (attempt, _) = placed.map_err(|error| refused(error.to_string()))?;
    let session = attempt.placed.map(|placed| placed.session);
    let session = session.ok_or(unfit("a call"))?;
    // Its room is gone by then.
    tokio::time::sleep(Duration::from_secs(200)).await;
    let room = node.ledger().room(ws, session).await;
    let room = room.map_err(|error| refused(error.to_string()))?;
    room.and_then(|room| room.trunk).ok_or(unfit("a trunk"))
}

/// An attempt whose answer was lost, as a process that died left it.
async fn lose(
    ledger: &Arc<Ledger>,
    clock: &Arc<dyn Clock>,
    ws: &Workspace,
    trunk: &str,
    epoch: Epoch,
    n: u32,
) -> Result<(), Error> {
    let now = clock.now();
    let id = format!("lost-{n}").parse().map_err(|_| unfit("an id"))?;
    let session = SessionId::of(ledger.deployment(), ws, &id, 1);
    let keyed = Keyed {
        number_key: format!("n{n}"),
        ..Keyed::default()
    };
    let spec = super::fill::spec(u64::from(n), now)?;
    let mut attempt = Attempt::new(ws.clone(), id, spec, keyed, epoch.id, now);
    let nonce = Nonce(uuid::Uuid::from_u128(1));
    let name = session.room(ledger.partition(ws));
    let mut placed = Placed::reserved(session, name, nonce, now, now);
    placed.marker = Some(Marker {
        at: now,
        send_by: now,
        window_end: now,
        horizon: now.plus(HORIZON),
        server_deadline_ms: 65_000,
    });
    placed.unclear = Some(Unclear::NoAnswer);
    let mut room = Room::planned(&attempt, &placed);
    room.state = RoomState::Created;
    room.sid = Some("RM_1".to_owned());
    room.trunk = Some(trunk.to_owned());
    attempt.look_at = placed.horizon();
    attempt.placed = Some(placed);
    attempt.enter(None, State::Uncertain, now, Cause::Verdict, String::new());
    let contact = Contact {
        workspace: ws.clone(),
        contact: attempt.spec.contact.clone(),
        held: Held::default(),
    };
    let number = Number {
        workspace: ws.clone(),
        number: attempt.number_key.clone(),
        held: Held::default(),
    };
    let session_of = Session {
        session,
        workspace: ws.clone(),
        attempt: attempt.id.clone(),
        number: 1,
    };
    let mut keys = keys_of(&attempt);
    keys.extend([
        contact_key(ws, &contact.contact),
        number_key(ws, &number.number),
        session_key(session),
    ]);
    let decided = ledger.decide(ws, keys, |_| {
        let mut change = Change::default();
        change.attempt(&attempt, Cause::Verdict)?;
        change.put(&room)?;
        change.put(&contact)?;
        change.put(&number)?;
        change.put(&session_of)?;
        Ok(Decision::Write(change, ()))
    });
    let decided = decided.await.map(drop);
    decided.map_err(|error| Error::Refused(error.to_string()))
}
