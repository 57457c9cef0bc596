//! The configuration from outside: layers, faults, secrets, the examples.

mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringonce::config::{Config, DEFAULTS, Faults, Location, Override, Sources, load};
use secrecy::ExposeSecret;

fn faults(text: &str) -> Vec<String> {
    lines(&Config::from_toml(text).expect_err("it has faults"))
}

fn lines(faults: &Faults) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

fn environment(pairs: &[(&str, &str)]) -> Sources {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Sources {
        environment: [("HOME", "/home/somebody")]
            .iter()
            .chain(pairs)
            .map(own)
            .collect(),
        ..Sources::default()
    }
}

fn flag(flag: &str, key: &str, value: &str) -> Override {
    Override {
        flag: flag.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

#[test]
fn the_defaults_are_those_of_the_design() {
    let config = Config::default();
    let secs = Duration::from_secs;
    assert_eq!(config.dial.ringing_timeout, secs(45));
    let server = config.dial.ringing_timeout + config.dial.server_slack;
    assert_eq!(server, secs(65));
    assert_eq!(server + config.dial.client_slack, secs(75));
    let horizon =
        config.dial.send_by + config.livekit.token_leeway + server + config.dial.no_answer_slack;
    assert_eq!(horizon, secs(145));
    assert_eq!(config.attempt.reserved_for, secs(35));
    assert_eq!(config.store.id_retention, secs(90 * 24 * 3600));
    assert_eq!(config.queue.limit, 100_000);
    assert_eq!(config.lifecycle.drain, secs(90));
    assert_eq!(config.listen.grpc.to_string(), "127.0.0.1:7081");
    assert_eq!(config.grpc.page_max, 1000);
}

/// Every key of the defaults is explained: a comment stands right above it, or above the
/// block of keys that shows it.
#[test]
fn every_default_has_its_comment() {
    let mut above = "";
    for line in DEFAULTS.lines() {
        let is_key = !line.starts_with(['#', '[']) && line.contains(" = ");
        assert!(
            !is_key || above.starts_with("# "),
            "no comment above {line}"
        );
        above = line;
    }
}

#[test]
fn every_example_is_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/example");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let sources = Sources {
            files: vec![entry.unwrap().path()],
            ..environment(&[])
        };
        if let Err(faults) = Config::load(&sources) {
            panic!("{faults}");
        }
        seen += 1;
    }
    assert!(seen >= 3, "only {seen} examples were found");
}

#[test]
fn each_layer_lies_above_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let tries = |file: bool, other: bool, env: bool, flags: bool| {
        let mut sources = environment(if env {
            &[("RINGONCE__ATTEMPT__TRIES", "4")]
        } else {
            &[]
        });
        if file {
            sources.files.push(write("one.toml", "attempt.tries = 2"));
        }
        if other {
            sources
                .files
                .push(write("two.toml", "[attempt]\ntries = 3"));
        }
        if flags {
            sources.flags.push(flag("--set", "attempt.tries", "6"));
        }
        Config::load(&sources).unwrap().attempt.tries
    };
    assert_eq!(tries(false, false, false, false), 5);
    assert_eq!(tries(true, false, false, false), 2);
    assert_eq!(tries(true, true, false, false), 3);
    assert_eq!(tries(true, true, true, false), 4);
    assert_eq!(tries(true, true, true, true), 6);
}

