//! Class c: rooms that do not go as they should.

use livekit_protocol as lk;
use prost::Message as _;
use ringonce::lab::platform::{Behaviour, Worker};
use ringonce::model::attempt::{EndCause, State};
use ringonce::model::disposition::Disposition;
use ringonce::node::{Leak, RoomFilter};
use ringonce::provider::wire::Method;
use tokio::time::sleep;

use super::tap::{Made, Tap, ms, refused, s};
use crate::world::{Alive, Lab};

const ANSWERS: &str = "+12025550100";
const BUSY: &str = "+12025550186";

async fn leak(alive: &Alive) -> Option<Leak> {
    let all = RoomFilter::default();
    let page = alive.node.inventory().page(&all, None, 50).await.unwrap();
    page.rooms.first().and_then(|room| room.leak)
}

/// Each way in which a deletion can go wrong, after a busy line.
#[tokio::test(start_paused = true)]
async fn r12_a_deletion_that_goes_wrong_keeps_nobody_waiting() {
    for way in ['a', 'b', 'c'] {
        let lab = Lab::with(1, "[room]\ndeparture_timeout = \"10m\"", |_| {});
        let (alive, tap) = Tap::on(&lab, Method::DeleteRoom, move |before| {
            match (way, before) {
                // It had gone by itself a moment ago.
                ('a', _) => Made::Answered(
                    ms(10),
                    refused(404, "not_found", "requested room does not exist"),
                ),
                ('b', 0) => Made::Silence,
                ('c', 0 | 1) => Made::Instead(ms(10), refused(500, "internal", "no")),
                (_, _) => Made::Through,
            }
        })
        .await;
        alive.place(lab.call("a", BUSY)).await;
        let attempt = alive.until_settled("a").await;
        let settled = attempt.settled.clone().unwrap();
        assert_eq!(settled.disposition, Disposition::Busy);
        let marked = attempt.placed.unwrap().marker.unwrap().at;
        assert!(settled.at.since(marked) < s(1), "no deletion delays it");
        lab.until_no_rooms(s(60)).await;
        let deletions = tap.count(Method::DeleteRoom);
        assert!(deletions <= 4, "{way}: {deletions} deletions");
        sleep(s(600)).await;
        lab.rooms.assert_paired();
        lab.assert_promises();
    }
}

/// A room that is listed and that no deletion finds: it is shown as a leak, and asked about
/// ever more seldom, down to once in `janitor.backoff_max`.
#[tokio::test(start_paused = true)]
async fn r12_a_ghost_is_shown_and_no_hot_loop() {
    let lab = Lab::with(1, "[room]\ndeparture_timeout = \"1h\"", |_| {});
    let (alive, tap) = Tap::on(&lab, Method::DeleteRoom, |_| {
        let gone = refused(404, "not_found", "could not find object");
        Made::Instead(ms(10), gone)
    })
    .await;
    alive.place(lab.call("a", BUSY)).await;
    let attempt = alive.until_settled("a").await;
    assert_eq!(attempt.settled.unwrap().disposition, Disposition::Busy);
    sleep(s(300)).await;
    assert_eq!(lab.seen().rooms.len(), 1, "it stays");
    assert_eq!(leak(&alive).await, Some(Leak::NotDeleted));
    let early = tap.count(Method::DeleteRoom);
    sleep(s(3_000)).await;
    let later = tap.count(Method::DeleteRoom) - early;
    let most = 3_000 / usize::try_from(lab.config.janitor.backoff_max.as_secs()).unwrap();
    assert!(later <= most, "{later} deletions, {most} at most");
    assert_eq!(lab.rooms.stuck().len(), 1, "one alarm, and no more");
    assert_eq!(lab.sip_calls(), 1);
}

/// The room must outlive the wait for the agent and the ring; the platform's own timer for an
/// empty room runs from its making.
#[tokio::test(start_paused = true)]
async fn r14_the_room_outlives_a_slow_agent_and_the_ring() {
    let lab = Lab::with(1, "", |settings| {
        let after = s(15);
        settings.workers = vec![Worker::new("caller", Behaviour::Late { after })];
    });
    let (alive, tap) = Tap::node(&lab, |_, _| Made::Through).await;
    let mut call = lab.call("a", ANSWERS);
    call.spec.agent.join_ms = 16_000;
    alive.place(call).await;
    alive.until_state("a", State::Answered).await;
    let sent = tap.asked(Method::CreateRoom).remove(0);
    let made = lk::CreateRoomRequest::decode(sent.as_slice()).unwrap();
    assert!(made.empty_timeout > 16 + 45, "{}", made.empty_timeout);
    assert!(made.departure_timeout > 0);
}

/// A busy line leaves the agent alone in a room that the platform would keep for hours.
#[tokio::test(start_paused = true)]
async fn r14_the_room_of_a_busy_line_goes_at_once() {
    let lab = Lab::with(1, "[room]\ndeparture_timeout = \"1h\"", |_| {});
    let alive = lab.node().await;
    alive.place(lab.call("a", BUSY)).await;
    alive.until_settled("a").await;
    lab.until_no_rooms(s(1)).await;
    sleep(s(600)).await;
    lab.rooms.assert_paired();
}

/// The process dies between the carrier's answer and the deletion; the next one deletes.
#[tokio::test(start_paused = true)]
async fn r14_the_next_process_deletes_what_the_last_one_could_not() {
    let lab = Lab::with(1, "[room]\ndeparture_timeout = \"1h\"", |_| {});
    let (alive, tap) = Tap::on(&lab, Method::DeleteRoom, |_| Made::Silence).await;
    alive.place(lab.call("a", BUSY)).await;
    alive.until_settled("a").await;
    while tap.count(Method::DeleteRoom) == 0 {
        sleep(ms(10)).await;
    }
    alive.kill().await;
    assert_eq!(lab.seen().rooms.len(), 1);
    let alive = lab.node().await;
    lab.until_no_rooms(s(120)).await;
    assert_eq!(alive.attempt("a").await.state, State::NotConnected);
    sleep(s(600)).await;
    lab.rooms.assert_paired();
    lab.assert_promises();
}

/// The platform forgets how long a call may last; we do not.
#[tokio::test(start_paused = true)]
async fn r14_a_call_ends_at_its_maximum_although_the_platform_lets_it_run() {
    let lab = Lab::with(1, "", |settings| settings.times.talk = s(36_000));
    let (alive, _tap) = Tap::node(&lab, |request, _| {
        if request.method == Method::Dial {
            let dial = lk::CreateSipParticipantRequest::decode(request.body.as_slice());
            let mut dial = dial.unwrap();
            assert_eq!(dial.max_call_duration.take().unwrap().seconds, 60);
            request.body = dial.encode_to_vec();
        }
        Made::Through
    })
    .await;
    let mut call = lab.call("a", ANSWERS);
    call.spec.max_call_ms = 60_000;
    alive.place(call).await;
    let answered = alive.until_state("a", State::Answered).await;
    let ended = alive.until_state("a", State::Ended).await;
    assert_eq!(ended.settled.unwrap().end_cause, Some(EndCause::Maximum));
    let lasted = ended.since.since(answered.since);
    // A minute of grace, and a look every thirty seconds.
    assert!((s(60)..s(160)).contains(&lasted), "{lasted:?}");
    lab.until_no_rooms(s(10)).await;
    sleep(s(600)).await;
    lab.rooms.assert_paired();
}
