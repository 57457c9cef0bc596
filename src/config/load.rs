//! Gathers the layers, reads every section, applies the rules.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::content;
use super::fault::{Fault, Faults};
use super::layer::{self, KeyPath, Layers, Origin, Value};
use super::reader::Reader;
use super::{
    Agent, AgentSettings, Attempt, Config, DEFAULTS, Deployment, Dial, Grpc, Janitor, Lifecycle,
    Listen, LiveKit, Log, Numbers, Pace, Queue, Reconcile, Room, Shown, Store, Trunk, Webhooks,
    rules, webhooks,
};

/// What a flag of the command line says about one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The flag as it is written, `--store`; named in faults and by `config show`.
    pub flag: String,
    /// The key, `store.url`.
    pub key: String,
    /// The value as text; its type is the key's.
    pub value: String,
}

/// Where a configuration comes from, besides the defaults.
#[derive(Clone, Default)]
pub struct Sources {
    /// Files, a later one above an earlier one.
    pub files: Vec<PathBuf>,
    /// Variables of the environment; those that are not ours are passed over, and an empty
    /// one counts as not set.
    pub environment: Vec<(String, String)>,
    /// Flags of the command line.
    pub flags: Vec<Override>,
}

impl Sources {
    /// These files and flags, and the environment of this process, read here and nowhere
    /// else. Names and values that are not UTF-8 are passed over: none of ours is.
    #[must_use]
    pub fn of_process(files: Vec<PathBuf>, flags: Vec<Override>) -> Self {
        let text = |os: OsString| os.into_string().ok();
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
            .collect();
        Self {
            files,
            environment,
            flags,
        }
    }

    /// Where a file goes that nobody named: systemd's state folder, else the user's folder
    /// for data (XDG base directory specification).
    fn data_folder(&self) -> Option<PathBuf> {
        let variable = |name: &str| {
            let mut all = self.environment.iter();
            let found = all.find(|(key, value)| key == name && !value.is_empty());
            found.map(|(_, value)| value.as_str())
        };
        // systemd gives several folders divided by colons when the unit names several.
        let state = variable("STATE_DIRECTORY").and_then(|all| all.split(':').next());
        if let Some(folder) = state {
            return Some(PathBuf::from(folder));
        }
        if let Some(data) = variable("XDG_DATA_HOME") {
            return Some(Path::new(data).join("ringonce"));
        }
        variable("HOME").map(|home| Path::new(home).join(".local/share/ringonce"))
    }
}

/// Names of variables only: their values may be secrets of anybody.
impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// A configuration, and where each of its values came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Every effective value, ordered by key, secrets redacted.
    pub values: Vec<Shown>,
}

/// Loads a configuration and keeps where each value came from.
///
/// # Errors
///
/// Every fault of every source.
pub fn load(sources: &Sources) -> Result<Loaded, Faults> {
    let mut layers = Layers::default();
    let mut faults = Vec::new();
    layers.put_toml(DEFAULTS, &|line| Origin::Default { line }, &mut faults);
    for (nth, path) in sources.files.iter().enumerate() {
        let origin = layer::in_file(nth, path);
        match content::text_of(path) {
            Ok(text) => layers.put_toml(&text, &origin, &mut faults),
            Err(wrong) => faults.push(Fault {
                origin: Some(origin(0)),
                key: KeyPath::default(),
                what: wrong.what,
                remedy: wrong.remedy,
            }),
        }
    }
    put_environment(&mut layers, &sources.environment);
    for flag in &sources.flags {
        let origin = Origin::Flag {
            flag: flag.flag.clone(),
        };
        let value = Value::Untyped(flag.value.clone());
        layers.put(KeyPath::dotted(&flag.key), origin, value);
    }
    read(layers, faults, sources.data_folder().as_deref())
}

/// LiveKit's own variables lie below ours: ours were written for this program.
fn put_environment(layers: &mut Layers, environment: &[(String, String)]) {
    let (ours, theirs): (Vec<_>, Vec<_>) = environment
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .partition(|(name, _)| name.starts_with("RINGONCE__"));
    for (name, value) in theirs.into_iter().chain(ours) {
        if let Some(key) = layer::from_environment(name) {
            let origin = Origin::Environment {
                variable: name.clone(),
            };
            layers.put(key, origin, Value::Untyped(value.clone()));
        }
    }
}

/// A text over the defaults; nothing else is read.
pub(super) fn from_text(text: &str) -> Result<Config, Faults> {
    let mut layers = Layers::default();
    let mut faults = Vec::new();
    layers.put_toml(DEFAULTS, &|line| Origin::Default { line }, &mut faults);
    let origin = layer::in_file(0, Path::new("text"));
    layers.put_toml(text, &origin, &mut faults);
    read(layers, faults, Some(Path::new("."))).map(|loaded| loaded.config)
}

fn read(layers: Layers, faults: Vec<Fault>, data_folder: Option<&Path>) -> Result<Loaded, Faults> {
    let mut reader = Reader::new(layers, faults);
    let config = read_sections(&mut reader, data_folder);
    reader.note_unknown();
    rules::apply(&config, &mut reader);
    let (faults, values) = reader.finish();
    Faults::none_of(faults)?;
    Ok(Loaded { config, values })
}

fn read_sections(reader: &mut Reader, data_folder: Option<&Path>) -> Config {
    Config {
        deployment: Deployment::read(reader),
        store: Store::read(reader, data_folder),
        listen: Listen::read(reader),
        grpc: Grpc::read(reader),
        livekit: LiveKit::read(reader),
        webhooks: Webhooks::read(reader),
        webhook_keys: webhooks::keys(reader),
        dial: Dial::read(reader),
        room: Room::read(reader),
        janitor: Janitor::read(reader),
        agent: Agent::read(reader),
        agents: reader.named("agents", AgentSettings::read),
        attempt: Attempt::read(reader),
        queue: Queue::read(reader),
        pace: Pace::read(reader),
        trunks: reader.named("trunks", Trunk::read),
        numbers: Numbers::read(reader),
        reconcile: Reconcile::read(reader),
        lifecycle: Lifecycle::read(reader),
        log: Log::read(reader),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys without a default are shown in comments; this finds one that was forgotten.
    #[test]
    fn the_defaults_show_every_key_that_is_read() {
        let mut layers = Layers::default();
        let mut faults = Vec::new();
        layers.put_toml(DEFAULTS, &|line| Origin::Default { line }, &mut faults);
        let agent = |line| Origin::Default { line };
        layers.put_toml("[agents.caller]", &agent, &mut faults);
        let mut reader = Reader::new(layers, faults);
        read_sections(&mut reader, Some(Path::new(".")));
        assert!(reader.known().len() > 100);
        for key in reader.known() {
            let last = key.steps().last().unwrap();
            let shown = DEFAULTS.lines().any(|line| {
                let line = line.trim_start_matches(['#', ' ']);
                let rest = line.strip_prefix(last.as_str());
                rest.is_some_and(|rest| rest.starts_with(" = "))
            });
            assert!(shown, "config/default.toml does not show {key}");
        }
        assert_eq!(reader.finish().0, []);
    }
}
