//! A configuration, as the program says it.

use std::fs;

#[test]
fn the_program_tells_three_faults_with_line_and_remedy_and_ends_with_78() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ringonce.toml");
    let text =
        "[dial]\nringing_timout = \"30s\"\nsend_by = \"2h\"\n\n[numbers]\ncountries = [\"XX\"]\n";
    fs::write(&file, text).unwrap();
    for words in [
        ["config", "check"],
        ["config", "show"],
        ["serve", "--check-config"],
    ] {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_ringonce"))
            .env_clear()
            .env("HOME", folder.path())
            .args(words)
            .arg("--config")
            .arg(&file)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(78), "{words:?}: {ran:?}");
        assert!(ran.stdout.is_empty());
        let told = String::from_utf8(ran.stderr).unwrap();
        let told: Vec<&str> = told.lines().collect();
        assert_eq!(told.len(), 3, "{told:?}");
        for (fault, (line, remedy)) in told.iter().zip([
            (2, "did you mean `dial.ringing_timeout`?"),
            (3, "choose between"),
            (6, "write the two letters of ISO 3166"),
        ]) {
            let place = format!("{}:{line}: ", file.display());
            assert!(
                fault.starts_with(&place) && fault.contains(remedy),
                "{fault}"
            );
        }
    }
}

#[test]
fn what_serve_would_refuse_for_want_of_a_secret_the_check_refuses_too() {
    let folder = tempfile::tempdir().unwrap();
    let check = |words: &[&str]| {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_ringonce"))
            .env_clear()
            .env("HOME", folder.path())
            .env("LIVEKIT_API_KEY", "devkey")
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(said.contains("livekit.api_secret"), "{words:?}: {said}");
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap())
    };
    let refused = (Some(78), String::new());
    assert_eq!(check(&["config", "check"]), refused);
    assert_eq!(check(&["serve", "--check-config"]), refused);
    assert_eq!(check(&["serve"]), refused);
    let noted = check(&["config", "check", "--without-secrets"]);
    assert_eq!(noted, (Some(0), "configuration is sound\n".to_owned()));
}

#[test]
fn a_secret_that_livekit_calls_too_short_is_warned_of_and_taken() {
    let folder = tempfile::tempdir().unwrap();
    let check = |secret: &str, words: [&str; 2]| {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_ringonce"))
            .env_clear()
            .env("HOME", folder.path())
            .env("LIVEKIT_API_KEY", "devkey")
            .env("LIVEKIT_API_SECRET", secret)
            .args(words)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(0), "{words:?}: {ran:?}");
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(!said.contains(secret), "{said}");
        said
    };
    for words in [["config", "check"], ["serve", "--check-config"]] {
        let said = check("hush_hush", words);
        assert!(
            said.starts_with("warning: livekit.api_secret has fewer than 32 characters"),
            "{said}"
        );
        let said = check("devsecret_that_is_at_least_32_chars_long", words);
        assert_eq!(said, "");
    }
}

#[test]
fn what_serve_would_refuse_for_want_of_a_folder_the_check_refuses_too() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("typo");
    let store = format!("sqlite:{}/calls.db", folder.display());
    let check = |words: &[&str], store: &str| {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_ringonce"))
            .env_clear()
            .env("HOME", home.path())
            .env("LIVEKIT_API_KEY", "devkey")
            .env(
                "LIVEKIT_API_SECRET",
                "devsecret_that_is_at_least_32_chars_long",
            )
            .args(words)
            .args(["--store", store, "--listen", "127.0.0.1:0"])
            .args(["--webhook-listen", "127.0.0.1:0"])
            .output()
            .unwrap();
        let told = |bytes| String::from_utf8(bytes).unwrap();
        (ran.status.code(), told(ran.stdout), told(ran.stderr))
    };
    for words in [
        &["config", "check"][..],
        &["serve", "--check-config"],
        &["serve"],
    ] {
        let (code, stdout, said) = check(words, &store);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{words:?}: {said}");
        let named = format!("there is no folder {}", folder.display());
        assert!(said.contains(&named), "{words:?}: {said}");
    }
    let (code, stdout, said) = check(&["config", "check", "--without-secrets"], &store);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "configuration is sound\n")
    );
    assert!(said.starts_with("note: "), "{said}");
    // The data folder is made by `serve`, and by nothing else.
    assert_eq!(check(&["config", "check"], "sqlite").0, Some(0));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_store_that_is_not_there_is_told_with_the_flags_that_name_one() {
    let home = tempfile::tempdir().unwrap();
    for words in [["store", "info"], ["inbox", "list"], ["store", "restored"]] {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_ringonce"))
            .env_clear()
            .env("HOME", home.path())
            .args(words)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(1), "{words:?}: {ran:?}");
        let said = String::from_utf8(ran.stderr).unwrap();
        for flag in ["there is no store at", "--store", "--config"] {
            assert!(said.contains(flag), "{words:?}: {said}");
        }
    }
}

#[test]
fn a_sandbox_that_cannot_start_says_what_is_missing() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (words, code, says) in [
        (["--webhook", "127.0.0.1:7092/x"], 2, "with its scheme"),
        (["--listen", &address], 5, "another process has it"),
    ] {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_ringonce"))
            .env_clear()
            .arg("sandbox")
            .args(words)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(code), "{words:?}: {ran:?}");
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(said.contains(says), "{words:?}: {said}");
    }
}
