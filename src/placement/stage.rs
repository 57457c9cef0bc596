//! The stages of a try, as types: each takes the last by value, so that order and single
//! use are proved by the compiler.
//!
//! `Reserved → Trunked → Roomed → Staffed → Dialing`. Before `Dialing` a stage that fails
//! says why and leaves the room to its guard; nothing was dialed.

use secrecy::SecretString;
use tokio::sync::watch;
use tokio::time::Instant;

use super::attend::Seen;
use super::mark::{Marked, Marking};
use super::room_guard::{OpenRoom, RoomGuard};
use super::settle::Try;
use super::{Placement, gate};
use crate::admission::Claim;
use crate::admission::rules::Answer;
use crate::ledger::View;
use crate::ledger::record::{Room, RoomCause};
use crate::ledger::store::{self, Version};
use crate::model::attempt::{Attempt, Placed, Reason, Rule};
use crate::model::phone::E164;
use crate::model::verdict::TryFailure;
use crate::model::window::{Marker, Spans};
use crate::provider::{
    self, Call, Dial, DialReply, Metadata, NewRoom, RoutingMetadata, TrunkError, TrunkId,
};
use crate::runtime::mutant::{self, Mutant};
use crate::telemetry::rooms as log;

/// A try that ended before anything was dialed.
#[derive(Debug)]
pub(super) struct Failed {
    pub failure: TryFailure,
    pub turned: Option<Answer>,
    /// The room, if one may exist, and whether it is to be deleted.
    pub room: Option<OpenRoom>,
    /// Set where no room was made: its record is closed without a deletion.
    pub cause: RoomCause,
}

/// Stage 1: reserved, with nothing made yet.
pub(super) struct Reserved {
    pub claim: Claim,
    pub of: Try,
    pub placed: Placed,
}

/// Stage 2: the trunk's name is an id.
pub(super) struct Trunked {
    base: Reserved,
    trunk: TrunkId,
}

/// Stage 3: the room is made, confirmed and ours; its guard is armed.
pub(super) struct Roomed {
    base: Trunked,
    guard: RoomGuard,
}

/// Stage 4: our agent is in it.
pub(super) struct Staffed(Roomed);

/// Stage 5: the marker is written. The room is no longer the guard's.
pub(super) struct Dialing {
    pub attempt: Attempt,
    /// The marker's.
    version: Version,
    /// The records of the try, as the marker left them.
    pub records: View,
    news: watch::Receiver<Version>,
    pub of: Try,
    pub room: Room,
    claim: Claim,
    trunk: TrunkId,
    marker: Marker,
    spans: Spans,
    token: SecretString,
    send_by: Instant,
    pub seen: Seen,
}

impl Reserved {
    /// Of a claim; `None` if it names no try, which a reserved one always does.
    pub(super) fn of(mut claim: Claim) -> Option<Self> {
        // The session's record is never written again.
        claim.seen = claim.seen.only(|key| key.kind() != store::Kind::Session);
        let placed = claim.attempt.placed.clone()?;
        let of = Try::of(&claim.attempt)?;
        Some(Self { claim, of, placed })
    }

    /// The trunk's name is resolved to the platform's id of it.
    pub(super) async fn resolve_trunk(self, on: &Placement) -> Result<Trunked, Box<Failed>> {
        log::created(on.ledger.deployment(), &self.record(), false);
        if on.draining() {
            return Err(self.never_made(TryFailure::Abandoned));
        }
        match on
            .rooms
            .client()
            .resolve_trunk(&self.claim.attempt.spec.trunk)
            .await
        {
            Ok(trunk) => Ok(Trunked { base: self, trunk }),
            Err(error) => Err(self.never_made(error.failure())),
        }
    }

    fn never_made(&self, failure: TryFailure) -> Box<Failed> {
        let room = Some(self.open());
        Box::new(Failed {
            failure,
            turned: None,
            room,
            cause: RoomCause::NeverCreated,
        })
    }

