//! Outbound trunks: names are not unique, ids die with the store.

use livekit_protocol as lk;

use super::answer::{Code, Refusal};
use super::machine::Platform;
use super::serve::Caller;

impl Platform {
    pub(super) fn create_trunk(
        &mut self,
        caller: &Caller,
        request: lk::CreateSipOutboundTrunkRequest,
    ) -> Result<lk::SipOutboundTrunkInfo, Refusal> {
        caller.may(caller.claims.sip.admin)?;
        let invalid = |msg: &str| Err(Refusal::own(Code::InvalidArgument, msg.to_owned()));
        let Some(trunk) = request.trunk else {
            return invalid("missing trunk");
        };
        if !trunk.sip_trunk_id.is_empty() {
            return invalid("trunk id must be empty");
        }
        if trunk.numbers.is_empty() {
            return invalid("no trunk numbers specified");
        }
        let id = self.sid("ST_");
        let trunk = lk::SipOutboundTrunkInfo {
            sip_trunk_id: id.clone(),
            ..trunk
        };
        self.trunks.insert(id, trunk.clone());
        Ok(trunk)
    }

    /// Sorted by id; unknown ids are left out, a trunk fits any number of its own.
    pub(super) fn list_trunks(
        &mut self,
        caller: &Caller,
        request: &lk::ListSipOutboundTrunkRequest,
    ) -> Result<lk::ListSipOutboundTrunkResponse, Refusal> {
        caller.may(caller.claims.sip.admin)?;
        let after = request
            .page
            .as_ref()
            .map(|page| page.after_id.as_str())
            .unwrap_or_default();
        let items = self
            .trunks
            .values()
            .filter(|trunk| trunk.sip_trunk_id.as_str() > after)
            .filter(|trunk| {
                request.trunk_ids.is_empty() || request.trunk_ids.contains(&trunk.sip_trunk_id)
            })
            .filter(|trunk| {
                request.numbers.is_empty()
                    || trunk
                        .numbers
                        .iter()
                        .any(|number| request.numbers.contains(number))
            })
            .cloned()
            .collect();
        Ok(lk::ListSipOutboundTrunkResponse { items })
    }

    pub(super) fn get_trunk(
        &mut self,
        caller: &Caller,
        request: &lk::GetSipOutboundTrunkRequest,
    ) -> Result<lk::GetSipOutboundTrunkResponse, Refusal> {
        caller.may(caller.claims.sip.admin)?;
        let trunk = self.trunks.get(&request.sip_trunk_id).cloned();
        if trunk.is_none() {
            return Err(no_trunk());
        }
        Ok(lk::GetSipOutboundTrunkResponse { trunk })
    }

    /// Never says that there was none.
    pub(super) fn delete_trunk(
        &mut self,
        caller: &Caller,
        request: &lk::DeleteSipTrunkRequest,
    ) -> Result<lk::SipTrunkInfo, Refusal> {
        caller.may(caller.claims.sip.admin)?;
        self.trunks.remove(&request.sip_trunk_id);
        Ok(lk::SipTrunkInfo {
            sip_trunk_id: request.sip_trunk_id.clone(),
            ..lk::SipTrunkInfo::default()
        })
    }

    /// The store loses its trunks; whoever sets the platform up makes them again at
    /// once, under new ids.
    pub(super) fn flush_trunks(&mut self) {
        self.trunks.clear();
        self.make_trunks();
    }

    pub(super) fn make_trunks(&mut self) {
        for trunk in self.settings.trunks.clone() {
            let id = self.sid("ST_");
            let info = lk::SipOutboundTrunkInfo {
                sip_trunk_id: id.clone(),
                name: trunk.name,
                address: trunk.address,
                transport: lk::SipTransport::Udp.into(),
                numbers: trunk.numbers,
                ..lk::SipOutboundTrunkInfo::default()
            };
            self.trunks.insert(id, info);
        }
    }
}

/// Without meta: this is how it differs from a carrier's 404.
pub(super) fn no_trunk() -> Refusal {
    let msg = "requested sip trunk does not exist".to_owned();
    Refusal::own(Code::NotFound, msg)
}
