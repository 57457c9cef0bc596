//! `ringonce config check|show`, and the flags by which every subcommand names its
//! configuration.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use serde_json::json;

use super::serve;
use crate::config::{Config, EXIT_CONFIG, Faults, Loaded, Override, Sources, load};

/// The flags that name a configuration; `serve` takes the same ones, so that what was
/// checked is what is served.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// A file of configuration; of several a later one wins.
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// The store: `sqlite:PATH`, `sqlite` (in the data folder) or `memory`.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Where schedulers call; port 0 picks one.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Where webhooks arrive.
    #[arg(long, value_name = "ADDRESS")]
    pub webhook_listen: Option<String>,
    /// Where health, metrics and the operator page are.
    #[arg(long, value_name = "ADDRESS")]
    pub admin_listen: Option<String>,
    /// Any key, as `--set dial.ringing_timeout=30s`; may be repeated. The items of a list are
    /// divided by commas, as `--set numbers.countries=DE,AT`; nothing behind the `=` empties it.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
}

impl Flags {
    /// These flags above the environment of this process.
    #[must_use]
    pub fn sources(&self) -> Sources {
        let named = [
            ("--store", "store.url", &self.store),
            ("--listen", "listen.grpc", &self.listen),
            ("--webhook-listen", "listen.webhook", &self.webhook_listen),
            ("--admin-listen", "listen.admin", &self.admin_listen),
        ];
        let set = self.set.iter().map(|(key, value)| Override {
            flag: "--set".to_owned(),
            key: key.clone(),
            value: value.clone(),
        });
        let flags = named
            .into_iter()
            .filter_map(|(flag, key, value)| {
                Some(Override {
                    flag: flag.to_owned(),
                    key: key.to_owned(),
                    value: value.clone()?,
                })
            })
            .chain(set)
            .collect();
        Sources::of_process(self.config.clone(), flags)
    }
}

fn setting(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

/// Said of a configuration without faults, here and by `serve --check-config`.
pub(super) const SOUND: &str = "configuration is sound\n";

/// `ringonce config …`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Says whether `serve` would take a configuration, and else everything that is wrong with
    /// it. The key and the secret of LiveKit are part of it, and the folder of the store.
    Check {
        #[command(flatten)]
        flags: Flags,
        /// Only notes that the key or the secret of LiveKit, or the folder of the store, is
        /// missing: where a configuration is checked before it is rolled out, they need not be.
        #[arg(long)]
        without_secrets: bool,
    },
    /// Prints every value that is in effect and where it came from; secrets are redacted.
    Show {
        #[command(flatten)]
        flags: Flags,
        /// `text` is TOML, `json` one object.
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Runs `config check` or `config show`: 0 if the configuration is sound, else 78 with every
/// fault on stderr; without the folder of the store 1, as `serve` ends. Nothing is opened or made
/// and no network is touched.
///
/// # Errors
///
/// Only if the output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (flags, show, strict) = match &args.act {
        Act::Check {
            flags,
            without_secrets,
        } => (flags, None, !without_secrets),
        Act::Show { flags, output } => (flags, Some(*output), false),
    };
    let loaded = match load(&flags.sources()) {
        Ok(loaded) => loaded,
        Err(faults) => return refuse(&faults),
    };
    // What `serve` asks before it begins, by the same function.
    let missing = loaded.config.livekit.credentials().err();
    if let Some(missing) = missing.as_ref().filter(|_| strict) {
        return refuse(missing);
    }
    let unopened = serve::has_folder(&loaded.config).err();
    if let Some(unopened) = unopened.as_ref().filter(|_| strict) {
        return Ok(unopened.say());
    }
    let text = match show {
        None => SOUND.to_owned(),
        Some(Output::Text) => as_toml(&loaded),
        Some(Output::Json) => as_json(&loaded),
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("failed to write to stdout")?;
    remark(&loaded.config)?;
    let missing = missing.map(|missing| missing.to_string());
    let missing: Vec<_> = missing
        .into_iter()
        .chain(unopened.map(|unopened| unopened.why()))
        .collect();
    if !missing.is_empty() {
        let missing = missing.join("\n");
        let missing = format!("note: `serve` needs more than this:\n{missing}\n");
        std::io::stderr().write_all(missing.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints on stderr what is sound and unwise, which changes no exit code.
///
/// # Errors
///
/// Only if stderr cannot be written.
pub(super) fn remark(config: &Config) -> anyhow::Result<()> {
    for remark in config.remarks() {
        std::io::stderr()
            .write_all(format!("warning: {remark}\n").as_bytes())
            .context("failed to write to stderr")?;
    }
    Ok(())
}

/// Prints every fault to stderr; exit code 78. For every subcommand that loads a
/// configuration.
///
/// # Errors
///
/// Only if stderr cannot be written.
pub fn refuse(faults: &Faults) -> anyhow::Result<ExitCode> {
    std::io::stderr()
        .write_all(format!("{faults}\n").as_bytes())
        .context("failed to write to stderr")?;
    Ok(ExitCode::from(EXIT_CONFIG))
}

/// One line a key, itself a sound configuration where nothing is redacted.
fn as_toml(loaded: &Loaded) -> String {
    loaded.values.iter().fold(String::new(), |mut text, shown| {
        let line = writeln!(text, "{} = {} # {}", shown.key, shown.value, shown.origin);
        line.expect("a string takes every line");
        text
    })
}

/// `{"dial.send_by": {"value": "5s", "origin": "config/default.toml:300"}, …}`.
fn as_json(loaded: &Loaded) -> String {
    let values: serde_json::Map<_, _> = loaded
        .values
        .iter()
        .map(|shown| {
            let value = json!({"value": shown.value, "origin": shown.origin.to_string()});
            (shown.key.to_string(), value)
        })
        .collect();
    format!("{}\n", serde_json::Value::Object(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded() -> Loaded {
        let secret = ("LIVEKIT_API_SECRET".to_owned(), "hush".to_owned());
        load(&Sources {
            environment: vec![secret],
            flags: vec![Override {
                flag: "--store".to_owned(),
                key: "store.url".to_owned(),
                value: "memory".to_owned(),
            }],
            ..Sources::default()
        })
        .unwrap()
    }

    #[test]
    fn what_is_shown_as_text_is_a_sound_configuration() {
        let text = as_toml(&loaded());
        assert!(text.contains("livekit.api_secret = \"[redacted]\" # LIVEKIT_API_SECRET\n"));
        assert!(text.contains("store.url = \"memory\" # --store\n"));
        assert!(text.contains("trunks.main = {} # config/default.toml:"));
        assert!(!text.contains("hush"));
        let again = Config::from_toml(&text).unwrap();
        assert_eq!(again.dial, Config::default().dial);
        assert_eq!(again.queue, Config::default().queue);
    }

    #[test]
    fn what_is_shown_as_json_names_value_and_origin() {
        let json: serde_json::Value = serde_json::from_str(&as_json(&loaded())).unwrap();
        assert_eq!(json["dial.in_flight"]["value"], 1000);
        assert_eq!(json["store.url"]["origin"], "--store");
        assert_eq!(json["livekit.api_secret"]["value"], "[redacted]");
    }

    #[test]
    fn a_setting_has_a_key_and_a_value() {
        assert!(setting("dial.send_by").is_err());
        let pair = ("dial.send_by".to_owned(), "1s".to_owned());
        assert_eq!(setting("dial.send_by=1s"), Ok(pair));
    }
}
