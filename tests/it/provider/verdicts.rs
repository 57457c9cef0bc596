//! The table of verdicts over the cases that are known from the field.

use ringonce::model::disposition::{Disposition as D, Permission};
use ringonce::model::verdict::{After, TryFailure as F, Unclear, Verdict};
use ringonce::provider::classify::{DialContext, overloaded, trunk_missing, verdict};
use ringonce::provider::twirp::{PROTOBUF, read};
use ringonce::provider::wire::{Answer, Lost, NotSent};
use serde_json::json;

use super::answers::{brief, context, done, over, page, twirp};

/// R01: what may have been placed is uncertain, and what has no ids is not answered.
#[test]
fn r01_an_ambiguous_create_is_uncertain() {
    for (answer, why) in [
        (Answer::Lost(Lost::Broken), Unclear::NoAnswer),
        (Answer::Lost(Lost::Unreadable), Unclear::NoAnswer),
        (Answer::Lost(Lost::Timeout), Unclear::NoAnswer),
        (page(500, ""), Unclear::Strange(500)),
        (done("", ""), Unclear::NoIds),
        (done("SCL_1", ""), Unclear::NoIds),
        (done("", "PA_1"), Unclear::NoIds),
        (
            read(200, Some(PROTOBUF), b"not protobuf".to_vec()),
            Unclear::NoIds,
        ),
        (page(200, "not json"), Unclear::Strange(200)),
        (read(200, None, Vec::new()), Unclear::Strange(200)),
        (page(201, ""), Unclear::Strange(201)),
        (page(302, ""), Unclear::Strange(302)),
    ] {
        let verdict = verdict(&answer, &context(1.0, 45));
        assert_eq!(verdict, Verdict::Uncertain(why), "{answer:?}");
    }
}

/// R02, R22: the same status says different things at different moments.
#[test]
fn r22_only_the_moment_tells_a_ring_that_ran_out() {
    let canceled = |text: &str| {
        let msg = format!("twirp error unknown: {text}");
        twirp(408, &json!({"code": "canceled", "msg": msg}))
    };
    let timed_out = canceled("sip request timed out");
    let torn = Verdict::Uncertain(Unclear::TornDown);
    for elapsed in [3.6, 44.9, 53.1] {
        assert_eq!(
            verdict(&timed_out, &context(elapsed, 45)),
            torn,
            "{elapsed}"
        );
    }
    for elapsed in [45.0, 45.1, 53.0] {
        let verdict = brief(&verdict(&timed_out, &context(elapsed, 45)));
        assert_eq!(verdict, "not connected: NoAnswer 0 Canceled", "{elapsed}");
    }
    for elapsed in [0.1, 45.1, 300.0] {
        let stopped = DialContext {
            stop_recorded: true,
            ..context(elapsed, 45)
        };
        let verdict = brief(&verdict(&timed_out, &stopped));
        assert_eq!(verdict, "not connected: Canceled 0 Canceled", "{elapsed}");
    }
    for text in [
        "context canceled",
        "context deadline exceeded",
        "canceled",
        "",
    ] {
        assert_eq!(verdict(&canceled(text), &context(45.1, 45)), torn, "{text}");
    }
    let stopping = brief(&verdict(
        &canceled("service shutting down"),
        &context(9.0, 45),
    ));
    assert_eq!(stopping, "not connected: PlatformStopped 0 Canceled");
}

/// R08: six 404s, two of which find the trunk missing.
#[test]
fn r08_not_found_means_six_things() {
    let not_found = |msg: &str| twirp(404, &json!({"code": "not_found", "msg": msg}));
    for msg in [
        "requested sip trunk does not exist",
        "twirp error unknown: requested sip trunk does not exist",
        "object cannot be found",
        "twirp error unknown: object cannot be found",
    ] {
        assert!(trunk_missing(&not_found(msg)), "{msg}");
        assert_eq!(
            verdict(&not_found(msg), &context(0.1, 45)),
            Verdict::NotDialed(F::TrunkNotFound)
        );
    }
    let wrong_number = twirp(
        404,
        &json!({
            "code": "not_found",
            "msg": "twirp error unknown: INVITE failed: sip status: 404: Not Found",
            "meta": {"sip_status_code": "404", "sip_status": "Not Found"}
        }),
    );
    assert!(!trunk_missing(&wrong_number));
    assert_eq!(
        brief(&verdict(&wrong_number, &context(4.0, 45))),
        over(D::WrongNumber, 404)
    );
    // The last two are another server's, and no fault of the request.
    for (answer, failure) in [
        (
            not_found("requested room does not exist"),
            F::RequestRejected,
        ),
        (
            page(404, "<h1>404 page not found</h1>"),
            F::PlatformUnreachable,
        ),
        (
            twirp(404, &json!({"code": "bad_route", "msg": "no handler"})),
            F::PlatformUnreachable,
        ),
    ] {
        assert!(!trunk_missing(&answer));
        assert_eq!(
            verdict(&answer, &context(0.1, 45)),
            Verdict::NotDialed(failure)
        );
    }
}

