//! Keys: made, read and kept; what they seal and hash.

use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::*;
use crate::runtime::ids::RandomIds;

const NUMBER: &str = "+12025550100";

fn fixed() -> Keys {
    let bytes: Vec<u8> = (0..64).collect();
    Keys::from_text(&STANDARD.encode(bytes)).unwrap()
}

#[test]
fn hashes_stay_what_they_are() {
    // Computed once and kept: a change would forget every hold on every number.
    let keys = fixed();
    assert_eq!(
        keys.number_key("w", NUMBER),
        "183eb7f7-d83e76c963ab0e22b2f68f74fea328cc"
    );
    assert_eq!(keys.print(), "d3e09c44bb9c839136e5cd8137e18aab");
    assert!(keys.fingerprint(b"x").starts_with("1-183eb7f7-"));
    assert_eq!(keys.fingerprint(b"x").len(), 2 + 8 + 1 + 64);
}

#[test]
fn hashes_differ_by_number_workspace_and_keys() {
    let (keys, others) = (fixed(), Keys::random(&RandomIds::seeded(1)));
    let one = keys.number_key("w", NUMBER);
    assert_ne!(one, keys.number_key("w", "+12025550101"));
    assert_ne!(one, keys.number_key("v", NUMBER));
    assert_ne!(keys.number_key("w1", "2"), keys.number_key("w", "12"));
    assert_ne!(one, others.number_key("w", NUMBER));
    assert_ne!(keys.print(), others.print());
    assert_ne!(keys.fingerprint(b"a"), keys.fingerprint(b"b"));
    let mut bytes: Vec<u8> = (0..64).collect();
    bytes[63] ^= 1;
    let near = Keys::from_text(&STANDARD.encode(bytes)).unwrap();
    assert_ne!(
        near.print(),
        keys.print(),
        "the print covers the seal's key"
    );
}

#[test]
fn what_is_sealed_opens_in_its_place_only() {
    let (keys, ids) = (fixed(), RandomIds::seeded(1));
    let sealed = keys.seal("a/w/1", NUMBER.as_bytes(), &ids);
    let opened = keys.open("a/w/1", &sealed).unwrap();
    assert_eq!(opened.as_slice(), NUMBER.as_bytes());
    assert!(
        !sealed
            .windows(7)
            .any(|part| part == &NUMBER.as_bytes()[..7])
    );
    assert_ne!(sealed, keys.seal("a/w/1", NUMBER.as_bytes(), &ids));
    assert_eq!(keys.open("a/w/2", &sealed), Err(OpenError::Changed));
    let other = Keys::random(&ids);
    assert_eq!(other.open("a/w/1", &sealed), Err(OpenError::OtherKeys));
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert!(keys.open("a/w/1", &changed).is_err(), "byte {at}");
        assert!(keys.open("a/w/1", &sealed[..at]).is_err(), "{at} bytes");
    }
}

#[test]
fn a_key_file_is_made_once_and_for_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let ids = RandomIds::seeded(1);
    let (first, made) = Keys::from_file(&path, &ids).unwrap();
    assert!(made);
    let (second, made) = Keys::from_file(&path, &ids).unwrap();
    assert!(!made);
    assert_eq!(first.print(), second.print());
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_bad_key_file_is_told_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let ids = RandomIds::seeded(1);
    for (text, mode) in [
        (&b""[..], 0o600),
        (b"c2hvcnQ=", 0o600),
        (b"\xff\xfe\x00", 0o600),
        (b"c2hvcnQ=", 0o644),
    ] {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = Keys::from_file(&path, &ids).unwrap_err();
        let exposed = matches!(error, KeyError::Exposed(_));
        assert_eq!(exposed, mode == 0o644, "{error}");
        assert!(exposed || matches!(error, KeyError::File(_)), "{error}");
        assert!(!error.to_string().contains("c2hv"));
        let remedy = if exposed {
            "chmod 600"
        } else {
            "restore it from a backup"
        };
        assert!(error.to_string().contains(remedy), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), text);
    }
    for path in [folder.path(), Path::new("/dev/null")] {
        let error = Keys::from_file(path, &ids).unwrap_err();
        assert!(matches!(error, KeyError::NotAFile(_)), "{error}");
    }
}

#[test]
fn keys_come_through_a_pipe_which_is_not_waited_for_without_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let ids = RandomIds::seeded(1);
    let mut mkfifo = Command::new("mkfifo");
    let made = mkfifo.args(["-m", "600"]).arg(&path).status();
    assert!(made.unwrap().success());
    let nobody = Keys::from_file_in(&path, &ids, Duration::from_millis(20));
    let error = nobody.unwrap_err();
    assert!(matches!(error, KeyError::Silent { .. }), "{error}");
    let waited = "it was waited 20ms for somebody to write the keys into it";
    assert!(error.to_string().contains(waited), "{error}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = Keys::from_file(&path, &ids).unwrap_err();
    assert!(matches!(error, KeyError::ExposedPipe(_)), "{error}");
    assert!(error.to_string().contains("mkfifo -m 600"), "{error}");
    assert!(!error.to_string().contains("chmod"), "{error}");

    // As a shell does for `--set store.key_file=<(…)`.
    let (reader, mut writer) = io::pipe().unwrap();
    let text = STANDARD.encode((0..64).collect::<Vec<u8>>());
    writer.write_all(text.as_bytes()).unwrap();
    drop(writer);
    let path = format!("/dev/fd/{}", reader.as_raw_fd());
    let (keys, made) = Keys::from_file(Path::new(&path), &ids).unwrap();
    assert_eq!((keys.print(), made), (fixed().print(), false));
}

#[test]
fn keys_do_not_print_themselves() {
    let keys = fixed();
    assert_eq!(format!("{keys:?}"), "Keys { id: \"183eb7f7\", .. }");
}
