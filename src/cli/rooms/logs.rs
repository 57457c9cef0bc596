//! `ringonce rooms leaks --logs FILE…`: leaks from log files alone.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::text;
use crate::cli::output::{self, DONE, FAILED, Output};
use crate::telemetry::pairing::Pairing;

/// The longest line that is read in one piece, in bytes. Ours are shorter than a kilobyte;
/// what is longer is somebody else's, and its pieces are too.
const LINE_MAX: u64 = 64 * 1024;
/// How a file begins that gzip has written (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads every file, then says which rooms have no end.
///
/// # Errors
///
/// A file cannot be read, or is compressed; or the output cannot be written.
pub(super) fn leaks(
    files: &[PathBuf],
    older_than: Duration,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let mut pairing = Pairing::default();
    for file in files {
        if file == Path::new("-") {
            read(io::stdin().lock(), &mut pairing)
        } else {
            File::open(file)
                .map_err(anyhow::Error::from)
                .and_then(|file| read(BufReader::new(file), &mut pairing))
        }
        .with_context(|| format!("failed to read {}", file.display()))?;
    }
    let found = pairing.findings(older_than);
    output.print(&found, |found| {
        let leaked = found
            .leaked
            .iter()
            .map(|room| text::unpaired("LEAKED", room));
        let open = found.open.iter().map(|room| text::unpaired("OPEN", room));
        leaked.chain(open).collect::<Vec<_>>().join("\n")
    })?;
    output::note(&text::summary(&found));
    if !found.leaked.is_empty() {
        output::note(
            "hint: in the logs of a service that runs, a call that goes on looks the same; \
             --older-than 2h leaves out the younger ones, and without --logs the service is asked",
        );
    }
    if found.created + found.deleted == 0 {
        // Rooms are told at level info, so a log of warnings alone would look sound.
        output::note(
            "hint: no line tells of a room; are these logs of `ringonce serve` at log.level info?",
        );
    }
    Ok(ExitCode::from(if found.leaked.is_empty() {
        DONE
    } else {
        FAILED
    }))
}

fn read(mut from: impl BufRead, pairing: &mut Pairing) -> anyhow::Result<()> {
    if from.fill_buf()?.starts_with(&GZIP) {
        bail!("it is compressed; unpack it first: gzip -dc FILE | ringonce rooms leaks --logs -");
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        pairing.line(text.trim_end_matches(['\n', '\r']));
    }
}
