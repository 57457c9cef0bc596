//! An attempt as callers see it.

use std::time::Duration;

use super::enums;
use super::explain::{explanation, follow_up, settles_at};
use super::fields::timestamp;
use super::stop;
use crate::api::core::Version;
use crate::api::limits::Limits;
use crate::api::proto;
use crate::model::attempt::{Attempt, EndCause, Next, Spec, State, Transition};
use crate::model::disposition::Fault;
use crate::model::time::Time;

/// The attempt as callers see it at `now`. The number is masked; what is sealed stays so.
/// `limits` say when a refusal for lost history is asked again, and when a review closes itself.
#[must_use]
pub fn attempt(attempt: &Attempt, version: Version, now: Time, limits: &Limits) -> proto::Attempt {
    let settles = settles_at(attempt, limits.review_hold);
    let mut out = proto::Attempt {
        workspace: attempt.workspace.to_string(),
        attempt_id: attempt.id.to_string(),
        to: attempt.number_mask.clone(),
        create_time: Some(timestamp(attempt.create_time)),
        state: enums::state(attempt.state).into(),
        settled: attempt.is_settled(),
        reason: reason(attempt),
        explanation: explanation(attempt, settles, now),
        settle_time: settles.map(timestamp),
        history: history(attempt),
        stop: stop::stop(attempt),
        etag: version.0.to_string(),
        r#try: number(attempt.tries),
        ..proto::Attempt::default()
    };
    // A cancel that came before its request knows nothing but the id.
    if !attempt.tombstone {
        asked_for(&mut out, &attempt.spec);
    }
    next(&mut out, attempt, now, limits.lost_again);
    last_try(&mut out, attempt);
    ending(&mut out, attempt);
    out
}

fn asked_for(out: &mut proto::Attempt, spec: &Spec) {
    out.contact_id = spec.contact.to_string();
    out.outreach_id = spec.outreach.to_string();
    out.campaign_id = spec
        .campaign
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    out.follows = spec.follows.as_ref().map(|follows| proto::Follows {
        attempt_id: follows.attempt.to_string(),
        reason: follows.reason.clone(),
    });
    out.trunk = spec.trunk.to_string();
    out.agent_name = spec.agent.name.to_string();
    out.labels.clone_from(&spec.labels);
    out.priority = i32::from(spec.priority);
    out.set_keep(enums::keep(spec.keep));
    out.intend_time = Some(timestamp(spec.intend_time));
    out.expire_time = Some(timestamp(spec.expire_time));
}

fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn next(out: &mut proto::Attempt, attempt: &Attempt, now: Time, lost_again: Duration) {
    match attempt.next(now, lost_again) {
        Next::Ack => out.set_next(proto::attempt::Next::Ack),
        Next::Repeat(at) => {
            out.set_next(proto::attempt::Next::Repeat);
            out.next_time = Some(timestamp(at));
        }
    }
}

/// Why it waits or was refused.
fn reason(attempt: &Attempt) -> Option<proto::Reason> {
    let waiting = attempt.waiting.as_ref()?;
    Some(proto::Reason {
        rule: waiting.reason.rule.name().to_owned(),
        holder_attempt_id: waiting
            .reason
            .holder
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        until: waiting.reason.until.map(timestamp),
        count: number(waiting.count),
        holder_state: proto::attempt::State::Unspecified.into(),
    })
}

/// The present or last try.
fn last_try(out: &mut proto::Attempt, attempt: &Attempt) {
    let Some(placed) = &attempt.placed else {
        return;
    };
    out.session = placed.session.to_string();
    out.room = placed.room.to_string();
    out.participant_identity = placed.session.identity();
    out.attempt_marker_time = placed.marker.as_ref().map(|marker| timestamp(marker.at));
    out.ring_time = placed.ring_time.map(timestamp);
    out.provider_call_id = placed.call.clone().unwrap_or_default();
    if let Some(answer) = &placed.answer {
        out.provider_call_id.clone_from(&answer.leg.call);
        out.answer_time = Some(timestamp(answer.at));
        out.placement_marker_time = Some(timestamp(answer.at));
    }
}

