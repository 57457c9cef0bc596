//! `[log]`: what is written to stderr.

use std::fmt;
use std::str::FromStr;

use super::reader::Reader;

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// One JSON object a line, for machines.
    Json,
    /// For people.
    Text,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Text => "text",
        })
    }
}

impl FromStr for Format {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err("there are json and text"),
        }
    }
}

/// What is written to stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How a line looks.
    pub format: Format,
    /// A filter of `tracing`: `info`, or `info,ringonce::placement=debug`.
    pub level: String,
}

impl Log {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut s = reader.section("log");
        let level: Filter = s.parsed("level", "info");
        Self {
            format: s.parsed("format", "json"),
            level: level.0,
        }
    }
}

/// A text that `tracing` takes for a filter.
struct Filter(String);

impl FromStr for Filter {
    type Err = tracing_subscriber::filter::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        tracing_subscriber::EnvFilter::builder().parse(text)?;
        Ok(Self(text.to_owned()))
    }
}
