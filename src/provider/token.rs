//! Access tokens: JWTs signed by HS256, each with the least grant that its method needs.
//!
//! The claims are `livekit-api`'s, the signature is made here: its `AccessToken` reads
//! the machine's clock, and the time of a dial's token is an argument. A token of the
//! dial expires at `send_by`; all others live for a minute or so and are made for each
//! request, which costs a few microseconds and leaves nothing to be kept.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use livekit_api::access_token::{Claims, SIPGrants, VideoGrants};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use crate::model::id::RoomName;
use crate::model::time::Time;

/// `{"alg":"HS256","typ":"JWT"}` (RFC 7515, 3).
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// LiveKit's API key and secret.
#[derive(Clone)]
pub struct Credentials {
    /// The key, the issuer of our tokens.
    pub key: String,
    /// The secret that signs them.
    pub secret: SecretString,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// What a token allows. The server's checks were read in `livekit-server`'s `auth.go`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant<'a> {
    /// To create and to delete rooms (`roomCreate`).
    Rooms,
    /// To list rooms (`roomList`).
    ListRooms,
    /// To look into one room and to dispatch agents to it (`roomAdmin` of that room).
    Room(&'a RoomName),
    /// To list trunks (`sip.admin`).
    Trunks,
    /// To dial (`sip.call` alone).
    Dial,
}

impl Credentials {
    /// A token for `grant`, valid from `now` until `expires`, both rounded down to seconds.
    ///
    /// # Panics
    ///
    /// Never: HMAC takes keys of any length, and the claims are strings, numbers and flags.
    #[must_use]
    pub fn mint(&self, grant: Grant<'_>, now: Time, expires: Time) -> SecretString {
        let (video, sip) = grant.claims();
        let claims = Claims {
            iss: self.key.clone(),
            nbf: seconds(now),
            exp: seconds(expires),
            video,
            sip,
            ..Claims::default()
        };
        let claims = serde_json::to_vec(&claims)
            .expect("claims are strings, numbers and flags, which JSON can always hold");
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(HEADER),
            URL_SAFE_NO_PAD.encode(claims)
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.expose_secret().as_bytes())
            .expect("HMAC takes keys of any length (RFC 2104, 2)");
        mac.update(signed.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
        SecretString::from(format!("{signed}.{signature}"))
    }
}

impl Grant<'_> {
    fn claims(self) -> (VideoGrants, SIPGrants) {
        let mut video = VideoGrants::default();
        let mut sip = SIPGrants::default();
        match self {
            Self::Rooms => video.room_create = true,
            Self::ListRooms => video.room_list = true,
            Self::Room(room) => {
                video.room_admin = true;
                room.as_str().clone_into(&mut video.room);
            }
            Self::Trunks => sip.admin = true,
            Self::Dial => sip.call = true,
        }
        (video, sip)
    }
}

fn seconds(time: Time) -> usize {
    usize::try_from(time.as_secs()).unwrap_or(0)
}
