//! The inventory of rooms: what is a leak and what is not, and what a person may delete.

use std::sync::Arc;
use std::time::Duration;

use ringonce::lab::platform::Fault;
use ringonce::ledger::record::RoomState;
use ringonce::model::attempt::{EndCause, Mode, State};
use ringonce::model::id::{Nonce, RoomName, SessionId};
use ringonce::node::{Leak, Leg, NotDeleted, Removal, RoomFilter, RoomPage, Standing};
use ringonce::provider::{Call, Client, Limits, METADATA_VERSION, NewRoom, RoutingMetadata};
use ringonce::runtime::life::Life;
use tokio::time::sleep;

use super::world::{Alive, Lab, credentials, workspace};

const ANSWERS: &str = "+12025550100";
const RINGS: &str = "+12025550108";
const BUSY: &str = "+12025550186";
/// After this nothing of a call can come back.
const LONG: Duration = Duration::from_mins(10);

async fn list(alive: &Alive) -> RoomPage {
    let all = RoomFilter::default();
    alive.node.inventory().page(&all, None, 50).await.unwrap()
}

async fn only(alive: &Alive) -> Standing {
    let page = list(alive).await;
    assert_eq!(page.rooms.len(), 1, "{page:?}");
    assert_eq!(page.leaks, usize::from(page.rooms[0].leak.is_some()));
    page.rooms[0].clone()
}

async fn delete(alive: &Alive, name: &str, force: bool) -> Result<Standing, NotDeleted> {
    let asked = Removal {
        name: name.to_owned(),
        force,
        reason: "test".to_owned(),
        by: "kim".to_owned(),
    };
    alive.node.inventory().delete(&asked).await
}

/// Makes a room as another program would.
async fn make(lab: &Lab, name: &RoomName, metadata: String) {
    let wire = lab.world.line(Life::new());
    let clock = Arc::clone(&lab.clock) as _;
    let client = Client::new(wire, credentials(), clock, Limits::default());
    let room = NewRoom {
        name: name.clone(),
        metadata,
        empty_timeout: Duration::from_hours(1),
        departure_timeout: Duration::from_secs(20),
    };
    assert!(matches!(client.create_room(&room).await, Call::Done(_)));
}

fn metadata(deployment: &str, attempt: &str, session: SessionId) -> String {
    let routing = RoutingMetadata {
        v: METADATA_VERSION,
        deployment: deployment.parse().unwrap(),
        workspace: workspace(),
        attempt: attempt.parse().unwrap(),
        session,
        contact: "c".parse().unwrap(),
        outreach: "o".parse().unwrap(),
        campaign: None,
        callee_identity: session.identity(),
        nonce: Nonce(uuid::Uuid::from_u128(9)),
    };
    routing.to_text()
}

/// The room and the metadata that a try of this attempt would have, which nobody began.
fn unknown(deployment: &str, attempt: &str) -> (RoomName, String) {
    let named = deployment.parse().unwrap();
    let session = SessionId::of(&named, &workspace(), &attempt.parse().unwrap(), 1);
    let partition = ringonce::ledger::partition_of(&workspace(), 1);
    (
        session.room(partition),
        metadata(deployment, attempt, session),
    )
}

#[tokio::test(start_paused = true)]
async fn a_room_in_use_is_no_leak_and_stays() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", RINGS)).await;
    sleep(Duration::from_secs(5)).await;
    let room = only(&alive).await;
    assert_eq!((room.leak, room.leg, room.owned), (None, Leg::Lives, true));
    assert_eq!(room.attempt_state, Some(State::Dialing));
    assert!(
        room.listed && room.record == Some(RoomState::Created),
        "{room:?}"
    );
    for force in [false, true] {
        let refused = delete(&alive, &room.name, force).await.unwrap_err();
        assert!(
            matches!(
                refused,
                NotDeleted::Owned {
                    state: State::Dialing,
                    ..
                }
            ),
            "{refused}"
        );
        assert!(
            refused.to_string().contains("cancel the attempt"),
            "{refused}"
        );
    }
    assert_eq!(lab.seen().rooms.len(), 1);
    alive.until_settled("a").await;
    lab.until_no_rooms(LONG).await;
    lab.rooms.assert_paired();
}

