//! What is in a file that a configuration names, or that is one.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use secrecy::zeroize::Zeroizing;

use super::fault::Wrong;
use crate::runtime::files;

/// The longest file, in bytes: forty times the defaults with all their comments, and five times
/// all public certificate authorities. A wrong path may lead to a file of any size.
const MOST: usize = 1 << 20;

/// Its bytes, wiped from memory when they are dropped.
///
/// # Errors
///
/// Why it cannot be read, as a clause without its path.
pub(super) fn of(path: &Path) -> Result<Zeroizing<Vec<u8>>, Wrong> {
    within(path, files::PATIENCE)
}

/// Its text.
///
/// # Errors
///
/// As [`of`]; and if it is no UTF-8.
pub(super) fn text_of(path: &Path) -> Result<Zeroizing<String>, Wrong> {
    let bytes = of(path)?;
    let text = str::from_utf8(&bytes).map_err(|_| {
        let what = "cannot be read: it is no text in UTF-8";
        Wrong::new(what, "name a file of text")
    })?;
    Ok(Zeroizing::new(text.to_owned()))
}

fn within(path: &Path, wait: Duration) -> Result<Zeroizing<Vec<u8>>, Wrong> {
    let read = files::open(path).and_then(|file| files::read(file, MOST, wait));
    read.map_err(|error| {
        let remedy = if error.kind() == ErrorKind::TimedOut {
            "see to it that somebody does, as `<(…)` of a shell, or name a file"
        } else {
            "name a file that this process may read"
        };
        Wrong::new(format!("cannot be read: {error}"), remedy)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let pipe = Command::new("mkfifo").arg(file("pipe")).status();
        assert!(pipe.unwrap().success());
        std::fs::write(file("long"), vec![b' '; MOST + 1]).unwrap();
        std::fs::write(file("bytes"), [0xff]).unwrap();
        for (path, what, remedy) in [
            (
                file("pipe"),
                "is a pipe, and it was waited 20ms for",
                "that somebody does",
            ),
            (file("long"), "more than 1048576 bytes", "name a file"),
            (file("none"), "No such file", "name a file"),
            ("/dev/zero".into(), "more than", "name a file"),
        ] {
            let wrong = within(&path, Duration::from_millis(20)).unwrap_err();
            assert!(wrong.what.starts_with("cannot be read: "), "{wrong:?}");
            assert!(wrong.what.contains(what), "{wrong:?}");
            assert!(wrong.remedy.contains(remedy), "{wrong:?}");
        }
        let wrong = text_of(&file("bytes")).unwrap_err();
        assert!(wrong.what.contains("no text in UTF-8"), "{wrong:?}");
        assert_eq!(text_of(Path::new("/dev/null")).unwrap().as_str(), "");
    }
}
