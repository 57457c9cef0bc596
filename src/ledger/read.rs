//! Reading: single attempts, lists, what is due, what has changed; and what is sealed.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::watch;

use super::call::{CallRecord, call_key};
use super::change::AttemptChanged;
use super::decide::Ledger;
use super::record::{
    BY_CAMPAIGN, BY_CONTACT, BY_OUTREACH, BY_STATE, BY_TIME, ROOMS, Room, Session, Stored,
    WAITS_FOR, attempt_key, room_key, session_key, sortable,
};
use super::store::{Bounds, Cursor, Failure, Info, Page, Position, Queue, Scan, Trim, Version};
use super::view::read;
use super::{Error, store};
use crate::model::attempt::{Attempt, Cause, State};
use crate::model::id::{
    AttemptId, CampaignId, ContactId, OutreachId, Partition, SessionId, Workspace,
};
use crate::model::phone::E164;
use crate::model::request::Private;
use crate::model::time::Time;

/// Which attempts a list shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The tenant.
    pub workspace: Workspace,
    /// Of this contact.
    pub contact: Option<ContactId>,
    /// Of this campaign.
    pub campaign: Option<CampaignId>,
    /// Of this outreach.
    pub outreach: Option<OutreachId>,
    /// In one of these states; empty means any.
    pub states: Vec<State>,
    /// Accepted at or after.
    pub from: Option<Time>,
    /// Accepted before.
    pub to: Option<Time>,
    /// Newest first.
    pub descending: bool,
}

impl Filter {
    /// Whether `attempt` is shown.
    #[must_use]
    pub fn shows(&self, attempt: &Attempt) -> bool {
        let spec = &attempt.spec;
        attempt.workspace == self.workspace
            && self.contact.as_ref().is_none_or(|c| *c == spec.contact)
            && self.outreach.as_ref().is_none_or(|o| *o == spec.outreach)
            && self
                .campaign
                .as_ref()
                .is_none_or(|c| Some(c) == spec.campaign.as_ref())
            && (self.states.is_empty() || self.states.contains(&attempt.state))
            && self.from.is_none_or(|from| attempt.create_time >= from)
            && self.to.is_none_or(|to| attempt.create_time < to)
    }

    /// The narrowest index that holds all of them.
    fn scan(&self, after: Option<PageCursor>, limit: usize) -> Scan {
        let ws = &self.workspace;
        let (index, prefix) = if let Some(contact) = &self.contact {
            (BY_CONTACT, format!("{ws}/{contact}/"))
        } else if let Some(outreach) = &self.outreach {
            (BY_OUTREACH, format!("{ws}/{outreach}/"))
        } else if let Some(campaign) = &self.campaign {
            (BY_CAMPAIGN, format!("{ws}/{campaign}/"))
        } else {
            (BY_TIME, format!("{ws}/"))
        };
        let from = format!("{prefix}{}", sortable(self.from.unwrap_or(Time::ZERO)));
        let to = match self.to {
            Some(to) => format!("{prefix}{}", sortable(to)),
            None => format!("{prefix}~"),
        };
        let after = after.map(|PageCursor(cursor)| cursor);
        Scan {
            index,
            from,
            to,
            after,
            descending: self.descending,
            limit,
        }
    }
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCursor(pub Cursor);

/// A change of an attempt, as the log has it.
#[derive(Debug, Clone)]
pub struct Changed {
    /// Its place in the log.
    pub position: Position,
    /// When.
    pub at: Time,
    /// Why.
    pub cause: Cause,
    /// The attempt afterwards.
    pub attempt: Attempt,
}

/// The most records that one list call reads while it looks for those that match.
const SCANNED_MAX: usize = 10_000;

impl Ledger {
    /// The attempt and its version.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn attempt(
        &self,
        ws: &Workspace,
        id: &AttemptId,
    ) -> Result<Option<(Attempt, Version)>, Error> {
        let key = attempt_key(ws, id);
        let found = self
            .store
            .load(self.partition(ws), std::slice::from_ref(&key))
            .await?;
        found
            .get(&key)
            .map(|record| Ok((read(record)?, record.version)))
            .transpose()
    }