#[test]
fn the_environment_has_text_and_every_type_is_read_from_it() {
    let config = Config::load(&environment(&[
        ("LIVEKIT_URL", "wss://example.livekit.cloud/"),
        ("LIVEKIT_API_KEY", "theirs"),
        ("RINGONCE__LIVEKIT__API_KEY", "ours"),
        ("LIVEKIT_API_SECRET", ""),
        ("RINGONCE__AGENT__LOOKS", "100ms, 2s"),
        ("RINGONCE__GRPC__REFLECTION", "false"),
        ("RINGONCE__QUEUE__LIMIT", "1_000"),
        ("RINGONCE__PACE__MINIMUM", "0.5"),
        ("RINGONCE__TRUNKS__MAIN__CONCURRENT", "7"),
        ("RINGONCE_OTHER", "of somebody else"),
    ]))
    .unwrap();
    assert_eq!(config.livekit.url, "https://example.livekit.cloud");
    assert_eq!(config.livekit.api_key.as_deref(), Some("ours"));
    assert!(config.livekit.api_secret.is_none(), "empty is not set");
    let looks = [Duration::from_millis(100), Duration::from_secs(2)];
    assert_eq!(config.agent.looks, looks);
    assert!(!config.grpc.reflection);
    assert_eq!(config.queue.limit, 1000);
    assert!((config.pace.minimum - 0.5).abs() < f64::EPSILON);
    let main = "main".parse().unwrap();
    assert_eq!(config.trunks[&main].concurrent, Some(7));
}

#[test]
fn a_list_is_given_on_the_command_line_with_commas() {
    let read = |value: &str| {
        let mut sources = environment(&[]);
        sources
            .flags
            .push(flag("--set", "numbers.test_prefixes", value));
        Config::load(&sources).unwrap().numbers.test_prefixes
    };
    assert_eq!(read("+999,+998"), ["+999", "+998"]);
    assert_eq!(read("+999"), ["+999"]);
    assert!(read("").is_empty());
    let mut sources = environment(&[]);
    let as_in_a_file = flag("--set", "numbers.countries", "[\"DE\", \"AT\"]");
    sources.flags.push(as_in_a_file);
    let found = lines(&load(&sources).unwrap_err());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("divide the items by commas alone"),
        "{found:?}"
    );
}

