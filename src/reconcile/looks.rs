//! Looks at the platform, on our own clock: a round lists the rooms of everyone who is due
//! in a few requests, looks into those that are listed, and brings each to its decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Reconciler;
use super::answered;
use super::gaps::Gap;
use super::plan::{Planned, Question, Step};
use super::sight::{Callee, Sight};
use super::uncertain;
use super::watched::{Watch, Watched};
use crate::ledger::call::call_key;
use crate::ledger::record::{Room, attempt_key};
use crate::ledger::{CallRecord, Change, Decision, Error};
use crate::model::attempt::{Attempt, Gate, State};
use crate::model::observation::Call;
use crate::model::time::Time;
use crate::provider::{Call as Answer, Lives, TrunkId};
use crate::runtime::stop::Stop;

/// What one round has asked already, for all its attempts.
#[derive(Debug, Default)]
struct Round {
    /// Whether a trunk id is still listed, asked after the rooms were.
    trunks: Mutex<BTreeMap<String, Option<bool>>>,
}

/// What the ledger knows of an attempt that is looked at.
#[derive(Debug)]
pub(super) struct Known {
    pub attempt: Attempt,
    pub call: Call,
    pub room: Option<Room>,
}

/// Who is in a listed room is still to be asked.
struct Listed {
    watch: Watch,
    sid: String,
}

impl Reconciler {
    /// Looks at whoever is due, until `stop` says so.
    pub(super) async fn look_on(self: Arc<Self>, mut stop: Stop) {
        while !stop.asked() {
            tokio::select! {
                biased;
                () = stop.wait() => {}
                () = self.watches.wait() => self.round().await,
            }
        }
    }

    /// One round over everyone who is due.
    async fn round(&self) {
        let due = self.watches.due();
        let round = Round::default();
        let mut listed = Vec::new();
        for chunk in due.chunks(self.rooms.client().names_per_list()) {
            let sent = Instant::now();
            let Some(absent) = self.list(chunk, &mut listed).await else {
                self.concurrently(chunk.to_vec(), |watch| self.unanswered(watch))
                    .await;
                continue;
            };
            self.concurrently(absent, |watch| {
                self.consider(watch, Sight::of_no_room(), sent, &round)
            })
            .await;
        }
        // So many as the budget carries until the next round; those who waited longest came
        // first. The others keep their turn, and no list of rooms waits for them.
        let limits = &self.config.reconcile;
        let share =
            u128::from(limits.requests_per_second) * limits.look_interval.as_millis() / 1000;
        listed.truncate(usize::try_from(share).unwrap_or(usize::MAX).max(1));
        self.concurrently(listed, |listed| self.look_into(listed, &round))
            .await;
    }

    /// Which of `chunk` have no listed room; the others are added to `listed`. `None`: the
    /// platform did not answer.
    async fn list(&self, chunk: &[Watch], listed: &mut Vec<Listed>) -> Option<Vec<Watch>> {
        let names: Vec<_> = chunk.iter().map(|watch| watch.room.clone()).collect();
        self.budget.spend(1.0).await;
        let Answer::Done(rooms) = self.rooms.client().list_rooms(&names).await else {
            return None;
        };
        let sids: BTreeMap<_, _> = rooms
            .into_iter()
            .map(|room| (room.name, room.sid))
            .collect();
        let mut absent = Vec::new();
        for watch in chunk {
            match sids.get(watch.room.as_str()) {
                Some(sid) => listed.push(Listed {
                    watch: watch.clone(),
                    sid: sid.clone(),
                }),
                None => absent.push(watch.clone()),
            }
        }
        Some(absent)
    }

    async fn look_into(&self, listed: Listed, round: &Round) -> Result<(), Error> {
        let Listed { watch, sid } = listed;
        self.budget.spend(1.0).await;
        let sent = Instant::now();
        match self.rooms.client().participants(&watch.room).await {
            Answer::Done(there) => {
                let sight = Sight::of_room(&sid, &there, watch.session);
                self.consider(watch, sight, sent, round).await
            }
            Answer::Refused(_) | Answer::Unclear(_) => self.unanswered(watch).await,
        }
    }