fn carrier(http: u16, code: &str, sip: &str, phrase: &str) -> Answer {
    let meta = json!({"sip_status_code": sip, "sip_status": phrase});
    twirp(
        http,
        &json!({"code": code, "msg": "sip status", "meta": meta}),
    )
}

/// R16: phrase and time tell a person's choice from a carrier's limit and from a block.
#[test]
fn r16_one_sip_code_has_several_meanings() {
    for (answer, elapsed, wanted) in [
        (
            carrier(429, "resource_exhausted", "480", "Temporarily Unavailable"),
            0.15,
            D::CarrierCapacity,
        ),
        (
            carrier(429, "resource_exhausted", "480", "Temporarily Unavailable"),
            12.0,
            D::Unavailable,
        ),
        (
            carrier(403, "permission_denied", "603", "Decline"),
            8.0,
            D::Declined,
        ),
        (
            carrier(403, "permission_denied", "603", "Network Blocked"),
            0.4,
            D::Blocked,
        ),
        (
            carrier(403, "permission_denied", "607", "Unwanted"),
            1.0,
            D::Blocked,
        ),
        (
            carrier(403, "permission_denied", "608", "Rejected"),
            1.0,
            D::Blocked,
        ),
    ] {
        let Verdict::NotConnected(end) = verdict(&answer, &context(elapsed, 45)) else {
            panic!("{answer:?} is a carrier's answer");
        };
        assert_eq!(end.disposition, wanted);
        assert_eq!(end.after, After::Over);
        assert!(!end.sip.unwrap().phrase.is_empty());
        let blocked = wanted == D::Blocked;
        assert_eq!(wanted.permission() == Permission::Never, blocked);
    }
}

/// R17: a 5xx is the carrier's if it carries a SIP status, ours if its text is known, and
/// else proves nothing.
#[test]
fn r17_5xx_with_and_without_the_carriers_evidence() {
    let wrapped = carrier(500, "internal", "500", "SIP_STATUS_INTERNAL_SERVER_ERROR");
    assert_eq!(
        brief(&verdict(&wrapped, &context(2.0, 45))),
        over(D::CarrierFailure, 500)
    );
    let no_bridge = twirp(
        503,
        &json!({"code": "unavailable", "msg": "twirp error unknown: no response from servers"}),
    );
    assert!(overloaded(&no_bridge));
    assert_eq!(
        verdict(&no_bridge, &context(1.0, 45)),
        Verdict::NotDialed(F::PlatformOverloaded)
    );
    let limit = carrier(412, "failed_precondition", "503", "CPS limit exceeded");
    assert_eq!(
        brief(&verdict(&limit, &context(1.0, 45))),
        over(D::CarrierCapacity, 503)
    );
    let twirp = |status, code: &str, msg: &str| twirp(status, &json!({"code": code, "msg": msg}));
    for (answer, why) in [
        (
            page(503, "upstream connect error or disconnect"),
            Unclear::Strange(503),
        ),
        (page(502, ""), Unclear::Strange(502)),
        (page(504, "<html>"), Unclear::Strange(504)),
        (page(429, "slow down"), Unclear::Strange(429)),
        (
            twirp(503, "Service Unavailable", "a gateway's own JSON"),
            Unclear::Strange(503),
        ),
        (twirp(503, "unavailable", "other"), Unclear::Twirp(503)),
        (
            twirp(500, "internal", "Internal service panic"),
            Unclear::Twirp(500),
        ),
        (
            twirp(429, "resource_exhausted", "quota"),
            Unclear::Twirp(429),
        ),
        (
            twirp(412, "failed_precondition", "write: broken pipe"),
            Unclear::Twirp(412),
        ),
    ] {
        assert!(!overloaded(&answer));
        let verdict = verdict(&answer, &context(44.0, 45));
        assert_eq!(verdict, Verdict::Uncertain(why), "{answer:?}");
    }
}

