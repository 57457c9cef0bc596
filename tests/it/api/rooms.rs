//! `OperationsService` over a core that has the rooms of the test.

use ringonce::api::proto::operations_service_client::OperationsServiceClient;
use ringonce::api::{Reason, Standing, proto};
use ringonce::ledger::record::RoomState;
use ringonce::model::attempt::State;
use ringonce::model::id::{Partition, SessionId};
use ringonce::node::{Leak, Leg};
use ringonce::runtime::clock::{Clock as _, SystemClock};
use tonic::transport::Channel;

use super::calls::reason;
use super::fake::{Answer, Server};

type Client = OperationsServiceClient<Channel>;

fn room(n: u32, leak: Option<Leak>) -> Standing {
    let (deployment, workspace) = ("d".parse().unwrap(), "w".parse().unwrap());
    let attempt = format!("a{n}").parse().unwrap();
    let session = SessionId::of(&deployment, &workspace, &attempt, 1);
    Standing {
        name: session.room(Partition(0)).to_string(),
        deployment,
        workspace,
        attempt,
        session,
        attempt_state: Some(State::Uncertain),
        owned: leak.is_none(),
        record: Some(RoomState::Created),
        listed: true,
        leg: Leg::Lives,
        created_at: Some(SystemClock.now()),
        horizon: None,
        leak,
    }
}

fn list(size: i32, token: &str) -> proto::ListRoomsRequest {
    proto::ListRoomsRequest {
        page_size: size,
        page_token: token.into(),
        ..proto::ListRoomsRequest::default()
    }
}

async fn client(server: &Server) -> Client {
    Client::new(server.channel().await)
}

#[tokio::test]
async fn rooms_are_listed_in_pages_and_tokens_cannot_be_bent() {
    let server = Server::start(|_| {}).await;
    let mut client = client(&server).await;
    for n in 1..=5 {
        server
            .core
            .has_room(room(n, (n == 3).then_some(Leak::NoOwner)));
    }
    let (mut names, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = client
            .list_rooms(list(2, &token))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(
            (page.total_size, page.leak_count, page.foreign_count),
            (5, 1, 1)
        );
        names.extend(page.rooms.into_iter().map(|room| room.name));
        pages += 1;
        if page.next_page_token.is_empty() {
            break;
        }
        token = page.next_page_token;
    }
    assert_eq!((pages, names.len()), (3, 5));
    assert!(names.is_sorted());
    let mut other = list(2, &token);
    other.leaks_only = true;
    for request in [other, list(2, "AAAA")] {
        let status = client.list_rooms(request).await.unwrap_err();
        assert_eq!(reason(&status), Reason::InvalidPageToken);
    }
    let mut wrong = list(-1, "");
    wrong.workspace = "two words".into();
    let status = client.list_rooms(wrong).await.unwrap_err();
    assert_eq!(reason(&status), Reason::InvalidFields);
    assert!(status.message().contains("workspace") && status.message().contains("page_size"));
    server.core.answer(Answer::Away);
    let status = client.list_rooms(list(0, "")).await.unwrap_err();
    assert_eq!(reason(&status), Reason::PlatformUnavailable);
}

#[tokio::test]
async fn a_leak_says_why_and_what_to_do() {
    let server = Server::start(|_| {}).await;
    let mut client = client(&server).await;
    for (n, leak) in [
        Leak::NoRecord,
        Leak::OtherHistory,
        Leak::NoOwner,
        Leak::NotDeleted,
        Leak::CameBack,
    ]
    .into_iter()
    .enumerate()
    {
        server
            .core
            .has_room(room(u32::try_from(n).unwrap(), Some(leak)));
    }
    server.core.has_room(room(9, None));
    let mut leaks = list(0, "");
    leaks.leaks_only = true;
    let page = client.list_rooms(leaks).await.unwrap().into_inner();
    assert_eq!((page.rooms.len(), page.total_size), (5, 6));
    let mut reasons: Vec<_> = page.rooms.iter().map(proto::Room::leak).collect();
    reasons.sort_unstable();
    reasons.dedup();
    assert_eq!(reasons.len(), 5);
    for room in page.rooms {
        assert_eq!(
            (room.deployment.as_str(), room.workspace.as_str()),
            ("d", "w")
        );
        assert_eq!(room.attempt_state(), proto::attempt::State::Uncertain);
        assert_eq!(room.leg(), proto::room::Leg::Lives);
        assert!(
            room.explanation.to_lowercase().contains("delete"),
            "{}",
            room.explanation
        );
        assert!(room.age.is_some());
    }
}

#[tokio::test]
async fn a_deletion_that_is_refused_says_what_to_do_instead() {
    let server = Server::start(|_| {}).await;
    let mut client = client(&server).await;
    let (owned, leaked) = (room(1, None), room(2, Some(Leak::NoOwner)));
    server.core.has_room(owned.clone());
    server.core.has_room(leaked.clone());
    let delete = |name: &str, force: bool| proto::DeleteRoomRequest {
        name: name.into(),
        force,
        ..proto::DeleteRoomRequest::default()
    };
    let status = client
        .delete_room(delete("nobody", false))
        .await
        .unwrap_err();
    assert_eq!(reason(&status), Reason::RoomNotFound);
    let status = client
        .delete_room(delete(&owned.name, false))
        .await
        .unwrap_err();
    assert_eq!(reason(&status), Reason::RoomOwned);
    assert!(
        status
            .message()
            .contains("attempt a1 owns this room and is uncertain")
    );
    assert!(status.message().contains("cancel the attempt"));
    for (name, force) in [(&owned.name, true), (&leaked.name, false)] {
        let gone = client.delete_room(delete(name, force)).await.unwrap();
        assert_eq!(gone.into_inner().name, *name);
    }
}
