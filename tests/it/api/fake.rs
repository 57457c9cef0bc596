//! A core that decides what the test says, and the server over it on a real socket.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ringonce::api::proto::placement_service_client::PlacementServiceClient;
use ringonce::api::{
    self, CancelCommand, CancelResult, Changed, Changes, Core, Cursor, Filter, Limits, LookError,
    NotDeleted, NotResolved, PageCursor, Parts, PlaceError, Position, ReadError, Removal, Resolve,
    Reviews, RoomFilter, RoomPage, Standing, Status, Tally, Version, proto,
};
use ringonce::model::attempt::{
    Attempt, CancelRequest, Cause, Keyed, ReviewCause, State, Stop, StopWhy,
};
use ringonce::model::disposition::{Disposition, Rang};
use ringonce::model::id::{AttemptId, Workspace};
use ringonce::model::request::Request;
use ringonce::model::time::Time;
use ringonce::runtime::clock::{Clock, SystemClock};
use ringonce::runtime::tasks::Tasks;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tonic::transport::Channel;

/// What the next `place` or `cancel` does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Answer {
    /// Accepts it as RESERVED.
    #[default]
    Accept,
    /// The queue is full.
    Full,
    /// The id is used.
    Reused,
    /// The store is away.
    Away,
    /// The task panics.
    Panic,
}

#[derive(Debug, Default)]
struct Memory {
    answer: Answer,
    attempts: BTreeMap<AttemptId, (Attempt, Version)>,
    log: Vec<Changed>,
    oldest: u64,
    rooms: BTreeMap<String, Standing>,
}

/// A core in memory, of one workspace.
#[derive(Debug)]
pub(super) struct Fake {
    memory: Mutex<Memory>,
    commits: watch::Sender<u64>,
    draining: watch::Sender<bool>,
    /// `place` goes on only while this is open.
    pub(super) gate: watch::Sender<bool>,
}

impl Fake {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            memory: Mutex::default(),
            commits: watch::Sender::new(0),
            draining: watch::Sender::new(false),
            gate: watch::Sender::new(true),
        })
    }

    pub(super) fn answer(&self, answer: Answer) {
        self.memory.lock().unwrap().answer = answer;
    }

    pub(super) fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Forgets the log up to its present end.
    pub(super) fn trim(&self) {
        let mut memory = self.memory.lock().unwrap();
        memory.oldest = *self.commits.borrow() + 1;
        memory.log.clear();
        drop(memory);
        self.commits.send_modify(|n| *n += 2);
    }

    /// Has a room.
    pub(super) fn has_room(&self, room: Standing) {
        let mut memory = self.memory.lock().unwrap();
        memory.rooms.insert(room.name.clone(), room);
    }

    /// Waits until there were this many commits.
    pub(super) async fn committed(&self, count: u64) {
        let mut commits = self.commits.subscribe();
        commits.wait_for(|n| *n >= count).await.unwrap();
    }

    /// Moves an attempt to a state, whatever the machine says.
    pub(super) fn enter(&self, id: &str, state: State, change: impl FnOnce(&mut Attempt)) {
        let id: AttemptId = id.parse().unwrap();
        let (mut attempt, _) = self.memory.lock().unwrap().attempts[&id].clone();
        let from = Some(attempt.state);
        let now = SystemClock.now();
        attempt.enter(from, state, now, Cause::Verdict, String::new());
        change(&mut attempt);
        self.commit(attempt);
    }

    pub(super) fn settle(&self, id: &str, state: State, disposition: Disposition) {
        let settled = ringonce::model::attempt::Settled::new(
            disposition,
            Rang::Rang,
            true,
            SystemClock.now(),
        );
        self.enter(id, state, |attempt| attempt.settled = Some(settled));
    }

    fn commit(&self, attempt: Attempt) -> (Attempt, Version) {
        let mut memory = self.memory.lock().unwrap();
        let version = Version(*self.commits.borrow() + 1);
        let found = (attempt.clone(), version);
        memory.attempts.insert(attempt.id.clone(), found.clone());
        memory.log.push(Changed {
            position: at(version),
            at: SystemClock.now(),
            cause: Cause::Admitted,
            attempt,
        });
        drop(memory);
        self.commits.send_replace(version.0);
        found
    }
}

fn at(version: Version) -> Position {
    let ordinal = 0;
    Position { version, ordinal }
}