#[tokio::test(start_paused = true)]
async fn an_answered_call_is_cut_off_only_by_force() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", ANSWERS)).await;
    alive.until_state("a", State::Answered).await;
    let room = only(&alive).await;
    let refused = delete(&alive, &room.name, false).await.unwrap_err();
    assert!(refused.to_string().contains("hang-up"), "{refused}");
    let open = alive.attempt("a").await;
    assert_eq!((open.cancel, open.stop), (None, None), "what was refused");
    let gone = delete(&alive, &room.name, true).await.unwrap();
    assert_eq!((gone.record, gone.listed), (Some(RoomState::Gone), false));
    assert!(lab.seen().rooms.is_empty());
    let ended = alive.until_state("a", State::Ended).await;
    // It does not read as if one side had hung up.
    assert_eq!(ended.settled.unwrap().end_cause, Some(EndCause::Canceled));
    let cancel = ended.cancel.unwrap();
    assert_eq!((cancel.by.as_str(), cancel.mode), ("kim", Mode::HangUp));
    assert!(cancel.why.contains("deleted by hand: test"), "{cancel:?}");
    sleep(LONG).await;
    assert_eq!(lab.rooms.causes(), ["operator"]);
    lab.rooms.assert_paired();
    let again = delete(&alive, &room.name, true).await.unwrap_err();
    assert!(matches!(again, NotDeleted::NotFound), "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_by_force_and_the_stop_that_it_records_may_come_in_any_order() {
    // The person's request is held up for so long; the stop is carried out meanwhile, or not.
    for millis in [0, 200, 900, 1_500, 4_000, 9_000] {
        let lab = Lab::new(1);
        let alive = lab.node().await;
        alive.place(lab.call("a", ANSWERS)).await;
        alive.until_state("a", State::Answered).await;
        let room = only(&alive).await;
        lab.fault(Fault {
            millis: Some(millis),
            ..Fault::on("slow", "DeleteRoom")
        });
        let (gone, ended) = tokio::join!(
            delete(&alive, &room.name, true),
            alive.until_state("a", State::Ended)
        );
        let gone = gone.unwrap();
        assert_eq!((gone.record, gone.listed), (Some(RoomState::Gone), false));
        let cause = ended.settled.clone().unwrap().end_cause;
        assert_eq!(cause, Some(EndCause::Canceled), "after {millis} ms");
        assert_eq!(ended.cancel.unwrap().by, "kim");
        sleep(LONG).await;
        assert_eq!(list(&alive).await.total, 0);
        assert_eq!(lab.rooms.causes().len(), 1, "after {millis} ms");
        lab.rooms.assert_paired();
        lab.assert_promises();
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_made_is_counted_and_never_touched() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let (theirs, of_another) = unknown("another", "a");
    make(&lab, &theirs, of_another).await;
    let (nameless, _) = unknown("another", "b");
    make(&lab, &nameless, String::new()).await;
    let page = list(&alive).await;
    assert_eq!((page.rooms.len(), page.total, page.foreign), (0, 0, 2));
    for name in [theirs.as_str(), nameless.as_str()] {
        let refused = delete(&alive, name, true).await.unwrap_err();
        assert!(matches!(refused, NotDeleted::NotOurs), "{name}: {refused}");
    }
    for name in ["lobby", "ringonce-0-x"] {
        let refused = delete(&alive, name, true).await.unwrap_err();
        let named = matches!(refused, NotDeleted::NoNameOfOurs);
        assert!(named, "{name}: {refused}");
    }
    assert_eq!(lab.seen().rooms.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_room_of_ours_without_a_record_is_a_leak_and_goes_by_hand() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let ours = alive.node.ledger().deployment().as_str();
    let (name, metadata) = unknown(ours, "lost");
    make(&lab, &name, metadata).await;
    sleep(Duration::from_secs(30)).await;
    let room = only(&alive).await;
    assert_eq!(room.leak, Some(Leak::NoRecord));
    assert_eq!((room.attempt.as_str(), room.attempt_state), ("lost", None));
    let age = lab.now().since(room.created_at.unwrap());
    assert!(age >= Duration::from_secs(30) && age < LONG, "{age:?}");
    delete(&alive, name.as_str(), false).await.unwrap();
    assert!(lab.seen().rooms.is_empty());
    assert_eq!(lab.rooms.causes(), ["operator"]);
    assert_eq!(list(&alive).await.total, 0);
}

#[tokio::test(start_paused = true)]
async fn a_room_that_came_back_is_a_leak_and_one_of_another_history_is_not_ours() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    alive.place(lab.call("a", BUSY)).await;
    let attempt = alive.until_settled("a").await;
    lab.until_no_rooms(LONG).await;
    assert_eq!(list(&alive).await.total, 0);
    sleep(LONG).await;
    let placed = attempt.placed.unwrap();
    make(&lab, &placed.room, String::new()).await;
    let room = only(&alive).await;
    assert_eq!(room.leak, Some(Leak::CameBack));
    assert_eq!(room.attempt_state, Some(State::NotConnected));
    delete(&alive, &room.name, false).await.unwrap();
    assert_eq!(lab.rooms.causes(), ["not_connected", "operator"]);

    let ours = alive.node.ledger().deployment().as_str();
    make(&lab, &placed.room, metadata(ours, "a", placed.session)).await;
    let room = only(&alive).await;
    assert_eq!(room.leak, Some(Leak::OtherHistory));
    let refused = delete(&alive, &room.name, true).await.unwrap_err();
    assert!(matches!(refused, NotDeleted::NotOurs), "{refused}");
    assert_eq!(lab.seen().rooms.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_is_a_leak_until_it_succeeds() {
    // It would go by itself before it is overdue.
    let lab = Lab::with(1, "[room]\ndeparture_timeout = \"10m\"", |_| {});
    let alive = lab.node().await;
    let mut fails = Fault::on("refuse", "DeleteRoom");
    (fails.times, fails.status) = (Some(u32::MAX), Some(500));
    fails.code = Some("internal".to_owned());
    lab.fault(fails.clone());
    alive.place(lab.call("a", BUSY)).await;
    alive.until_settled("a").await;
    let room = only(&alive).await;
    assert_eq!(
        (room.leak, room.record),
        (None, Some(RoomState::Closing)),
        "on its way"
    );
    let overdue = lab.config.janitor.delete_timeout + Duration::from_secs(1);
    sleep(overdue).await;
    let room = only(&alive).await;
    assert_eq!(room.leak, Some(Leak::NotDeleted), "{room:?}");
    let failed = delete(&alive, &room.name, false).await.unwrap_err();
    assert!(matches!(failed, NotDeleted::Platform), "{failed}");
    fails.times = Some(0);
    lab.fault(fails);
    delete(&alive, &room.name, false).await.unwrap();
    sleep(LONG).await;
    assert_eq!(list(&alive).await.total, 0);
    assert_eq!(lab.rooms.causes(), ["operator"]);
    lab.rooms.assert_paired();
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_does_not_list_is_an_error_and_no_clean_bill() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let mut silent = Fault::on("refuse", "ListRooms");
    (silent.times, silent.status) = (Some(u32::MAX), Some(500));
    silent.code = Some("internal".to_owned());
    lab.fault(silent);
    let all = RoomFilter::default();
    assert!(alive.node.inventory().page(&all, None, 50).await.is_err());
    let name = unknown("d", "a").0;
    let failed = delete(&alive, name.as_str(), true).await.unwrap_err();
    assert!(matches!(failed, NotDeleted::Platform), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn pages_follow_one_another_by_name_and_count_the_same() {
    let lab = Lab::new(1);
    let alive = lab.node().await;
    let ours = alive.node.ledger().deployment().as_str();
    for attempt in ["a", "b", "c"] {
        let (name, metadata) = unknown(ours, attempt);
        make(&lab, &name, metadata).await;
    }
    let page = async |filter: &RoomFilter, after: Option<&str>, limit| {
        let found = alive.node.inventory().page(filter, after, limit).await;
        found.unwrap()
    };
    let of = |workspace: &str, leaks_only| RoomFilter {
        workspace: Some(workspace.parse().unwrap()),
        leaks_only,
    };
    let (mut names, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
    for n in 1..=3 {
        let found = page(&of("w", n == 2), after.as_deref(), 1).await;
        assert_eq!((found.total, found.leaks, found.more), (3, 3, n < 3));
        after = Some(found.rooms[0].name.clone());
        names.extend(after.clone());
    }
    assert!(names.is_sorted() && names.len() == 3, "{names:?}");
    let found = page(&of("other", false), None, 50).await;
    assert_eq!((found.rooms, found.total, found.foreign), (vec![], 0, 0));
}
