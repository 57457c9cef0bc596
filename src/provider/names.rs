//! What a room of ours carries: the routing metadata, opaque ids only, no phone number.

use serde::{Deserialize, Serialize};

use crate::model::id::{
    AttemptId, CampaignId, ContactId, Deployment, Nonce, OutreachId, SessionId, Workspace,
};

/// The version of the metadata that is written here.
pub const VERSION: u32 = 1;

/// The metadata of a room of ours, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutingMetadata {
    /// The version; fields may be added under the same one.
    pub v: u32,
    /// Whose room it is: other deployments' rooms are never touched.
    pub deployment: Deployment,
    /// The tenant.
    pub workspace: Workspace,
    /// The attempt.
    pub attempt: AttemptId,
    /// The try.
    pub session: SessionId,
    /// The person, by an opaque id.
    pub contact: ContactId,
    /// The business reason.
    pub outreach: OutreachId,
    /// The campaign, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign: Option<CampaignId>,
    /// The identity that the callee's leg will have; the agent waits for it.
    pub callee_identity: String,
    /// A random value of this try: our session with another nonce proves lost history.
    pub nonce: Nonce,
}

/// What a room's metadata is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metadata {
    /// This deployment's.
    Ours(Box<RoutingMetadata>),
    /// JSON that is not ours, another deployment's, or too new to be read.
    Foreign,
    /// No JSON; also empty, as in a room that a dial made by itself.
    NotJson,
}

impl RoutingMetadata {
    /// As text for `CreateRoom`.
    ///
    /// # Panics
    ///
    /// Never: it is made of strings and numbers.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers, which JSON can always hold")
    }
}

impl Metadata {
    /// Reads a room's metadata. Unknown fields are ignored.
    #[must_use]
    pub fn read(text: &str, ours: &Deployment) -> Self {
        let Ok(json) = serde_json::from_str::<serde_json::Value>(text) else {
            return Self::NotJson;
        };
        match serde_json::from_value::<RoutingMetadata>(json) {
            Ok(metadata) if metadata.deployment == *ours && metadata.v == VERSION => {
                Self::Ours(Box::new(metadata))
            }
            Ok(_) | Err(_) => Self::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> RoutingMetadata {
        let deployment: Deployment = "d-1".parse().unwrap();
        let workspace: Workspace = "w".parse().unwrap();
        let attempt: AttemptId = "a".parse().unwrap();
        let session = SessionId::of(&deployment, &workspace, &attempt, 1);
        RoutingMetadata {
            v: VERSION,
            deployment,
            workspace,
            attempt,
            session,
            contact: "c".parse().unwrap(),
            outreach: "o".parse().unwrap(),
            campaign: Some("k".parse().unwrap()),
            callee_identity: session.identity(),
            nonce: Nonce(uuid::Uuid::from_u128(7)),
        }
    }

    #[test]
    fn our_metadata_is_read_back_with_fields_that_came_later() {
        let ours = metadata();
        let mut json: serde_json::Value = serde_json::from_str(&ours.to_text()).unwrap();
        json["later"] = true.into();
        assert_eq!(
            Metadata::read(&json.to_string(), &ours.deployment),
            Metadata::Ours(Box::new(ours))
        );
    }

    #[test]
    fn what_is_not_ours_is_told_apart() {
        let ours = metadata();
        let read = |text: &str| Metadata::read(text, &ours.deployment);
        assert_eq!(read(""), Metadata::NotJson);
        assert_eq!(read("hello"), Metadata::NotJson);
        assert_eq!(read(r#"{"v":1,"attempt":"a1"}"#), Metadata::Foreign);
        assert_eq!(read("[]"), Metadata::Foreign);
        assert_eq!(
            Metadata::read(&ours.to_text(), &"d-2".parse().unwrap()),
            Metadata::Foreign
        );
    }
}