#[async_trait]
impl Core for Fake {
    async fn place(&self, request: Request) -> Result<(Attempt, Version), PlaceError> {
        let answer = self.memory.lock().unwrap().answer;
        match answer {
            Answer::Accept => {}
            Answer::Full => return Err(PlaceError::QueueFull { limit: 7 }),
            Answer::Reused => return Err(PlaceError::IdReused { fields: vec!["to"] }),
            Answer::Away => return Err(PlaceError::Unavailable("the disk is full".into())),
            Answer::Panic => panic!("on purpose"),
        }
        self.gate.subscribe().wait_for(|open| *open).await.unwrap();
        let known = self
            .memory
            .lock()
            .unwrap()
            .attempts
            .get(&request.attempt)
            .cloned();
        Ok(known.unwrap_or_else(|| self.commit(attempt(request))))
    }

    async fn attempt(
        &self,
        _: &Workspace,
        id: &AttemptId,
    ) -> Result<Option<(Attempt, Version)>, ReadError> {
        Ok(self.memory.lock().unwrap().attempts.get(id).cloned())
    }

    fn is_of_another_history(&self, attempt: &Attempt) -> bool {
        !attempt.epoch.is_nil()
    }

    async fn changed(
        &self,
        _: &Workspace,
        id: &AttemptId,
        after: Version,
    ) -> Option<(Attempt, Version)> {
        let mut commits = self.commits.subscribe();
        loop {
            commits.mark_unchanged();
            let now = self.memory.lock().unwrap().attempts.get(id).cloned();
            if now.as_ref().is_none_or(|found| found.1 > after) {
                return now;
            }
            commits.changed().await.unwrap();
        }
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<(Vec<(Attempt, Version)>, Option<PageCursor>), ReadError> {
        let memory = self.memory.lock().unwrap();
        let after = after
            .map(|PageCursor(cursor)| cursor.key)
            .unwrap_or_default();
        let mut found: Vec<_> = memory
            .attempts
            .values()
            .filter(|(attempt, _)| filter.shows(attempt) && attempt.id.as_str() > after.as_str())
            .cloned()
            .collect();
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(attempt, _)| {
            PageCursor(Cursor {
                value: String::new(),
                key: attempt.id.to_string(),
            })
        });
        Ok((found, next))
    }

    async fn changes(
        &self,
        workspace: &Workspace,
        after: Position,
        limit: usize,
    ) -> Result<Changes, ReadError> {
        let memory = self.memory.lock().unwrap();
        if after.version.0 < memory.oldest {
            let oldest = at(Version(memory.oldest));
            return Err(ReadError::TooOld { oldest });
        }
        let behind = memory.log.iter().filter(|change| change.position > after);
        let read: Vec<_> = behind.take(limit).cloned().collect();
        let upto = read.last().map_or(after, |change| change.position);
        let list = read
            .into_iter()
            .filter(|change| change.attempt.workspace == *workspace)
            .collect();
        Ok(Changes { list, upto })
    }

    async fn log_end(&self, _: &Workspace) -> Result<Position, ReadError> {
        Ok(at(Version(*self.commits.borrow())))
    }

