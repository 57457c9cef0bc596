//! The flags of `ringonce review`.

use clap::ValueEnum;

use crate::api::proto;
use crate::cli::client::Connection;

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// The tenant.
    #[arg(long, env = "RINGONCE_WORKSPACE", value_name = "ID")]
    pub(super) workspace: String,
    /// Only of this cause, as `SEEN_THEN_GONE`.
    #[arg(
        long,
        value_name = "CAUSE",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) cause: String,
    /// Counts them instead.
    #[arg(long, value_enum)]
    pub(super) group_by: Option<GroupBy>,
    /// How many at most.
    #[arg(long, default_value_t = 1000)]
    pub(super) limit: usize,
    #[command(flatten)]
    pub(super) connection: Connection,
}

#[derive(Debug, clap::Args)]
pub(super) struct Show {
    #[command(flatten)]
    pub(super) which: Which,
    /// The tenant.
    #[arg(long, env = "RINGONCE_WORKSPACE", value_name = "ID")]
    pub(super) workspace: String,
    #[command(flatten)]
    pub(super) connection: Connection,
}

/// Which attempt: by its place, or by the flag that `call get` has.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct Which {
    /// The attempt.
    #[arg(value_name = "ATTEMPT")]
    named: Option<String>,
    /// The same, as `call get` has it.
    #[arg(long, value_name = "ID")]
    attempt: Option<String>,
}

impl Which {
    pub(super) fn id(self) -> String {
        self.named.or(self.attempt).unwrap_or_default()
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Resolve {
    /// The attempt.
    #[arg(
        value_name = "ATTEMPT",
        required_unless_present_any = ["cause", "attempt"],
        conflicts_with_all = ["cause", "attempt"]
    )]
    pub(super) named: Option<String>,
    /// The same, as `call get` has it.
    #[arg(long, value_name = "ID", conflicts_with = "cause")]
    pub(super) attempt: Option<String>,
    /// All that have this cause, as `SEEN_THEN_GONE`.
    #[arg(
        long,
        value_name = "CAUSE",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) cause: String,
    /// What became of it.
    #[arg(long = "as", value_enum)]
    pub(super) was: Was,
    /// How that is known; it stays in the history. Never a phone number.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
    /// Who says so.
    #[arg(long, value_name = "NAME", env = "USER")]
    pub(super) by: String,
    /// With --cause: shows whose it would be, and changes nothing.
    #[arg(long, conflicts_with_all = ["attempt", "named"])]
    pub(super) dry_run: bool,
    /// The tenant.
    #[arg(long, env = "RINGONCE_WORKSPACE", value_name = "ID")]
    pub(super) workspace: String,
    #[command(flatten)]
    pub(super) connection: Connection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GroupBy {
    Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Was {
    /// It was answered, and is over.
    Answered,
    /// No call was started.
    NotDialed,
    /// It rang, and nobody answered.
    RangUnanswered,
}

impl Was {
    pub(super) const fn proto(self) -> proto::Resolution {
        match self {
            Self::Answered => proto::Resolution::Answered,
            Self::NotDialed => proto::Resolution::NotDialed,
            Self::RangUnanswered => proto::Resolution::RangUnanswered,
        }
    }
}
