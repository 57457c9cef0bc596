//! What files may say and how long they may be.

use std::collections::BTreeSet;

use super::holds;
use super::source::{File, repository};

const LINES_MAX: usize = 450;
const WIDTH_MAX: usize = 100;

/// Whose home a test may name.
const NOBODY: &str = "somebody";

/// Files that may be longer, and why.
const LONGER: &[(&str, usize, &str)] = &[
    (
        "src/ledger/record.rs",
        490,
        "the stored form of every record, side by side",
    ),
    (
        "src/ledger/store/mod.rs",
        540,
        "the port's promises are its text",
    ),
    (
        "src/model/attempt/state.rs",
        500,
        "one table, every pair written out",
    ),
    (
        "tests/it/api/fake.rs",
        480,
        "one core, and every method that the API asks of it",
    ),
];

fn lengths(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.is_rust())
        .filter_map(|file| {
            let longer = LONGER.iter().find(|(path, ..)| *path == file.path);
            let limit = longer.map_or(LINES_MAX, |(_, limit, _)| *limit);
            let lines = file.text.lines().count();
            (lines > limit).then(|| format!("{}: {lines} lines, {limit} allowed", file.path))
        })
        .collect()
}

/// rustfmt leaves comments and texts alone, and knows no other kind of file.
fn widths(files: &[File]) -> Vec<String> {
    lines(files, |file, line| {
        // What cannot be broken: a text in quotes, a table's row, a paragraph of a page that
        // is read by its rendering, what others wrote or recorded.
        let text = line.trim_start_matches(['/', '!', ' ']);
        let unbreakable = line.contains('"')
            || text.starts_with('|')
            || (file.ends_in("md") && text.starts_with("**"))
            || file.ends_in("lock")
            || file.path.starts_with("LICENSE")
            || file.path.starts_with("tests/fixtures/");
        !unbreakable && line.chars().count() > WIDTH_MAX
    })
}

/// Reminders belong where people look for work, not into the sources.
fn leftovers(files: &[File]) -> Vec<String> {
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|halves| halves.concat());
    files.iter().flat_map(|file| naming(file, &words)).collect()
}

/// A place on somebody's machine, or a host that only some can reach.
fn places(files: &[File]) -> Vec<String> {
    let words = [
        ["/wo", "rk/"],
        ["/tmp", "/w/"],
        ["/ro", "ot/"],
        ["/ho", "me/"],
        ["index.cra", "tes.io"],
    ]
    .map(|halves| halves.concat());
    let locked = files
        .iter()
        .filter(|file| file.path == "Cargo.lock")
        .flat_map(|file| file.text.lines())
        .filter(|line| line.starts_with("source = ") && !line.contains("//github.com/rust-lang/"))
        .map(str::to_owned);
    files
        .iter()
        .flat_map(|file| naming(file, &words))
        .chain(locked)
        .collect()
}

fn naming(file: &File, words: &[String]) -> Vec<String> {
    words
        .iter()
        .filter(|word| {
            let mut places = file.text.match_indices(word.as_str());
            places.any(|(at, word)| !file.text[at + word.len()..].starts_with(NOBODY))
        })
        .map(|word| format!("{}: {word}", file.path))
        .collect()
}

fn lines(files: &[File], offends: fn(&File, &str) -> bool) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            if offends(file, line) {
                offences.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    offences
}

/// An expectation goes stale loudly; an allowance never does. And time is an argument.
fn bans(files: &[File]) -> Vec<String> {
    let words = ["#[allow(", "#![allow(", "std::time::Instant"];
    let mut offences = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.is_rust() && !file.path.starts_with("tests/tidy/"))
    {
        let code = file.code();
        for word in words.iter().filter(|word| code.contains(**word)) {
            offences.push(format!("{}: {word}", file.path));
        }
        let banned = |path: &String| path.as_str() == "time::Instant";
        if file.paths("std").iter().any(banned) {
            offences.push(format!("{}: Instant of std", file.path));
        }
    }
    offences
}

/// Whoever opens a file is told what it is for.
fn module_docs(files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.is_rust() && !file.text.starts_with("//!"))
        .map(|file| format!("{}: begins without its `//!`", file.path))
        .collect()
}

