//! Files that a person names, read whole: with an end to their length, and to the wait for them.
//!
//! Such a path may lead to a pipe, and should: a shell hands a secret over by one, as in
//! `--config <(vault read …)`. But to open a pipe is to wait until somebody writes into it, and
//! to read it until they close it: for ever, in a process that is not there for its signals
//! yet. So nothing here blocks but a poll that has an end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use secrecy::zeroize::Zeroizing;
use tokio::time::Instant;

/// How long a pipe may take until its end. What a shell writes is there at once; a program
/// that asks a vault for it takes seconds.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Opens what stands at `path`, without a wait for whoever writes into a pipe.
///
/// # Errors
///
/// Those of the file system.
pub fn open(path: &Path) -> io::Result<File> {
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, how, Mode::empty())?))
}

/// All of `file`, which [`open`] has opened, and which is wiped from memory when it is dropped.
///
/// # Errors
///
/// [`io::ErrorKind::FileTooLarge`] if it has more than `most` bytes, [`io::ErrorKind::TimedOut`]
/// if it is a pipe without an end after `wait`; and those of the file system.
pub fn read(file: File, most: usize, wait: Duration) -> io::Result<Zeroizing<Vec<u8>>> {
    let until = Instant::now() + wait;
    // Room for all of it at once, so that a secret is not copied about as it grows.
    let mut bytes = Zeroizing::new(Vec::with_capacity(most.saturating_add(1)));
    let mut file = file.take(most.saturating_add(1) as u64);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if !is_ready(file.get_ref(), left)? {
            let text = format!(
                "it is a pipe, and it was waited {wait:?} for somebody to write into it and to \
                 close it"
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        match file.read_to_end(&mut bytes) {
            Ok(_) if bytes.len() > most => {
                let text = format!("it has more than {most} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
            }
            Ok(_) => return Ok(bytes),
            // What was there is kept in `bytes`, and more is to come.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until `file` can be read; whether it can. A plain file always can. A pipe can once
/// something is in it, or once somebody had it open for writing and nobody has any more.
fn is_ready(file: &File, wait: Duration) -> io::Result<bool> {
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    Ok(poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&wait))? > 0)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;
    use std::process::Command;

    use super::*;

    const MOMENT: Duration = Duration::from_millis(20);

    fn content(path: &Path, wait: Duration) -> io::Result<Vec<u8>> {
        read(open(path)?, 16, wait).map(|bytes| bytes.to_vec())
    }

    fn kind(path: &Path) -> io::ErrorKind {
        content(path, MOMENT).unwrap_err().kind()
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for length in [0, 1, 16] {
            std::fs::write(&path, vec![7; length]).unwrap();
            assert_eq!(content(&path, Duration::ZERO).unwrap(), vec![7; length]);
        }
        std::fs::write(&path, [7; 17]).unwrap();
        assert_eq!(kind(&path), io::ErrorKind::FileTooLarge);
        assert_eq!(kind(Path::new("/dev/zero")), io::ErrorKind::FileTooLarge);
        assert_eq!(kind(folder.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.path().join("none")), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_not_waited_for_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(kind(&path), io::ErrorKind::TimedOut, "nobody writes");
        // Opened for both, which waits for nobody.
        let both = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .unwrap()
        };
        let mut writer = both();
        assert_eq!(kind(&path), io::ErrorKind::TimedOut, "nothing is written");
        writer.write_all(b"half").unwrap();
        assert_eq!(kind(&path), io::ErrorKind::TimedOut, "it is not closed");
        drop(writer);

        let reader = open(&path).unwrap();
        let mut writer = both();
        writer.write_all(b"whole").unwrap();
        drop(writer);
        let bytes = read(reader, 16, PATIENCE).unwrap();
        assert_eq!(bytes.as_slice(), b"whole");
    }
}
