//! A sandbox and a server in a folder of their own. Whatever a test does, both are gone
//! after it.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ringonce");
const QUICK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/example/quick.toml");
/// No state takes longer than this to come about, on however busy a host.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a state.
const PACE: Duration = Duration::from_millis(10);

/// Looks until there is something to see.
pub(super) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        let mut pace = tokio::time::interval(PACE);
        loop {
            pace.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    let Ok(found) = tokio::time::timeout(PATIENCE, looking).await else {
        panic!("{what} did not come about");
    };
    found
}

/// The program, with nothing of this process's environment.
pub(super) fn program(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .env_clear()
        .env("HOME", home)
        .current_dir(home)
        .stdin(Stdio::null())
        .args(words);
    command
}

/// A process of ours, and its stderr in a file.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(super) fn start(mut command: Command, log: PathBuf) -> Self {
        let stderr = File::create(&log).unwrap();
        let child = command
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        Self { child, log }
    }

    /// What it has written to stderr.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The whole lines of its log that are JSON, in order.
    pub(super) fn events(&self) -> Vec<Value> {
        let log = self.log();
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// The first line of its log that has `value` under `key`.
    pub(super) async fn said(&mut self, key: &str, value: &str) -> Value {
        let what = format!("{key} = {value} in {}", self.log.display());
        until(&what, async || {
            let found = self.events().into_iter().find(|line| line[key] == value);
            let ended = self.child.try_wait().unwrap();
            assert!(
                found.is_some() || ended.is_none(),
                "it ended: {ended:?}\n{}",
                self.log()
            );
            found
        })
        .await
    }

    pub(super) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success());
    }

    /// Its exit code, once it has ended.
    pub(super) async fn ended(&mut self) -> i32 {
        let status = until("its end", async || self.child.try_wait().unwrap()).await;
        status.code().unwrap_or(-1)
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.log());
        }
    }
}

/// What a command came to.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// The one object on stdout.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The objects on stdout, one a line.
    pub(super) fn lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap();
        self.stdout.lines().map(parse).collect()
    }
}

/// A command that was begun; it is killed if nobody waits for its end.
#[derive(Debug)]
pub(super) struct Running(Option<Child>);

