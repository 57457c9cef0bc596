//! Many at once: a thousand lost answers cost the platform a few requests.

use std::sync::Arc;
use std::time::Duration;

use ringonce::ledger::record::{Contact, Held, Number, Room, RoomState, Session};
use ringonce::ledger::record::{contact_key, keys_of, number_key, session_key};
use ringonce::ledger::{Change, Decision, Ledger};
use ringonce::model::attempt::{Attempt, Cause, Keyed, Placed, State};
use ringonce::model::id::{Nonce, SessionId};
use ringonce::model::verdict::Unclear;
use ringonce::model::window::Marker;
use tokio::time::sleep;
use uuid::Uuid;

use crate::world::{Alive, Lab, workspace};

const MANY: u32 = 2_000;

/// An attempt whose answer was lost, as a process that died left it.
async fn lost(ledger: &Arc<Ledger>, lab: &Lab, trunk: &str, n: u32) {
    let (ws, now) = (workspace(), lab.now());
    let spec = lab.call(&format!("a{n}"), "+99900000000").spec;
    let id = format!("a{n}").parse().unwrap();
    let session = SessionId::of(ledger.deployment(), &ws, &id, 1);
    let keyed = Keyed {
        number_key: format!("n{n}"),
        ..Keyed::default()
    };
    let epoch = lab.epoch().id;
    let mut attempt = Attempt::new(ws.clone(), id, spec, keyed, epoch, now);
    let name = session.room(ledger.partition(&ws));
    let mut placed = Placed::reserved(session, name, Nonce(Uuid::from_u128(1)), now, now);
    placed.marker = Some(Marker {
        at: now,
        send_by: now,
        window_end: now,
        horizon: now.plus(Duration::from_secs(145)),
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
    let mut keys = keys_of(&attempt);
    keys.extend([
        contact_key(&ws, &attempt.spec.contact),
        number_key(&ws, &attempt.number_key),
        session_key(session),
    ]);
    ledger
        .decide(&ws, keys, |_| {
            let mut change = Change::default();
            change.attempt(&attempt, Cause::Verdict)?;
            change.put(&room)?;
            change.put(&Contact {
                workspace: ws.clone(),
                contact: attempt.spec.contact.clone(),
                held: Held::default(),
            })?;
            change.put(&Number {
                workspace: ws.clone(),
                number: attempt.number_key.clone(),
                held: Held::default(),
            })?;
            change.put(&Session {
                session,
                workspace: ws.clone(),
                attempt: attempt.id.clone(),
                number: 1,
            })?;
            Ok(Decision::Write(change, ()))
        })
        .await
        .unwrap();
}

/// The id of the trunk, as a real dial recorded it.
async fn trunk(lab: &Lab, alive: &Alive) -> String {
    alive.place(lab.call("x", "+12025550186")).await;
    let attempt = alive.until_state("x", State::NotConnected).await;
    let session = attempt.placed.unwrap().session;
    // Its room goes before anything is counted.
    sleep(Duration::from_secs(200)).await;
    let room = alive.node.ledger().room(&workspace(), session).await;
    room.unwrap().unwrap().trunk.unwrap()
}

/// Ten thousand at 15 requests a second shall take a minute; a fifth of them at a fifth of
/// the rate is the same task.
#[tokio::test(start_paused = true)]
async fn lost_answers_whose_rooms_are_gone_settle_within_a_minute_of_their_horizon() {
    let config = "[reconcile]\nrequests_per_second = 3\n";
    let lab = Lab::with(1, config, |_| {});
    let alive = lab.node().await;
    let ledger = Arc::clone(alive.node.ledger());
    let trunk = trunk(&lab, &alive).await;
    for n in 0..MANY {
        lost(&ledger, &lab, &trunk, n).await;
    }
    alive.kill().await;
    let (listed, lived) = (lab.requests("ListRooms"), lab.requests("ListDispatch"));
    let started = lab.now();
    let alive = lab.node().await;
    sleep(Duration::from_secs(145 + 60)).await;
    let ledger = alive.node.ledger();
    let mut open = Vec::new();
    for p in ledger.partitions() {
        open.extend(
            ledger
                .in_state(p, State::Uncertain, None, 10)
                .await
                .unwrap()
                .0,
        );
    }
    assert!(open.is_empty(), "{} after {started}: {open:?}", lab.now());
    let asked = lab.requests("ListDispatch") - lived;
    assert_eq!(asked, 0, "the trunk vouches for all");
    let spent = lab.requests("ListRooms") - listed;
    assert!(spent <= 3 * 206, "{spent} requests");
}
