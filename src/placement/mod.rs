//! A try, from its reservation to its settled end, in a supervised task.
//!
//! `Placement::run` is the whole story. Before the marker every way out deletes the room;
//! after it a room is deleted only once the commit that closes its attempt is durable, or by
//! a recorded stop. What is uncertain leaves the room to the reconciler, alive.

mod attend;
mod gate;
pub mod janitor;
mod mark;
mod room_guard;
pub mod rooms;
pub mod settle;
mod stage;
pub mod stopping;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use self::attend::after_stop;
use self::janitor::Janitor;
use self::mark::{Marked, Markers, Marking};
use self::rooms::{Deletion, Rooms};
use self::settle::{Finding, Settlement, Settler, Try, backoff, slacks};
use self::stage::{Dialing, Failed, Reserved};
use crate::admission::Claim;
use crate::admission::pace::Pace;
use crate::admission::place::Start;
use crate::config::Config;
use crate::ledger::record::{Room, RoomCause};
use crate::ledger::{Error, Ledger, View};
use crate::model::attempt::{Attempt, Cause, State};
use crate::model::evidence;
use crate::model::phone::NumberRules;
use crate::model::verdict::{Leg, TryFailure, Unclear, Verdict};
use crate::model::window::{Slacks, Spans};
use crate::provider::{self, DialContext, DialReply};
use crate::runtime::mutant::{self, Mutant};
use crate::runtime::stop::Stop;
use crate::runtime::streak::Streak;
use crate::runtime::tasks::Tasks;

pub use room_guard::OpenRoom;

/// The name of the task that runs a try.
pub const TASK: &str = "placement";

/// The pauses before a settling is tried again that the store refused: the first, since a busy
/// store is not for long; and the longest, since a full disk is, while every call that is in
/// flight asks.
const SETTLE_FIRST: Duration = Duration::from_millis(100);
const SETTLE_MOST: Duration = Duration::from_secs(5);

/// Runs tries.
#[derive(Debug)]
pub struct Placement {
    ledger: Arc<Ledger>,
    rooms: Arc<Rooms>,
    settler: Arc<Settler>,
    markers: Markers,
    pace: Arc<Pace>,
    janitor: Janitor,
    config: Arc<Config>,
    slacks: Slacks,
    tasks: Tasks,
    drain: Stop,
    /// Settlings that the store refused, of all tries.
    refused: Streak,
}

