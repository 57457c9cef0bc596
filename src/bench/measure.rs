//! What the kernel says of a process, and of the disk.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::time::Instant;

use super::report::share;

/// What Linux calls `USER_HZ`: the unit of the times in `/proc/PID/stat`, the same on every
/// architecture that we build for.
const TICKS_PER_SECOND: u64 = 100;
/// A page of the store's log: what a small commit writes.
const PAGE: usize = 4096;

/// The processor time that a process has used, its threads together, in the kernel and
/// outside (proc(5), `/proc/PID/stat`, fields 14 and 15).
pub(super) fn processor_time(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in the second field may have blanks and brackets in it.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = |n: usize| {
        let text = rest.split_ascii_whitespace().nth(n - 3)?;
        text.parse::<u64>().ok()
    };
    match (field(14), field(15)) {
        (Some(user), Some(system)) => Ok(Duration::from_millis(
            (user + system) * 1000 / TICKS_PER_SECOND,
        )),
        (None | Some(_), _) => Err(unreadable("/proc/PID/stat")),
    }
}

/// What a process holds in memory, in kB (`VmRSS` of proc(5), `/proc/PID/status`).
pub(super) fn resident(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|kilobytes| kilobytes.parse().ok())
        .ok_or_else(|| unreadable("/proc/PID/status"))
}

fn unreadable(what: &str) -> io::Error {
    io::Error::other(format!(
        "{what} cannot be read: the bench measures by Linux's /proc"
    ))
}

/// Raises this process's limit of open files as far as it may; what it starts inherits it.
/// How many that are.
pub(super) fn raise_files() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if setrlimit(Resource::Nofile, limit).is_err() {
        tracing::debug!("the limit of open files stays as it is");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The time of one `fdatasync` after one page was appended, in milliseconds: the median and
/// the 99th of a hundred, on the disk of `folder`.
pub(super) fn sync_times(folder: &Path) -> io::Result<(f64, f64)> {
    let path = folder.join("sync.probe");
    let mut file = File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..100 {
        file.write_all(&[7; PAGE])?;
        let began = Instant::now();
        file.sync_data()?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    fs::remove_file(&path)?;
    Ok((share(&times, 0.5), share(&times, 0.99)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        let pid = std::process::id();
        assert!(resident(pid).unwrap() > 100);
        assert!(processor_time(pid).unwrap() < Duration::from_hours(1));
    }
}
