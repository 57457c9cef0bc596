//! A process of this program, with its stderr in a file.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

use super::Error;

/// No process takes longer to say something, on however busy a host.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a log. A pipe would need no looks, but whoever reads it too slowly
/// would hold up the process, and its last words would be lost with it.
const PACE: Duration = Duration::from_millis(5);
/// How many lines of a log an error shows.
const LAST_LINES: usize = 12;

/// This program, or another build of it.
#[derive(Debug, Clone)]
pub struct Program(PathBuf);

impl Program {
    /// The program that runs.
    ///
    /// # Errors
    ///
    /// [`Error::Program`].
    pub fn this() -> Result<Self, Error> {
        std::env::current_exe().map(Self).map_err(Error::Program)
    }

    /// The program at `path`, as a test names the one that it was built with.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Starts it with `words`, in `home`; what it writes to stderr is added to the file
    /// `log`. It inherits nothing of the environment: a variable that names a real platform
    /// must not reach what is started to try things out.
    ///
    /// # Errors
    ///
    /// [`Error::Log`] or [`Error::Start`].
    pub fn start(&self, home: &Path, words: &[String], log: &Path) -> Result<Process, Error> {
        let in_log = |why| Error::Log {
            path: log.to_owned(),
            why,
        };
        let stderr = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .map_err(in_log)?;
        let begin = stderr.metadata().map_err(in_log)?.len();
        let what = words.first().cloned().unwrap_or_default();
        let started = Command::new(&self.0)
            .args(words)
            .env_clear()
            .env("HOME", home)
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn();
        match started {
            Ok(child) => Ok(Process {
                child,
                what,
                log: log.to_owned(),
                begin,
            }),
            Err(why) => Err(Error::Start { what, why }),
        }
    }
}

/// A running process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    what: String,
    log: PathBuf,
    /// Where in the log its own lines begin.
    begin: u64,
}

impl Process {
    /// Its id; `None` once its end was seen.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The file of its log.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// What it has written to stderr so far.
    ///
    /// # Errors
    ///
    /// [`Error::Log`].
    pub fn written(&self) -> Result<String, Error> {
        let mut bytes = Vec::new();
        let read = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.begin))?;
            file.read_to_end(&mut bytes)
        });
        match read {
            Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(why) => Err(Error::Log {
                path: self.log.clone(),
                why,
            }),
        }
    }

    /// The whole lines of its log that are JSON, in order.
    ///
    /// # Errors
    ///
    /// [`Error::Log`].
    pub fn events(&self) -> Result<Vec<Value>, Error> {
        let written = self.written()?;
        let whole = written.rsplit_once('\n').map_or("", |(whole, _)| whole);
        Ok(whole
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    /// Waits for the first line of its log that has `value` under `key`.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`] or [`Error::Silent`], with the end of its log.
    pub async fn said(&mut self, key: &str, value: &str) -> Result<Value, Error> {
        let looking = async {
            let mut pace = tokio::time::interval(PACE);
            loop {
                pace.tick().await;
                // Asked before the log is read: what it said last is in the log by then.
                let ended = self.child.try_wait();
                let found = self.events()?.into_iter().find(|line| line[key] == value);
                match (found, ended) {
                    (Some(line), _) => return Ok(line),
                    (None, Ok(None)) => {}
                    (None, Ok(Some(status))) => {
                        return Err(Error::Ended {
                            what: self.what.clone(),
                            status,
                            log: self.last_lines(),
                        });
                    }
                    (None, Err(why)) => return Err(self.endless(why)),
                }
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(said) => said,
            Err(_) => Err(Error::Silent {
                what: self.what.clone(),
                awaited: format!("{key} = {value}"),
                log: self.last_lines(),
            }),
        }
    }

    /// `kill -9`, and its end.
    ///
    /// # Errors
    ///
    /// [`Error::End`].
    pub async fn kill(&mut self) -> Result<(), Error> {
        self.child.kill().await.map_err(|why| self.endless(why))
    }

    /// SIGTERM: it may end in order. One that has ended needs none.
    ///
    /// # Errors
    ///
    /// [`Error::End`].
    pub fn terminate(&self) -> Result<(), Error> {
        let id = self.id().and_then(|id| i32::try_from(id).ok());
        let Some(pid) = id.and_then(Pid::from_raw) else {
            return Ok(());
        };
        kill_process(pid, Signal::TERM).map_err(|why| self.endless(why.into()))
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// [`Error::End`].
    pub async fn wait(&mut self) -> Result<ExitStatus, Error> {
        self.child.wait().await.map_err(|why| self.endless(why))
    }

    fn endless(&self, why: std::io::Error) -> Error {
        Error::End {
            what: self.what.clone(),
            why,
        }
    }

    fn last_lines(&self) -> String {
        let written = self.written().unwrap_or_default();
        let lines: Vec<&str> = written.lines().collect();
        let from = lines.len().saturating_sub(LAST_LINES);
        lines.get(from..).unwrap_or_default().join("\n")
    }
}