/// Each dependency says why it is there; what breaks often is pinned; the lints are on.
fn manifest(files: &[File]) -> Vec<String> {
    let Some(file) = files.iter().find(|file| file.path == "Cargo.toml") else {
        return vec!["Cargo.toml is missing".to_owned()];
    };
    let mut offences = Vec::new();
    let mut section = "";
    for line in file.text.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]")
            && line.contains(" = ")
            && !line.contains(" # ")
        {
            offences.push(format!("no reason: {line}"));
        }
        if line.starts_with("livekit-") && !line.contains("\"=") {
            offences.push(format!("not pinned: {line}"));
        }
    }
    for lint in [
        "unsafe_code = \"forbid\"",
        "missing_docs = \"warn\"",
        "allow_attributes = \"deny\"",
        "wildcard_enum_match_arm = \"deny\"",
        "unwrap_used = \"deny\"",
        "print_stdout = \"deny\"",
    ] {
        if !file.text.contains(&format!("\n{lint}\n")) {
            offences.push(format!("lint missing: {lint}"));
        }
    }
    offences
}

/// A key without its meaning and reason is not documented anywhere.
fn default_keys(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.path == "config/default.toml")
    {
        let mut before = "";
        for line in file.text.lines() {
            let is_key = line.starts_with(|c: char| c.is_ascii_lowercase());
            if is_key && !before.starts_with('#') {
                offences.push(format!("{}: {line}", file.path));
            }
            before = line;
        }
    }
    offences
}

/// A key that nothing reads promises what nobody keeps.
fn read_keys(files: &[File]) -> Vec<String> {
    let reads = |key: &str| {
        let field = format!(".{key}");
        files.iter().any(|file| {
            file.path.starts_with("src/")
                && (!file.path.starts_with("src/config/") || file.path == "src/config/rules.rs")
                && file.text.match_indices(&field).any(|(at, _)| {
                    let rest = file.text.get(at + field.len()..).unwrap_or_default();
                    !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "_(".contains(c))
                })
        })
    };
    let mut offences = Vec::new();
    for file in files.iter().filter(|f| f.path == "config/default.toml") {
        for line in file.text.lines() {
            let Some((key, _)) = line.split_once(" = ") else {
                continue;
            };
            if key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') && !reads(key) {
                offences.push(format!("{}: nothing reads {key}", file.path));
            }
        }
    }
    offences
}

/// Every command on the page is one that tests/readme runs, and every state is explained. A block
/// of `text` shows what a command printed.
fn readme(files: &[File]) -> Vec<String> {
    let text = |path| {
        files
            .iter()
            .find(|file| file.path == path)
            .map_or("", |file| &file.text)
    };
    let (page, run) = (text("README.md"), text("tests/run"));
    let mut offences = Vec::new();
    let mut inside = false;
    for line in page.lines().filter_map(|line| line.strip_prefix("```")) {
        if !inside && !["sh", "python", "mermaid", "text"].contains(&line) {
            offences.push(format!("README.md: nothing runs a block of `{line}`"));
        }
        inside = !inside;
    }
    for script in ["tests/first-call", "tests/readme", "tests/clients/run"] {
        if !run
            .lines()
            .any(|line| line.starts_with("phase ") && line.ends_with(script))
        {
            offences.push(format!("tests/run does not run {script}"));
        }
    }
    let states = text("proto/ringonce/v1/attempt.proto")
        .lines()
        .filter_map(|line| line.trim().strip_prefix("STATE_")?.split(' ').next());
    for state in states.filter(|state| *state != "UNSPECIFIED") {
        if !page.contains(&format!("\n| {state} |")) {
            offences.push(format!("README.md: the state {state} has no row"));
        }
    }
    let codes = text("src/cli/output.rs")
        .lines()
        .filter(|line| line.starts_with("pub const "))
        .filter_map(|line| line.split_once(": u8 = ")?.1.strip_suffix(';'));
    for code in codes.filter(|code| !page.contains(&format!("\n| {code} |"))) {
        offences.push(format!("README.md: the exit code {code} has no row"));
    }
    offences
}

/// The pages of promises and of cases name tests as `file.rs::name`; each exists.
fn proofs(files: &[File]) -> Vec<String> {
    let pages = ["src/docs/guarantees.md", "src/docs/cases.md"];
    let mut offences = Vec::new();
    for page in files.iter().filter(|file| pages.contains(&&*file.path)) {
        let named = page.text.split('`').skip(1).step_by(2);
        for (path, name) in named.filter_map(|quoted| quoted.split_once(".rs::")) {
            let path = format!("{path}.rs");
            let exists = files
                .iter()
                .any(|file| file.path == path && file.text.contains(&format!("fn {name}()")));
            if !exists {
                offences.push(format!("{}: {path} has no test {name}", page.path));
            }
        }
    }
    offences
}

