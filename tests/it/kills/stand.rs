//! The processes: one sandbox that outlives all, and one `serve` after the other on one store.

use std::path::PathBuf;
use std::time::Duration;

use ringonce::api::proto;
use ringonce::lab::stack::{
    Folder, Program, Sandbox, Serve, ServeSetup, free_address, webhook_url,
};
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;

use super::file::StoreFile;
use super::ms;

pub(super) const WORKSPACE: &str = "w";

const QUICK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/example/quick.toml");
/// A horizon is nine seconds, a call five, and calls to one contact follow one another.
const FINAL: Duration = Duration::from_secs(150);
/// So many lines of the processes' log are shown after a failure.
const WARNINGS: usize = 60;
/// The last rooms go with the last calls.
const ROOMS: Duration = Duration::from_secs(30);

pub(super) struct Stand {
    pub(super) sandbox: Sandbox,
    serve: Serve,
    program: Program,
    setup: ServeSetup,
    folder: Folder,
}

impl Stand {
    pub(super) async fn start(seed: u64) -> Self {
        let program = Program::at(env!("CARGO_BIN_EXE_ringonce"));
        let folder = Folder::new().unwrap();
        // Each process after a kill must be found where the last one was.
        let [grpc, webhooks] = [(); 2].map(|()| free_address().unwrap().to_string());
        let (seed, url) = (seed.to_string(), webhook_url(&webhooks));
        let flags = [
            ["--token-leeway", "2s"],
            ["--talk", "3s"],
            ["--seed", &seed],
            ["--webhook", &url],
        ];
        let sandbox = Sandbox::start(&program, &folder, flags.as_flattened()).await;
        let sandbox = sandbox.unwrap();
        let setup = ServeSetup {
            config: vec![QUICK.into()],
            store: Some(folder.store("calls.db")),
            listen: Some(grpc),
            webhook_listen: Some(webhooks),
            ..ServeSetup::default()
        };
        let setup = setup
            .set("livekit.url", sandbox.url())
            .set("dial.agent", "caller")
            // What waits for a person holds its contact until then, and others wait for that.
            .set("attempt.review_hold", "5s");
        let serve = Serve::start(&program, &folder, &setup).await.unwrap();
        Self {
            sandbox,
            serve,
            program,
            setup,
            folder,
        }
    }

    /// A connection that finds each process after the last one.
    pub(super) async fn channel(&self) -> Channel {
        self.serve.channel().await.unwrap()
    }

    pub(super) fn pid(&mut self) -> Option<u32> {
        self.serve.process().id()
    }

    pub(super) async fn kill(&mut self) {
        self.serve.process().kill().await.unwrap();
    }

    pub(super) async fn serve_again(&mut self) {
        let serve = Serve::start(&self.program, &self.folder, &self.setup).await;
        self.serve = serve.unwrap();
    }

    pub(super) fn write_ahead_log(&self) -> PathBuf {
        self.folder.file("calls.db-wal")
    }

    pub(super) fn file(&self) -> StoreFile {
        StoreFile::open(&self.folder.file("calls.db"))
    }

    /// Every attempt of the ledger.
    pub(super) async fn attempts(&self) -> Vec<proto::Attempt> {
        let channel = self.channel().await;
        let mut client = proto::placement_service_client::PlacementServiceClient::new(channel);
        let mut all = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = proto::ListAttemptsRequest {
                workspace: WORKSPACE.to_owned(),
                page_size: 1_000,
                page_token,
                ..proto::ListAttemptsRequest::default()
            };
            let page = client.list_attempts(request).await.unwrap().into_inner();
            all.extend(page.attempts);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return all;
            }
        }
    }

    /// Waits until each attempt is final; what waits for a person closes by itself, and soon.
    pub(super) async fn until_final(&self) -> Vec<proto::Attempt> {
        let end = Instant::now() + FINAL;
        loop {
            let known = self.attempts().await;
            let mut open = known.iter().filter(|attempt| !attempt.state().is_over());
            let Some(first) = open.next() else {
                return known;
            };
            assert!(
                Instant::now() < end,
                "P5: {} attempts are not final, {first:?}",
                open.count() + 1
            );
            sleep(ms(300)).await;
        }
    }

    pub(super) async fn until_no_rooms(&self) {
        let end = Instant::now() + ROOMS;
        loop {
            let rooms = self.sandbox.state().await.unwrap().rooms;
            if rooms.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "P3: rooms are left: {rooms:?}");
            sleep(ms(100)).await;
        }
    }

    /// Ends the last process in order, and gives what it wrote.
    pub(super) async fn end(&mut self) -> StoreFile {
        self.serve.process().terminate().unwrap();
        let ended = self.serve.process().wait().await.unwrap();
        assert!(ended.success(), "{ended}");
        self.file()
    }
}

/// What the processes warned of, where a test failed: with them goes their log.
impl Drop for Stand {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let log = std::fs::read_to_string(self.folder.file("serve.log")).unwrap_or_default();
        let telling = |line: &&str| !line.contains("\"INFO\"");
        let lines: Vec<&str> = log.lines().filter(telling).collect();
        for line in lines.iter().skip(lines.len().saturating_sub(WARNINGS)) {
            eprintln!("{line}");
        }
    }
}
