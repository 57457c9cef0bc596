//! The rules between keys.
//!
//! A rule is passed over while one of its keys has a fault of its own, since it would judge
//! a value that nobody wrote. A rule that does not hold is noted at the one of its keys
//! that was written in the highest layer: that is what somebody changed.

use std::net::SocketAddr;
use std::time::Duration;

use super::Config;
use super::fault::Wrong;
use super::layer::KeyPath;
use super::reader::Reader;
use super::typed::show_duration;
use crate::model::id::TrunkName;

/// Notes every rule that does not hold.
pub(super) fn apply(config: &Config, reader: &mut Reader) {
    let mut rules = Rules { reader };
    rules.listen(config);
    rules.grpc(config);
    rules.ringing(config);
    rules.call(config);
    rules.horizon(config);
    rules.agents(config);
    rules.attempts(config);
    rules.platform(config);
    rules.process(config);
}

struct Rules<'a> {
    reader: &'a mut Reader,
}

impl Rules<'_> {
    fn listen(&mut self, config: &Config) {
        let listen = &config.listen;
        // The webhook listener is not among them: LiveKit signs what it sends.
        for (key, address) in [("listen.grpc", listen.grpc), ("listen.admin", listen.admin)] {
            self.require(
                &[key, "listen.allow_unauthenticated"],
                address.ip().is_loopback() || listen.allow_unauthenticated,
                || {
                    Wrong::new(
                        format!(
                            "{key} ({address}) is open beyond this host without authentication"
                        ),
                        "listen on 127.0.0.1, or set listen.allow_unauthenticated = true \
                         where the network guards it",
                    )
                },
            );
        }
        self.apart("listen.grpc", listen.grpc, "listen.webhook", listen.webhook);
        self.apart("listen.grpc", listen.grpc, "listen.admin", listen.admin);
        self.apart(
            "listen.webhook",
            listen.webhook,
            "listen.admin",
            listen.admin,
        );
    }

    fn grpc(&mut self, config: &Config) {
        let grpc = &config.grpc;
        self.require(
            &["grpc.page_default", "grpc.page_max"],
            grpc.page_default <= grpc.page_max,
            || {
                let (default, max) = (grpc.page_default, grpc.page_max);
                Wrong::new(
                    format!("grpc.page_default ({default}) is above grpc.page_max ({max})"),
                    "lower the first or raise the second",
                )
            },
        );
    }

    fn ringing(&mut self, config: &Config) {
        let dial = &config.dial;
        let (min, max) = ("dial.ringing_timeout_min", "dial.ringing_timeout_max");
        let ringing = ("dial.ringing_timeout", dial.ringing_timeout);
        self.at_most((min, dial.ringing_timeout_min), ringing, "");
        self.at_most(ringing, (max, dial.ringing_timeout_max), "");
        self.below(
            ("dial.look_before_ring_end", dial.look_before_ring_end),
            (min, dial.ringing_timeout_min),
            "the look comes while it rings",
        );
    }

    fn call(&mut self, config: &Config) {
        let dial = &config.dial;
        let call = ("dial.max_call_duration", dial.max_call_duration);
        let max = ("dial.max_call_duration_max", dial.max_call_duration_max);
        self.at_most(call, max, "");
        let margin = "dial.max_call_duration_margin";
        for (ringing, call) in [
            (("dial.ringing_timeout", dial.ringing_timeout), call),
            (("dial.ringing_timeout_max", dial.ringing_timeout_max), max),
        ] {
            let least = ringing.1 + dial.max_call_duration_margin;
            self.require(&[call.0, ringing.0, margin], call.1 > least, || {
                Wrong::new(
                    format!(
                        "{} ({}) must be above {} + {margin} ({})",
                        call.0,
                        show_duration(&call.1),
                        ringing.0,
                        show_duration(&least)
                    ),
                    format!("raise {}, or calls end as they begin", call.0),
                )
            });
        }
    }

    /// The horizon of a dial without an answer must not pass while its client still waits:
    /// the reconciler would settle what the answer may settle otherwise. Ringing, digits and
    /// server slack are in both and cancel out.
    fn horizon(&mut self, config: &Config) {
        let (dial, livekit) = (&config.dial, &config.livekit);
        let horizon = dial.send_by + livekit.token_leeway + dial.no_answer_slack;
        let client = dial.client_slack;
        self.require(
            &[
                "dial.client_slack",
                "dial.send_by",
                "livekit.token_leeway",
                "dial.no_answer_slack",
            ],
            client <= horizon,
            || {
                Wrong::new(
                    format!(
                        "dial.client_slack ({}) is above dial.send_by + livekit.token_leeway + \
                         dial.no_answer_slack ({})",
                        show_duration(&client),
                        show_duration(&horizon)
                    ),
                    "lower dial.client_slack or raise dial.no_answer_slack: no horizon may pass \
                     while the client waits",
                )
            },
        );
    }

    fn agents(&mut self, config: &Config) {
        let max = ("agent.join_timeout_max", config.agent.join_timeout_max);
        self.at_most(("agent.join_timeout", config.agent.join_timeout), max, "");
        for (name, agent) in &config.agents {
            if let Some(timeout) = agent.join_timeout {
                let key = KeyPath::dotted("agents")
                    .child(name.as_str())
                    .child("join_timeout");
                self.ordered((&key, timeout), (&KeyPath::dotted(max.0), max.1), "");
            }
        }
    }

    fn attempts(&mut self, config: &Config) {
        let (attempt, queue) = (&config.attempt, &config.queue);
        self.at_most(
            ("attempt.backoff_first", attempt.backoff_first),
            ("attempt.backoff_max", attempt.backoff_max),
            "",
        );
        let expiry_max = ("attempt.expiry_max", attempt.expiry_max);
        self.at_most(("attempt.expiry", attempt.expiry), expiry_max, "");
        self.at_most(
            expiry_max,
            ("store.id_retention", config.store.id_retention),
            "an id that may still be delivered must not be forgotten",
        );
        self.at_most(
            ("queue.poll_interval", queue.poll_interval),
            ("queue.recheck", queue.recheck),
            "",
        );
        self.below(
            ("store.retry_backoff", config.store.retry_backoff),
            ("store.retry_for", config.store.retry_for),
            "",
        );
    }

    fn platform(&mut self, config: &Config) {
        let (janitor, reconcile) = (&config.janitor, &config.reconcile);
        self.at_most(
            ("janitor.backoff_first", janitor.backoff_first),
            ("janitor.backoff_max", janitor.backoff_max),
            "",
        );
        self.below(
            ("reconcile.look_interval", reconcile.look_interval),
            ("reconcile.look_gap_max", reconcile.look_gap_max),
            "looks would never prove anything",
        );
        let trunk = &config.dial.trunk;
        self.require(&["dial.trunk"], config.trunks.contains_key(trunk), || {
            let names: Vec<&str> = config.trunks.keys().map(TrunkName::as_str).collect();
            Wrong::new(
                format!("names {trunk:?}, which is not among the trunks"),
                format!("add [trunks.{trunk}] or name one of: {}", names.join(", ")),
            )
        });
    }

    fn process(&mut self, config: &Config) {
        let lifecycle = &config.lifecycle;
        self.at_most(
            ("lifecycle.drain_delay", lifecycle.drain_delay),
            ("lifecycle.drain", lifecycle.drain),
            "the delay is part of the drain",
        );
    }

    fn apart(&mut self, one: &str, a: SocketAddr, other: &str, b: SocketAddr) {
        self.require(&[one, other], a != b || a.port() == 0, || {
            Wrong::new(
                format!("{one} and {other} are both {a}"),
                "give each its own port",
            )
        });
    }

    fn at_most(&mut self, low: (&str, Duration), high: (&str, Duration), why: &str) {
        let (low_key, high_key) = (KeyPath::dotted(low.0), KeyPath::dotted(high.0));
        self.ordered((&low_key, low.1), (&high_key, high.1), why);
    }

    fn below(&mut self, low: (&str, Duration), high: (&str, Duration), why: &str) {
        let (low_key, high_key) = (KeyPath::dotted(low.0), KeyPath::dotted(high.0));
        self.amend((&low_key, low.1, "above"), (&high_key, high.1, "below"));
        let rises = self.rises(&KeyPath::dotted(low.0), &KeyPath::dotted(high.0));
        self.require(&[low.0, high.0], low.1 < high.1, || {
            disordered("is not below", low, high, why, rises)
        });
    }

    fn ordered(&mut self, low: (&KeyPath, Duration), high: (&KeyPath, Duration), why: &str) {
        let (low_text, high_text) = (low.0.to_string(), high.0.to_string());
        let keys = [low.0.clone(), high.0.clone()];
        self.amend((low.0, low.1, "at least"), (high.0, high.1, "at most"));
        let rises = self.rises(low.0, high.0);
        self.require_paths(&keys, low.1 <= high.1, || {
            let (low, high) = ((low_text.as_str(), low.1), (high_text.as_str(), high.1));
            disordered("is above", low, high, why, rises)
        });
    }

    /// Of two keys in an order, one of which is out of its own bounds: those are not all, and
    /// whoever mends it by them alone is refused again.
    fn amend(&mut self, low: (&KeyPath, Duration, &str), high: (&KeyPath, Duration, &str)) {
        for (faulty, sound) in [(low, high), (high, low)] {
            if self.reader.is_faulty(faulty.0) && !self.reader.is_faulty(sound.0) {
                let bound = show_duration(&sound.1);
                let more = format!("{} {} ({bound})", sound.2, sound.0);
                self.reader.amend(faulty.0, &more);
            }
        }
    }

    /// Whether the higher of two is what somebody wrote, so that raising it is the first remedy.
    fn rises(&self, low: &KeyPath, high: &KeyPath) -> bool {
        let layer = |key| self.reader.origin(key).map_or(0, |origin| origin.layer());
        layer(high) > layer(low)
    }

    fn require(&mut self, keys: &[&str], holds: bool, wrong: impl FnOnce() -> Wrong) {
        let keys: Vec<KeyPath> = keys.iter().map(|key| KeyPath::dotted(key)).collect();
        self.require_paths(&keys, holds, wrong);
    }

    fn require_paths(&mut self, keys: &[KeyPath], holds: bool, wrong: impl FnOnce() -> Wrong) {
        if holds || keys.iter().any(|key| self.reader.is_faulty(key)) {
            return;
        }
        // Of keys in one layer the first is named: it is the one that the rule is about.
        let layer = |key: &&KeyPath| self.reader.origin(key).map_or(0, |origin| origin.layer());
        if let Some(key) = keys.iter().rev().max_by_key(layer) {
            self.reader.fault(key, wrong());
        }
    }
}

/// The remedy begins with what somebody changed: the higher one, if it `rises`.
fn disordered(
    how: &str,
    low: (&str, Duration),
    high: (&str, Duration),
    why: &str,
    rises: bool,
) -> Wrong {
    let reason = if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    };
    let bounds = (show_duration(&low.1), show_duration(&high.1));
    let remedy = if rises {
        format!("raise {}, or lower {}", high.0, low.0)
    } else {
        format!("lower {}, or raise {}", low.0, high.0)
    };
    Wrong::new(
        format!("{} ({}) {how} {} ({})", low.0, bounds.0, high.0, bounds.1),
        format!("{remedy}{reason}"),
    )
}
