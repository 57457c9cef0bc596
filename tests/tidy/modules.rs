//! Which module may use which, and who may hold what.

use std::collections::{BTreeMap, BTreeSet};

use super::holds;
use super::source::File;

/// What a module of ours may use. The arrows go one way; no module is above itself.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("runtime", &["model"]),
    ("config", &["model", "runtime"]),
    ("ledger", &["model", "runtime"]),
    ("provider", &["model", "runtime"]),
    ("telemetry", &["config", "ledger", "model"]),
    ("lab", &["model", "provider", "runtime"]),
    (
        "admission",
        &["config", "ledger", "model", "runtime", "telemetry"],
    ),
    (
        "placement",
        &[
            "admission",
            "config",
            "ledger",
            "model",
            "provider",
            "runtime",
            "telemetry",
        ],
    ),
    (
        "reconcile",
        &[
            "admission",
            "config",
            "ledger",
            "model",
            "placement",
            "provider",
            "runtime",
            "telemetry",
        ],
    ),
    (
        "inbox",
        &[
            "config",
            "ledger",
            "model",
            "placement",
            "provider",
            "runtime",
        ],
    ),
    (
        "node",
        &[
            "admission",
            "config",
            "inbox",
            "ledger",
            "model",
            "placement",
            "provider",
            "reconcile",
            "runtime",
            "telemetry",
        ],
    ),
    (
        "api",
        &["admission", "config", "ledger", "model", "node", "runtime"],
    ),
    ("demo", &["api", "config", "lab", "model", "runtime"]),
    (
        "bench",
        &[
            "api", "config", "lab", "ledger", "model", "node", "provider", "runtime",
        ],
    ),
    (
        "sim",
        &[
            "admission",
            "config",
            "lab",
            "ledger",
            "model",
            "node",
            "placement",
            "provider",
            "runtime",
        ],
    ),
    (
        "cli",
        &[
            "api",
            "bench",
            "config",
            "demo",
            "inbox",
            "lab",
            "ledger",
            "model",
            "node",
            "provider",
            "runtime",
            "sim",
            "telemetry",
        ],
    ),
    ("docs", &[]),
];

/// Who may hold the platform's client; `node` only hands it on, and `bench` measures what it
/// costs without a ledger, against a sandbox of its own.
const HOLDS_CLIENT: &[&str] = &["bench", "node", "placement", "provider", "reconcile"];

/// What `api` may name of the store's port: places in it, never the store.
const API_NAMES_OF_STORE: &[&str] = &["Cursor", "Position", "Version"];

/// Modules use what `MAY_USE` says, and reach no neighbour by `super`.
fn directions(files: &[File]) -> Vec<String> {
    let known: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut offences = Vec::new();
    for file in files {
        let Some(module) = file.module() else {
            continue;
        };
        let Some(allowed) = known.get(module) else {
            offences.push(format!(
                "{}: the module {module} has no row in MAY_USE",
                file.path
            ));
            continue;
        };
        for path in file.paths("crate") {
            let used = path.split("::").next().unwrap_or_default();
            // Exported macros live at the root; they are no module.
            if known.contains_key(used) && used != module && !allowed.contains(&used) {
                offences.push(format!("{}: {module} may not use crate::{path}", file.path));
            }
        }
        let depth = file.path.matches('/').count() - usize::from(file.path.ends_with("mod.rs"));
        let root = vec!["super"; depth].join("::");
        for path in file.paths(&root) {
            let used = path.split("::").next().unwrap_or_default();
            if known.contains_key(used) {
                offences.push(format!("{}: {root}::{path} reaches a neighbour", file.path));
            }
        }
    }
    offences
}

/// A dial can only come from where the client is.
fn client_holders(files: &[File]) -> Vec<String> {
    offending(files, "crate", |file, path| {
        matches!(
            path,
            "provider::Client" | "provider::client::Client" | "provider::*"
        ) && file
            .module()
            .is_some_and(|module| !HOLDS_CLIENT.contains(&module))
    })
}

/// The sandbox cannot agree with our mistakes: it knows nothing of ours.
fn platform_stands_alone(files: &[File]) -> Vec<String> {
    offending(files, "crate", |file, path| {
        file.path.starts_with("src/lab/platform/") && !path.starts_with("lab::platform")
    })
}

/// `api` decides nothing, so it needs no store.
fn api_needs_no_store(files: &[File]) -> Vec<String> {
    offending(files, "crate", |file, path| {
        file.module() == Some("api")
            && path
                .strip_prefix("ledger::store")
                .is_some_and(|rest| !API_NAMES_OF_STORE.contains(&rest.trim_start_matches("::")))
    })
}

/// LiveKit's types stay where LiveKit is spoken.
fn livekit_types(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for root in ["livekit_protocol", "livekit_api"] {
        for file in files.iter().filter(|file| file.path.starts_with("src/")) {
            if !matches!(file.module(), Some("provider" | "lab")) && file.code().contains(root) {
                offences.push(format!("{}: {root}", file.path));
            }
        }
    }
    offences
}

fn offending(files: &[File], root: &str, offends: fn(&File, &str) -> bool) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for path in file.paths(root) {
            if offends(file, &path) {
                offences.push(format!("{}: {root}::{path}", file.path));
            }
        }
    }
    offences
}

#[test]
fn modules_use_only_what_is_below_them() {
    holds(
        directions,
        "src/model/id.rs",
        "use crate::{model::time, ledger::Ledger};",
    );
    holds(
        directions,
        "src/ledger/read.rs",
        "use super::super::placement::Placement;",
    );
    holds(directions, "src/extra/mod.rs", "");
}

#[test]
fn the_arrows_between_modules_form_no_circle() {
    let mut done = BTreeSet::new();
    while done.len() < MAY_USE.len() {
        let free = |(module, uses): &&(&str, &[&str])| {
            !done.contains(module) && uses.iter().all(|used| done.contains(used))
        };
        let next = MAY_USE
            .iter()
            .find(free)
            .expect("a module whose uses are all below it")
            .0;
        done.insert(next);
    }
}

#[test]
fn only_placement_and_reconcile_hold_the_client() {
    holds(
        client_holders,
        "src/api/core.rs",
        "use crate::provider::{Call, Client};",
    );
    holds(
        client_holders,
        "src/admission/mod.rs",
        "fn f(c: &crate::provider::client::Client) {}",
    );
}

#[test]
fn the_sandbox_platform_knows_nothing_of_ours() {
    holds(
        platform_stands_alone,
        "src/lab/platform/dial.rs",
        "use crate::model::phone::E164;",
    );
}

#[test]
fn the_api_touches_no_store() {
    holds(
        api_needs_no_store,
        "src/api/core.rs",
        "use crate::ledger::store::{Position, Store};",
    );
}

#[test]
fn livekit_types_stay_where_livekit_is_spoken() {
    holds(
        livekit_types,
        "src/placement/mod.rs",
        "use livekit_protocol as proto;",
    );
}
