//! The flags of `ringonce call …`, and the requests that they make.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;

use super::AT_ONCE;
use crate::api::{proto, timestamp};
use crate::cli::client::Connection;
use crate::model::time::Time;

#[derive(Debug, clap::Args)]
pub(super) struct Place {
    #[command(flatten)]
    pub(super) id: Id,
    /// Whom: an opaque id of the person, never a number.
    #[arg(long, value_name = "ID")]
    pub(super) contact: String,
    /// Why: the business reason for contacting that person.
    #[arg(long, value_name = "ID")]
    pub(super) outreach: String,
    /// The number, as +12025550100.
    #[arg(long, value_name = "E164")]
    pub(super) to: Hidden,
    /// The campaign that asks.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(super) campaign: String,
    /// The trunk, by name; the service's default otherwise.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) trunk: String,
    /// The agent; the service's default otherwise.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) agent: String,
    /// Handed to the agent as it is.
    #[arg(long, value_name = "TEXT")]
    pub(super) agent_metadata: Option<Hidden>,
    /// What must be true of the agent before the dial.
    #[arg(long, value_enum)]
    pub(super) gate: Option<Gate>,
    /// How long the agent may take to join.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) join_timeout: Option<Duration>,
    /// The attempt that this one follows.
    #[arg(long, value_name = "ID", requires = "reason")]
    pub(super) follows: Option<String>,
    /// Why another call is right.
    #[arg(long, value_name = "TEXT", requires = "follows")]
    pub(super) reason: Option<String>,
    /// When it was decided (RFC 3339); now otherwise. A script that retries must pass it,
    /// or the guard against lost history is void.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) intend_time: Option<Time>,
    /// The last moment at which it may be dialed (RFC 3339).
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) expire_time: Option<Time>,
    /// Who keeps it while it waits.
    #[arg(long, value_enum, default_value = "until-expiry")]
    pub(super) keep: Keep,
    /// How long to wait.
    #[arg(long, value_enum, default_value = "accepted")]
    pub(super) wait: Wait,
    /// How long it may ring.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) ringing_timeout: Option<Duration>,
    /// How long the call may last.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) max_call_duration: Option<Duration>,
    /// A number of the trunk to call from.
    #[arg(long, value_name = "E164")]
    pub(super) from: Option<Hidden>,
    /// DTMF after the answer, as ww12#.
    #[arg(long, value_name = "DIGITS")]
    pub(super) dial_digits: Option<Hidden>,
    /// A header of the INVITE; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair::<Hidden>)]
    pub(super) sip_header: Vec<(String, Hidden)>,
    /// The contact's time zone, as Europe/Berlin; kept, and not yet read by any rule.
    #[arg(
        long,
        value_name = "ZONE",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) time_zone: String,
    /// 0 to 9; 9 goes first.
    #[arg(long, default_value_t = 0)]
    pub(super) priority: i32,
    /// A label; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair::<String>)]
    pub(super) label: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) connection: Connection,
}

/// Which attempt.
#[derive(Debug, clap::Args)]
pub(super) struct Id {
    /// The tenant.
    #[arg(long, value_name = "ID", env = "RINGONCE_WORKSPACE")]
    pub(super) workspace: String,
    /// The attempt.
    #[arg(long, value_name = "ID")]
    pub(super) attempt: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Get {
    #[command(flatten)]
    pub(super) id: Id,
    /// How long to wait.
    #[arg(long, value_enum, default_value = "accepted")]
    pub(super) wait: Wait,
    #[command(flatten)]
    pub(super) connection: Connection,
}

/// Which attempts.
#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// The tenant.
    #[arg(long, value_name = "ID", env = "RINGONCE_WORKSPACE")]
    pub(super) workspace: String,
    /// Only of this contact.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(super) contact: String,
    /// Only of this campaign.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(super) campaign: String,
    /// Only of this outreach.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(super) outreach: String,
    /// Only in this state, as needs-review; may be repeated.
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub(super) state: Vec<i32>,
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) filter: Filter,
    /// Only accepted at this time or later (RFC 3339).
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) created_from: Option<Time>,
    /// Only accepted before this time (RFC 3339).
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) created_to: Option<Time>,
    /// Newest first.
    #[arg(long)]
    pub(super) descending: bool,
    /// How many at most.
    #[arg(long, default_value_t = 1000)]
    pub(super) limit: usize,
    #[command(flatten)]
    pub(super) connection: Connection,
}

#[derive(Debug, clap::Args)]
pub(super) struct Watch {
    #[command(flatten)]
    pub(super) filter: Filter,
    /// Only of this attempt.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(super) attempt: String,
    /// Go on behind this cursor; from now on otherwise.
    #[arg(
        long,
        value_name = "CURSOR",
        default_value = "",
        hide_default_value = true,
        conflicts_with = "snapshot"
    )]
    pub(super) after: String,
    /// Show what there is first.
    #[arg(long)]
    pub(super) snapshot: bool,
    #[command(flatten)]
    pub(super) connection: Connection,
}