/// R20: events and attributes do not come into it; the dial's own answer decides.
#[test]
fn r20_a_busy_answer_is_busy_whatever_was_seen_before() {
    let busy = carrier(429, "resource_exhausted", "486", "Busy Here");
    let stopped = DialContext {
        stop_recorded: true,
        ..context(12.0, 45)
    };
    assert_eq!(
        brief(&verdict(&busy, &context(12.0, 45))),
        over(D::Busy, 486)
    );
    assert_eq!(brief(&verdict(&busy, &stopped)), over(D::Busy, 486));
}

#[test]
fn a_status_that_is_none_proves_nothing() {
    for sip in ["0", "200", "299", "700", "999", "70000", "-1", "abc", ""] {
        for (http, code) in [
            (404, "not_found"),
            (400, "invalid_argument"),
            (500, "internal"),
        ] {
            assert_eq!(
                verdict(
                    &carrier(http, code, sip, "requested sip trunk does not exist"),
                    &context(1.0, 45)
                ),
                Verdict::Uncertain(Unclear::Twirp(http)),
                "{sip}"
            );
        }
    }
    for sip in ["300", "555", "699"] {
        let verdict = verdict(&carrier(500, "unknown", sip, ""), &context(1.0, 45));
        assert!(matches!(verdict, Verdict::NotConnected(_)), "{sip}");
    }
}

#[test]
fn a_phrase_is_kept_short_in_one_line_and_without_a_number() {
    let phrase = format!("Busy\r\nX: y{}", "é".repeat(500));
    let Verdict::NotConnected(end) = verdict(
        &carrier(429, "resource_exhausted", "486", &phrase),
        &context(1.0, 45),
    ) else {
        panic!("a carrier's answer");
    };
    let kept = end.sip.unwrap().phrase;
    assert_eq!(kept.chars().count(), 128);
    assert!(!kept.chars().any(char::is_control));
    let named = carrier(404, "not_found", "404", "No route to +1 202-555-0186 here");
    let Verdict::NotConnected(end) = verdict(&named, &context(1.0, 45)) else {
        panic!("a carrier's answer");
    };
    assert_eq!(end.sip.unwrap().phrase, "No route to (number) here");
}

#[test]
fn what_provably_started_no_call_is_not_dialed() {
    let error = |status, code: &str, msg: &str| twirp(status, &json!({"code": code, "msg": msg}));
    for (answer, why) in [
        (
            Answer::NotSent(NotSent::NoConnection),
            F::PlatformUnreachable,
        ),
        (Answer::NotSent(NotSent::Malformed), F::RequestRejected),
        (Answer::NotSent(NotSent::TooLate), F::TooLate),
        (page(401, "invalid token"), F::CredentialsRefused),
        (page(413, "request body too large"), F::RequestRejected),
        (
            error(412, "failed_precondition", "no numbers on outbound trunk"),
            F::TrunkNoNumber,
        ),
        (
            error(400, "malformed", "the json request could not be decoded"),
            F::RequestRejected,
        ),
        (
            error(503, "unavailable", "cpu exhausted"),
            F::PlatformOverloaded,
        ),
        (
            error(
                503,
                "unavailable",
                "no servers available (received 1 responses)",
            ),
            F::PlatformOverloaded,
        ),
        (
            error(500, "internal", "update room failed: x"),
            F::RoomFailed,
        ),
        (
            error(500, "internal", "sip not connected (redis required)"),
            F::PlatformUnreachable,
        ),
    ] {
        assert_eq!(
            verdict(&answer, &context(0.2, 45)),
            Verdict::NotDialed(why),
            "{answer:?}"
        );
    }
    // The same words under another status or as a proxy's page are not LiveKit's.
    for answer in [
        page(503, "no response from servers"),
        page(400, "Bad Request"),
        page(412, "no numbers"),
        error(400, "bad_request", "a gateway's own JSON"),
    ] {
        let verdict = verdict(&answer, &context(0.2, 45));
        assert!(matches!(verdict, Verdict::Uncertain(_)), "{answer:?}");
    }
}

#[test]
fn odd_json_is_read_without_a_panic() {
    let refused = |body: &str| matches!(page(500, body), Answer::Refused(_));
    for body in [
        r#"{"code":"internal"}"#,
        r#"{"code":"internal","msg":null,"meta":null}"#,
        r#"{"code":"internal","msg":5,"meta":[1]}"#,
        r#"{"code":"internal","meta":{"sip_status_code":486,"sip_status":{}}}"#,
    ] {
        assert!(refused(body), "{body}");
    }
    for body in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"code":5}"#,
        r#"{"code":"BAD_GATEWAY","msg":"x"}"#,
        r#"{"code":"x""#,
        "\u{feff}{}",
    ] {
        assert!(!refused(body), "{body}");
    }
}
