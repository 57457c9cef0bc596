//! What a decision writes.

use serde::{Deserialize, Serialize};

use super::Error;
use super::record::{FORMAT, Stored};
use super::store::{Event, Put};
use crate::model::attempt::{Attempt, Cause, State};
use crate::runtime::mutant::{self, Mutant};

/// Records and events of one commit.
#[derive(Debug, Default)]
pub struct Change {
    pub(super) puts: Vec<Put>,
    pub(super) events: Vec<Event>,
    pub(super) attempts: Vec<Attempt>,
}

/// What a decision comes to.
#[derive(Debug)]
pub enum Decision<T> {
    /// Commit this, then answer.
    Write(Change, T),
    /// Nothing is to be written.
    Keep(T),
    /// Decide again with these records too.
    More(Vec<super::store::Key>),
    /// Decide again, and take these records to be absent without a look: nobody can have
    /// written them yet. If one is there after all, the commit finds it, and the decision is
    /// made anew with it.
    New(Vec<super::store::Key>),
}

impl<T> Decision<T> {
    /// The same decision with another answer.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Decision<U> {
        match self {
            Self::Write(change, answer) => Decision::Write(change, with(answer)),
            Self::Keep(answer) => Decision::Keep(with(answer)),
            Self::More(keys) => Decision::More(keys),
            Self::New(keys) => Decision::New(keys),
        }
    }
}

/// An event's body: the full attempt after the change, without what is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptChanged {
    /// What caused the change.
    pub cause: Cause,
    /// The attempt afterwards.
    pub attempt: Attempt,
}

impl Change {
    /// Writes a record.
    ///
    /// # Errors
    ///
    /// If it cannot be encoded, which is a fault of ours.
    pub fn put<T: Stored>(&mut self, value: &T) -> Result<(), Error> {
        let body = serde_json::to_vec(value)
            .map_err(|_| Error::Fault(format!("the record {} cannot be encoded", value.key())))?;
        self.puts.push(Put {
            key: value.key(),
            format: FORMAT,
            due: value.due(),
            index: value.index(),
            body,
        });
        Ok(())
    }

    /// Writes an attempt and appends the event that tells of it.
    ///
    /// # Errors
    ///
    /// As [`Change::put`].
    pub fn attempt(&mut self, attempt: &Attempt, cause: Cause) -> Result<(), Error> {
        self.put(attempt)?;
        let mut shown = attempt.clone();
        shown.sealed = None;
        let body = serde_json::to_vec(&AttemptChanged {
            cause,
            attempt: shown,
        })
        .map_err(|_| Error::Fault("an event cannot be encoded".to_owned()))?;
        if !(mutant::is(Mutant::EventLeftOut) && attempt.state == State::Dialing) {
            self.events.push(Event {
                key: attempt.key(),
                body,
            });
        }
        self.attempts.push(attempt.clone());
        Ok(())
    }

    /// Writes an attempt whose caller would see no difference (a look put off).
    ///
    /// # Errors
    ///
    /// As [`Change::put`].
    pub fn quietly(&mut self, attempt: &Attempt) -> Result<(), Error> {
        self.put(attempt)
    }
}