impl Running {
    pub(super) fn end(mut self) -> Ran {
        let child = self.0.take().unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// Ends a command that would go on for ever, and gives what it had printed.
    pub(super) fn interrupt(mut self) -> Ran {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait_with_output().unwrap().into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A sandbox, a server, and a user of both.
#[derive(Debug)]
pub(super) struct Stack {
    pub(super) serve: Process,
    sandbox: Option<Process>,
    platform: SocketAddr,
    server: String,
    /// Flags of `serve` beyond the usual ones.
    pub(super) flags: Vec<String>,
    starts: usize,
    http: reqwest::Client,
    folder: TempDir,
}

impl Stack {
    pub(super) async fn new() -> Self {
        Self::with(&[], &[]).await
    }

    /// With flags for the sandbox and for `serve`.
    pub(super) async fn with(sandbox: &[&str], serve: &[&str]) -> Self {
        let folder = in_memory();
        let (sandbox, platform) = start_sandbox(folder.path(), "127.0.0.1:0", sandbox).await;
        let flags: Vec<String> = serve.iter().map(|flag| (*flag).to_owned()).collect();
        let (serve, server) = start_serve(folder.path(), platform, &flags, 0).await;
        Self {
            serve,
            sandbox: Some(sandbox),
            platform,
            server,
            flags,
            starts: 1,
            http: client(),
            folder,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// The store, as the command line names it.
    pub(super) fn store(&self) -> String {
        store(self.folder())
    }

    /// The flags of a `serve` on this store.
    pub(super) fn serve_words(&self, more: &[&str]) -> Vec<String> {
        let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        serve_words(self.folder(), self.platform, &more)
    }

    /// Starts `serve` again, on the same store and another port.
    pub(super) async fn serve_again(&mut self) {
        let (serve, server) =
            start_serve(self.folder(), self.platform, &self.flags, self.starts).await;
        (self.serve, self.server) = (serve, server);
        self.starts += 1;
    }

    pub(super) fn stop_sandbox(&mut self) {
        self.sandbox = None;
    }

    /// A sandbox that knows nothing, at the same address.
    pub(super) async fn new_sandbox(&mut self) {
        let address = self.platform.to_string();
        let (sandbox, _) = start_sandbox(self.folder(), &address, &[]).await;
        self.sandbox = Some(sandbox);
    }

    /// The command `ringonce …` of a user of this server.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = program(self.folder(), words);
        command
            .env("RINGONCE_SERVER", &self.server)
            .env("RINGONCE_WORKSPACE", "w");
        command
    }

    pub(super) fn run(&self, words: &[&str]) -> Ran {
        self.command(words).output().unwrap().into()
    }

    /// `ringonce call …` with JSON on stdout, to its end.
    pub(super) fn call(&self, words: &str) -> Ran {
        self.begin(words).end()
    }

    /// `ringonce call …` with JSON on stdout, still running.
    pub(super) fn begin(&self, words: &str) -> Running {
        let words = words.split(' ').filter(|word| !word.is_empty());
        let mut command = self.command(&["call"]);
        command
            .args(words)
            .args(["--output", "json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Running(Some(command.spawn().unwrap()))
    }

    /// The attempt as it is now.
    pub(super) fn get(&self, attempt: &str) -> Value {
        self.call(&format!("get --attempt {attempt}")).json()
    }

    /// The attempt, once it looks as wanted.
    pub(super) async fn attempt(&self, id: &str, looks: impl Fn(&Value) -> bool) -> Value {
        until(&format!("that look of {id}"), async || {
            Some(self.get(id)).filter(&looks)
        })
        .await
    }

    /// What the sandbox counted.
    pub(super) async fn state(&self) -> Value {
        let url = format!("http://{}/sandbox/state", self.platform);
        let answer = self.http.get(url).send().await.unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }

    /// What the sandbox counted, once it looks as wanted.
    pub(super) async fn platform(&self, what: &str, looks: impl Fn(&Value) -> bool) -> Value {
        until(what, async || Some(self.state().await).filter(&looks)).await
    }

    /// Waits until a phone rings.
    pub(super) async fn ringing(&self) {
        self.platform("a ringing phone", |state| {
            let calls = state["sip_calls"].as_array().unwrap();
            calls.iter().any(|call| call["status"] == "ringing")
        })
        .await;
    }

    /// Asserts how many SIP calls there were, one a session.
    pub(super) async fn assert_sip_calls(&self, count: usize) {
        let state = self.state().await;
        let calls = state["sip_calls"].as_array().unwrap();
        assert_eq!(calls.len(), count, "{calls:?}");
        assert!(calls.iter().all(|call| call["count"] == 1), "{calls:?}");
    }

    pub(super) async fn throw(&self, fault: &Value) {
        let url = format!("http://{}/sandbox/faults", self.platform);
        let sent = self.http.post(url).body(fault.to_string()).send().await;
        assert_eq!(sent.unwrap().status(), 200);
    }
}

/// A folder in memory where the host has one: a test that waits for a phone does not wait
/// for a busy disk too, on which each commit may take seconds.
fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
    made.unwrap()
}

fn store(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("calls.db").display())
}

fn serve_words(folder: &Path, platform: SocketAddr, more: &[String]) -> Vec<String> {
    let mut words: Vec<String> = ["serve", "--config", QUICK, "--listen", "127.0.0.1:0"]
        .map(str::to_owned)
        .into();
    words.extend(["--store".to_owned(), store(folder)]);
    if !more.iter().any(|word| word == "--webhook-listen") {
        words.extend(["--webhook-listen", "127.0.0.1:0"].map(str::to_owned));
    }
    for set in [
        "dial.agent=caller".to_owned(),
        format!("livekit.url=http://{platform}"),
    ] {
        words.extend(["--set".to_owned(), set]);
    }
    words.extend_from_slice(more);
    words
}

async fn start_sandbox(folder: &Path, at: &str, more: &[&str]) -> (Process, SocketAddr) {
    let words = ["sandbox", "--listen", at, "--token-leeway", "2s"];
    let command = program(folder, &[words.as_slice(), more].concat());
    let mut sandbox = Process::start(command, folder.join("sandbox.log"));
    let ready = sandbox.said("ready", "sandbox").await;
    let address = ready["listen"].as_str().unwrap().parse().unwrap();
    (sandbox, address)
}

async fn start_serve(
    folder: &Path,
    platform: SocketAddr,
    more: &[String],
    start: usize,
) -> (Process, String) {
    let words = serve_words(folder, platform, more);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let log = folder.join(format!("serve-{start}.log"));
    let mut serve = Process::start(program(folder, &words), log);
    let ready = serve.said("event", "ready").await;
    let server = format!("http://{}", ready["grpc"].as_str().unwrap());
    (serve, server)
}

fn client() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        // A test blocks while it runs a command, and keeps no connection over that.
        .pool_max_idle_per_host(0)
        .build()
        .unwrap()
}
