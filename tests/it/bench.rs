//! The bench runs, and what it counts is what a placement costs. Speed is for whoever runs
//! it: a busy host proves nothing, so that only counts and the processor's time are asserted.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The processor time of `serve` that a placement may use, in microseconds: many times what
/// it does on a quiet host, since others may use the processors meanwhile and the build may
/// not be optimized.
const CPU_MOST: f64 = 30_000.0;

fn bench(words: &[&str]) -> Value {
    // In memory where the host has it: nothing here is about the disk.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        memory
    } else {
        Path::new("/tmp")
    };
    let ran = Command::new(env!("CARGO_BIN_EXE_ringonce"))
        .env_clear()
        .env("TMPDIR", folder)
        .args(["bench", "--quick", "--json"])
        .args(words)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// The median of a figure.
fn median(report: &Value, section: &str, name: &str) -> f64 {
    let figures = report["figures"].as_array().unwrap();
    let found = figures
        .iter()
        .find(|figure| figure["section"] == section && figure["name"] == name);
    let figure = found.unwrap_or_else(|| panic!("no {section} {name} in {report}"));
    assert!(figure["count"].as_u64().unwrap() > 0, "{figure}");
    figure["median"].as_f64().unwrap()
}

#[test]
fn a_placement_costs_four_requests_and_four_commits_and_a_replay_none() {
    let report = bench(&["--only", "placements", "replays"]);
    let figure = |section, name| median(&report, section, name);
    let is = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-9, "{report}");
    is(figure("placements", "requests"), 4.0);
    // Reserved, marked, settled, room gone.
    is(figure("placements", "commits"), 4.0);
    assert!(figure("placements", "cpu of serve") < CPU_MOST, "{report}");
    is(figure("replays", "commits"), 0.0);
    assert!(figure("replays", "cpu of serve") < CPU_MOST, "{report}");
}

#[test]
fn calls_ring_at_once_over_tls_and_a_start_finds_what_a_kill_left() {
    let report = bench(&["--only", "ringing-tls", "start"]);
    // Each of them was dialed once, and was settled: else it had not ended.
    let last = median(&report, "ringing-tls", "settled after its end, last");
    assert!(last < 10.0, "{report}");
    assert!(median(&report, "start", "ready after kill -9") > 0.0);
}

#[test]
fn webhooks_are_kept_and_applied_and_lost_replies_are_settled() {
    let report = bench(&["--only", "webhooks", "webhook-cost", "settle", "uncertain"]);
    let figure = |section, name| median(&report, section, name);
    assert!(figure("webhooks", "acknowledged durably") > 0.0);
    assert!(figure("webhook-cost", "webhooks kept") > 0.0, "{report}");
    // A host that is busy is late; what is not settled at all is an error of the bench.
    assert!(figure("settle", "after the horizon") < 30.0, "{report}");
    assert!(figure("settle", "after start and horizon") < 30.0);
    // Its seconds are those of a world whose time is paused: no host makes them longer.
    assert!(
        figure("uncertain", "last after its horizon") <= 60.0,
        "{report}"
    );
}
