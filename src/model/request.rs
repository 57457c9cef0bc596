//! A request to place a call, parsed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::attempt::Spec;
use super::id::{AttemptId, Workspace};
use super::phone::E164;

/// What `PlaceCall` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt's id: the idempotency key.
    pub attempt: AttemptId,
    /// What is kept in clear.
    pub spec: Spec,
    /// What is kept sealed.
    pub private: Private,
}

/// What is kept sealed, and erased when the attempt settles. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Private {
    /// The number to dial.
    pub to: E164,
    /// The number to call from, if the caller chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<E164>,
    /// DTMF after the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dial_digits: String,
    /// Headers of the INVITE.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sip_headers: BTreeMap<String, String>,
    /// The agent's metadata.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent_metadata: String,
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Private")
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

/// The text of what the first call fixes, from which the fingerprint is made. The number
/// stands in it by its key. A change of this text is a new version of the fingerprint.
#[must_use]
pub fn fixed(spec: &Spec, number_key: &str) -> String {
    let campaign = spec.campaign.as_ref().map_or("", |c| c.as_str());
    let (follows, reason) = spec
        .follows
        .as_ref()
        .map_or(("", ""), |f| (f.attempt.as_str(), f.reason.as_str()));
    format!(
        "1\0{}\0{}\0{campaign}\0{number_key}\0{follows}\0{reason}",
        spec.contact, spec.outreach
    )
}