    /// The room as the claim recorded it.
    fn record(&self) -> Room {
        Room::planned(&self.claim.attempt, &self.placed)
    }

    fn open(&self) -> OpenRoom {
        OpenRoom {
            of: self.of.clone(),
            record: self.record(),
            confirmed: false,
            gives_up: self.placed.reserved_until,
        }
    }
}

impl Trunked {
    /// Makes the room, with the routing metadata; timeouts that outlive agent and ring.
    pub(super) async fn open_room(self, on: &Placement) -> Result<Roomed, Box<Failed>> {
        if self.clocks_differ_still(on).await {
            return Err(self.base.never_made(TryFailure::PlatformClock));
        }
        let mut guard = RoomGuard::arm(self.base.open(), on.janitor.clone());
        let made = on.rooms.client().create_room(&self.new_room(on)).await;
        let fail = |guard: RoomGuard, failure, cause| {
            Err(Box::new(Failed {
                failure,
                turned: None,
                room: Some(guard.disarm()),
                cause,
            }))
        };
        let room = match made {
            Call::Done(room) => room,
            Call::Refused(why) => return fail(guard, why.failure(), RoomCause::NeverCreated),
            Call::Unclear(_) => {
                return fail(guard, TryFailure::PlatformUnreachable, RoomCause::TryFailed);
            }
        };
        match self.whose(&room.metadata, on) {
            Whose::Ours => guard.confirm(room.sid),
            Whose::Forgotten => {
                tracing::error!(
                    event = "history.lost",
                    attempt = %self.base.of.attempt,
                    room = %self.base.placed.room,
                    "a room of this very try exists already: this store has lost history"
                );
                let reason = Reason::of(Rule::HistoryLost);
                return Err(Box::new(Failed {
                    failure: TryFailure::RoomFailed,
                    turned: Some(Answer::Never(reason)),
                    room: Some(guard.disarm()),
                    cause: RoomCause::NeverCreated,
                }));
            }
            Whose::Foreign => {
                return fail(guard, TryFailure::RoomFailed, RoomCause::NeverCreated);
            }
        }
        log::created(on.ledger.deployment(), &guard.room().record, true);
        if on.rooms.client().clocks_differ() {
            return fail(guard, TryFailure::PlatformClock, RoomCause::TryFailed);
        }
        Ok(Roomed { base: self, guard })
    }

    /// Where the clocks differed at the last answer, LiveKit is asked once more, for it may be
    /// minutes old. A room that is made only to be deleted would tell no more, and every call
    /// that waits would make one with every try.
    async fn clocks_differ_still(&self, on: &Placement) -> bool {
        let client = on.rooms.client();
        if !client.clocks_differ() {
            return false;
        }
        let name = std::slice::from_ref(&self.base.placed.room);
        // Only its date is asked for; the room is not there yet, whatever is listed.
        let _listed = client.list_rooms(name).await;
        client.clocks_differ()
    }

    fn new_room(&self, on: &Placement) -> NewRoom {
        let (attempt, placed) = (&self.base.claim.attempt, &self.base.placed);
        let metadata = RoutingMetadata {
            v: provider::METADATA_VERSION,
            deployment: on.ledger.deployment().clone(),
            workspace: attempt.workspace.clone(),
            attempt: attempt.id.clone(),
            session: placed.session,
            contact: attempt.spec.contact.clone(),
            outreach: attempt.spec.outreach.clone(),
            campaign: attempt.spec.campaign.clone(),
            callee_identity: placed.session.identity(),
            nonce: placed.nonce,
        };
        let spans = on.spans(attempt, &self.base.claim.private.dial_digits);
        let until = placed.reserved_until;
        let outlives = Marker::new(until, until, &spans, &on.slacks).horizon;
        NewRoom {
            name: placed.room.clone(),
            metadata: metadata.to_text(),
            empty_timeout: outlives
                .since(placed.reserved_at)
                .saturating_add(on.config.room.empty_slack),
            departure_timeout: on.config.room.departure_timeout,
        }
    }

