//! A request to place a call, parsed whole.

use std::time::Duration;

use super::fields::Violations;
use crate::api::limits::{RequestLimits, gate};
use crate::api::proto;
use crate::model::attempt::{AgentWanted, Follows, Gate, Keep, Spec};
use crate::model::id::TrunkName;
use crate::model::request::{Private, Request};
use crate::model::time::Time;

/// A shorter wait for an agent is none.
const JOIN_MIN: Duration = Duration::from_millis(100);

/// Parses a request to place a call, at `now`.
///
/// # Errors
///
/// Everything that is wrong with it, at once.
pub fn place_call(
    message: proto::PlaceCallRequest,
    limits: &RequestLimits,
    now: Time,
) -> Result<Request, Violations> {
    let mut wrong = Violations::default();
    let times = times(&mut wrong, &message, limits, now);
    let spans = spans(&mut wrong, &message, limits);
    shapes(&mut wrong, &message, limits);
    let keep = wrong.one_of("keep", message.keep, keep);
    // The wait is read where it is waited.
    wrong.one_of("wait", message.wait, |_: proto::Wait| ());
    let priority = priority(&mut wrong, message.priority);
    let workspace = wrong.new_id("workspace", message.workspace);
    let attempt = wrong.new_id("attempt_id", message.attempt_id);
    let contact = wrong.new_id("contact_id", message.contact_id);
    let outreach = wrong.new_id("outreach_id", message.outreach_id);
    let campaign = Some(message.campaign_id).filter(|id| !id.is_empty());
    let campaign = campaign.and_then(|id| wrong.new_id("campaign_id", id));
    let to = wrong.required("to", message.to);
    let from = wrong.optional("from", message.from);
    let follows = message.follows.and_then(|f| follows(&mut wrong, f, limits));
    let trunk = trunk(&mut wrong, message.trunk, limits);
    let agent = agent(&mut wrong, message.agent.unwrap_or_default(), limits);

    // A missing value here has its violation above.
    let request = (|| {
        let (intend_time, expire_time) = times?;
        let (ringing_ms, max_call_ms) = spans?;
        let (agent, agent_metadata) = agent?;
        Some(Request {
            workspace: workspace?,
            attempt: attempt?,
            spec: Spec {
                contact: contact?,
                outreach: outreach?,
                campaign,
                follows,
                intend_time,
                expire_time,
                keep: keep?,
                trunk: trunk?,
                agent,
                ringing_ms,
                max_call_ms,
                time_zone: Some(message.contact_time_zone).filter(|zone| !zone.is_empty()),
                priority: priority?,
                labels: message.labels,
            },
            private: Private {
                to: to?,
                from,
                dial_digits: message.dial_digits,
                sip_headers: message.sip_headers,
                agent_metadata,
            },
        })
    })();
    wrong.unless_any(request)
}

/// When it was decided and when it expires.
fn times(
    wrong: &mut Violations,
    message: &proto::PlaceCallRequest,
    limits: &RequestLimits,
    now: Time,
) -> Option<(Time, Time)> {
    if message.intend_time.is_none() {
        wrong.add(
            "intend_time",
            "is required: when you decided to call, the same on every repetition",
        );
    }
    let intend = wrong.time("intend_time", message.intend_time);
    let expire = wrong.time("expire_time", message.expire_time);
    let intend = intend?;
    if intend > now.plus(limits.intend_ahead) {
        wrong.add(
            "intend_time",
            format_args!(
                "is more than {} ahead of this service's clock",
                humantime::format_duration(limits.intend_ahead)
            ),
        );
    }
    if message.expire_time.is_none() {
        return Some((intend, intend.plus(limits.expiry_default)));
    }
    let expire = expire?;
    if expire <= intend {
        wrong.add("expire_time", "is not after intend_time");
    } else if expire > intend.plus(limits.expiry_max) {
        wrong.add(
            "expire_time",
            format_args!(
                "is more than {} after intend_time",
                humantime::format_duration(limits.expiry_max)
            ),
        );
    }
    Some((intend, expire))
}

