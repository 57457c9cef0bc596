//! What a first look meets besides the service: completions, the manual page, and the
//! container files, as far as they can be checked without an engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::{CommandFactory as _, Parser as _};
use ringonce::cli::Cli;

const CONTAINERFILE: &str = "config/docker/Containerfile";
const COMPOSE: &str = "config/docker/compose.yaml";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Runs the program with nothing of this process's environment.
fn ringonce<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringonce"))
        .env_clear()
        .current_dir(root())
        .args(words)
        .output()
        .unwrap()
}

fn printed(words: &[&str]) -> String {
    let ran = ringonce(words);
    assert!(ran.status.success(), "{words:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

fn subcommands() -> Vec<String> {
    let command = Cli::command();
    let names = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned());
    names.collect()
}

#[test]
fn completions_name_every_subcommand() {
    assert!(subcommands().len() >= 8);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let text = printed(&["completions", shell]);
        for name in subcommands() {
            assert!(text.contains(&name), "{shell}: {name}");
        }
        assert!(
            text.contains("older-than"),
            "{shell}: flags below subcommands"
        );
    }
    assert_eq!(ringonce(&["completions", "cobol"]).status.code(), Some(2));
}

#[test]
fn the_manual_page_names_every_subcommand_and_each_has_its_own() {
    let page = printed(&["man"]).replace('\\', "");
    assert!(page.contains(".TH ringonce 1"), "{page}");
    for name in subcommands() {
        assert!(page.contains(&format!("ringonce-{name}(1)")), "{name}");
        let own = printed(&["man", &name]).replace('\\', "");
        assert!(own.contains(&format!(".TH ringonce-{name} 1")), "{own}");
    }
    let leaks = printed(&["man", "rooms", "leaks"]).replace('\\', "");
    assert!(leaks.contains("--older-than"), "{leaks}");
    assert_eq!(ringonce(&["man", "nothing"]).status.code(), Some(1));
}

/// The instructions of the container file, lines that were broken put together.
fn instructions() -> Vec<(String, String)> {
    let text = read(CONTAINERFILE);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    joined
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(word, rest)| (word.to_owned(), rest.trim().to_owned()))
        .collect()
}

fn all(word: &str) -> Vec<String> {
    let of_word = |(found, rest): (String, String)| (found == word).then_some(rest);
    instructions().into_iter().filter_map(of_word).collect()
}

#[test]
fn everything_that_is_copied_into_the_container_exists_and_all_that_the_build_reads_is() {
    let mut copied = Vec::new();
    for copy in all("COPY") {
        if copy.starts_with("--from=") {
            continue;
        }
        let mut words: Vec<&str> = copy.split_whitespace().collect();
        words.pop();
        for word in words {
            assert!(root().join(word).exists(), "COPY {word}");
            copied.push(PathBuf::from(word));
        }
    }
    // What cargo and the sources read: manifest, lock, protos, sources, the defaults.
    for needed in [
        "Cargo.toml",
        "Cargo.lock",
        "proto/build.rs",
        "src/main.rs",
        "src/docs/errors.md",
        "config/default.toml",
    ] {
        assert!(
            copied
                .iter()
                .any(|path| Path::new(needed).starts_with(path)),
            "{needed}"
        );
    }
    let ignored = read("config/docker/Containerfile.dockerignore");
    let ignored: Vec<&str> = ignored.lines().collect();
    for path in copied {
        assert!(
            !ignored.contains(&path.to_str().unwrap()),
            "{path:?} is ignored"
        );
    }
    assert!(ignored.contains(&"**/*.key"), "keys stay outside");
}

#[test]
fn the_container_runs_as_nobody_watches_its_health_and_knows_no_secret() {
    assert_eq!(
        all("FROM").len(),
        2,
        "what is built is apart from what runs"
    );
    let users = all("USER");
    let user = users.last().expect("a user");
    assert!(
        user.split(':')
            .all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)),
        "{user}"
    );
    assert_eq!(all("VOLUME"), ["/var/lib/ringonce"]);
    assert_eq!(all("ENV"), ["STATE_DIRECTORY=/var/lib/ringonce"]);
    assert_eq!(all("STOPSIGNAL"), ["SIGTERM"]);
    let port = default_port();
    assert_eq!(all("EXPOSE"), [port.to_string()]);
    let text = read(CONTAINERFILE);
    for secret in ["LIVEKIT_API_SECRET=", "API_KEY=", "ARG "] {
        assert!(!text.contains(secret), "{secret}");
    }
    let toolchain = all("FROM").remove(0);
    let version = toolchain.split([':', '-']).nth(1).expect("a version");
    let oldest = ringonce_manifest("rust-version");
    let minor = |text: &str| {
        text.split('.')
            .nth(1)
            .and_then(|m| m.parse::<u32>().ok())
            .unwrap()
    };
    assert!(minor(version) >= minor(&oldest), "{version} and {oldest}");
}