    /// Takes a look down and, if it may decide anything, decides.
    async fn consider(
        &self,
        watch: Watch,
        mut sight: Sight,
        sent: Instant,
        round: &Round,
    ) -> Result<(), Error> {
        let now = self.ledger.now();
        let Some((mut watched, news)) = self.watches.looked(watch.session, sent, now, &sight)
        else {
            return Ok(());
        };
        // Most looks show what the last one did, and cost the ledger nothing.
        let decides = news && sight.shows_anything()
            || watched.past_horizon
            || watched.long_past
            || watched.agent_missing.is_some()
            || watch.state != State::Uncertain
            || watch.stops;
        if !decides {
            return Ok(());
        }
        let Some(mut known) = self.known(&watch).await? else {
            return Ok(());
        };
        if news && sight.shows_anything() {
            self.observe(&watch, &mut known.call, &sight, now).await?;
        }
        let mut planned = self.plan(&known, &sight, &watched);
        while let Step::Ask(question) = planned.step {
            let asked = self.ask(question, &known, round).await;
            let Some(answer) = asked else {
                planned = self.plan_unanswered(&known, &watched);
                break;
            };
            match question {
                Question::Trunk => sight.trunk = asked,
                Question::Lives => {
                    sight.lives = asked;
                    watched.node_silent = self.watches.node_answered(watch.session, answer);
                }
            }
            planned = self.plan(&known, &sight, &watched);
        }
        self.carry_out(&watch, known, planned, &sight, &watched)
            .await
    }

    async fn unanswered(&self, watch: Watch) -> Result<(), Error> {
        let Some(watched) = self.watches.unanswered(watch.session) else {
            return Ok(());
        };
        if !watched.overdue && watch.state != State::NeedsReview {
            return Ok(());
        }
        let Some(known) = self.known(&watch).await? else {
            return Ok(());
        };
        let planned = self.plan_unanswered(&known, &watched);
        let sight = Sight::of_no_room();
        self.carry_out(&watch, known, planned, &sight, &watched)
            .await
    }

    /// What the ledger knows; `None` if there is nothing to look for any more.
    async fn known(&self, watch: &Watch) -> Result<Option<Known>, Error> {
        let found = self
            .ledger
            .attempt(&watch.workspace, &watch.attempt)
            .await?;
        let attempt = found.map(|(attempt, _)| attempt).filter(|attempt| {
            attempt.placed.as_ref().map(|p| p.session) == Some(watch.session)
                && super::watch::looks_at(attempt)
        });
        let Some(attempt) = attempt else {
            self.watches.forget(watch.session);
            return Ok(None);
        };
        let call = self.ledger.call(&watch.workspace, watch.session).await?;
        Ok(Some(Known {
            call: call.map(|record| record.seen).unwrap_or_default(),
            room: self.ledger.room(&watch.workspace, watch.session).await?,
            attempt,
        }))
    }

    /// Writes what a look showed, merged as a webhook is, if it says anything new.
    async fn observe(
        &self,
        watch: &Watch,
        call: &mut Call,
        sight: &Sight,
        now: Time,
    ) -> Result<(), Error> {
        let (ws, id, session) = (&watch.workspace, &watch.attempt, watch.session);
        let told_of_leg = |call: &Call| match &sight.callee {
            Callee::Present { leg, .. } => call.legs.contains_key(&leg.participant),
            Callee::Absent => true,
        };
        if !told_of_leg(call) && call.told.is_none() {
            self.gaps.found(Gap::Joined);
        }
        let keys = vec![call_key(ws, session), attempt_key(ws, id)];
        let decided = self
            .ledger
            .decide(ws, keys, |view| {
                let found = view.call(ws, session)?;
                let mut record =
                    found.unwrap_or_else(|| CallRecord::new(ws.clone(), id.clone(), session));
                record.seen.merge(&sight.observation(now));
                let mut change = Change::default();
                change.put(&record)?;
                // The provider's call id, as soon as anything shows it.
                if let Some(mut attempt) = view.attempt(ws, id)?
                    && let Some(placed) = attempt.placed.as_mut().filter(|p| p.session == session)
                    && let Some(call) = record.seen.call_id()
                    && placed.call.as_deref() != Some(call)
                {
                    placed.call = Some(call.to_owned());
                    change.quietly(&attempt)?;
                }
                Ok(Decision::Write(change, record.seen))
            })
            .await?;
        *call = decided.answer;
        self.watches.shown(session, sight);
        Ok(())
    }

