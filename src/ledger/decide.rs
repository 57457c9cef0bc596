//! The one shape in which state is written.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::change::{Change, Decision};
use super::news::News;
use super::seal::Keys;
use super::store::{self, Commit, CommitId, Committed, Epoch, Key, Store, Version};
use super::view::View;
use super::writes::Writes;
use super::{Error, partition_of};
use crate::model::id::{Deployment, Partition, Workspace};
use crate::runtime::clock::Clock;
use crate::runtime::ids::Ids;

/// How long a decision is tried before it is given up.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How long a commit is sent again whose answer is unknown.
    pub retry_for: Duration,
    /// The pause between two of those.
    pub retry_backoff: Duration,
    /// How often it is made anew after a conflict. Each means that another commit went
    /// through, so this is reached only under a storm on one record.
    pub conflicts_max: u32,
}

/// What a decision came to, and the version that it wrote, if it wrote.
#[derive(Debug)]
pub struct Decided<T> {
    /// What the decision answered.
    pub answer: T,
    /// The number of the commit; `None` when nothing was written.
    pub version: Option<Version>,
    /// The records that it was decided on, as they are now: a further decision may begin
    /// with them ([`Ledger::decide_from`]).
    pub seen: View,
}

/// The memory. Admission, settle, projection, reconcile and follow-ups supply pure
/// functions; only this writes.
#[derive(Debug)]
pub struct Ledger {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
    pub(super) keys: Keys,
    pub(super) deployment: Deployment,
    pub(super) epoch: Epoch,
    pub(super) news: News,
    pub(super) patience: Patience,
    pub(super) writes: Writes,
}

impl Ledger {
    /// Decides on the records under `keys`, all in the partition of `workspace`: loads
    /// them, calls `decide`, and commits what it says with the version of every record in
    /// the view; after a conflict it decides anew on the present records. `decide` is
    /// pure: it may be called many times.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] with `NotApplied` when nothing was decided, with `Unknown` when the
    /// answer of the commit stayed unknown; [`Error::Contended`] under a storm.
    pub async fn decide<T>(
        &self,
        workspace: &Workspace,
        keys: Vec<Key>,
        decide: impl FnMut(&View) -> Result<Decision<T>, Error> + Send,
    ) -> Result<Decided<T>, Error> {
        self.decide_in(self.partition(workspace), keys, decide)
            .await
    }

    /// As [`Ledger::decide`], in a partition that is known before the workspace is.
    ///
    /// # Errors
    ///
    /// As [`Ledger::decide`].
    pub async fn decide_in<T>(
        &self,
        p: Partition,
        keys: Vec<Key>,
        decide: impl FnMut(&View) -> Result<Decision<T>, Error> + Send,
    ) -> Result<Decided<T>, Error> {
        let view = self.load(p, keys).await?;
        self.decide_on(p, view, true, decide).await
    }

    /// As [`Ledger::decide`], but begins with what an earlier decision has `seen`, which
    /// saves reading it. If it is out of date, the commit finds that out and the decision is
    /// made anew; and nothing but a commit is decided by it: an answer that writes nothing,
    /// and an error, are asked for again on what is read.
    ///
    /// # Errors
    ///
    /// As [`Ledger::decide`].
    pub async fn decide_from<T>(
        &self,
        workspace: &Workspace,
        seen: View,
        decide: impl FnMut(&View) -> Result<Decision<T>, Error> + Send,
    ) -> Result<Decided<T>, Error> {
        let p = self.partition(workspace);
        self.decide_on(p, seen, false, decide).await
    }

    /// Decides on `view`; `present` says that it was read as one moment's.
    async fn decide_on<T>(
        &self,
        p: Partition,
        mut view: View,
        mut present: bool,
        mut decide: impl FnMut(&View) -> Result<Decision<T>, Error> + Send,
    ) -> Result<Decided<T>, Error> {
        for _ in 0..self.patience.conflicts_max {
            let keys = match decide(&view) {
                Ok(Decision::Write(change, answer)) => {
                    let (commit, attempts) = self.commit_of(&view, change)?;
                    match self.commit(p, &commit).await? {
                        Committed::Applied(version) => {
                            view.wrote(commit, version, |keys| {
                                self.news.tell(keys, &attempts, version);
                            });
                            return Ok(Decided {
                                answer,
                                version: Some(version),
                                seen: view,
                            });
                        }
                        Committed::Conflict(found) => {
                            view.records.extend(found);
                            present = true;
                        }
                    }
                    continue;
                }
                Ok(Decision::Keep(answer)) if present => {
                    return Ok(Decided {
                        answer,
                        version: None,
                        seen: view,
                    });
                }
                Err(error) if present => return Err(error),
                Ok(Decision::Keep(_)) | Err(_) => Vec::new(),
                Ok(Decision::New(keys)) => {
                    view.records.extend(keys.into_iter().map(|key| (key, None)));
                    present = false;
                    continue;
                }
                Ok(Decision::More(keys)) => keys,
            };
            // All of it is read anew, so that it is one moment's. Read in two, it may show
            // what never was: the session of a try whose attempt is not there yet, since
            // another commit made both in between.
            let keys = view.records.into_keys().chain(keys).collect();
            view = self.load(p, keys).await?;
            present = true;
        }
        Err(Error::Contended)
    }