impl Placement {
    /// With everything that a try touches.
    #[must_use]
    #[expect(
        clippy::too_many_arguments,
        reason = "the composition root gives each once"
    )]
    pub fn new(
        ledger: Arc<Ledger>,
        rooms: Arc<Rooms>,
        settler: Arc<Settler>,
        pace: Arc<Pace>,
        janitor: Janitor,
        config: Arc<Config>,
        numbers: NumberRules,
        tasks: Tasks,
        drain: Stop,
    ) -> Arc<Self> {
        let slacks = slacks(&config);
        let markers = Markers {
            ledger: Arc::clone(&ledger),
            numbers,
        };
        Arc::new(Self {
            ledger,
            rooms,
            settler,
            markers,
            pace,
            janitor,
            config,
            slacks,
            tasks,
            drain,
            refused: Streak::default(),
        })
    }

    /// Runs one try to its end.
    async fn run(&self, claim: Claim) {
        let Some(reserved) = Reserved::of(claim) else {
            return;
        };
        let of = reserved.of.clone();
        // Each in a box of its own: what the stages before the dial need is given back before
        // the phone rings, and ringing is where the time goes and the memory is held.
        match Box::pin(self.bring_to_dial(reserved)).await {
            Ok(dialing) => Box::pin(self.dial(dialing)).await,
            Err(failed) => Box::pin(self.give_back(&of, failed)).await,
        }
    }

    /// The stages before the phone can ring.
    async fn bring_to_dial(&self, reserved: Reserved) -> Result<Dialing, Box<Failed>> {
        let trunked = reserved.resolve_trunk(self).await?;
        let roomed = trunked.open_room(self).await?;
        let staffed = roomed.await_agent(self).await?;
        staffed.mark(self).await
    }

    /// The dial, and what its answer makes of the attempt.
    async fn dial(&self, mut dialing: Dialing) {
        let dialed = dialing.dial(self).await;
        if mutant::is(Mutant::GuardAfterMarker) {
            let _deleted = self.rooms.client().delete_room(&dialing.room.name).await;
        }
        if let Ok(reply) = &dialed
            && provider::overloaded(&reply.answer)
        {
            self.pace.overloaded();
        }
        let ringing = dialing.attempt.spec.ringing();
        let ring_time = dialing.seen.ring_time();
        let records = std::mem::take(&mut dialing.records);
        let talked = match &dialed {
            Ok(reply) => self.talked(reply, &dialing).await,
            Err(_) => None,
        };
        let answered = matches!(&dialed, Ok(reply) if provider::is_answer(&reply.answer));
        if answered {
            let (of, room) = (&dialing.of, &dialing.room);
            self.answered_alone(of, room, &dialing.seen).await;
        }
        let deleted = dialing.seen.deleted();
        let settled = self
            .settle(
                &dialing.of,
                records,
                Cause::Verdict,
                ring_time,
                |attempt| match &dialed {
                    Ok(reply) => {
                        let (found, told) = self.finding(reply, ringing, attempt);
                        (after_stop(found, attempt, talked.as_ref(), deleted), told)
                    }
                    Err(failure) => (
                        Finding::NoCall(*failure, None),
                        "the trunk could not be healed".to_owned(),
                    ),
                },
            )
            .await;
        let Some(settlement) = settled else { return };
        log_settled(&settlement.attempt);
        if let Some(room) = settlement.closing {
            // After a stop the reconciler may delete the same room at the same time.
            let alone = settlement.attempt.stop.is_none();
            let seen = alone.then_some(settlement.seen);
            let cause = room.cause.unwrap_or(RoomCause::NotConnected);
            self.delete(&room, cause, seen).await;
        }
    }

    /// The callee's leg, if it was put out of its room and had been answered: the answer to
    /// the dial says of it what it says of one that rang.
    async fn talked(&self, reply: &DialReply, dialing: &Dialing) -> Option<Leg> {
        if !provider::put_out(&reply.answer) {
            return None;
        }
        let seen = dialing.seen.talks();
        if seen.is_some() {
            return seen;
        }
        let of = &dialing.of;
        let told = self.ledger.call(&of.workspace, of.session).await;
        let record = told.ok()??;
        evidence::answered(&record.seen).map(|(leg, _)| leg)
    }

    /// What an answer proves of an attempt, given whether a stop of it was recorded.
    fn finding(
        &self,
        reply: &DialReply,
        ringing: Duration,
        attempt: &Attempt,
    ) -> (Finding, String) {
        let context = DialContext {
            elapsed: reply.elapsed,
            ringing_timeout: ringing,
            ring_slack: self.config.dial.ring_answer_slack,
            fast_reject: self.config.dial.fast_reject,
            stop_recorded: attempt.stop.is_some(),
        };
        let (told, after) = (reply.answer.told(), reply.elapsed.as_millis());
        let evidence = format!("{told}, after {after} ms");
        let finding = match provider::verdict(&reply.answer, &context) {
            Verdict::Answered(leg) => Finding::Answered(leg),
            Verdict::NotDialed(failure) => Finding::NoCall(failure, None),
            Verdict::NotConnected(end) => Finding::NotConnected(end),
            Verdict::Uncertain(Unclear::NoAnswer) if mutant::is(Mutant::SilenceIsProof) => {
                Finding::NoCall(TryFailure::PlatformUnreachable, None)
            }
            Verdict::Uncertain(unclear) => Finding::Unclear(unclear),
        };
        (finding, evidence)
    }

    /// A try that failed before the dial: its room goes first, then the attempt passes on.
    async fn give_back(&self, of: &Try, failed: Box<Failed>) {
        let Failed {
            failure,
            turned,
            room,
            cause,
        } = *failed;
        let failure = self.blamed(failure);
        self.log_failed(of, failure).await;
        let mut gone = None;
        if let Some(mut open) = room {
            // Deleted under the janitor's eye: if this task is dropped here, it takes over.
            let guard = room_guard::RoomGuard::arm(open.clone(), self.janitor.clone());
            let deletion = match (cause, open.confirmed) {
                (RoomCause::NeverCreated, _) => Deletion::Gone,
                (_, true) => self.rooms.delete(&open.record).await,
                (_, false) => {
                    let gives_up = open.gives_up;
                    self.rooms
                        .delete_unconfirmed(&mut open.record, gives_up, None)
                        .await
                }
            };
            guard.disarm();
            if deletion == Deletion::Gone {
                gone = Some((open.record.clone(), open.record.cause.unwrap_or(cause)));
            }
        }
        let finding = Finding::NoCall(failure, turned);
        self.settle(of, View::default(), Cause::TryFailed(failure), None, |_| {
            (finding.clone(), failure.explain().to_owned())
        })
        .await;
        if let Some((room, cause)) = gone {
            self.record_gone(&room, cause, None).await;
        }
    }

    /// What a try failed of: a LiveKit whose clock is off takes no token, however good the key
    /// is, and says no more than that it refuses.
    fn blamed(&self, failure: TryFailure) -> TryFailure {
        if failure == TryFailure::CredentialsRefused && self.rooms.client().clocks_differ() {
            return TryFailure::PlatformClock;
        }
        failure
    }

    /// Settles, again and again while the store refuses: the finding must not be lost while
    /// this process lives, and there is no hurry: what may ring stays held. If it dies, the
    /// reconciler finds the marker.
    async fn settle(
        &self,
        of: &Try,
        mut seen: View,
        cause: Cause,
        ring_time: Option<crate::model::time::Time>,
        find: impl Fn(&Attempt) -> (Finding, String) + Send + Sync,
    ) -> Option<Settlement> {
        let mut setbacks = 0_u32;
        loop {
            let settled = self
                .settler
                .settle_from(of, std::mem::take(&mut seen), cause, ring_time, |attempt| {
                    Some(find(attempt))
                })
                .await;
            match settled {
                Ok(settlement) => {
                    if setbacks > 0 {
                        self.settles_again();
                    }
                    return settlement;
                }
                Err(error) => {
                    setbacks = setbacks.saturating_add(1);
                    self.settles_not(of, &error);
                    let share = self.ledger.ids().unit();
                    sleep(backoff(setbacks, SETTLE_FIRST, SETTLE_MOST, share)).await;
                }
            }
        }
    }

    fn settles_not(&self, of: &Try, error: &Error) {
        if let Some(told) = self.refused.failed() {
            tracing::warn!(
                event = "settle.refused",
                %error,
                attempt = %of.attempt,
                tries = told.count,
                seconds = told.lasts.as_secs(),
                "what became of a call cannot be written down; it is tried again until it is"
            );
        }
    }

    fn settles_again(&self) {
        if let Some(told) = self.refused.ended() {
            tracing::info!(
                event = "settle.taken",
                tries = told.count,
                seconds = told.lasts.as_secs(),
                "what became of calls is written down again"
            );
        }
    }

    async fn delete(&self, room: &Room, cause: RoomCause, seen: Option<View>) {
        match self.rooms.delete(room).await {
            Deletion::Gone => self.record_gone(room, cause, seen).await,
            Deletion::Left | Deletion::Unknown => {
                tracing::warn!(room = %room.name, "a room could not be deleted; the reconciler goes on");
            }
        }
    }

    async fn record_gone(&self, room: &Room, cause: RoomCause, seen: Option<View>) {
        if let Err(error) = self.rooms.gone_from(room, cause, seen).await {
            tracing::warn!(%error, room = %room.name, "a deleted room could not be recorded");
        }
    }

    /// Writes the marker. Where that fails or stays unknown, nothing is dialed, and this very
    /// process knows it: the settling that follows takes a marker back that was written
    /// after all, and one that would come later finds another version.
    async fn write_marker(&self, marking: Marking<'_>) -> Marked {
        let of = marking.of;
        match self.markers.write(marking).await {
            Ok(marked) => marked,
            Err(error) => {
                tracing::warn!(%error, attempt = %of.attempt, "no marker, no dial");
                Marked::TurnedBack(TryFailure::Abandoned, None)
            }
        }
    }

    /// Says why a try ended before its dial. One that was canceled has not failed, and nobody
    /// who held it has stopped.
    async fn log_failed(&self, of: &Try, failure: TryFailure) {
        let canceled = failure == TryFailure::Abandoned
            && match self.ledger.attempt(&of.workspace, &of.attempt).await {
                Ok(found) => found.is_some_and(|(attempt, _)| attempt.state == State::Canceled),
                Err(_) => false,
            };
        let (event, why) = if canceled {
            ("try.canceled", "it was canceled")
        } else {
            ("try.failed", failure.explain())
        };
        tracing::info!(
            event,
            attempt = %of.attempt,
            workspace = %of.workspace,
            session = %of.session,
            failure = (!canceled).then(|| tracing::field::debug(failure)),
            "a try ended before anything was dialed: {why}"
        );
    }

    /// Returns when the try is no longer ours to bring to the dial: it was canceled, its
    /// deadline passed, or the process drains.
    async fn no_longer_reserved(&self, of: &Try) {
        let mut news = self.ledger.watch(&of.workspace, &of.attempt);
        let mut drain = self.drain.clone();
        loop {
            if self.draining() || !self.is_reserved(of).await {
                return;
            }
            tokio::select! {
                biased;
                () = drain.wait() => {}
                changed = news.changed() => {
                    if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            }
        }
    }

    async fn is_reserved(&self, of: &Try) -> bool {
        if mutant::is(Mutant::CancelIgnoredAtMarker) {
            return true;
        }
        match self.ledger.attempt(&of.workspace, &of.attempt).await {
            Ok(found) => found.is_some_and(|(attempt, _)| attempt.state == State::Reserved),
            // Not known: the marker's commit will tell.
            Err(_) => true,
        }
    }

    fn draining(&self) -> bool {
        self.drain.asked()
    }

    fn spans(&self, attempt: &Attempt, digits: &str) -> Spans {
        Spans::new(attempt.spec.ringing(), digits, &self.slacks)
    }
}

impl Start for Arc<Placement> {
    fn start(&self, claim: Claim) {
        let placement = Arc::clone(self);
        self.tasks
            .spawn(TASK, async move { placement.run(claim).await });
    }
}

fn log_settled(attempt: &Attempt) {
    tracing::info!(
        event = "attempt.settled",
        workspace = %attempt.workspace,
        attempt = %attempt.id,
        state = attempt.state.name(),
        disposition = attempt.settled.as_ref().map(|s| tracing::field::debug(s.disposition)),
        "a dial came to its end"
    );
}
