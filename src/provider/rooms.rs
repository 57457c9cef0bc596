//! Rooms: made once, listed, deleted.

use std::time::Duration;

use livekit_protocol as proto;

use super::call::{Call, Doubt, Refused, not_found};
use super::client::Client;
use super::token::Grant;
use super::wire::{Answer, Method};
use crate::model::id::RoomName;
use crate::model::time::Time;

/// A room to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRoom {
    /// Its name.
    pub name: RoomName,
    /// The routing metadata, as text ([`super::names::RoutingMetadata::to_text`]).
    pub metadata: String,
    /// How long it lives while nobody has joined; whole seconds.
    pub empty_timeout: Duration,
    /// How long it lives after the last one left; whole seconds.
    pub departure_timeout: Duration,
}

/// A room as the platform shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomSeen {
    /// Its name.
    pub name: String,
    /// LiveKit's id of it (`RM_…`): another room of the same name has another.
    pub sid: String,
    /// Its metadata. A room that a dial made by itself has none.
    pub metadata: String,
    /// When it was made by LiveKit's clock, if it told: to the millisecond, or to the second
    /// before LiveKit told milliseconds.
    pub created_at: Option<Time>,
}

/// What became of a `DeleteRoom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Gone {
    /// It was there and is deleted.
    Deleted,
    /// It is not there (404). That is the end only if [`Client::dispatches`] says that the room
    /// does not live: a platform that lost its Redis answers so while the phone rings.
    NotThere,
    /// Certainly not done.
    Refused(Refused),
    /// It may be gone. After 500 or 503 on a room that is listed: [`Client::delete_stale`].
    Unclear(Doubt),
}

/// The empty timeout, in seconds, of a room that is made only to be deleted: it goes by itself
/// if the delete does not arrive.
const STALE_EMPTY_TIMEOUT: u32 = 10;

impl Client {
    /// Makes a room. Sent once. `CreateRoom` on a living room answers with that room and its old
    /// metadata, so only session and nonce in the metadata say whether it is ours.
    pub async fn create_room(&self, new: &NewRoom) -> Call<RoomSeen> {
        let request = proto::CreateRoomRequest {
            name: new.name.as_str().to_owned(),
            metadata: new.metadata.clone(),
            empty_timeout: seconds(new.empty_timeout),
            departure_timeout: seconds(new.departure_timeout),
            ..Default::default()
        };
        let reply = self.once(Method::CreateRoom, Grant::Rooms, &request).await;
        Call::<proto::Room>::read(&reply.answer).map(RoomSeen::from)
    }

    /// Deletes a room; whoever is in it is disconnected, and a phone that rings is canceled.
    pub async fn delete_room(&self, room: &RoomName) -> Gone {
        let request = proto::DeleteRoomRequest {
            room: room.as_str().to_owned(),
        };
        let reply = self.safe(Method::DeleteRoom, Grant::Rooms, &request).await;
        gone(&reply.answer)
    }

    /// The same, sent once: whoever looked before looks again before the next.
    pub async fn delete_room_once(&self, room: &RoomName) -> Gone {
        let request = proto::DeleteRoomRequest {
            room: room.as_str().to_owned(),
        };
        let reply = self.once(Method::DeleteRoom, Grant::Rooms, &request).await;
        gone(&reply.answer)
    }

    /// Deletes a room that is listed although nothing lives: `CreateRoom`, which gives the
    /// record a node again, then `DeleteRoom`. Seen on livekit-server 1.13.5 after it was killed
    /// together with the SIP bridge. If the first is refused, nothing is deleted.
    pub async fn delete_stale(&self, room: &RoomName) -> Gone {
        let request = proto::CreateRoomRequest {
            name: room.as_str().to_owned(),
            empty_timeout: STALE_EMPTY_TIMEOUT,
            ..Default::default()
        };
        let reply = self.once(Method::CreateRoom, Grant::Rooms, &request).await;
        match Call::<proto::Room>::read(&reply.answer) {
            Call::Done(_) => self.delete_room(room).await,
            Call::Refused(why) => Gone::Refused(why),
            // It may have been made, and then nobody else would end it.
            Call::Unclear(why) => match self.delete_room(room).await {
                Gone::Deleted => Gone::Deleted,
                Gone::NotThere | Gone::Refused(_) | Gone::Unclear(_) => Gone::Unclear(why),
            },
        }
    }

    /// The rooms of these names that are listed, in chunks; no names, no rooms.
    pub async fn list_rooms(&self, names: &[RoomName]) -> Call<Vec<RoomSeen>> {
        let mut seen = Vec::new();
        for chunk in names.chunks(self.limits.names_per_list.max(1)) {
            let names = chunk.iter().map(|name| name.as_str().to_owned()).collect();
            match self.list(names).await {
                Call::Done(rooms) => seen.extend(rooms),
                other @ (Call::Refused(_) | Call::Unclear(_)) => return other,
            }
        }
        Call::Done(seen)
    }

    /// How many names go into one list: whoever asks for many at once counts the requests.
    #[must_use]
    pub fn names_per_list(&self) -> usize {
        self.limits.names_per_list.max(1)
    }

    /// All rooms of the project, ours and others'.
    pub async fn all_rooms(&self) -> Call<Vec<RoomSeen>> {
        self.list(Vec::new()).await
    }

    async fn list(&self, names: Vec<String>) -> Call<Vec<RoomSeen>> {
        let request = proto::ListRoomsRequest { names };
        let reply = self
            .safe(Method::ListRooms, Grant::ListRooms, &request)
            .await;
        Call::<proto::ListRoomsResponse>::read(&reply.answer)
            .map(|list| list.rooms.into_iter().map(RoomSeen::from).collect())
    }
}

impl From<proto::Room> for RoomSeen {
    fn from(room: proto::Room) -> Self {
        let millis = match room.creation_time_ms {
            0 => room.creation_time.saturating_mul(1_000),
            millis => millis,
        };
        Self {
            created_at: (millis > 0).then(|| Time::from_micros(millis.saturating_mul(1_000))),
            name: room.name,
            sid: room.sid,
            metadata: room.metadata,
        }
    }
}

/// What the answer to a deletion says.
fn gone(answer: &Answer) -> Gone {
    if not_found(answer) {
        return Gone::NotThere;
    }
    match Call::<proto::DeleteRoomResponse>::read(answer) {
        Call::Done(_) => Gone::Deleted,
        Call::Refused(why) => Gone::Refused(why),
        Call::Unclear(why) => Gone::Unclear(why),
    }
}

/// Whole seconds, rounded up: a room shall not end early.
fn seconds(span: Duration) -> u32 {
    let up = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    u32::try_from(up).unwrap_or(u32::MAX)
}
