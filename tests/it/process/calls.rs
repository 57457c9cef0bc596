//! Calls as a user places them: what each number comes to, and one ring whatever is repeated.

use std::collections::BTreeSet;

use ringonce::model::time::Time;
use ringonce::runtime::clock::{Clock as _, SystemClock};

use super::stack::Stack;

/// A `place` that waits for the end of the dial.
pub(super) fn place(attempt: &str, contact: &str, to: &str) -> String {
    format!(
        "place --attempt {attempt} --contact {contact} --outreach o-{contact} --to {to} \
         --intend-time {} --wait dial-over",
        in_seconds(0)
    )
}

/// So many seconds from now, as RFC 3339.
pub(super) fn in_seconds(seconds: i64) -> String {
    after(SystemClock.now(), seconds * 1_000_000)
}

/// So many microseconds after `time`, as RFC 3339.
pub(super) fn after(time: Time, micros: i64) -> String {
    Time::from_micros(time.as_micros() + micros).to_string()
}

#[tokio::test]
async fn each_number_comes_to_its_end_after_one_sip_call() {
    let stack = Stack::new().await;
    let cases = [
        ("+12025550100", 0, "STATE_ANSWERED", "DISPOSITION_ANSWERED"),
        ("+12025550186", 1, "STATE_NOT_CONNECTED", "DISPOSITION_BUSY"),
        (
            "+12025550103",
            1,
            "STATE_NOT_CONNECTED",
            "DISPOSITION_DECLINED",
        ),
        (
            "+12025550108",
            1,
            "STATE_NOT_CONNECTED",
            "DISPOSITION_NO_ANSWER",
        ),
        (
            "+12025550104",
            1,
            "STATE_NOT_CONNECTED",
            "DISPOSITION_WRONG_NUMBER",
        ),
        (
            "+12025550153",
            1,
            "STATE_NOT_CONNECTED",
            "DISPOSITION_CARRIER_FAILURE",
        ),
        ("+12025550199", 4, "STATE_UNCERTAIN", ""),
        ("+12025550198", 4, "STATE_UNCERTAIN", ""),
    ];
    let placed = cases.map(|(to, ..)| {
        let attempt = format!("a{}", &to[10..]);
        stack.begin(&place(&attempt, &attempt, to))
    });
    for ((to, code, state, disposition), running) in cases.into_iter().zip(placed) {
        let ran = running.end();
        assert_eq!(ran.code, code, "{to}: {ran:?}");
        let attempt = ran.json();
        assert_eq!(attempt["state"], state, "{to}");
        assert_eq!(
            attempt["disposition"].as_str().unwrap_or_default(),
            disposition,
            "{to}"
        );
        assert_eq!(attempt["to"], format!("+1********{}", &to[10..]));
    }
    stack.assert_sip_calls(8).await;
    // What is not known is not dialed again, however often it is asked for.
    let again = stack.call(&place("a99", "a99", "+12025550199")).json();
    assert_eq!(again["try"], 1, "{again}");
    stack.assert_sip_calls(8).await;
    for secret in ["202555", "eyJ", "devsecret"] {
        assert!(
            !stack.serve.log().contains(secret),
            "{secret} is in the log"
        );
    }
}

#[tokio::test]
async fn twenty_at_once_with_one_id_ring_once() {
    let stack = Stack::new().await;
    let words = place("a1", "c1", "+12025550108");
    let running: Vec<_> = (0..20).map(|_| stack.begin(&words)).collect();
    let mut sessions = BTreeSet::new();
    for running in running {
        let ran = running.end();
        assert_eq!(ran.code, 1, "{ran:?}");
        assert_eq!(ran.json()["disposition"], "DISPOSITION_NO_ANSWER");
        sessions.insert(ran.json()["session"].to_string());
    }
    assert_eq!(sessions.len(), 1);
    stack.assert_sip_calls(1).await;
}

#[tokio::test]
async fn two_attempts_for_one_contact_ring_one_after_the_other() {
    let stack = Stack::new().await;
    let first = place("a1", "c1", "+12025550108").replace("--wait dial-over", "");
    assert_eq!(stack.call(&first).code, 0);
    stack.ringing().await;
    // Another campaign's, to another number of the same person.
    let second = place("a2", "c1", "+12025550186")
        .replace("--outreach o-c1", "--outreach o2")
        .replace("--wait dial-over", "");
    let waiting = stack.call(&second).json();
    assert_eq!(waiting["state"], "STATE_QUEUED");
    assert_eq!(waiting["reason"]["holderAttemptId"], "a1", "{waiting}");
    stack.assert_sip_calls(1).await;
    let first = stack.call("get --attempt a1 --wait dial-over").json();
    assert_eq!(first["disposition"], "DISPOSITION_NO_ANSWER");
    let second = stack
        .attempt("a2", |attempt| attempt["disposition"] == "DISPOSITION_BUSY")
        .await;
    assert!(
        second["attemptMarkerTime"].as_str() > first["endTime"].as_str(),
        "{first}\n{second}"
    );
    stack.assert_sip_calls(2).await;
    let state = stack.state().await;
    assert_eq!(state["legs_by_contact"]["w/c1"]["most"], 1);
}