    /// The partition of a workspace.
    #[must_use]
    pub fn partition(&self, workspace: &Workspace) -> Partition {
        partition_of(workspace, self.store.partitions())
    }

    /// The wall clock's present moment.
    #[must_use]
    pub fn now(&self) -> crate::model::time::Time {
        self.clock.now()
    }

    /// The records under `keys`, as they were at one moment.
    async fn load(&self, p: Partition, mut keys: Vec<Key>) -> Result<View, Error> {
        keys.sort_unstable();
        keys.dedup();
        let mut found = self.store.load(p, &keys).await?;
        let mut view = View::default();
        for key in keys {
            let record = found.remove(&key);
            view.records.insert(key, record);
        }
        Ok(view)
    }

    fn commit_of(
        &self,
        view: &View,
        change: Change,
    ) -> Result<(Commit, Vec<crate::model::attempt::Attempt>), Error> {
        if let Some(put) = change.puts.iter().find(|put| !view.has(&put.key)) {
            return Err(Error::Fault(format!(
                "a decision wrote {} without asking for it",
                put.key
            )));
        }
        let commit = Commit {
            id: CommitId(self.ids.uuid()),
            epoch: self.epoch,
            at: self.clock.now(),
            expect: view.versions(),
            put: change.puts,
            delete: Vec::new(),
            events: change.events,
        };
        Ok((commit, change.attempts))
    }

    /// Sends `commit` until its answer is known, for at most `retry_for`.
    ///
    /// Once an answer was unknown, a later "not applied" speaks of that sending alone: the
    /// first one may have been applied. So from then on only `Applied` or `Conflict` ends it.
    pub(super) async fn commit(&self, p: Partition, commit: &Commit) -> Result<Committed, Error> {
        let begun = Instant::now();
        let mut doubtful = false;
        loop {
            let end = self.writes.of(self.store.commit(p, commit)).await;
            let failure = match end {
                Ok(committed) => return Ok(committed),
                Err(store::Error::NotApplied(failure)) if !doubtful => {
                    return Err(store::Error::NotApplied(failure).into());
                }
                Err(store::Error::NotApplied(failure) | store::Error::Unknown(failure)) => failure,
            };
            doubtful = true;
            if begun.elapsed() >= self.patience.retry_for {
                return Err(store::Error::Unknown(failure).into());
            }
            tokio::time::sleep(self.patience.retry_backoff).await;
        }
    }

    /// Who is told of commits.
    #[must_use]
    pub fn news(&self) -> &News {
        &self.news
    }

    /// This installation.
    #[must_use]
    pub fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// The history that this ledger remembers.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Chance, for nonces and jitter.
    #[must_use]
    pub fn ids(&self) -> &dyn Ids {
        self.ids.as_ref()
    }

