//! What a carrier's final status becomes on its way through the bridge.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use livekit_protocol as lk;
use lk::DisconnectReason;
use prost::Message;

use super::answer::{Code, Refusal};

/// A final status of the carrier other than 200.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SipStatus {
    pub(super) code: u16,
    pub(super) phrase: &'static str,
}

impl SipStatus {
    /// The Twirp code, and the code of gRPC inside `error_details` (livekit/protocol
    /// `livekit/sip.go`, as recorded for every status named here).
    fn codes(self) -> (Code, i32) {
        match self.code {
            402 | 403 | 603 | 607 | 608 => (Code::PermissionDenied, 7),
            301 | 302 | 404 | 410 | 604 => (Code::NotFound, 5),
            480 | 486 | 600 => (Code::ResourceExhausted, 8),
            487 | 491 => (Code::Aborted, 10),
            408 | 504 => (Code::DeadlineExceeded, 4),
            500..=599 => (Code::FailedPrecondition, 9),
            _ => (Code::InvalidArgument, 3),
        }
    }

    /// The answer to a dial that waited.
    pub(super) fn refusal(self) -> Refusal {
        let Self { code, phrase } = self;
        let (twirp, grpc) = self.codes();
        let what = match code {
            400 | 404 | 480 | 486 | 488 => "INVITE failed",
            _ => "unexpected status from INVITE response",
        };
        let msg = format!("{what}: sip status: {code}: {phrase}");
        let detail = lk::SipStatus {
            code: i32::from(code),
            status: phrase.to_owned(),
        };
        let status = tonic_types::Status {
            code: grpc,
            message: msg.clone(),
            details: vec![prost_types::Any {
                type_url: "type.googleapis.com/livekit.SIPStatus".to_owned(),
                value: detail.encode_to_vec(),
            }],
        };
        Refusal::inner(twirp, &msg)
            .with("error_details", STANDARD.encode(status.encode_to_vec()))
            .with("sip_status", phrase.to_owned())
            .with("sip_status_code", code.to_string())
    }

    /// What `participant_left` says. A carrier's failure looks like a hang-up, as seen
    /// on livekit-sip 1.11.0.
    pub(super) fn disconnect(self) -> DisconnectReason {
        match self.code {
            404 | 408 | 480 => DisconnectReason::UserUnavailable,
            400..=499 | 600..=699 => DisconnectReason::UserRejected,
            _ => DisconnectReason::ClientInitiated,
        }
    }
}
