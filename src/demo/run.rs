//! The demo from its first process to its last count.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::naive::Naive;
use super::ours::Ours;
use super::play::play;
use super::queue::Worker;
use super::report::Report;
use super::rooms::Logged;
use super::screen::{Screen, Shown};
use super::script::{self, CAPACITY, Call};
use super::side::{Late, Side, View};
use super::times;
use crate::config::{Config, Faults};
use crate::lab::stack::{self, Folder, Program, Sandbox, ServeSetup};
use crate::runtime::clock::{Clock, SystemClock};
use crate::runtime::ids::RandomIds;
use crate::runtime::tasks::Tasks;

/// Beyond its horizon a call is settled within this time, if it can be: to say that a room is
/// gone LiveKit takes more than 3 s.
const SETTLING: Duration = Duration::from_secs(4);
/// LiveKit closes a room one second after the person has left: what is there for longer stays.
const STILL: Duration = Duration::from_millis(2_500);

/// What is played, and how it is shown.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only the naive side.
    pub naive: bool,
    /// The server's log goes there.
    pub log: Option<PathBuf>,
    /// How it is shown meanwhile.
    pub shown: Shown,
}

/// Why the demo could not be played.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A process.
    #[error(transparent)]
    Process(#[from] stack::Error),
    /// A scene.
    #[error(transparent)]
    Late(#[from] Late),
    /// The demo's own configuration.
    #[error(transparent)]
    Config(#[from] Faults),
    /// A file cannot be written or read.
    #[error("{path} cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        why: std::io::Error,
    },
    /// The screen cannot be written to.
    #[error("failed to write to stdout")]
    Screen(#[source] std::io::Error),
    /// A signal said so.
    #[error("interrupted")]
    Interrupted,
}

/// Plays the demo with the processes of `program`.
///
/// # Errors
///
/// If it could not be played; broken promises are no error but in the report.
pub async fn run(program: &Program, options: &Options) -> Result<Report, Error> {
    let tasks = Tasks::default();
    let played = tokio::select! {
        biased;
        () = interrupted() => Err(Error::Interrupted),
        played = staged(program, options, &tasks) => played,
    };
    tasks.abort_all();
    played
}

/// SIGINT or SIGTERM: the processes that were started must not outlive this one.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut term) => drop(term.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = terminated => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

async fn staged(program: &Program, options: &Options, tasks: &Tasks) -> Result<Report, Error> {
    let stage = Stage::set(program, tasks)?;
    let naive = stage.naive().await?;
    if options.naive {
        let mut screen = Screen::begin(options.shown, &stage.config, None, &naive)?;
        let played = stage.play_naive(&naive);
        let report = screen.while_playing(played).await?;
        screen.end(&report)?;
        return Ok(report);
    }
    let log = match &options.log {
        // Relative to where the user is, which is not where the server runs.
        Some(path) => std::path::absolute(path).map_err(|why| file(path, why))?,
        None => stage.folder.file("serve.log"),
    };
    File::create(&log).map_err(|why| file(&log, why))?;
    let (server, ours) = stage.ours(&log).await?;
    let mut screen = Screen::begin(options.shown, &stage.config, Some(&ours), &naive)?;
    let played = async {
        let both = (stage.play_ours(&ours, &log), stage.play_naive(&naive));
        futures_util::try_join!(both.0, both.1)
    };
    let (report, beside) = screen.while_playing(played).await?;
    server.end().await?;
    let report = Report {
        naive: Some(Box::new(beside)),
        ..report
    };
    screen.end(&report)?;
    Ok(report)
}

/// What both sides stand on.
struct Stage {
    program: Program,
    folder: Arc<Folder>,
    config: Config,
    calls: Arc<Vec<Call>>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    begin: Instant,
}

impl Stage {
    fn set(program: &Program, tasks: &Tasks) -> Result<Self, Error> {
        Ok(Self {
            program: program.clone(),
            folder: Arc::new(Folder::in_memory()?),
            config: times::config()?,
            calls: Arc::new(script::calls()),
            clock: Arc::new(SystemClock),
            tasks: tasks.clone(),
            begin: Instant::now(),
        })
    }

    /// A platform of its own for each side: what one does must not count for the other. Its
    /// webhooks go to `webhook`, if that side takes any.
    async fn sandbox(&self, log: &str, webhook: Option<&str>) -> Result<Arc<Sandbox>, Error> {
        let (leeway, talk) = (show(self.config.livekit.token_leeway), show(times::TALK));
        let capacity = CAPACITY.to_string();
        let mut flags = vec![
            "--token-leeway",
            &leeway,
            "--talk",
            &talk,
            "--capacity",
            &capacity,
        ];
        flags.extend(webhook.into_iter().flat_map(|url| ["--webhook", url]));
        let (home, log) = (self.folder.path(), self.folder.file(log));
        let sandbox = Sandbox::listen(&self.program, home, "127.0.0.1:0", &flags, &log).await?;
        Ok(Arc::new(sandbox))
    }

    async fn naive(&self) -> Result<Side, Error> {
        let sandbox = self.sandbox("sandbox-naive.log", None).await?;
        let naive = Naive::start(
            &sandbox.url(),
            self.config.livekit.credentials()?,
            Arc::clone(&self.clock),
            Arc::new(RandomIds::from_os()),
            self.config.dial.ringing_timeout,
        )
        .await?;
        self.side(Arc::new(naive), sandbox).await
    }

    async fn ours(&self, log: &Path) -> Result<(Arc<Ours>, Side), Error> {
        let webhooks = stack::free_address()?.to_string();
        let url = stack::webhook_url(&webhooks);
        let sandbox = self.sandbox("sandbox.log", Some(&url)).await?;
        let config = self.folder.file("demo.toml");
        fs::write(&config, times::CONFIG).map_err(|why| file(&config, why))?;
        let setup = ServeSetup {
            config: vec![config],
            store: Some(self.folder.store("calls.db")),
            log: Some(log.to_owned()),
            webhook_listen: Some(webhooks),
            ..ServeSetup::default()
        };
        let setup = setup.set("livekit.url", sandbox.url());
        let (program, folder) = (self.program.clone(), Arc::clone(&self.folder));
        let server = Ours::start(program, folder, setup, self.clock.as_ref()).await?;
        let server = Arc::new(server);
        let side = self.side(server.clone(), sandbox).await?;
        Ok((server, side))
    }

    async fn side(&self, worker: Arc<dyn Worker>, sandbox: Arc<Sandbox>) -> Result<Side, Error> {
        let calls = Arc::clone(&self.calls);
        Ok(Side::open(worker, sandbox, calls, &self.tasks).await?)
    }

    /// Plays, and waits until nothing moves any more: every call is settled, or uncertain
    /// for good, every room is gone and said to be. What can be settled is so soon after its
    /// horizon.
    async fn play_ours(&self, side: &Side, log: &Path) -> Result<Report, Error> {
        play(side).await?;
        let horizon = times::horizon(&self.config) + SETTLING;
        let still = |view: &View| {
            let now = self.clock.now();
            side.calls.iter().all(|call| {
                let seen = view.seen(call);
                let past = seen.dialed.is_some_and(|at| now > at.plus(horizon));
                seen.over || (seen.uncertain && past)
            })
        };
        side.say("waiting until nothing is open any more");
        side.until("the end of every call", still).await?;
        let logged = || {
            let text = fs::read_to_string(log);
            text.map(|text| Logged::of(&text)).unwrap_or_default()
        };
        // A room that stays is no reason to wait for ever: it is counted.
        let gone = |view: &View| view.platform.rooms.is_empty() && logged().open() == 0;
        let view = match side.until("the end of every room", gone).await {
            Ok(view) => view,
            Err(Late(_)) => side.view(),
        };
        let report = Report::of(&side.calls, &view, |call| side.deliveries(call));
        side.say("done");
        let report = report.with_log(&side.calls, &view, &logged());
        Ok(report.after(self.begin.elapsed()))
    }

    /// Plays, and waits until no phone rings and no room closes any more.
    async fn play_naive(&self, side: &Side) -> Result<Report, Error> {
        play(side).await?;
        let silent = |view: &View| !side.calls.iter().any(|call| view.lives(call));
        let mut view = side.until("the end of every call", silent).await?;
        loop {
            let rooms = view.platform.rooms.len();
            let other = side.until("another room", |view| view.platform.rooms.len() != rooms);
            match tokio::time::timeout(STILL, other).await {
                Ok(changed) => view = changed?,
                Err(_) => break,
            }
        }
        let report = Report::of(&side.calls, &side.view(), |call| side.deliveries(call));
        let report = report.preventing(side.worker.prevented());
        Ok(report.after(self.begin.elapsed()))
    }
}

fn show(span: Duration) -> String {
    humantime::format_duration(span).to_string()
}

fn file(path: &Path, why: std::io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        why,
    }
}
