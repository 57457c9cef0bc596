//! Phone numbers: found by a keyed hash, kept only sealed.
//!
//! A number is looked up by [`Keys::number_key`] and told apart by [`Keys::fingerprint`]
//! (HMAC-SHA256: without the key nobody can try all numbers), and kept, while it is needed,
//! as [`Keys::seal`] makes it (ChaCha20-Poly1305). The keys are 64 random bytes, the first
//! half for the hashes and the second for the seal; a store remembers [`Keys::print`], since
//! under other keys it would find nobody and might ring twice.
//!
//! Nothing here prints a key or a number, in an error neither.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use hmac::{Hmac, Mac};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretBox};
use sha2::Sha256;

use crate::runtime::files;
use crate::runtime::ids::Ids;

/// Bytes of a key file, before base64.
const KEYS: usize = 64;
/// The first byte of what is sealed: its format.
const FORMAT: u8 = 1;
/// Bytes of a key id; of a nonce (RFC 8439, section 2.3).
const ID: usize = 4;
const NONCE: usize = 12;
const HEAD: usize = 1 + ID + NONCE;

/// Why keys cannot be used, and the remedy. No key in it.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not base64 of 64 bytes.
    #[error(
        "the key is not base64 of 64 bytes; make one with `head -c 64 /dev/urandom | base64 -w0`"
    )]
    Form,
    /// The key file is not base64 of 64 bytes.
    #[error(
        "the key file {0} holds no keys: it is not base64 of 64 bytes. If its store was ever \
         served, restore it from a backup, since nothing else opens its numbers; else remove it, \
         and `ringonce serve` makes one"
    )]
    File(PathBuf),
    /// Others may read the key file.
    #[error("the key file {0} can be read by everybody; run `chmod 600` on it")]
    Exposed(PathBuf),
    /// It is a pipe that others may read.
    #[error(
        "the key file {0} is a pipe that everybody can read from; make it by `mkfifo -m 600`, or \
         hand the keys over by `<(…)` of a shell"
    )]
    ExposedPipe(PathBuf),
    /// It is a pipe without an end.
    #[error(
        "the key file {path} is a pipe, and it was waited {waited:?} for somebody to write the \
         keys into it and to close it; see to it that somebody does, or give the path of a file \
         by store.key_file"
    )]
    Silent {
        /// The pipe.
        path: PathBuf,
        /// For how long.
        waited: Duration,
    },
    /// It is a folder or a device.
    #[error(
        "the key file {0} is a folder or a device; give the path of a file by store.key_file, or of \
         one that does not exist yet"
    )]
    NotAFile(PathBuf),
    /// The file system refuses.
    #[error(
        "the key file {path} can be neither read nor made: {why}; make it readable for this user"
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

/// Why something sealed cannot be opened. It does not say what was in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is too short, or of a format that this program does not know.
    #[error("what was sealed has an unknown format")]
    Format,
    /// It was sealed under keys with another id.
    #[error("it was sealed under other keys")]
    OtherKeys,
    /// It was changed, or sealed for another place.
    #[error("what was sealed was changed, or belongs elsewhere")]
    Changed,
}

/// The keys of one installation.
pub struct Keys {
    hash: SecretBox<[u8; 32]>,
    seal: SecretBox<[u8; 32]>,
    id: [u8; ID],
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("id", &hex(&self.id))
            .finish_non_exhaustive()
    }
}