    /// Is woken by each commit of the attempt in this process.
    #[must_use]
    pub fn watch(&self, ws: &Workspace, id: &AttemptId) -> watch::Receiver<Version> {
        self.news.of(&attempt_key(ws, id))
    }

    /// The owner of a session.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn session(&self, p: Partition, id: SessionId) -> Result<Option<Session>, Error> {
        let key = session_key(id);
        let found = self.store.load(p, std::slice::from_ref(&key)).await?;
        found.get(&key).map(read).transpose()
    }

    /// The room of a session, if one was planned.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn room(&self, ws: &Workspace, id: SessionId) -> Result<Option<Room>, Error> {
        let key = room_key(ws, id);
        let found = self
            .store
            .load(self.partition(ws), std::slice::from_ref(&key))
            .await?;
        found.get(&key).map(read).transpose()
    }

    /// What was seen of a session's call; `None` if nothing was.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn call(&self, ws: &Workspace, id: SessionId) -> Result<Option<CallRecord>, Error> {
        let key = call_key(ws, id);
        let found = self
            .store
            .load(self.partition(ws), std::slice::from_ref(&key))
            .await?;
        found.get(&key).map(read).transpose()
    }

    /// Attempts that `filter` shows, at most `limit`, and where the next page begins.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn list(
        &self,
        filter: &Filter,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<(Vec<(Attempt, Version)>, Option<PageCursor>), Error> {
        let p = self.partition(&filter.workspace);
        let mut shown = Vec::new();
        let mut after = after;
        let mut scanned = 0;
        loop {
            let want = limit.saturating_sub(shown.len()).max(1);
            let page = self.store.scan(p, &filter.scan(after.take(), want)).await?;
            scanned += page.records.len();
            for record in &page.records {
                let attempt: Attempt = read(record)?;
                if filter.shows(&attempt) {
                    shown.push((attempt, record.version));
                }
            }
            after = page.next.map(PageCursor);
            if after.is_none() || shown.len() >= limit || scanned >= SCANNED_MAX {
                return Ok((shown, after));
            }
        }
    }

    /// Attempts in a passing state, oldest first.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn in_state(
        &self,
        p: Partition,
        state: State,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<(Vec<Attempt>, Option<PageCursor>), Error> {
        let name = state.name();
        self.range(p, BY_STATE, &format!("{name}/"), after, limit)
            .await
    }

    /// Attempts that wait for `what`, in the order in which they are admitted: priority,
    /// then create time.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn waiting_for(
        &self,
        p: Partition,
        what: &str,
        limit: usize,
    ) -> Result<Vec<Attempt>, Error> {
        Ok(self
            .range(p, WAITS_FOR, &format!("{what}/"), None, limit)
            .await?
            .0)
    }

    /// Rooms that are not gone.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn rooms(
        &self,
        p: Partition,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<(Vec<Room>, Option<PageCursor>), Error> {
        self.range(p, ROOMS, "", after, limit).await
    }

    async fn range<T: Stored>(
        &self,
        p: Partition,
        index: &'static str,
        prefix: &str,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<(Vec<T>, Option<PageCursor>), Error> {
        let page = self.page(p, index, prefix, after, limit).await?;
        let values = page.records.iter().map(read).collect::<Result<_, _>>()?;
        Ok((values, page.next.map(PageCursor)))
    }

    /// A page of the records whose value in `index` begins with `prefix`, unread.
    pub(super) async fn page(
        &self,
        p: Partition,
        index: &'static str,
        prefix: &str,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<Page, Error> {
        let scan = Scan {
            index,
            from: prefix.to_owned(),
            to: format!("{prefix}~"),
            after: after.map(|PageCursor(cursor)| cursor),
            descending: false,
            limit,
        };
        Ok(self.store.scan(p, &scan).await?)
    }

    /// Records of a queue that are due, put off for others by `lease`.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn claim_due<T: Stored>(
        &self,
        p: Partition,
        queue: Queue,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<T>, Error> {
        let claim = (self.store).claim_due(p, queue, self.now(), limit, lease);
        let claimed = self.writes.asked(claim).await;
        claimed?.iter().map(read).collect()
    }

    /// When the next record of a queue is due.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn next_due(&self, p: Partition, queue: Queue) -> Result<Option<Time>, Error> {
        Ok(self.store.next_due(p, queue).await?)
    }

    /// Every partition of the store.
    pub fn partitions(&self) -> impl Iterator<Item = Partition> + use<> {
        (0..self.store.partitions()).map(Partition)
    }

    /// Changes after `position`, in order.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn changes(
        &self,
        p: Partition,
        position: Position,
        limit: usize,
    ) -> Result<Vec<Changed>, Error> {
        let logged = self.store.changes_since(p, position, limit).await?;
        logged
            .into_iter()
            .map(|entry| {
                let body: AttemptChanged = serde_json::from_slice(&entry.event.body)
                    .map_err(|_| unreadable("an event"))?;
                let (position, at) = (entry.position, entry.at);
                Ok(Changed {
                    position,
                    at,
                    cause: body.cause,
                    attempt: body.attempt,
                })
            })
            .collect()
    }

    /// The last position of a partition's log, and the first that is still held.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn log_bounds(&self, p: Partition) -> Result<Option<Bounds>, Error> {
        Ok(self.store.log_bounds(p).await?)
    }

    /// Forgets what is older than its retention; how many items.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn trim(
        &self,
        p: Partition,
        what: Trim,
        before: Time,
        limit: usize,
    ) -> Result<usize, Error> {
        Ok(self.store.trim(p, what, before, limit).await?)
    }

    /// What the store says of itself.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn info(&self) -> Result<Info, Error> {
        Ok(self.store.info().await?)
    }

    /// The key under which a number is looked up.
    #[must_use]
    pub fn number_key(&self, ws: &Workspace, number: &E164) -> String {
        self.keys.number_key(ws.as_str(), number.reveal())
    }

    /// The fingerprint of what the first call fixes.
    #[must_use]
    pub fn fingerprint(&self, fixed: &str) -> String {
        self.keys.fingerprint(fixed.as_bytes())
    }

    /// Seals what is private to an attempt.
    ///
    /// # Errors
    ///
    /// If it cannot be encoded, which is a fault of ours.
    pub fn seal(&self, ws: &Workspace, id: &AttemptId, private: &Private) -> Result<String, Error> {
        let plain = serde_json::to_vec(private)
            .map_err(|_| Error::Fault("what is private cannot be encoded".to_owned()))?;
        let sealed = self
            .keys
            .seal(&id.in_workspace(ws), &plain, self.ids.as_ref());
        Ok(STANDARD.encode(sealed))
    }

    /// Opens what is private to an attempt.
    ///
    /// # Errors
    ///
    /// If it was erased or is damaged.
    pub fn unseal(&self, attempt: &Attempt) -> Result<Private, Error> {
        let sealed = attempt
            .sealed
            .as_ref()
            .ok_or_else(|| unreadable("an erased number"))?;
        let sealed = STANDARD
            .decode(sealed)
            .map_err(|_| unreadable("a sealed number"))?;
        let subject = attempt.id.in_workspace(&attempt.workspace);
        let plain = self
            .keys
            .open(&subject, &sealed)
            .map_err(|_| unreadable("a sealed number"))?;
        serde_json::from_slice(&plain).map_err(|_| unreadable("a sealed number"))
    }

    /// Ends the store: what is queued is written first.
    pub async fn close(&self) {
        self.store.close().await;
    }
}

fn unreadable(what: &str) -> Error {
    Error::Store(store::Error::NotApplied(Failure::Corrupt(format!(
        "{what} cannot be read"
    ))))
}