    fn changes_signal(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    async fn cancel(
        &self,
        command: CancelCommand,
    ) -> Result<Option<(CancelResult, Attempt, Version)>, PlaceError> {
        let known = self
            .memory
            .lock()
            .unwrap()
            .attempts
            .get(&command.attempt)
            .cloned();
        let Some((mut attempt, _)) = known else {
            return Ok(None);
        };
        let at = SystemClock.now();
        attempt.cancel = Some(CancelRequest {
            mode: command.mode,
            by: command.requested_by,
            why: command.reason,
            at,
        });
        attempt.stop = Some(Stop::new(StopWhy::Cancel, at));
        let (attempt, version) = self.commit(attempt);
        Ok(Some((CancelResult::of(&attempt), attempt, version)))
    }

    async fn reviews(
        &self,
        _workspace: &Workspace,
        cause: Option<ReviewCause>,
        _after: Option<PageCursor>,
        limit: usize,
    ) -> Result<Reviews, ReadError> {
        let memory = self.memory.lock().unwrap();
        let waits = |attempt: &Attempt| {
            attempt.state == State::NeedsReview && (cause.is_none() || attempt.review == cause)
        };
        let found: Vec<_> = memory
            .attempts
            .values()
            .filter(|(attempt, _)| waits(attempt))
            .take(limit)
            .cloned()
            .collect();
        Ok(Reviews {
            groups: Vec::new(),
            attempts: found,
            next: None,
        })
    }

    async fn open_attempts(&self) -> Result<Vec<Tally>, ReadError> {
        let away = self.memory.lock().unwrap().answer == Answer::Away;
        (!away).then(Vec::new).ok_or(ReadError::StoreUnavailable)
    }

    fn status(&self) -> Status {
        Status::new(SystemClock.now())
    }

    async fn resolve(&self, say: &Resolve) -> Result<(Attempt, Version), NotResolved> {
        let known = self
            .memory
            .lock()
            .unwrap()
            .attempts
            .get(&say.attempt)
            .cloned();
        let (mut attempt, _) = known.ok_or(NotResolved::NotFound)?;
        if attempt.state != State::NeedsReview {
            return Err(NotResolved::NotInReview(attempt.state));
        }
        attempt.state = State::Ended;
        Ok(self.commit(attempt))
    }

    async fn rooms(
        &self,
        filter: &RoomFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RoomPage, LookError> {
        let memory = self.memory.lock().unwrap();
        if memory.answer == Answer::Away {
            return Err(LookError::Platform);
        }
        let of = |room: &&Standing| {
            filter
                .workspace
                .as_ref()
                .is_none_or(|w| *w == room.workspace)
        };
        let all: Vec<_> = memory.rooms.values().filter(of).cloned().collect();
        let total = all.len();
        let leaks = all.iter().filter(|room| room.leak.is_some()).count();
        let mut rooms = all;
        rooms.retain(|room| {
            (!filter.leaks_only || room.leak.is_some())
                && after.is_none_or(|after| room.name.as_str() > after)
        });
        let more = rooms.len() > limit;
        rooms.truncate(limit);
        Ok(RoomPage {
            rooms,
            more,
            total,
            leaks,
            foreign: 1,
        })
    }

    async fn delete_room(&self, asked: &Removal) -> Result<Standing, NotDeleted> {
        let name = &asked.name;
        let mut memory = self.memory.lock().unwrap();
        let room = memory.rooms.get(name).ok_or(NotDeleted::NotFound)?;
        match room.attempt_state {
            Some(state) if room.owned && !asked.force => {
                let attempt = room.attempt.clone();
                return Err(NotDeleted::Owned { attempt, state });
            }
            Some(_) | None => {}
        }
        memory.rooms.remove(name).ok_or(NotDeleted::NotFound)
    }

    fn draining(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }
}

fn attempt(request: Request) -> Attempt {
    let now = SystemClock.now();
    let keyed = Keyed {
        number_mask: request.private.to.mask(),
        sealed: Some("sealed".into()),
        ..Keyed::default()
    };
    let (ws, id, spec) = (request.workspace, request.attempt, request.spec);
    let mut attempt = Attempt::new(ws, id, spec, keyed, uuid::Uuid::nil(), now);
    attempt.tries = 1;
    attempt.enter(None, State::Reserved, now, Cause::Admitted, String::new());
    attempt
}

pub(super) type Client = PlacementServiceClient<Channel>;

/// A running server.
pub(super) struct Server {
    pub(super) core: Arc<Fake>,
    pub(super) tasks: Tasks,
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    ended: watch::Receiver<bool>,
}

impl Server {
    /// With the default limits, but for what `change` says.
    pub(super) async fn start(change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits::default();
        limits.request.agent_default = Some("caller".parse().unwrap());
        limits.close_within = Duration::from_millis(300);
        change(&mut limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (core, tasks) = (Fake::new(), Tasks::default());
        let parts = Parts {
            core: Arc::clone(&core) as _,
            clock: Arc::new(SystemClock),
            tasks: tasks.clone(),
        };
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = watch::channel(false);
        tasks.spawn("server", async move {
            let shutdown = async { drop(stopped.await) };
            api::serve(listener, parts, limits, shutdown).await.unwrap();
            end.send_replace(true);
        });
        Self {
            core,
            tasks,
            address,
            stop: Some(stop),
            ended,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) async fn channel(&self) -> Channel {
        Channel::from_shared(self.url())
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    pub(super) async fn client(&self) -> Client {
        Client::new(self.channel().await).max_decoding_message_size(16 << 20)
    }

    pub(super) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for the end of the server, at most `limit`; whether it came.
    pub(super) async fn ended_within(&mut self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.ended.wait_for(|ended| *ended))
            .await
            .is_ok()
    }
}

/// A request that is sound.
pub(super) fn sound(attempt: &str) -> proto::PlaceCallRequest {
    let at = |time: Time| Some(api::timestamp(time));
    proto::PlaceCallRequest {
        workspace: "w".into(),
        attempt_id: attempt.into(),
        contact_id: format!("c-{attempt}"),
        outreach_id: "o".into(),
        to: "+12025550100".into(),
        intend_time: at(SystemClock.now()),
        ..proto::PlaceCallRequest::default()
    }
}