    /// Whose room came back. `CreateRoom` on a living room answers with that room.
    fn whose(&self, metadata: &str, on: &Placement) -> Whose {
        let placed = &self.base.placed;
        match Metadata::read(metadata, on.ledger.deployment()) {
            Metadata::Ours(routing) if routing.session != placed.session => Whose::Foreign,
            Metadata::Ours(routing) if routing.nonce == placed.nonce => Whose::Ours,
            Metadata::Ours(_) => Whose::Forgotten,
            Metadata::Foreign | Metadata::NotJson => Whose::Foreign,
        }
    }
}

enum Whose {
    Ours,
    /// Our session with another nonce.
    Forgotten,
    Foreign,
}

impl Roomed {
    /// Dispatches the agent and waits until it is in the room.
    pub(super) async fn await_agent(self, on: &Placement) -> Result<Staffed, Box<Failed>> {
        let (attempt, private) = (&self.base.base.claim.attempt, &self.base.base.claim.private);
        let (wanted, room) = (&attempt.spec.agent, &self.base.base.placed.room);
        let client = on.rooms.client();
        let of = &self.base.base.of;
        let staffed = async {
            gate::dispatch(client, room, &wanted.name, &private.agent_metadata).await?;
            gate::wait(client, room, wanted, &on.config).await
        };
        let result = tokio::select! {
            biased;
            () = on.no_longer_reserved(of) => Err(TryFailure::Abandoned),
            result = staffed => result,
        };
        match result {
            Ok(()) => Ok(Staffed(self)),
            Err(failure) => Err(self.failed(failure, None)),
        }
    }

    fn failed(self, failure: TryFailure, turned: Option<Answer>) -> Box<Failed> {
        let room = Some(self.guard.disarm());
        Box::new(Failed {
            failure,
            turned,
            room,
            cause: RoomCause::TryFailed,
        })
    }
}

impl Staffed {
    /// Mints the dial's only token, then writes the marker. The token comes first: its
    /// expiry is in the marker, so that the platform's own clock refuses a process that was
    /// paused in between.
    pub(super) async fn mark(self, on: &Placement) -> Result<Dialing, Box<Failed>> {
        let Self(mut roomed) = self;
        // The agent was waited for, and every look for it has shown the clocks again.
        if on.rooms.client().clocks_differ() {
            return Err(roomed.failed(TryFailure::PlatformClock, None));
        }
        let records = std::mem::take(&mut roomed.base.base.claim.seen);
        let base = &roomed.base.base;
        // Listens from before the marker on: what is committed after it is not missed, and
        // need not be looked for.
        let news = on.ledger.watch(&base.of.workspace, &base.of.attempt);
        let (attempt, private) = (&base.claim.attempt, &base.claim.private);
        let spans = on.spans(attempt, &private.dial_digits);
        let minted = on.ledger.now();
        let marker = Marker::new(minted, minted, &spans, &on.slacks);
        let token = on.rooms.client().mint_dial(minted, marker.send_by);
        let send_by = Instant::now() + on.slacks.send_by;
        let record = roomed.guard.room().record.clone();
        let marking = Marking {
            of: &base.of,
            marker: marker.clone(),
            sid: record.sid.as_deref().unwrap_or_default(),
            trunk: &roomed.base.trunk,
            to: &private.to,
            seen: records,
            heal: false,
        };
        let (of, trunk) = (base.of.clone(), roomed.base.trunk.clone());
        let written = if mutant::is(Mutant::MarkerAfterDial) {
            let unread = View::default();
            Marked::Written(Box::new(attempt.clone()), Version(0), unread)
        } else {
            on.write_marker(marking).await
        };
        match written {
            Marked::Written(attempt, version, records) => {
                let room = roomed.guard.disarm().record;
                let (attempt, claim) = (*attempt, roomed.base.base.claim);
                let seen = Seen::default();
                Ok(Dialing {
                    attempt,
                    version,
                    records,
                    news,
                    of,
                    room,
                    claim,
                    trunk,
                    marker,
                    spans,
                    token,
                    send_by,
                    seen,
                })
            }
            Marked::TurnedBack(failure, turned) => Err(roomed.failed(failure, turned)),
        }
    }
}