fn ringonce_manifest(key: &str) -> String {
    let text = read("Cargo.toml");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{key} = ")));
    line.unwrap().trim_matches('"').to_owned()
}

fn default_port() -> u16 {
    ringonce::config::Config::default().listen.grpc.port()
}

/// The words of a list like `["serve", "--config"]`.
fn words(list: &str) -> Vec<String> {
    serde_json::from_str(list).unwrap_or_else(|error| panic!("{list}: {error}"))
}

/// The commands of the compose file.
fn composed() -> Vec<Vec<String>> {
    let text = read(COMPOSE);
    let commands = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("command: "));
    commands.map(words).collect()
}

#[test]
fn every_command_line_in_the_container_files_is_one() {
    let entry = words(&all("ENTRYPOINT")[0]);
    assert_eq!(entry, ["ringonce"]);
    let mut commands = composed();
    assert_eq!(commands.len(), 2);
    commands.push(words(&all("CMD")[0]));
    let health = &all("HEALTHCHECK")[0];
    let asked = words(health.split_once("CMD ").unwrap().1);
    assert_eq!(asked[0], "ringonce");
    commands.push(asked[1..].to_vec());
    // What the comments tell somebody to type.
    let text = read(COMPOSE);
    let typed = text.lines().filter(|line| line.starts_with('#'));
    let typed = typed.map(|line| line.trim_start_matches(['#', ' ']));
    let typed = typed.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let typed = typed
        .lines()
        .filter_map(|line| line.strip_prefix("ringonce "));
    let before = commands.len();
    commands.extend(typed.map(|line| line.split_whitespace().map(str::to_owned).collect()));
    assert_eq!(commands.len(), before + 1);
    for command in commands {
        let parsed = Cli::try_parse_from(["ringonce".to_owned()].iter().chain(&command));
        assert!(parsed.is_ok(), "{command:?}: {}", parsed.unwrap_err());
    }
}

#[test]
fn the_composed_service_has_a_sound_configuration_and_a_store_that_stays() {
    let serve = composed().remove(1);
    let mut check = vec!["config".to_owned(), "check".to_owned()];
    check.extend(serve[1..].iter().map(|word| {
        let inside = "/etc/ringonce/sandbox.toml";
        word.replace(inside, "config/example/sandbox.toml")
    }));
    // Its folder is the container's.
    check.push("--without-secrets".to_owned());
    check.extend([
        "--set".to_owned(),
        "livekit.url=http://sandbox:7880".to_owned(),
    ]);
    check.extend([
        "--store".to_owned(),
        "sqlite:/var/lib/ringonce/ringonce.db".to_owned(),
    ]);
    let checked = ringonce(&check);
    assert!(checked.status.success(), "{checked:?}");
    let text = read(COMPOSE);
    for line in [
        "      LIVEKIT_URL: \"http://sandbox:7880\"",
        "      - \"calls:/var/lib/ringonce\"",
        "      - \"../example/sandbox.toml:/etc/ringonce/sandbox.toml:ro\"",
        "      dockerfile: config/docker/Containerfile",
        &format!("      - \"127.0.0.1:{0}:{0}\"", default_port()),
        "      - \"127.0.0.1:7880:7880\"",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
    let drain = ringonce::config::Config::default().lifecycle.drain;
    let grace = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("stop_grace_period: "))
        .unwrap();
    assert!(humantime::parse_duration(grace).unwrap() > drain, "{grace}");
}

/// The few rules of YAML that the file keeps to: no tabs, two spaces a level, a key or an
/// item a line, and what has a special sign is in quotes.
#[test]
fn the_compose_file_is_plain_yaml() {
    let text = read(COMPOSE);
    let mut deepest = 0;
    for line in text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        let body = line.trim_start();
        if body.is_empty() {
            continue;
        }
        let depth = line.len() - body.len();
        assert!(!line.contains('\t') && depth % 2 == 0, "{line}");
        assert!(depth <= deepest + 2, "it skips a level: {line}");
        deepest = depth;
        if let Some(item) = body.strip_prefix("- ") {
            assert!(item.starts_with('"') && item.ends_with('"'), "{line}");
            continue;
        }
        let (key, value) = body.split_once(':').expect("a key");
        assert!(
            key.chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
                || key == "LIVEKIT_URL",
            "{line}"
        );
        let value = value.trim();
        let plain = value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-/:{}".contains(c));
        let quoted = value.starts_with(['"', '[']) && value.ends_with(['"', ']']);
        assert!(plain || quoted, "{line}");
    }
}
