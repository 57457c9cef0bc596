//! The enums of the domain and those of the proto, value by value.

use crate::api::core::CancelResult;
use crate::api::proto;
use crate::model::attempt::{Attempt, Keep, State};
use crate::model::disposition::{Disposition, Fault, Permission, Rang};

pub(super) const fn state(state: State) -> proto::attempt::State {
    use proto::attempt::State as Out;
    match state {
        State::Queued => Out::Queued,
        State::Deferred => Out::Deferred,
        State::Refused => Out::Refused,
        State::Reserved => Out::Reserved,
        State::Dialing => Out::Dialing,
        State::Answered => Out::Answered,
        State::Ended => Out::Ended,
        State::NotConnected => Out::NotConnected,
        State::NotDialed => Out::NotDialed,
        State::Uncertain => Out::Uncertain,
        State::NeedsReview => Out::NeedsReview,
        State::Canceled => Out::Canceled,
    }
}

/// `None` for the value that says nothing.
pub(super) const fn state_in(state: proto::attempt::State) -> Option<State> {
    use proto::attempt::State as In;
    Some(match state {
        In::Unspecified => return None,
        In::Queued => State::Queued,
        In::Deferred => State::Deferred,
        In::Refused => State::Refused,
        In::Reserved => State::Reserved,
        In::Dialing => State::Dialing,
        In::Answered => State::Answered,
        In::Ended => State::Ended,
        In::NotConnected => State::NotConnected,
        In::NotDialed => State::NotDialed,
        In::Uncertain => State::Uncertain,
        In::NeedsReview => State::NeedsReview,
        In::Canceled => State::Canceled,
    })
}

pub(super) const fn disposition(disposition: Disposition) -> proto::attempt::Disposition {
    use proto::attempt::Disposition as Out;
    match disposition {
        Disposition::Answered => Out::Answered,
        Disposition::Busy => Out::Busy,
        Disposition::NoAnswer => Out::NoAnswer,
        Disposition::Declined => Out::Declined,
        Disposition::Unreached => Out::Unreached,
        Disposition::Rejected => Out::Rejected,
        Disposition::WrongNumber => Out::WrongNumber,
        Disposition::Unavailable => Out::Unavailable,
        Disposition::Blocked => Out::Blocked,
        Disposition::Redirected => Out::Redirected,
        Disposition::CarrierRefused => Out::CarrierRefused,
        Disposition::CarrierFailure => Out::CarrierFailure,
        Disposition::CarrierCapacity => Out::CarrierCapacity,
        Disposition::TrunkAuth => Out::TrunkAuth,
        Disposition::TrunkNotFound => Out::TrunkNotFound,
        Disposition::TrunkUnreachable => Out::TrunkUnreachable,
        Disposition::MediaMismatch => Out::MediaMismatch,
        Disposition::AgentUnavailable => Out::AgentUnavailable,
        Disposition::AgentConflict => Out::AgentConflict,
        Disposition::AgentLost => Out::AgentLost,
        Disposition::RoomFailed => Out::RoomFailed,
        Disposition::PlatformOverloaded => Out::PlatformOverloaded,
        Disposition::PlatformClock => Out::PlatformClock,
        Disposition::PlatformUnreachable => Out::PlatformUnreachable,
        Disposition::PlatformStopped => Out::PlatformStopped,
        Disposition::RequestRejected => Out::RequestRejected,
        Disposition::StoppedOnPlatform => Out::StoppedOnPlatform,
        Disposition::NoTrace => Out::NoTrace,
        Disposition::Unresolved => Out::Unresolved,
        Disposition::NotDialed => Out::NotDialed,
        Disposition::Expired => Out::Expired,
        Disposition::Canceled => Out::Canceled,
    }
}

pub(super) const fn fault(fault: Fault) -> proto::attempt::Fault {
    use proto::attempt::Fault as Out;
    match fault {
        Fault::None => Out::Unspecified,
        Fault::Callee => Out::Callee,
        Fault::Number => Out::Number,
        Fault::Carrier => Out::Carrier,
        Fault::Platform => Out::Platform,
        Fault::Agent => Out::Agent,
        Fault::Policy => Out::Policy,
        Fault::Unknown => Out::Unknown,
    }
}

pub(super) const fn permission(permission: Permission) -> proto::attempt::FollowUpPermission {
    use proto::attempt::FollowUpPermission as Out;
    match permission {
        Permission::NotYet => Out::NotYet,
        Permission::Permitted => Out::Permitted,
        Permission::Never => Out::Never,
    }
}

pub(super) const fn rang(rang: Rang) -> proto::attempt::Rang {
    match rang {
        Rang::Rang => proto::attempt::Rang::Rang,
        Rang::NoEvidence => proto::attempt::Rang::NoEvidence,
    }
}

pub(super) const fn keep(keep: Keep) -> proto::Keep {
    match keep {
        Keep::UntilExpiry => proto::Keep::UntilExpiry,
        Keep::Return => proto::Keep::Return,
    }
}

/// What a cancel brought about; of one that is repeated, what the first one did.
pub(crate) fn cancel_result(
    result: CancelResult,
    attempt: &Attempt,
) -> proto::cancel_attempt_response::Result {
    use proto::cancel_attempt_response::Result as Out;
    let told = match result {
        CancelResult::Already => CancelResult::of(attempt),
        CancelResult::Prevented
        | CancelResult::Stopped
        | CancelResult::HungUp
        | CancelResult::TooLate
        | CancelResult::Pending => result,
    };
    match told {
        // What an attempt tells by itself is never "already".
        CancelResult::Prevented | CancelResult::Already => Out::Prevented,
        CancelResult::Stopped => Out::Stopped,
        CancelResult::HungUp => Out::HungUp,
        CancelResult::TooLate => Out::TooLate,
        CancelResult::Pending => Out::Pending,
    }
}

/// One cancel of many, as it came out.
pub(crate) fn canceled_attempt(
    result: Option<CancelResult>,
    attempt: &Attempt,
) -> proto::CanceledAttempt {
    let result = result.map(|result| cancel_result(result, attempt));
    proto::CanceledAttempt {
        attempt_id: attempt.id.to_string(),
        result: result.unwrap_or_default().into(),
        state: state(attempt.state).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_passes_there_and_back() {
        for one in State::ALL {
            assert_eq!(state_in(state(one)), Some(one));
            let name = state(one).as_str_name().to_ascii_lowercase();
            assert_eq!(name, format!("state_{}", one.name()));
        }
    }

    #[test]
    fn every_disposition_has_a_value_of_its_own_and_its_name() {
        for one in Disposition::ALL {
            let name = serde_json::to_value(one).unwrap();
            let expected = format!("disposition_{}", name.as_str().unwrap());
            assert_eq!(
                disposition(one).as_str_name().to_ascii_lowercase(),
                expected
            );
        }
    }
}
