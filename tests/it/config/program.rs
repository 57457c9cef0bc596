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