/// How long it may ring and last, in milliseconds.
fn spans(
    wrong: &mut Violations,
    message: &proto::PlaceCallRequest,
    limits: &RequestLimits,
) -> Option<(u64, u64)> {
    let ringing = wrong.span(
        "ringing_timeout",
        message.ringing_timeout,
        limits.ringing_default,
        (limits.ringing_min, limits.ringing_max),
    );
    let max_call = wrong.span(
        "max_call_duration",
        message.max_call_duration,
        limits.max_call_default,
        (Duration::from_secs(1), limits.max_call_max),
    );
    let (ringing, max_call) = (ringing?, max_call?);
    if max_call <= ringing.saturating_add(limits.max_call_margin) {
        wrong.add(
            "max_call_duration",
            format_args!(
                "must be more than {} longer than ringing_timeout",
                humantime::format_duration(limits.max_call_margin)
            ),
        );
    }
    let millis = |span: Duration| u64::try_from(span.as_millis()).ok();
    Some((millis(ringing)?, millis(max_call)?))
}

/// The fields whose form alone is checked.
fn shapes(wrong: &mut Violations, message: &proto::PlaceCallRequest, limits: &RequestLimits) {
    wrong.dial_digits(&message.dial_digits, limits);
    wrong.sip_headers(&message.sip_headers, limits);
    wrong.labels(&message.labels, limits);
    if !message.contact_time_zone.is_empty() {
        wrong.time_zone(&message.contact_time_zone);
    }
    if !message.policy.is_empty() {
        wrong.add(
            "policy",
            "names a policy, and this version has no named policies; leave it empty",
        );
    }
}

fn priority(wrong: &mut Violations, value: i32) -> Option<u8> {
    let priority = u8::try_from(value).ok().filter(|p| *p <= 9);
    if priority.is_none() {
        wrong.add("priority", "must be from 0 to 9");
    }
    priority
}

const fn keep(keep: proto::Keep) -> Keep {
    match keep {
        proto::Keep::Unspecified | proto::Keep::UntilExpiry => Keep::UntilExpiry,
        proto::Keep::Return => Keep::Return,
    }
}

fn follows(
    wrong: &mut Violations,
    message: proto::Follows,
    limits: &RequestLimits,
) -> Option<Follows> {
    if message.reason.is_empty() {
        wrong.add("follows.reason", "must not be empty");
    }
    wrong.open_text("follows.reason", &message.reason, limits.reason_max);
    Some(Follows {
        attempt: wrong.new_id("follows.attempt_id", message.attempt_id)?,
        reason: message.reason,
    })
}

fn trunk(wrong: &mut Violations, text: String, limits: &RequestLimits) -> Option<TrunkName> {
    if text.is_empty() {
        if limits.trunk_default.is_none() {
            wrong.add(
                "trunk",
                "must not be empty: the configuration names no default",
            );
        }
        return limits.trunk_default.clone();
    }
    let trunk = wrong.new_id::<TrunkName>("trunk", text)?;
    if !limits.trunks.is_empty() && !limits.trunks.contains(&trunk) {
        let known: Vec<&str> = limits.trunks.iter().map(TrunkName::as_str).collect();
        wrong.add(
            "trunk",
            format_args!("is not among the configured trunks: {}", known.join(", ")),
        );
    }
    Some(trunk)
}

/// The agent, and its metadata apart: that is sealed.
fn agent(
    wrong: &mut Violations,
    message: proto::Agent,
    limits: &RequestLimits,
) -> Option<(AgentWanted, String)> {
    let (length, max) = (message.metadata.len(), limits.metadata_max);
    if length > max {
        wrong.add(
            "agent.metadata",
            format_args!("is {length} bytes long; at most {max} are allowed"),
        );
    }
    let name = if message.name.is_empty() {
        if limits.agent_default.is_none() {
            wrong.add(
                "agent.name",
                "must not be empty: the configuration names no default",
            );
        }
        limits.agent_default.clone()
    } else {
        wrong.new_id("agent.name", message.name)
    };
    let own = name.as_ref().and_then(|name| limits.agents.get(name));
    let gate_default = own
        .and_then(|own| own.gate)
        .map_or(limits.gate_default, gate);
    let gate = wrong.one_of("agent.gate", message.gate, |gate| match gate {
        proto::agent::Gate::Unspecified => gate_default,
        proto::agent::Gate::Joined => Gate::Joined,
        proto::agent::Gate::Dispatched => Gate::Dispatched,
    });
    let join = wrong.span(
        "agent.join_timeout",
        message.join_timeout,
        own.and_then(|own| own.join_timeout)
            .unwrap_or(limits.join_default),
        (JOIN_MIN, limits.join_max),
    );
    let wanted = AgentWanted {
        name: name?,
        gate: gate?,
        join_ms: u64::try_from(join?.as_millis()).ok()?,
    };
    Some((wanted, message.metadata))
}