impl Dialing {
    /// Dials, and dials once more if the platform says that the trunk is missing and its name
    /// now has another id: that answer provably comes before any signalling.
    pub(super) async fn dial(&mut self, on: &Placement) -> Result<DialReply, TryFailure> {
        let mut reply = self.send(on).await;
        if mutant::is(Mutant::DialAgain) && matches!(reply.answer, provider::wire::Answer::Lost(_))
        {
            reply = self.send(on).await;
        }
        if !provider::trunk_missing(&reply.answer) {
            return Ok(reply);
        }
        self.heal(on).await?;
        Ok(self.send(on).await)
    }

    async fn send(&self, on: &Placement) -> DialReply {
        let mut news = self.news.clone();
        let (attempt, private) = (&self.attempt, &self.claim.private);
        self.claim.slot.sends();
        let digits = private.dial_digits.as_str();
        let dial = on.rooms.client().dial(Dial {
            trunk: &self.trunk,
            to: private.to.reveal(),
            from: private.from.as_ref().map(E164::reveal),
            room: &self.room.name,
            session: self.of.session,
            attempt: &attempt.id,
            ringing_timeout: self.spans.ringing,
            max_call_duration: attempt.spec.max_call(),
            digits: (!digits.is_empty()).then_some(digits),
            headers: &private.sip_headers,
            hide_phone_number: on.config.dial.hide_phone_number,
            token: self.token(on),
            timeout: self.spans.client_timeout,
            server_deadline: self.spans.server_deadline,
            send_by: (!mutant::is(Mutant::TokenAtSend)).then_some(self.send_by),
        });
        tokio::select! {
            biased;
            reply = dial => reply,
            () = on.attend(attempt, &self.of, &self.room, &self.seen, &mut news, self.version) => {
                unreachable!("attending never returns")
            }
        }
    }

    /// The dial's only token.
    fn token(&self, on: &Placement) -> SecretString {
        if mutant::is(Mutant::TokenAtSend) {
            let now = on.ledger.now();
            return on
                .rooms
                .client()
                .mint_dial(now, now.plus(on.slacks.send_by));
        }
        self.token.clone()
    }

    /// Resolves the trunk's name anew, and writes a marker of its own for the second send,
    /// with the same `send_by` and the same token.
    async fn heal(&mut self, on: &Placement) -> Result<(), TryFailure> {
        let client = on.rooms.client();
        let name = self.attempt.spec.trunk.clone();
        client.evict_trunk(&name, &self.trunk);
        let found = client
            .resolve_trunk(&name)
            .await
            .map_err(TrunkError::failure)?;
        if found == self.trunk {
            return Err(TryFailure::TrunkNotFound);
        }
        if Instant::now() > self.send_by {
            return Err(TryFailure::TooLate);
        }
        let now = on.ledger.now();
        let mut marker = Marker::new(now, now, &self.spans, &on.slacks);
        marker.send_by = self.marker.send_by;
        marker.horizon = self.marker.horizon;
        let marking = Marking {
            of: &self.of,
            marker,
            sid: self.room.sid.as_deref().unwrap_or_default(),
            trunk: &found,
            to: &self.claim.private.to,
            seen: std::mem::take(&mut self.records),
            heal: true,
        };
        match on.write_marker(marking).await {
            Marked::Written(attempt, version, records) => {
                tracing::info!(event = "trunk.healed", trunk = %name, "a trunk has another id now");
                self.attempt = *attempt;
                (self.version, self.records) = (version, records);
                self.trunk = found;
                Ok(())
            }
            Marked::TurnedBack(failure, _) => Err(failure),
        }
    }
}