    fn plan(&self, known: &Known, sight: &Sight, watched: &Watched) -> Planned {
        let now = self.ledger.now();
        match known.attempt.state {
            State::Uncertain | State::NeedsReview => {
                uncertain::plan(&self.uncertain_view(known, sight, watched), now)
            }
            State::Answered => answered::plan(&answered::View {
                attempt: &known.attempt,
                sight,
                watched,
                agent_grace: self.agent_grace(known),
                confirm: self.config.reconcile.look_gap_max,
                node_grace: self.config.reconcile.answered_look,
            }),
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Canceled => Planned::new(Step::Keep, "whoever dials is waited for"),
        }
    }

    fn plan_unanswered(&self, known: &Known, watched: &Watched) -> Planned {
        let sight = Sight::of_no_room();
        let view = self.uncertain_view(known, &sight, watched);
        match known.attempt.state {
            State::Uncertain | State::NeedsReview => {
                uncertain::unanswered(&view, self.ledger.now())
            }
            State::Queued
            | State::Deferred
            | State::Refused
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Canceled => Planned::new(Step::Keep, "the platform did not answer"),
        }
    }

    fn uncertain_view<'a>(
        &self,
        known: &'a Known,
        sight: &'a Sight,
        watched: &'a Watched,
    ) -> uncertain::View<'a> {
        uncertain::View {
            attempt: &known.attempt,
            call: &known.call,
            sight,
            watched,
            agent_grace: self.config.reconcile.look_interval / 2,
            review_hold: self.config.attempt.review_hold,
        }
    }

    /// How long an answered call goes on without an agent: one that was only dispatched has
    /// its time to join before it is missed.
    fn agent_grace(&self, known: &Known) -> std::time::Duration {
        let wanted = &known.attempt.spec.agent;
        let grace = self.config.agent.lost_grace;
        match wanted.gate {
            Gate::Dispatched if known.call.agents.is_empty() => {
                grace.max(std::time::Duration::from_millis(wanted.join_ms))
            }
            Gate::Joined | Gate::Dispatched => grace,
        }
    }

    async fn ask(&self, question: Question, known: &Known, round: &Round) -> Option<bool> {
        match question {
            Question::Trunk => self.trunk_listed(known, round).await,
            Question::Lives => {
                let room = &known.attempt.placed.as_ref()?.room;
                self.budget.spend(1.0).await;
                match self.rooms.client().dispatches(room).await {
                    Answer::Done(Lives::Yes(_)) => Some(true),
                    Answer::Done(Lives::No) => Some(false),
                    Answer::Refused(_) | Answer::Unclear(_) => None,
                }
            }
        }
    }

    /// Asked once a round for each trunk, and after the rooms were listed: records that were
    /// lost before that list would be missing here too.
    async fn trunk_listed(&self, known: &Known, round: &Round) -> Option<bool> {
        // A dial whose trunk is not recorded cannot be vouched for by it.
        let Some(trunk) = known.room.as_ref().and_then(|room| room.trunk.clone()) else {
            return Some(false);
        };
        // A tokio mutex: whoever comes second waits for the answer of the first.
        let mut asked = round.trunks.lock().await;
        if let Some(answer) = asked.get(&trunk) {
            return *answer;
        }
        self.budget.spend(1.0).await;
        let id = TrunkId::from(trunk.clone());
        let answer = match self.rooms.client().trunk_listed(&id).await {
            Answer::Done(listed) => Some(listed),
            Answer::Refused(_) | Answer::Unclear(_) => None,
        };
        asked.insert(trunk, answer);
        answer
    }
}
