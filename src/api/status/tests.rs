//! Reasons, their page, and what each error carries.

use super::*;

/// `InvalidArgument` as gRPC writes it: `INVALID_ARGUMENT`.
fn upper_snake(code: Code) -> String {
    let mut name = String::new();
    for c in format!("{code:?}").chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

#[test]
fn the_page_of_errors_lists_the_same_reasons() {
    let page = include_str!("../../docs/errors.md");
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    let named: Vec<&str> = sections.iter().filter_map(|s| s.lines().next()).collect();
    let reasons: Vec<&str> = Reason::ALL.into_iter().map(Reason::name).collect();
    assert_eq!(named, reasons);
    for (reason, section) in Reason::ALL.into_iter().zip(sections) {
        let name = reason.name();
        assert!(name.len() <= 63);
        assert_eq!(Reason::of_name(name), Some(reason));
        let code = format!("gRPC code `{}`.", upper_snake(reason.code()));
        for part in [
            code.as_str(),
            reason.remedy(),
            "**What happened.**",
            "**Dialed?**",
            "**The caller.**",
            "**The operator.**",
        ] {
            assert!(section.contains(part), "{name} lacks {part:?}");
        }
    }
}

#[test]
fn a_platform_that_refuses_the_key_is_not_told_as_one_that_is_away() {
    use crate::model::time::Time;
    use crate::node::health::{Failed, Trouble};
    let said = |why| {
        let at = Time::from_secs(1);
        let health = Health {
            failed: Some(Failed { at, why }),
            failing_since: Some(at),
            ..Health::default()
        };
        let status = of_look(LookError::Platform, &health, Duration::from_secs(2));
        status.message().to_owned()
    };
    let refused = said(Trouble::KeyRefused);
    assert!(refused.contains("livekit.api_secret") && refused.ends_with("(HTTP 401)"));
    assert!(!refused.contains("network"), "{refused}");
    assert!(said(Trouble::NoConnection).contains("check livekit.url"));
    let well = of_look(LookError::Platform, &Health::default(), Duration::ZERO);
    assert_eq!(well.message(), LookError::Platform.to_string());
}

#[test]
fn every_error_carries_its_reason_and_no_detail_twice() {
    let after = Duration::from_secs(2);
    let full = of_place(&PlaceError::QueueFull { limit: 9 }, after);
    assert_eq!(full.code(), Code::ResourceExhausted);
    let details = full.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!(
        (info.reason.as_str(), info.domain.as_str()),
        ("QUEUE_FULL", DOMAIN)
    );
    assert_eq!(info.metadata["limit"], "9");
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(after));
    assert_eq!(details.quota_failure().unwrap().violations.len(), 1);
    let reused = of_place(&PlaceError::IdReused { fields: vec!["to"] }, after);
    assert_eq!(reused.code(), Code::FailedPrecondition);
    assert!(reused.message().contains("to"));
}