impl Keys {
    /// From the base64 text of 64 bytes, as configuration holds it.
    ///
    /// # Errors
    ///
    /// [`KeyError::Form`] for any other text.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let bytes = STANDARD.decode(text.trim()).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| KeyError::Form)?;
        let bytes: &[u8; KEYS] = bytes.as_slice().try_into().map_err(|_| KeyError::Form)?;
        Ok(Self::from_bytes(bytes))
    }

    /// New random keys, kept nowhere: for tests and the sandbox.
    #[must_use]
    pub fn random(ids: &dyn Ids) -> Self {
        let mut bytes = Zeroizing::new([0; KEYS]);
        ids.fill(bytes.as_mut_slice());
        Self::from_bytes(&bytes)
    }

    /// From the file at `path`; where it is missing it is made, for its owner only, and on
    /// the disk before this returns. `true` if it was made: that is worth saying, since the
    /// file belongs into the backup.
    ///
    /// # Errors
    ///
    /// [`KeyError::NotAFile`] if it is something else, [`KeyError::Exposed`] or
    /// [`KeyError::ExposedPipe`] if everybody may read it, [`KeyError::File`] if it holds no keys,
    /// [`KeyError::Silent`] if it is a pipe that has no end after [`files::PATIENCE`],
    /// [`KeyError::Io`] if it can be neither read nor made.
    pub fn from_file(path: &Path, ids: &dyn Ids) -> Result<(Self, bool), KeyError> {
        Self::from_file_in(path, ids, files::PATIENCE)
    }

    fn from_file_in(path: &Path, ids: &dyn Ids, wait: Duration) -> Result<(Self, bool), KeyError> {
        let failed = |why| KeyError::Io {
            path: path.to_owned(),
            why,
        };
        match files::open(path) {
            Ok(file) => Self::read(path, file, wait).map(|keys| (keys, false)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(path, ids).map_err(failed)?;
                // Read back, since another process may have been the first to make it.
                let file = files::open(path).map_err(failed)?;
                Self::read(path, file, wait).map(|keys| (keys, true))
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn read(path: &Path, file: File, wait: Duration) -> Result<Self, KeyError> {
        let failed = |why| KeyError::Io {
            path: path.to_owned(),
            why,
        };
        let meta = file.metadata().map_err(failed)?;
        // A shell may hand the keys over by a pipe.
        if !meta.is_file() && !meta.file_type().is_fifo() {
            return Err(KeyError::NotAFile(path.to_owned()));
        }
        if meta.mode() & 0o007 != 0 {
            let path = path.to_owned();
            return Err(if meta.is_file() {
                KeyError::Exposed(path)
            } else {
                KeyError::ExposedPipe(path)
            });
        }
        // Four times what keys are.
        let bytes = files::read(file, KEYS * 4, wait).map_err(|why| {
            if why.kind() == io::ErrorKind::TimedOut {
                let (path, waited) = (path.to_owned(), wait);
                KeyError::Silent { path, waited }
            } else if why.kind() == io::ErrorKind::FileTooLarge {
                KeyError::File(path.to_owned())
            } else {
                failed(why)
            }
        })?;
        str::from_utf8(&bytes)
            .ok()
            .and_then(|text| Self::from_text(text).ok())
            .ok_or_else(|| KeyError::File(path.to_owned()))
    }

    fn from_bytes(bytes: &[u8; KEYS]) -> Self {
        let half = |from: usize| {
            SecretBox::init_with_mut(|half: &mut [u8; 32]| {
                half.copy_from_slice(&bytes[from..from + 32]);
            })
        };
        let mut keys = Self {
            hash: half(0),
            seal: half(32),
            id: [0; ID],
        };
        let id = keys.hmac("id", &[]);
        keys.id.copy_from_slice(&id[..ID]);
        keys
    }

    /// What the store remembers of these keys: another print, other keys.
    #[must_use]
    pub fn print(&self) -> String {
        let mut all = Zeroizing::new([0; 32]);
        all.copy_from_slice(self.seal.expose_secret());
        hex(&self.hmac("print", &[all.as_slice()])[..16])
    }

    /// Under which a number is known inside `workspace`: the key's id, a dash and 32 hex
    /// digits. `e164` as `+12025550100`.
    #[must_use]
    pub fn number_key(&self, workspace: &str, e164: &str) -> String {
        let hash = self.hmac("number", &[workspace.as_bytes(), e164.as_bytes()]);
        format!("{}-{}", hex(&self.id), hex(&hash[..16]))
    }

    /// Tells equal requests from others without keeping what they said: a version, the key's
    /// id and 64 hex digits.
    #[must_use]
    pub fn fingerprint(&self, bytes: &[u8]) -> String {
        let hash = self.hmac("fingerprint", &[bytes]);
        format!("1-{}-{}", hex(&self.id), hex(&hash))
    }

    /// Seals `plain` for the place that `aad` names (a record's key): it opens nowhere else.
    /// Nonces are random, which is safe for some thousand million seals under one key.
    ///
    /// # Panics
    ///
    /// Never for what fits into memory: the cipher's limit is 256 GiB.
    #[must_use]
    pub fn seal(&self, aad: &str, plain: &[u8], ids: &dyn Ids) -> Vec<u8> {
        let mut sealed = vec![FORMAT];
        sealed.extend(self.id);
        let mut nonce = [0; NONCE];
        ids.fill(&mut nonce);
        sealed.extend(nonce);
        let payload = Payload {
            msg: plain,
            aad: aad.as_bytes(),
        };
        let cipher = (self.cipher().encrypt(Nonce::from_slice(&nonce), payload))
            .expect("a number is shorter than the cipher's limit of 256 GiB");
        sealed.extend(cipher);
        sealed
    }

    /// What was sealed for `aad`.
    ///
    /// # Errors
    ///
    /// If it was not sealed by these keys for this place, or was changed since.
    pub fn open(&self, aad: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let (head, cipher) = sealed.split_at_checked(HEAD).ok_or(OpenError::Format)?;
        if head[0] != FORMAT {
            return Err(OpenError::Format);
        }
        if head[1..=ID] != self.id {
            return Err(OpenError::OtherKeys);
        }
        let payload = Payload {
            msg: cipher,
            aad: aad.as_bytes(),
        };
        self.cipher()
            .decrypt(Nonce::from_slice(&head[1 + ID..]), payload)
            .map(Zeroizing::new)
            .map_err(|_| OpenError::Changed)
    }

    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new(self.seal.expose_secret().into())
    }

    /// Each part with its length before it, so that no two lists of parts are the same bytes.
    fn hmac(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(self.hash.expose_secret())
            .expect("HMAC takes a key of any length");
        for part in [purpose.as_bytes()].iter().chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// Makes the key file whole: it is linked to its name only when its bytes are on the disk,
/// so that a crash leaves no half of one, and never over one that another process made.
fn make(path: &Path, ids: &dyn Ids) -> io::Result<()> {
    let mut bytes = Zeroizing::new([0; KEYS]);
    ids.fill(bytes.as_mut_slice());
    let text = Zeroizing::new(STANDARD.encode(bytes.as_slice()));
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", ids.uuid()));
    let draft = Path::new(&draft);
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(draft)?;
    let linked = writeln!(file, "{}", text.as_str())
        .and_then(|()| file.sync_all())
        .and_then(|()| match std::fs::hard_link(draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        });
    std::fs::remove_file(draft)?;
    linked?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes every text");
        text
    })
}

#[cfg(test)]
mod tests;
