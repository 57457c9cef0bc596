//! Tokens: the least grant, the given times, accepted by LiveKit's own verifier.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use livekit_api::access_token::{Claims, TokenVerifier};
use livekit_protocol as proto;
use ringonce::model::time::Time;
use ringonce::provider::client::{Client, Limits};
use ringonce::provider::token::{Credentials, Grant};
use ringonce::runtime::clock::{Clock, SystemClock};
use secrecy::{ExposeSecret, SecretString};

use super::script::{At, Script, client, credentials, done, room};

fn claims(token: &SecretString) -> Claims {
    let credentials = credentials();
    TokenVerifier::with_api_key(&credentials.key, credentials.secret.expose_secret())
        .verify(token.expose_secret())
        .unwrap()
}

#[test]
fn a_token_has_the_least_grant_and_the_given_times() {
    let now = SystemClock.now();
    let room = room();
    for (grant, video, sip) in [
        (Grant::Rooms, (true, false, false), (false, false)),
        (Grant::ListRooms, (false, true, false), (false, false)),
        (Grant::Room(&room), (false, false, true), (false, false)),
        (Grant::Trunks, (false, false, false), (true, false)),
        (Grant::Dial, (false, false, false), (false, true)),
    ] {
        let token = credentials().mint(grant, now, now.plus(Duration::from_secs(5)));
        let claims = claims(&token);
        let allowed = &claims.video;
        assert_eq!(
            (allowed.room_create, allowed.room_list, allowed.room_admin),
            video
        );
        assert_eq!((claims.sip.admin, claims.sip.call), sip);
        assert_eq!(allowed.room == room.as_str(), allowed.room_admin);
        assert_eq!(claims.iss, "devkey");
        assert_eq!(seconds(claims.nbf), now.as_secs());
        assert_eq!(seconds(claims.exp), now.as_secs() + 5);
    }
}

/// The dial's token ends at `send_by`, never after it, whatever the machine's clock says.
#[test]
fn the_dials_token_expires_at_send_by() {
    let now = Time::from_micros(1_795_967_305_900_000);
    let send_by = now.plus(Duration::from_secs(5));
    let (client, _) = client([]);
    let token = client.mint_dial(now, send_by);
    let claims = Claims::from_unverified(token.expose_secret()).unwrap();
    assert_eq!(claims.exp, 1_795_967_310);
    assert_eq!(claims.nbf, 1_795_967_305);
    assert!(claims.sip.call && !claims.sip.admin);
}

#[test]
fn an_expired_or_foreign_token_is_refused() {
    let credentials = credentials();
    let verifier =
        TokenVerifier::with_api_key(&credentials.key, credentials.secret.expose_secret());
    let now = SystemClock.now();
    let late = credentials.mint(Grant::Dial, now, now.minus(Duration::from_secs(65)));
    assert!(verifier.verify(late.expose_secret()).is_err());
    let other = Credentials {
        secret: SecretString::from("another secret of thirty-two bytes!"),
        ..credentials
    };
    let foreign = other.mint(Grant::Dial, now, now.plus(Duration::from_secs(5)));
    assert!(verifier.verify(foreign.expose_secret()).is_err());
}

/// The times of a safe request's token are those of the clock that was given.
#[tokio::test(start_paused = true)]
async fn tokens_follow_the_clock_that_was_given() {
    let script = Arc::new(Script {
        answers: Mutex::new([done(&proto::ListRoomsResponse::default())].into()),
        ..Script::default()
    });
    let clock = Arc::new(At(Time::from_secs(1000)));
    let client = Client::new(script.clone(), credentials(), clock, Limits::default());
    assert!(client.all_rooms().await.done().is_some());
    let token = script.asked.lock().unwrap().pop().unwrap().token;
    let claims = Claims::from_unverified(token.expose_secret()).unwrap();
    assert_eq!((claims.nbf, claims.exp), (1000, 1060));
}

fn seconds(time: usize) -> i64 {
    i64::try_from(time).unwrap()
}