#[test]
fn all_faults_are_found_at_once_each_with_its_line() {
    let text = "\
[dial]
ringing_timout = \"30s\"
max_call_duration = 90
send_by = \"2h\"
in_flight = \"many\"

[numbers]
countries = [\"DE\", \"XX\"]

[diall]

[trunks.\"two words\"]
[queue]
limit = 0
";
    let expected = [
        "text:2: dial.ringing_timout: unknown key; did you mean `dial.ringing_timeout`?",
        "text:3: dial.max_call_duration: is an integer, not a duration; write a number with its unit, as \"45s\", \"500ms\" or \"1h 30m\"",
        "text:4: dial.send_by: is 2h, not within its bounds; choose between 1ms and 1m",
        "text:5: dial.in_flight: is a text, not an integer; write a whole number without quotes",
        "text:8: numbers.countries: \"XX\" is no country; write the two letters of ISO 3166, as \"DE\"",
        "text:10: diall: unknown key; remove it; `ringonce config show` lists every key",
        "text:12: trunks.\"two words\": the name has a character outside A-Z a-z 0-9 . _ : - at byte 3; choose another name",
        "text:14: queue.limit: is 0, not within its bounds; choose between 1 and 100000000",
    ];
    assert_eq!(faults(text), expected);
}

/// The bounds of a key alone are not all, where another key bounds it too.
#[test]
fn a_value_out_of_its_bounds_is_told_the_keys_that_bound_it_too() {
    let text = "[dial]\nringing_timeout = \"2m\"\n";
    let expected = [
        "text:2: dial.ringing_timeout: is 2m, not within its bounds; choose between 1ms and 1m \
         20s, at least dial.ringing_timeout_min (5s), at most dial.ringing_timeout_max (1m 20s)",
    ];
    assert_eq!(faults(text), expected);
}

#[test]
fn a_text_that_is_no_toml_is_read_as_far_as_it_goes() {
    let found = faults("[attempt]\ntries = = 3\nexpiry = 5\n");
    assert!(found[0].starts_with("text:2: is no TOML: "), "{found:?}");
    assert!(
        found
            .iter()
            .any(|fault| fault.starts_with("text:3: attempt.expiry: ")),
        "{found:?}"
    );
}

#[test]
fn a_fault_of_the_environment_and_of_a_flag_names_it() {
    let mut sources = environment(&[("RINGONCE__DIAL__SEND_BY", "soon")]);
    sources
        .flags
        .push(flag("--store", "store.url", "redis://x:y@h"));
    sources.files.push("/nowhere/ringonce.toml".into());
    let found = lines(&load(&sources).unwrap_err());
    assert!(found[0].starts_with("/nowhere/ringonce.toml: cannot be read: "));
    assert!(found[1].starts_with("RINGONCE__DIAL__SEND_BY: dial.send_by: \"soon\" is no duration"));
    assert!(found[2].starts_with("--store: store.url: this version has no Redis store"));
    assert!(!found[2].contains("x:y"), "a password must not be repeated");
}

/// A text, and how its one fault begins after the line.
const BROKEN_RULES: &[(&str, &str)] = &[
    (
        "dial.ringing_timeout = \"79s\"\ndial.ringing_timeout_max = \"70s\"",
        "dial.ringing_timeout: dial.ringing_timeout (1m 19s) is above dial.ringing_timeout_max (1m 10s)",
    ),
    // The first remedy is about what somebody wrote.
    (
        "dial.ringing_timeout = \"3s\"",
        "dial.ringing_timeout: dial.ringing_timeout_min (5s) is above dial.ringing_timeout (3s); raise dial.ringing_timeout, or lower dial.ringing_timeout_min",
    ),
    (
        "dial.ringing_timeout_max = \"40s\"",
        "dial.ringing_timeout_max: dial.ringing_timeout (45s) is above dial.ringing_timeout_max (40s)",
    ),
    (
        "dial.look_before_ring_end = \"5s\"",
        "dial.look_before_ring_end: dial.look_before_ring_end (5s) is not below",
    ),
    (
        "dial.max_call_duration = \"55s\"",
        "dial.max_call_duration: dial.max_call_duration (55s) must be above",
    ),
    (
        "dial.client_slack = \"81s\"",
        "dial.client_slack: dial.client_slack (1m 21s) is above",
    ),
    (
        "dial.trunk = \"other\"",
        "dial.trunk: names \"other\", which is not among the trunks; add [trunks.other] or name one of: main",
    ),
    (
        "listen.grpc = \"0.0.0.0:7081\"",
        "listen.grpc: listen.grpc (0.0.0.0:7081) is open beyond this host without authentication",
    ),
    (
        "listen.admin = \"127.0.0.1:7081\"",
        "listen.admin: listen.grpc and listen.admin are both 127.0.0.1:7081",
    ),
    (
        "grpc.page_max = 10",
        "grpc.page_max: grpc.page_default (50) is above grpc.page_max (10)",
    ),
    (
        "grpc.keepalive_interval = \"30s\"",
        "grpc.keepalive_interval: is 30s, not within its bounds",
    ),
    (
        "attempt.expiry_max = \"100d\"",
        "attempt.expiry_max: attempt.expiry_max (3months",
    ),
    (
        "agents.slow.join_timeout = \"3m\"",
        "agents.slow.join_timeout: agents.slow.join_timeout (3m) is above",
    ),
    (
        "reconcile.look_interval = \"5s\"",
        "reconcile.look_interval: reconcile.look_interval (5s) is not below",
    ),
    (
        "lifecycle.drain_delay = \"2m\"",
        "lifecycle.drain_delay: lifecycle.drain_delay (2m) is above",
    ),
    (
        "room.departure_timeout = \"1500ms\"",
        "room.departure_timeout: is 1s 500ms; write whole seconds",
    ),
];

#[test]
fn rules_between_keys_are_noted_where_somebody_wrote() {
    for (text, expected) in BROKEN_RULES {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        let begins = found[0].starts_with(&format!("text:1: {expected}"));
        assert!(begins, "{text}: {found:?}");
    }
}

#[test]
fn a_rule_does_not_judge_a_value_that_nobody_wrote() {
    let found = faults("dial.ringing_timeout = 45\ndial.ringing_timeout_max = \"40s\"");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn an_open_address_needs_a_word_and_webhooks_do_not() {
    let open = "listen.grpc = \"0.0.0.0:7081\"\nlisten.allow_unauthenticated = true";
    assert!(Config::from_toml(open).is_ok());
    assert!(Config::from_toml("listen.webhook = \"0.0.0.0:7082\"").is_ok());
    let picked = "listen.grpc = \"127.0.0.1:0\"\nlisten.admin = \"127.0.0.1:0\"";
    assert!(Config::from_toml(picked).is_ok());
}

#[test]
fn a_secret_may_be_in_a_file_and_is_printed_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    fs::write(&file, "from a file\n").unwrap();
    let path = file.to_str().unwrap();
    let loaded = load(&environment(&[(
        "RINGONCE__LIVEKIT__API_SECRET_FILE",
        path,
    )]))
    .unwrap();
    let secret = loaded.config.livekit.api_secret.clone().unwrap();
    assert_eq!(secret.expose_secret(), "from a file");
    let printed = format!("{:?} {:?}", loaded.config, loaded.values);
    assert!(!printed.contains("from a file"), "{printed}");

    let both = environment(&[
        ("RINGONCE__LIVEKIT__API_SECRET_FILE", path),
        ("LIVEKIT_API_SECRET", "direct"),
    ]);
    let found = lines(&load(&both).unwrap_err());
    assert!(found[0].contains("livekit.api_secret: is set beside api_secret_file"));

    let covered = environment(&[("LIVEKIT_API_SECRET", "direct")]);
    let config = folder.path().join("with.toml");
    fs::write(&config, "livekit.api_secret_file = \"/nowhere\"").unwrap();
    let covered = Sources {
        files: vec![config],
        ..covered
    };
    assert!(
        Config::load(&covered).is_ok(),
        "a covered file is not opened"
    );

    let text = format!("livekit.api_secret_file = {:?}", folder.path().join("gone"));
    assert!(faults(&text)[0].contains("livekit.api_secret_file: "));
}

#[test]
fn credentials_that_are_missing_are_named_both() {
    let found = lines(&Config::default().livekit.credentials().unwrap_err());
    assert_eq!(
        found,
        [
            "livekit.api_key: is missing; set it, or LIVEKIT_API_KEY in the environment",
            "livekit.api_secret: is missing; set it, or LIVEKIT_API_SECRET in the environment",
        ]
    );
}

#[test]
fn the_store_goes_to_the_data_folder_unless_told() {
    let at = |pairs: &[(&str, &str)]| Config::load(&environment(pairs)).unwrap().store;
    let sqlite = |path: &str| Location::Sqlite(path.into());
    assert_eq!(
        at(&[]).location,
        sqlite("/home/somebody/.local/share/ringonce/ringonce.db")
    );
    assert_eq!(
        at(&[("XDG_DATA_HOME", "/data")]).location,
        sqlite("/data/ringonce/ringonce.db")
    );
    let state = at(&[
        ("XDG_DATA_HOME", "/data"),
        ("STATE_DIRECTORY", "/var/lib/a:/b"),
    ]);
    assert_eq!(state.location, sqlite("/var/lib/a/ringonce.db"));
    assert_eq!(state.key_file, Some("/var/lib/a/ringonce.key".into()));
    let memory = at(&[("RINGONCE__STORE__URL", "memory")]);
    assert_eq!((memory.location, memory.key_file), (Location::Memory, None));
    let found = lines(&load(&Sources::default()).unwrap_err());
    assert!(
        found[0].contains("store.url: there is no data folder"),
        "{found:?}"
    );
}
