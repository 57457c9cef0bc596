//! Figures, and how they are shown.

use serde_json::{Value, json};

/// What a figure is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

impl Target {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {}", number(least)),
            Self::AtMost(most) => format!("≤ {}", number(most)),
        }
    }
}

/// Something measured, once in each block.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The section that measured it.
    pub section: &'static str,
    /// What it is.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// How many placements, requests or looks stand behind it, in all blocks together.
    pub count: u64,
    /// Its value in each block, in the order in which they were measured.
    pub blocks: Vec<f64>,
    /// What it is to reach, if anything was promised.
    pub target: Option<Target>,
}

impl Figure {
    /// The middle of the blocks; of two middle ones their mean.
    #[must_use]
    pub fn median(&self) -> f64 {
        median(&self.blocks)
    }

    /// The least and the greatest block.
    #[must_use]
    pub fn spread(&self) -> (f64, f64) {
        let least = self.blocks.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self
            .blocks
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        (least, most)
    }

    /// Whether the median reaches the target; `None` without one.
    #[must_use]
    pub fn met(&self) -> Option<bool> {
        self.target.map(|target| target.holds(self.median()))
    }

    fn json(&self) -> Value {
        let (least, most) = self.spread();
        json!({
            "section": self.section,
            "name": self.name,
            "unit": self.unit,
            "count": self.count,
            "median": self.median(),
            "least": least,
            "most": most,
            "blocks": self.blocks,
            "target": self.target.map(Target::text),
            "met": self.met(),
        })
    }
}

/// All that was measured, and on what.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Whether blocks and counts were cut short, so that no figure says much.
    pub quick: bool,
    /// Cores of this host.
    pub cores: usize,
    /// Where the stores were.
    pub folder: String,
    /// The figures, in the order of their sections.
    pub figures: Vec<Figure>,
    /// What a reader must know of how they were measured.
    pub notes: Vec<String>,
}

impl Report {
    pub(super) fn add(
        &mut self,
        section: &'static str,
        (name, unit): (&'static str, &'static str),
        count: u64,
        blocks: Vec<f64>,
        target: Option<Target>,
    ) {
        self.figures.push(Figure {
            section,
            name,
            unit,
            count,
            blocks,
            target,
        });
    }

    /// One object.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "build": if cfg!(debug_assertions) { "debug" } else { "release" },
            "quick": self.quick,
            "cores": self.cores,
            "folder": self.folder,
            "figures": self.figures.iter().map(Figure::json).collect::<Vec<_>>(),
            "notes": self.notes,
            "met": self.figures.iter().all(|figure| figure.met() != Some(false)),
        })
    }

    /// A table for a person.
    #[must_use]
    pub fn table(&self) -> String {
        let mut lines = vec![format!(
            "{:<11} {:<34} {:>12}  {:<23} {:<11} {:>8}  {:<10} met",
            "section", "figure", "median", "least to most", "unit", "count", "target"
        )];
        for figure in &self.figures {
            let (least, most) = figure.spread();
            let spread = format!("{} to {}", number(least), number(most));
            let target = figure.target.map(Target::text).unwrap_or_default();
            let met = match figure.met() {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "",
            };
            let line = format!(
                "{:<11} {:<34} {:>12}  {spread:<23} {:<11} {:>8}  {target:<10} {met}",
                figure.section,
                figure.name,
                number(figure.median()),
                figure.unit,
                figure.count,
            );
            lines.push(line.trim_end().to_owned());
        }
        for note in &self.notes {
            lines.push(format!("\n{note}"));
        }
        lines.join("\n") + "\n"
    }
}

/// The middle of `values`; 0 of none.
pub(super) fn median(values: &[f64]) -> f64 {
    share(values, 0.5)
}

/// The value below which `part` of `values` lies, between two of them by their distance; 0
/// of none.
pub(super) fn share(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    #[expect(clippy::cast_precision_loss, reason = "no section takes 2^52 samples")]
    let place = last as f64 * part.clamp(0.0, 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the samples, and not negative"
    )]
    let below = place.floor() as usize;
    let at = |index: usize| sorted.get(index.min(last)).copied().unwrap_or_default();
    let rest = place - place.floor();
    at(below) + (at(below + 1) - at(below)) * rest
}

/// With as many places as say something.
fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(blocks: &[f64], target: Target) -> Figure {
        Figure {
            section: "placements",
            name: "rate",
            unit: "1/s",
            count: 3,
            blocks: blocks.to_vec(),
            target: Some(target),
        }
    }

    #[test]
    fn the_median_and_the_spread_are_those_of_the_blocks() {
        let odd = figure(&[3.0, 1.0, 2.0], Target::AtLeast(2.0));
        assert_eq!((odd.median(), odd.spread()), (2.0, (1.0, 3.0)));
        assert_eq!(odd.met(), Some(true));
        let even = figure(&[1.0, 4.0], Target::AtMost(2.0));
        assert_eq!((even.median(), even.met()), (2.5, Some(false)));
    }

    #[test]
    fn a_share_lies_between_two_samples() {
        assert_eq!(share(&[0.0, 10.0], 0.99), 9.9);
        assert_eq!(share(&[], 0.5), 0.0);
        assert_eq!(share(&[7.0], 0.99), 7.0);
    }

    #[test]
    fn a_report_is_met_if_every_target_is() {
        let mut report = Report::default();
        report.figures = vec![figure(&[1.0], Target::AtLeast(1.0))];
        assert_eq!(report.json()["met"], true);
        report.figures.push(figure(&[2.0], Target::AtMost(1.0)));
        assert_eq!(report.json()["met"], false);
        assert!(report.table().contains("NO"), "{}", report.table());
    }
}