/// How it ended, as far as it has.
fn ending(out: &mut proto::Attempt, attempt: &Attempt) {
    let (permission, why) = follow_up(attempt);
    out.set_follow_up(enums::permission(permission));
    why.clone_into(&mut out.follow_up_reason);
    out.set_rang(enums::rang(attempt.rang()));
    if let Some(cause) = attempt.review {
        cause.name().clone_into(&mut out.review_cause);
    }
    match (&attempt.settled, attempt.state) {
        (Some(settled), state) => {
            out.set_disposition(enums::disposition(settled.disposition));
            out.set_fault(enums::fault(settled.fault));
            out.set_rang(enums::rang(settled.rang));
            if let Some(sip) = &settled.sip {
                out.sip_status = i32::from(sip.code);
                out.sip_phrase.clone_from(&sip.phrase);
            }
            // An answered call is settled for its caller long before it ends.
            if state != State::Answered {
                out.end_time = Some(timestamp(settled.at));
            }
            if state == State::Ended {
                out.set_end_cause(end_cause(settled.end_cause));
            }
        }
        (None, State::Refused) => {
            out.set_fault(enums::fault(Fault::Policy));
            out.end_time = Some(timestamp(attempt.since));
        }
        (
            None,
            State::Queued
            | State::Deferred
            | State::Reserved
            | State::Dialing
            | State::Answered
            | State::Ended
            | State::NotConnected
            | State::NotDialed
            | State::Uncertain
            | State::NeedsReview
            | State::Canceled,
        ) => {}
    }
}

const fn end_cause(cause: Option<EndCause>) -> proto::attempt::EndCause {
    match cause {
        None | Some(EndCause::RoomGone | EndCause::LegLeft) => proto::attempt::EndCause::Finished,
        Some(EndCause::Canceled) => proto::attempt::EndCause::Canceled,
        Some(EndCause::AgentLost) => proto::attempt::EndCause::AgentLost,
        Some(EndCause::Maximum) => proto::attempt::EndCause::Maximum,
        Some(EndCause::Resolved) => proto::attempt::EndCause::Resolved,
    }
}

/// Its changes; the one by which a cancel was carried out says who asked, and why.
fn history(attempt: &Attempt) -> Vec<proto::Transition> {
    let mut history: Vec<_> = attempt.history.iter().map(transition).collect();
    if let (Some(last), Some(told)) = (history.last_mut(), stop::canceled(attempt)) {
        if !last.evidence.is_empty() {
            last.evidence.push_str("; ");
        }
        last.evidence.push_str(&told);
    }
    history
}