#[derive(Debug, clap::Args)]
pub(super) struct Cancel {
    /// The tenant.
    #[arg(long, env = "RINGONCE_WORKSPACE", value_name = "ID")]
    pub(super) workspace: String,
    /// The attempt.
    #[arg(
        long,
        value_name = "ID",
        required_unless_present_any = ["campaign", "contact", "outreach"],
        conflicts_with_all = ["campaign", "contact", "outreach"]
    )]
    pub(super) attempt: Option<String>,
    /// All open attempts of this campaign.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(super) campaign: String,
    /// All open attempts of this contact.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(super) contact: String,
    /// All open attempts of this outreach.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(super) outreach: String,
    /// With a campaign, a contact or an outreach: shows whom it would be, and stops nobody.
    #[arg(long, conflicts_with = "attempt")]
    pub(super) dry_run: bool,
    /// How far it goes.
    #[arg(long, value_enum, default_value = "stop-ringing")]
    pub(super) mode: Mode,
    /// An unknown id is no error, and is never placed later.
    #[arg(long)]
    pub(super) allow_missing: bool,
    /// Why.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) reason: String,
    /// Who asks.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) requested_by: String,
    #[command(flatten)]
    pub(super) connection: Connection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Keep {
    UntilExpiry,
    Return,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Wait {
    Accepted,
    DialOver,
}

impl Wait {
    pub(super) const fn proto(self) -> proto::Wait {
        match self {
            Self::Accepted => proto::Wait::Accepted,
            Self::DialOver => proto::Wait::DialOver,
        }
    }

    /// The deadline if none was asked for: a ring is waited for as long as the service does.
    pub(super) const fn deadline(self) -> Option<Duration> {
        match self {
            Self::Accepted => Some(AT_ONCE),
            Self::DialOver => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Gate {
    Joined,
    Dispatched,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    BeforeDial,
    StopRinging,
    HangUp,
}

/// What is never shown: a number, digits, metadata.
#[derive(Clone, Default)]
pub(super) struct Hidden(String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl FromStr for Hidden {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl Hidden {
    fn reveal(text: Option<Self>) -> String {
        text.unwrap_or_default().0
    }
}

fn moment(text: &str) -> Result<Time, &'static str> {
    Time::parse(text).ok_or("write it as 2026-11-29T12:00:00Z (RFC 3339)")
}

fn pair<T: FromStr>(text: &str) -> Result<(String, T), &'static str> {
    let (key, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    let value = value
        .parse()
        .map_err(|_| "has a value that cannot be read")?;
    Ok((key.to_owned(), value))
}

fn state(text: &str) -> Result<i32, &'static str> {
    let name = format!("STATE_{}", text.to_ascii_uppercase().replace('-', "_"));
    proto::attempt::State::from_str_name(&name)
        .map(i32::from)
        .ok_or("there are queued, deferred, refused, reserved, dialing, answered, ended, not-connected, not-dialed, uncertain, needs-review and canceled")
}

impl Place {
    /// The request, decided now unless it says otherwise.
    pub(super) fn request(self, now: Time) -> proto::PlaceCallRequest {
        proto::PlaceCallRequest {
            workspace: self.id.workspace,
            attempt_id: self.id.attempt,
            contact_id: self.contact,
            outreach_id: self.outreach,
            campaign_id: self.campaign,
            to: self.to.0,
            intend_time: Some(timestamp(self.intend_time.unwrap_or(now))),
            expire_time: self.expire_time.map(timestamp),
            keep: match self.keep {
                Keep::UntilExpiry => proto::Keep::UntilExpiry.into(),
                Keep::Return => proto::Keep::Return.into(),
            },
            wait: self.wait.proto().into(),
            follows: self.follows.map(|attempt_id| proto::Follows {
                attempt_id,
                reason: self.reason.unwrap_or_default(),
            }),
            policy: String::new(),
            trunk: self.trunk,
            from: Hidden::reveal(self.from),
            agent: Some(proto::Agent {
                name: self.agent,
                metadata: Hidden::reveal(self.agent_metadata),
                gate: self.gate.map_or(0, |gate| match gate {
                    Gate::Joined => proto::agent::Gate::Joined.into(),
                    Gate::Dispatched => proto::agent::Gate::Dispatched.into(),
                }),
                join_timeout: self.join_timeout.map(Into::into),
            }),
            ringing_timeout: self.ringing_timeout.map(Into::into),
            max_call_duration: self.max_call_duration.map(Into::into),
            dial_digits: Hidden::reveal(self.dial_digits),
            sip_headers: self
                .sip_header
                .into_iter()
                .map(|(name, value)| (name, value.0))
                .collect(),
            contact_time_zone: self.time_zone,
            priority: self.priority,
            labels: self.label.into_iter().collect(),
        }
    }
}

impl Mode {
    pub(super) const fn proto(self) -> proto::cancel_attempt_request::Mode {
        use proto::cancel_attempt_request::Mode as Asked;
        match self {
            Self::BeforeDial => Asked::BeforeDial,
            Self::StopRinging => Asked::StopRinging,
            Self::HangUp => Asked::HangUp,
        }
    }
}
