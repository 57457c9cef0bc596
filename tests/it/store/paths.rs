//! What can be no store, and what is said of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use ringonce::ledger::store::sqlite::{Options, Sqlite, adopt, inspect, restored};
use ringonce::model::time::Time;
use ringonce::runtime::ids::RandomIds;

const NOW: Time = Time::from_secs(100);

/// Each thing that an operator may name by mistake, with what is said of it; none is touched.
#[test]
fn what_can_be_no_store_is_told_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let ids = RandomIds::seeded(7);
    let within = |name: &str| folder.path().join(name);
    fs::create_dir(within("folder")).unwrap();
    let pipe = Command::new("mkfifo").arg(within("pipe")).status();
    assert!(pipe.unwrap().success());
    symlink(within("unmounted/store.db"), within("link")).unwrap();
    fs::write(within("text"), "hello").unwrap();
    fs::write(within("garbage"), [0xa5; 5_000]).unwrap();
    for (path, what, remedy) in [
        (within("folder"), "is a folder", "give the path of"),
        (within("pipe"), "is a pipe", "give the path of"),
        ("/dev/null".into(), "is a device", "give the path of"),
        (within("link"), "leads nowhere", "give the path of"),
        (
            "/proc/version".into(),
            "is not a ringonce store",
            "give the path",
        ),
        (
            "/proc/ringonce.db".into(),
            "no file can be made",
            "on a local disk",
        ),
        (
            "/proc/version/ringonce.db".into(),
            "the folder /proc/version cannot be made",
            "give another path",
        ),
        (within("text"), "is not a ringonce store", "give the path"),
        (
            within("garbage"),
            "is not a ringonce store",
            "give the path",
        ),
    ] {
        let opened = Sqlite::open(&path, &Options::default(), NOW, &ids);
        let text = opened.unwrap_err().to_string();
        assert!(text.contains(what), "{}: {text}", path.display());
        assert!(text.contains(remedy), "{}: {text}", path.display());
    }
    assert!(!within("unmounted").exists());
    for name in ["text.lock", "garbage.lock"] {
        assert!(
            !within(name).exists(),
            "{name} was left beside what is no store"
        );
    }
    let looked = inspect(&within("pipe")).unwrap_err().to_string();
    assert!(looked.contains("is a pipe"), "{looked}");

    // An empty file is what a person may have made for it.
    fs::write(within("empty"), "").unwrap();
    let open = || Sqlite::open(&within("empty"), &Options::default(), NOW, &ids);
    open().unwrap();
}

/// A path that somebody named is not completed: what is missing of it is mistyped or not mounted.
#[test]
fn a_folder_that_somebody_named_is_not_made_and_what_only_reads_makes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let ids = RandomIds::seeded(7);
    let options = Options {
        make_folder: false,
        ..Options::default()
    };
    let path = place.path().join("typo/calls.db");
    let text = Sqlite::open(&path, &options, NOW, &ids).unwrap_err();
    let text = text.to_string();
    assert!(
        text.contains("there is no folder") && text.contains("mkdir -p"),
        "{text}"
    );
    let path = place.path().join("calls.db");
    adopt(&path, NOW, NOW, &ids).unwrap_err();
    restored(&path, NOW, &ids).unwrap_err();
    inspect(&path).unwrap_err();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    Sqlite::open(&path, &options, NOW, &ids).unwrap();
}

/// What stands where the lock is to be is told for what it is, and the store beside it is left
/// alone.
#[test]
fn what_can_be_no_lock_is_told_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let ids = RandomIds::seeded(7);
    let store = folder.path().join("calls.db");
    let lock = folder.path().join("calls.db.lock");
    let open = || Sqlite::open(&store, &Options::default(), NOW, &ids);
    let pipe = || {
        let made = Command::new("mkfifo").arg(&lock).status();
        assert!(made.unwrap().success());
    };
    let told = |what: &str| {
        let text = open().unwrap_err().to_string();
        let said = format!("calls.db.lock is {what}, and a file");
        assert!(text.contains(&said), "{text}");
        assert!(text.contains("remove it, or give the store"), "{text}");
        assert!(!store.exists());
        fs::remove_file(&lock).unwrap();
    };
    pipe();
    told("a pipe");
    symlink("/dev/null", &lock).unwrap();
    told("a device");
    symlink("unmounted/lock", &lock).unwrap();
    told("a link that leads nowhere");
    open().unwrap();
}