    /// Whether the store has room for something new, beside what is under way.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.store.has_room()
    }

    /// Why nothing new can be written down, while that is so, as a clause that names the remedy:
    /// the store refused the last write, or its disk is nearly full.
    #[must_use]
    pub fn refuses(&self) -> Option<String> {
        let full = || {
            let text = "little space is left on its disk; free some";
            (!self.has_room()).then(|| text.to_owned())
        };
        (self.writes.refused())
            .map(|failure| failure.to_string())
            .or_else(full)
    }

    /// Whether what is in a passing state belongs to a process that is surely dead.
    #[must_use]
    pub fn predecessor_is_dead(&self) -> bool {
        self.store.exclusive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::ledger::record::{Session, Stored};
    use crate::ledger::store::memory::{Call, Fate, Memory, Scripted};
    use crate::model::id::SessionId;
    use crate::runtime::clock::SystemClock;
    use crate::runtime::ids::RandomIds;

    /// A ledger, and how often its store was read.
    async fn ledger() -> (Ledger, Arc<AtomicU32>) {
        let ids = Arc::new(RandomIds::seeded(1));
        let epoch = Epoch {
            id: ids.uuid(),
            since: crate::model::time::Time::ZERO,
        };
        let loads = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&loads);
        let script = Scripted(move |call: Call<'_>| {
            if matches!(call, Call::Load(..)) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            Fate::default()
        });
        let store = Memory::new(1, epoch).scripted(Arc::new(script));
        let (keys, clock) = (Keys::random(ids.as_ref()), Arc::new(SystemClock));
        let opened = Ledger::open(
            Arc::new(store),
            keys,
            None,
            clock,
            ids,
            News::new(Vec::new()),
            Patience {
                retry_for: Duration::from_secs(1),
                retry_backoff: Duration::from_millis(20),
                conflicts_max: 256,
            },
        );
        let ledger = opened.await.unwrap();
        loads.store(0, Ordering::SeqCst);
        (ledger, loads)
    }

    fn session(number: u32) -> Session {
        Session {
            session: SessionId::parse("6f0b1d5e-4c1a-4d07-9a39-1b8e72f455d1").unwrap(),
            workspace: "w".parse().unwrap(),
            attempt: "a".parse().unwrap(),
            number,
        }
    }

    /// Counts the record up; the number that it had.
    fn count_up(view: &View) -> Result<Decision<u32>, Error> {
        let found = view.session(session(0).session)?;
        let number = found.map_or(0, |found| found.number);
        let mut change = Change::default();
        change.put(&session(number + 1))?;
        Ok(Decision::Write(change, number))
    }

    #[tokio::test]
    async fn what_was_seen_needs_no_read_and_what_is_out_of_date_harms_nothing() {
        let (ledger, loads) = ledger().await;
        let ws = session(0).workspace;
        let first = ledger.decide(&ws, vec![session(0).key()], count_up).await;
        let first = first.unwrap();
        assert_eq!((first.answer, loads.load(Ordering::SeqCst)), (0, 1));
        let old = first.seen.clone();
        let second = ledger.decide_from(&ws, first.seen, count_up).await.unwrap();
        assert_eq!((second.answer, loads.load(Ordering::SeqCst)), (1, 1));
        // Two commits behind: the commit finds it out and says what is there.
        let third = ledger.decide_from(&ws, old, count_up).await.unwrap();
        assert_eq!(third.answer, 2);
    }

    #[tokio::test]
    async fn an_answer_that_writes_nothing_is_given_on_what_is_read() {
        let (ledger, loads) = ledger().await;
        let ws = session(0).workspace;
        let seen = ledger.decide(&ws, vec![session(0).key()], count_up).await;
        let seen = seen.unwrap().seen;
        ledger
            .decide_from(&ws, seen.clone(), count_up)
            .await
            .unwrap();
        let before = loads.load(Ordering::SeqCst);
        let read = |view: &View| {
            let found = view.session(session(0).session)?;
            Ok(Decision::Keep(found.map(|found| found.number)))
        };
        let kept = ledger.decide_from(&ws, seen.clone(), read).await.unwrap();
        assert_eq!(kept.answer, Some(2));
        assert_eq!(loads.load(Ordering::SeqCst), before + 1);
        // An error of what is out of date is none, either.
        let strict = |view: &View| match view.session(session(0).session)? {
            Some(found) if found.number == 2 => Ok(Decision::Keep(())),
            Some(_) | None => Err(Error::Fault("it should have been 2".to_owned())),
        };
        ledger.decide_from(&ws, seen, strict).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_taken_to_be_new_is_found_if_it_is_there() {
        let (ledger, loads) = ledger().await;
        let ws = session(0).workspace;
        let key = session(0).key();
        let anew = |view: &View| {
            if !view.has(&session(0).key()) {
                return Ok(Decision::New(vec![session(0).key()]));
            }
            count_up(view)
        };
        let first = ledger.decide(&ws, Vec::new(), anew).await.unwrap();
        assert_eq!(first.answer, 0);
        let second = ledger.decide(&ws, Vec::new(), anew).await.unwrap();
        assert_eq!(second.answer, 1, "the record was there");
        assert!(second.seen.has(&key));
        assert_eq!(loads.load(Ordering::SeqCst), 2, "of no keys, each");
    }
}
