//! The ids of the domain: newtypes, parsed once at the edge.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest id that a caller may choose, in bytes.
pub const ID_MAX: usize = 128;

/// Why a text is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    /// It is empty.
    #[error("must not be empty")]
    Empty,
    /// It is longer than [`ID_MAX`].
    #[error("is {0} bytes long; at most 128 are allowed")]
    TooLong(usize),
    /// It has a character outside `A-Z a-z 0-9 . _ : -`.
    #[error("has a character outside A-Z a-z 0-9 . _ : - at byte {0}")]
    Character(usize),
}

fn check(text: &str) -> Result<(), BadId> {
    if text.is_empty() {
        return Err(BadId::Empty);
    }
    if text.len() > ID_MAX {
        return Err(BadId::TooLong(text.len()));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    match text.bytes().position(|b| !allowed(b)) {
        Some(at) => Err(BadId::Character(at)),
        None => Ok(()),
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text of the id.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;

            fn try_from(text: String) -> Result<Self, BadId> {
                check(&text)?;
                Ok(Self(text))
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    )*};
}

ids! {
    /// The tenant; scopes every other id.
    Workspace;
    /// One intended dialing, named by the scheduler: the idempotency key.
    AttemptId;
    /// An opaque id of a person, never a phone number.
    ContactId;
    /// The business reason for contacting that person.
    OutreachId;
    /// The campaign that asked.
    CampaignId;
    /// A trunk by its stable name; LiveKit's trunk ids live only in a process cache.
    TrunkName;
    /// An agent by the name it registers with LiveKit.
    AgentName;
    /// This installation: two on one LiveKit project never touch each other's rooms.
    Deployment;
}

impl AttemptId {
    /// As the subject of a log line or an event.
    #[must_use]
    pub fn in_workspace(&self, workspace: &Workspace) -> String {
        format!("{workspace}/{self}")
    }
}

/// One try: a version 5 UUID of deployment, workspace, attempt id and try number, joined by NUL.
/// The room's name, the callee's identity and the room's metadata carry it; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Uuid);

/// The namespace of [`SessionId`]: a random UUID, fixed for ever.
const SESSIONS: Uuid = Uuid::from_u128(0x6f0b_1d5e_4c1a_4d07_9a39_1b8e_72f4_55d1);

impl SessionId {
    /// The session of try `number` of an attempt.
    #[must_use]
    pub fn of(
        deployment: &Deployment,
        workspace: &Workspace,
        attempt: &AttemptId,
        number: u32,
    ) -> Self {
        let name = format!("{deployment}\0{workspace}\0{attempt}\0{number}");
        Self(Uuid::new_v5(&SESSIONS, name.as_bytes()))
    }

    /// The room of this session in a partition of the store.
    #[must_use]
    pub fn room(self, partition: Partition) -> RoomName {
        RoomName(format!("ringonce-{partition}-{self}"))
    }

    /// The callee's participant identity.
    #[must_use]
    pub fn identity(self) -> String {
        format!("callee-{self}")
    }

    /// From its text form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.hyphenated())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A part of the store inside which a commit is atomic: hash of the workspace mod P.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition(pub u16);

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The name of a room of ours: `ringonce-{partition}-{session}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RoomName(String);

impl RoomName {
    /// The name as LiveKit knows it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Partition and session, if the name has the form of ours.
    #[must_use]
    pub fn parse(name: &str) -> Option<(Partition, SessionId)> {
        let (partition, session) = name.strip_prefix("ringonce-")?.split_once('-')?;
        Some((
            Partition(partition.parse().ok()?),
            SessionId::parse(session)?,
        ))
    }
}

impl fmt::Display for RoomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RoomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A random value of one try, carried in the room's metadata: a room with our session and
/// another nonce proves that this store has lost history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nonce(pub Uuid);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_checked() {
        assert_eq!("".parse::<AttemptId>(), Err(BadId::Empty));
        assert_eq!("a b".parse::<AttemptId>(), Err(BadId::Character(1)));
        assert_eq!("a\u{0}".parse::<AttemptId>(), Err(BadId::Character(1)));
        assert_eq!("é".parse::<AttemptId>(), Err(BadId::Character(0)));
        assert_eq!(
            "x".repeat(129).parse::<AttemptId>(),
            Err(BadId::TooLong(129))
        );
        assert!("x".repeat(128).parse::<AttemptId>().is_ok());
        assert!("A-z0.9:_".parse::<AttemptId>().is_ok());
    }

    #[test]
    fn a_session_is_the_same_everywhere_and_never_twice() {
        let of = |d: &str, w: &str, a: &str, n| {
            SessionId::of(
                &d.parse().unwrap(),
                &w.parse().unwrap(),
                &a.parse().unwrap(),
                n,
            )
        };
        let one = of("d", "w", "a", 1);
        // A value computed once and kept: a change would orphan every room of a running system.
        assert_eq!(one, of("d", "w", "a", 1));
        for other in [
            of("e", "w", "a", 1),
            of("d", "x", "a", 1),
            of("d", "w", "b", 1),
            of("d", "w", "a", 2),
        ] {
            assert_ne!(one, other);
        }
        let room = one.room(Partition(7));
        assert_eq!(RoomName::parse(room.as_str()), Some((Partition(7), one)));
        assert_eq!(RoomName::parse("ringonce-x-y"), None);
    }
}
