//! A store with many settled attempts, written as the service would have left them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::load::{WORKSPACE, attempt};
use super::{Error, Ground};
use crate::ledger::record::{Contact, FORMAT, Held, Number, Room, RoomState, Session, Stored};
use crate::ledger::store::sqlite::{Options, Sqlite};
use crate::ledger::store::{Commit, CommitId, Event, Put, Store};
use crate::model::attempt::{
    AgentWanted, Attempt, Cause, Gate, Keep, Keyed, Placed, Settled, Spec, State,
};
use crate::model::disposition::{Disposition, Rang};
use crate::model::id::{Deployment, Nonce, Partition, SessionId, Workspace};
use crate::model::time::Time;

/// Commits that wait for the writer at once.
const IN_FLIGHT: usize = 512;

/// Adds `count` attempts to the store at `path`, which no service holds.
pub(super) async fn fill(ground: &Ground, path: &Path, count: u64) -> Result<(), Error> {
    let options = Options::default();
    let opened = Sqlite::open(path, &options, ground.clock.now(), ground.ids.as_ref())?;
    let store: Arc<dyn Store> = Arc::new(opened);
    let commits = stream::iter(0..count).map(|n| {
        let (store, ground) = (Arc::clone(&store), ground.clone());
        async move {
            let commit = settled(&ground, store.as_ref(), n)?;
            store.commit(Partition(0), &commit).await?;
            Ok::<(), Error>(())
        }
    });
    let mut commits = commits.buffer_unordered(IN_FLIGHT);
    while let Some(done) = commits.next().await {
        done?;
    }
    drop(commits);
    store.close().await;
    Ok(())
}

/// The records of an attempt that was busy, an hour ago.
fn settled(ground: &Ground, store: &dyn Store, n: u64) -> Result<Commit, Error> {
    let at = ground.clock.now().minus(Duration::from_hours(1));
    let workspace: Workspace = id(WORKSPACE)?;
    let deployment: Deployment = id("filled")?;
    let attempt_id = id(&format!("old-{}", attempt(n)))?;
    let session = SessionId::of(&deployment, &workspace, &attempt_id, 1);
    let number = format!("{:0>32x}", u128::from(n));
    let keyed = Keyed {
        fingerprint: format!("{:0>64x}", u128::from(n)),
        number_key: number.clone(),
        number_mask: "+999********89".to_owned(),
        sealed: None,
    };
    let spec = spec(n, at)?;
    let contact = spec.contact.clone();
    let epoch = store.epoch().id;
    let mut old = Attempt::new(workspace.clone(), attempt_id, spec, keyed, epoch, at);
    for (from, to, cause) in [
        (None, State::Reserved, Cause::Admitted),
        (Some(State::Reserved), State::Dialing, Cause::Marked),
        (Some(State::Dialing), State::NotConnected, Cause::Verdict),
    ] {
        old.enter(from, to, at, cause, String::new());
    }
    let nonce = Nonce(ground.ids.uuid());
    let placed = Placed::reserved(session, session.room(Partition(0)), nonce, at, at);
    let mut room = Room::planned(&old, &placed);
    room.state = RoomState::Tombstone;
    old.tries = 1;
    old.placed = Some(placed);
    old.settled = Some(Settled::new(Disposition::Busy, Rang::NoEvidence, true, at));
    let held = || Held {
        dials: vec![at],
        ..Held::default()
    };
    let put = vec![
        put(&old)?,
        put(&room)?,
        put(&Contact {
            workspace: workspace.clone(),
            contact,
            held: held(),
        })?,
        put(&Number {
            workspace: workspace.clone(),
            number,
            held: held(),
        })?,
        put(&Session {
            session,
            workspace,
            attempt: old.id.clone(),
            number: 1,
        })?,
    ];
    let event = |put: &Put| Event {
        key: put.key.clone(),
        body: put.body.clone(),
    };
    Ok(Commit {
        id: CommitId(ground.ids.uuid()),
        epoch: store.epoch(),
        at,
        expect: put.iter().map(|put| (put.key.clone(), None)).collect(),
        events: put.iter().take(1).map(event).collect(),
        put,
        delete: Vec::new(),
    })
}

fn put<T: Stored>(value: &T) -> Result<Put, Error> {
    let body = serde_json::to_vec(value)
        .map_err(|_| Error::Late("a record that can be written as JSON"))?;
    Ok(Put {
        key: value.key(),
        format: FORMAT,
        due: value.due(),
        index: value.index(),
        body,
    })
}

fn id<T: std::str::FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::Late("an id that is one"))
}

pub(super) fn spec(n: u64, at: Time) -> Result<Spec, Error> {
    Ok(Spec {
        contact: id(&format!("old-contact-{n}"))?,
        outreach: id("bench")?,
        campaign: Some(id("bench")?),
        follows: None,
        intend_time: at,
        expire_time: at.plus(Duration::from_hours(1)),
        keep: Keep::UntilExpiry,
        trunk: id("main")?,
        agent: AgentWanted {
            name: id("caller")?,
            gate: Gate::Dispatched,
            join_ms: 10_000,
        },
        ringing_ms: 45_000,
        max_call_ms: 3_600_000,
        time_zone: None,
        priority: 0,
        labels: std::collections::BTreeMap::new(),
    })
}
