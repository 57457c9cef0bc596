//! The addresses on which `serve` listens.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

use super::stores::Unopened;
use crate::cli::output;
use crate::config::EXIT_CONFIG;

/// How many connections wait to be accepted, as tokio's own listeners let.
const BACKLOG: u32 = 1024;

/// An address of the configuration that is ours, and at which nobody can connect yet.
#[derive(Debug)]
pub(super) struct Address {
    socket: TcpSocket,
    at: SocketAddr,
    key: &'static str,
    flag: &'static str,
}

impl Address {
    /// Takes it. One that another process has may be free in a moment, and ends as a store that
    /// is held does; any other reason is one to change it.
    pub(super) fn take(
        at: SocketAddr,
        key: &'static str,
        flag: &'static str,
    ) -> Result<Self, Unopened> {
        let bound = || {
            let socket = match at {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            // One whose connections of before still end is free.
            socket.set_reuseaddr(true)?;
            socket.bind(at)?;
            Ok(socket)
        };
        match bound() {
            Ok(socket) => Ok(Self {
                socket,
                at,
                key,
                flag,
            }),
            Err(error) => Err(not_ours(error, at, key, flag)),
        }
    }

    /// Lets whoever connects in.
    pub(super) fn listen(self) -> Result<TcpListener, Unopened> {
        let Self { at, key, flag, .. } = self;
        (self.socket.listen(BACKLOG)).map_err(|error| not_ours(error, at, key, flag))
    }
}

fn not_ours(error: io::Error, at: SocketAddr, key: &str, flag: &str) -> Unopened {
    let (code, remedy) = remedy(&error, "serve");
    let text = format!("failed to listen on {at} ({key}); {remedy} by {flag} or {key}");
    Unopened::new(anyhow::Error::new(error).context(text), code)
}

/// What to do where an address cannot be listened on, and the exit code that says so; `program` is
/// the subcommand that wanted it. How another is named is for the caller to add.
pub(in crate::cli) fn remedy(error: &io::Error, program: &str) -> (u8, String) {
    if error.kind() == ErrorKind::AddrInUse {
        let remedy = format!(
            "another process has it, perhaps another `{program}`: end that, or name another"
        );
        (output::UNREACHABLE, remedy)
    } else {
        (EXIT_CONFIG, "name another".to_owned())
    }
}