fn transition(transition: &Transition) -> proto::Transition {
    let state = |state| i32::from(enums::state(state));
    proto::Transition {
        from: transition.from.map(state).unwrap_or_default(),
        to: state(transition.to),
        time: Some(timestamp(transition.at)),
        cause: transition.cause.name().to_owned(),
        evidence: transition.evidence.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::attempt::{
        AgentWanted, CancelRequest, Cause, Gate, Keep, Keyed, Mode, Placed, Reason, Rule, Settled,
        Stop, StopWhy, Waiting,
    };
    use crate::model::disposition::{Disposition, Rang};
    use crate::model::id::{Nonce, Partition, SessionId};
    use crate::model::verdict::SipStatus;

    const NOW: Time = Time::from_secs(1_000);

    fn of(state: State) -> Attempt {
        let spec = Spec {
            contact: "c1".parse().unwrap(),
            outreach: "o1".parse().unwrap(),
            campaign: None,
            follows: None,
            intend_time: NOW,
            expire_time: Time::from_secs(4_600),
            keep: Keep::UntilExpiry,
            trunk: "main".parse().unwrap(),
            agent: AgentWanted {
                name: "caller".parse().unwrap(),
                gate: Gate::Joined,
                join_ms: 10_000,
            },
            ringing_ms: 45_000,
            max_call_ms: 3_600_000,
            time_zone: None,
            priority: 3,
            labels: std::collections::BTreeMap::new(),
        };
        let keyed = Keyed {
            fingerprint: "f-secret".into(),
            number_key: "k-secret".into(),
            number_mask: "+1********00".into(),
            sealed: Some("s-secret".into()),
        };
        let (ws, id) = ("w".parse().unwrap(), "a1".parse().unwrap());
        let mut attempt = Attempt::new(ws, id, spec, keyed, uuid::Uuid::nil(), NOW);
        attempt.enter(None, state, NOW, Cause::Admitted, String::new());
        attempt
    }

    fn shown(attempt: &Attempt) -> proto::Attempt {
        super::attempt(attempt, Version(7), NOW, &Limits::default())
    }

    fn waits(attempt: &mut Attempt, rule: Rule) {
        attempt.waiting = Some(Waiting {
            reason: Reason {
                rule,
                holder: Some("a0".parse().unwrap()),
                until: None,
            },
            until: Time::from_secs(1_030),
            not_before: None,
            count: 2,
            first: NOW,
            last: NOW,
        });
    }

    #[test]
    fn every_state_is_explained_and_nothing_secret_leaves() {
        for state in State::ALL {
            let out = shown(&of(state));
            assert!(!out.explanation.is_empty() && !out.follow_up_reason.is_empty());
            assert_eq!(out.settled, state.settled(), "{state:?}");
            assert!(!format!("{out:?}").contains("secret"));
            let json = serde_json::to_value(&out).unwrap();
            assert_eq!(json["to"], "+1********00");
            assert_eq!(json["etag"], "7");
        }
    }

    #[test]
    fn what_waits_names_its_holder_and_when_to_ask_again() {
        let mut queued = of(State::Queued);
        waits(&mut queued, Rule::ContactReserved);
        let out = shown(&queued);
        assert_eq!(out.next(), proto::attempt::Next::Ack);
        let reason = out.reason.unwrap();
        assert_eq!(
            (reason.rule.as_str(), reason.count),
            ("CONTACT_RESERVED", 2)
        );
        assert!(out.explanation.ends_with(": a0"));

        let mut deferred = of(State::Deferred);
        waits(&mut deferred, Rule::NumberInUse);
        let out = shown(&deferred);
        assert_eq!(out.next(), proto::attempt::Next::Repeat);
        assert_eq!(out.next_time.unwrap().seconds, 1_030);

        let mut lost = of(State::Refused);
        waits(&mut lost, Rule::HistoryLost);
        let out = shown(&lost);
        assert!(!out.settled);
        assert_eq!(out.next_time.unwrap().seconds, 1_300);
        assert_eq!(out.follow_up(), proto::attempt::FollowUpPermission::NotYet);
    }

    #[test]
    fn what_is_not_known_says_by_when_it_is_settled_and_what_to_do() {
        let says = |out: &proto::Attempt, words: &[&str]| {
            for words in words {
                assert!(out.explanation.contains(words), "{}", out.explanation);
            }
        };
        let soon = Time::from_secs(1_200);
        let mut open = of(State::Uncertain);
        let session = SessionId::of(&"d".parse().unwrap(), &open.workspace, &open.id, 1);
        let nonce = Nonce(uuid::Uuid::nil());
        let mut placed = Placed::reserved(session, session.room(Partition(0)), nonce, NOW, NOW);
        placed.horizon = Some(soon);
        open.placed = Some(placed);
        open.look_at = Some(soon);
        let out = shown(&open);
        assert_eq!(out.settle_time, Some(timestamp(soon)));
        says(
            &out,
            &[
                &format!("soon after {soon}, when"),
                "it is settled or a person is asked",
                "drop the message",
                "not dialed again",
            ],
        );
        // The horizon is past, and a look since has put the next one off: the trunks were lost.
        open.placed.as_mut().unwrap().horizon = Some(Time::from_secs(900));
        let out = shown(&open);
        assert_eq!(out.settle_time, Some(timestamp(soon)));
        says(
            &out,
            &[
                "does not settle it: it has lost its records",
                "settles it or a person is asked; else a person is asked about",
                &format!("{soon}, or later if"),
            ],
        );

        // An outage: the look itself is late.
        open.look_at = Some(Time::from_secs(950));
        says(
            &shown(&open),
            &["overdue since 1970-01-01T00:15:50Z", "ringonce status"],
        );

        let out = shown(&of(State::NeedsReview));
        let closes = NOW.plus(Limits::default().review_hold);
        assert_eq!(out.settle_time, Some(timestamp(closes)));
        says(
            &out,
            &[&closes.to_string(), "UNRESOLVED", "ringonce review resolve"],
        );
        assert_eq!(shown(&of(State::Answered)).settle_time, None);
    }

    #[test]
    fn an_answered_call_has_no_end_until_it_ends() {
        let settled = Settled {
            end_cause: Some(EndCause::Maximum),
            ..Settled::new(Disposition::Answered, Rang::Rang, true, NOW)
        };
        let mut attempt = of(State::Answered);
        attempt.settled = Some(settled);
        let out = shown(&attempt);
        assert!(out.settled && out.end_time.is_none());
        attempt.enter(
            Some(State::Answered),
            State::Ended,
            NOW,
            Cause::Maximum,
            String::new(),
        );
        let out = shown(&attempt);
        assert!(out.end_time.is_some());
        assert_eq!(out.end_cause(), proto::attempt::EndCause::Maximum);
    }

    #[test]
    fn an_end_is_told_as_surely_as_it_is_known() {
        let says = |disposition, rang, sip: Option<u16>| {
            let mut attempt = of(State::NotConnected);
            let mut settled = Settled::new(disposition, rang, true, NOW);
            settled.sip = sip.map(|code| SipStatus {
                code,
                phrase: "-".into(),
            });
            attempt.settled = Some(settled);
            shown(&attempt).explanation
        };
        let (rang, unseen) = (Rang::Rang, Rang::NoEvidence);
        assert_eq!(says(Disposition::NoAnswer, rang, None), "nobody answered");
        assert_eq!(
            says(Disposition::NoAnswer, unseen, None),
            "nobody answered, or the trunk's host did not: no ringing was seen"
        );
        // The carrier itself said so.
        let told = says(Disposition::NoAnswer, unseen, Some(408));
        assert_eq!(told, "nobody answered (SIP 408)");
        let capacity = says(Disposition::CarrierCapacity, unseen, Some(480));
        assert!(
            capacity.contains("callee itself may have been meant"),
            "{capacity}"
        );
        let capacity = says(Disposition::CarrierCapacity, unseen, Some(503));
        assert!(!capacity.contains("callee"), "{capacity}");
        let ended = says(Disposition::StoppedOnPlatform, rang, Some(487));
        assert!(ended.contains("the carrier's side says"), "{ended}");
        assert!(ended.ends_with("(SIP 487)"), "{ended}");
    }

    #[test]
    fn a_stop_is_pending_only_while_it_will_be_carried_out() {
        let mut attempt = of(State::Answered);
        attempt.stop = Some(Stop::new(StopWhy::Cancel, NOW));
        for (mode, pending) in [(Mode::StopRinging, false), (Mode::HangUp, true)] {
            attempt.cancel = Some(CancelRequest {
                mode,
                by: "kim".into(),
                why: "wrong list".into(),
                at: NOW,
            });
            let out = shown(&attempt);
            assert_eq!(out.stop.unwrap().pending, pending, "{mode:?}");
            assert_eq!(out.explanation.contains("by kim: wrong list"), pending);
        }
    }

    #[test]
    fn a_cancel_before_its_request_shows_the_id_alone() {
        let mut attempt = of(State::Canceled);
        attempt.tombstone = true;
        let out = shown(&attempt);
        assert_eq!(
            (out.attempt_id.as_str(), out.contact_id.as_str()),
            ("a1", "")
        );
        assert!(out.intend_time.is_none() && out.trunk.is_empty());
    }
}
