//! The program's own processes, on this host: a `sandbox` and a `serve`, to be looked at,
//! killed and started again.
//!
//! [`Program`] starts, [`Process`] is what runs, [`Sandbox`] and [`Serve`] know how to ask
//! the two. Whatever becomes of the owner, the processes end with it, and their [`Folder`]
//! goes too.

mod folder;
mod process;
mod sandbox;
mod serve;

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

pub use folder::Folder;
pub use process::{Process, Program};
pub use sandbox::{Sandbox, plain_http};
pub use serve::{Serve, ServeSetup, channel, free_address, webhook_url};

/// Why a process of ours could not be started, asked or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This program does not know where it lies.
    #[error("the path of this program is not known")]
    Program(#[source] io::Error),
    /// No temporary folder.
    #[error("no temporary folder can be made")]
    Folder(#[source] io::Error),
    /// A log cannot be written or read.
    #[error("the log {path} cannot be used")]
    Log {
        /// The log.
        path: PathBuf,
        /// Why.
        #[source]
        why: io::Error,
    },
    /// No address of this host is free.
    #[error("no address of this host is free")]
    Address(#[source] io::Error),
    /// A process cannot be started.
    #[error("the process `{what}` cannot be started")]
    Start {
        /// Its subcommand.
        what: String,
        /// Why.
        #[source]
        why: io::Error,
    },
    /// It ended before it was ready, or before it said what was waited for.
    #[error("the process `{what}` ended early ({status}); the end of its log:\n{log}")]
    Ended {
        /// Its subcommand.
        what: String,
        /// How.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// It did not say what was waited for in time.
    #[error("the process `{what}` did not say {awaited} in time; the end of its log:\n{log}")]
    Silent {
        /// Its subcommand.
        what: String,
        /// What was waited for.
        awaited: String,
        /// The last lines of its log.
        log: String,
    },
    /// It cannot be signalled or waited for.
    #[error("the process `{what}` cannot be ended")]
    End {
        /// Its subcommand.
        what: String,
        /// Why.
        #[source]
        why: io::Error,
    },
    /// The client for the sandbox cannot be made.
    #[error("the client for the sandbox cannot be made")]
    Tls(#[source] rustls::Error),
    /// The sandbox does not answer.
    #[error("the sandbox does not answer")]
    Http(#[source] reqwest::Error),
    /// The sandbox refuses a fault.
    #[error("the sandbox refuses the fault: {0}")]
    Fault(String),
    /// What a process said is not what it should.
    #[error("{0} cannot be read")]
    Unreadable(&'static str),
    /// The service cannot be reached.
    #[error("the service cannot be reached")]
    Channel(#[source] tonic::transport::Error),
}