/// The faults of double dials, trunks, rooms, dial errors, webhooks, agents and tasks, by the
/// numbers that their tests carry. Numbers in between belong to other classes, or to none.
const CASES: [u8; 28] = [
    1, 2, 3, 5, 7, 8, 9, 12, 14, 16, 17, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 30, 31, 33, 35,
    36, 55, 56,
];

/// Each case has a row, and a test of its own number.
fn cases(files: &[File]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == "src/docs/cases.md") else {
        return vec!["src/docs/cases.md is missing".to_owned()];
    };
    let shown = |case: &&u8| {
        let row = format!("| R{case:02} |");
        let mut rows = page.text.lines().filter(|line| line.starts_with(&row));
        !rows.any(|line| line.contains(&format!("r{case:02}_")))
    };
    CASES
        .iter()
        .filter(shown)
        .map(|case| {
            format!(
                "{}: R{case:02} has no row with a test of its number",
                page.path
            )
        })
        .collect()
}

/// Each binary of tests is linked anew for each change, so there are few.
fn test_binaries(files: &[File]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for file in files {
        let Some(below) = file.path.strip_prefix("tests/") else {
            continue;
        };
        if file.is_rust() && (!below.contains('/') || below.ends_with("/main.rs")) {
            found.insert(below);
        }
    }
    let wanted = BTreeSet::from(["it/main.rs", "tidy.rs"]);
    found
        .difference(&wanted)
        .map(|extra| format!("tests/{extra}: a binary more"))
        .collect()
}

#[test]
fn files_have_one_idea() {
    holds(lengths, "src/api/long.rs", &"//\n".repeat(LINES_MAX + 1));
    for (path, ..) in LONGER {
        let file = repository().iter().find(|file| file.path == *path);
        let lines = file.map_or(0, |file| file.text.lines().count());
        assert!(lines > LINES_MAX, "{path} needs no exception any more");
    }
}

#[test]
fn lines_fit_beside_each_other() {
    holds(widths, "src/api/extra.rs", &"x".repeat(WIDTH_MAX + 1));
}

#[test]
fn no_reminder_is_left() {
    holds(leftovers, "src/lib.rs", &["// TO", "DO: later"].concat());
}

#[test]
fn nothing_names_a_place_on_a_machine() {
    holds(places, "README.md", &["cd /ho", "me/ada"].concat());
    holds(
        places,
        "Cargo.lock",
        "source = \"registry+https://mirror.example/index\"",
    );
}

#[test]
fn lints_are_expected_and_never_allowed() {
    holds(bans, "src/lib.rs", "#[allow(dead_code)]");
    holds(
        bans,
        "src/lib.rs",
        "use std::{fs, time::{Duration, Instant}};",
    );
}

#[test]
fn every_file_says_what_it_is_for() {
    holds(module_docs, "src/api/extra.rs", "pub mod api;");
}

#[test]
fn each_dependency_has_its_reason_and_the_lints_are_on() {
    holds(manifest, "Cargo.toml", "\n[dependencies]\nhttp = \"1\"\n");
}

#[test]
fn each_default_has_its_meaning() {
    holds(default_keys, "config/default.toml", "\n\ntrunk = \"main\"");
    holds(
        read_keys,
        "config/default.toml",
        "\n# Nothing.\nno_such_key = 1\n",
    );
}

#[test]
fn the_readme_is_run_and_explains_each_state() {
    holds(readme, "README.md", "```console\n```");
    holds(readme, "src/cli/output.rs", "\npub const MORE: u8 = 77;\n");
    holds(
        readme,
        "proto/ringonce/v1/attempt.proto",
        "\n    STATE_MORE = 77;\n",
    );
}

#[test]
fn each_proof_of_a_promise_exists() {
    holds(
        proofs,
        "src/docs/guarantees.md",
        "`tests/it/calls.rs::no_such_test`",
    );
    holds(
        proofs,
        "src/docs/cases.md",
        "`tests/it/cases/dials.rs::r05_no_such_test`",
    );
}

#[test]
fn each_case_has_its_test() {
    assert_eq!(cases(repository()), Vec::<String>::new());
    let none = File {
        path: "src/docs/cases.md".to_owned(),
        text: "| R05 | redelivery | `tests/it/queue.rs::r06_other` | |".to_owned(),
    };
    assert_eq!(cases(&[none]).len(), CASES.len());
}

#[test]
fn there_are_three_test_binaries_at_most() {
    holds(test_binaries, "tests/more.rs", "");
    holds(test_binaries, "tests/more/main.rs", "");
}
