//! What is shown meanwhile: a live table on a terminal, lines without one, or nothing.

use std::fmt::Write as _;
use std::future::Future;
use std::io::{self, Write as _};
use std::time::Duration;

use tokio::time::Instant;

use super::report::Report;
use super::run::Error;
use super::script::{CAPACITY, Scene};
use super::side::Side;
use super::summary;
use super::table::{Cell, Ink, Mood, cell};
use super::times;
use crate::config::Config;

/// Between two drawings.
const FRAME: Duration = Duration::from_millis(100);

/// How the demo is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shown {
    /// Not at all.
    #[default]
    Quiet,
    /// A line for each change.
    Lines,
    /// A table that changes, in colors.
    Live,
}

/// The screen of one demo.
#[derive(Debug)]
pub(super) struct Screen {
    shown: Shown,
    begin: Instant,
    /// The sides with their names, as columns.
    columns: Vec<(&'static str, Side)>,
    /// What was drawn last.
    last: Vec<Vec<Cell>>,
    /// The act that was told last.
    act: &'static str,
}

impl Screen {
    /// Says what will be seen.
    pub(super) fn begin(
        shown: Shown,
        config: &Config,
        ours: Option<&Side>,
        naive: &Side,
    ) -> Result<Self, Error> {
        let mut columns = Vec::new();
        columns.extend(ours.map(|side| (summary::OURS, side.clone())));
        columns.push((summary::NAIVE, naive.clone()));
        let screen = Self {
            shown,
            begin: Instant::now(),
            columns,
            last: Vec::new(),
            act: "",
        };
        let head = summary::head(naive.calls.len(), CAPACITY, ours.is_some());
        screen.print(&format!(
            "{head}\n{}\n\n",
            summary::wrap(&times::told(config))
        ))?;
        Ok(screen)
    }

    /// Draws while `work` goes on, and once more after it.
    pub(super) async fn while_playing<T>(
        &mut self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut work = Box::pin(work);
        let mut frames = tokio::time::interval(FRAME);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    self.draw()?;
                    return done;
                }
                _ = frames.tick() => self.draw()?,
            }
        }
    }

    /// Says what it came to.
    pub(super) fn end(&self, report: &Report) -> Result<(), Error> {
        let ink = Ink(self.shown == Shown::Live);
        if self.shown == Shown::Lines {
            self.print(&format!("\n{}\n", self.rows(&self.last, ink).join("\n")))?;
        }
        self.print(&summary::of(report, ink))
    }

    fn draw(&mut self) -> Result<(), Error> {
        let views: Vec<_> = self.columns.iter().map(|(_, side)| side.view()).collect();
        let now: Vec<Vec<Cell>> = Scene::ALL
            .into_iter()
            .map(|scene| {
                let sides = self.columns.iter().zip(&views);
                sides
                    .map(|((_, side), view)| cell(scene, side, view))
                    .collect()
            })
            .collect();
        let text = match self.shown {
            Shown::Quiet => String::new(),
            Shown::Lines => self.changes(&now),
            Shown::Live => self.table(&now),
        };
        self.last = now;
        self.print(&text)
    }

    /// The table, drawn over the one before.
    fn table(&self, now: &[Vec<Cell>]) -> String {
        let ink = Ink(true);
        let mut text = String::new();
        if !self.last.is_empty() {
            // Up to its first line; each line is cleared as it is written.
            write!(text, "\x1b[{}F", now.len() + 3).expect("a String can be written to");
        }
        let mut lines = self.rows(now, ink);
        lines.push(String::new());
        let seconds = self.begin.elapsed().as_secs_f64();
        lines.push(ink.dim(&format!("  {seconds:4.1} s  {}", self.act_now())));
        for line in lines {
            text.push_str(&line);
            text.push_str("\x1b[K\n");
        }
        text
    }

    fn rows(&self, cells: &[Vec<Cell>], ink: Ink) -> Vec<String> {
        let names = self.columns.iter().map(|(name, _)| *name);
        let mut lines = vec![ink.bold(&summary::heading(names))];
        let rows = Scene::ALL.into_iter().zip(cells);
        lines.extend(rows.map(|(scene, cells)| summary::row(scene.title(), cells, ink)));
        lines
    }

    /// What the first side plays.
    fn act_now(&self) -> &'static str {
        self.columns.first().map_or("", |(_, side)| side.act())
    }

    /// A line for each act, and for each cell that has come to something.
    fn changes(&mut self, now: &[Vec<Cell>]) -> String {
        let mut text = String::new();
        let seconds = self.begin.elapsed().as_secs_f64();
        let act = self.act_now();
        if act != self.act {
            writeln!(text, "{seconds:5.1} s  {act}").expect("a String can be written to");
            self.act = act;
        }
        for (nth, scene) in Scene::ALL.into_iter().enumerate() {
            for (column, (name, _)) in self.columns.iter().enumerate() {
                let of =
                    |rows: &[Vec<Cell>]| rows.get(nth).and_then(|row| row.get(column).cloned());
                let (Some(cell), before) = (of(now), of(&self.last)) else {
                    continue;
                };
                if before.as_ref() != Some(&cell) && cell.mood != Mood::Open {
                    writeln!(
                        text,
                        "{seconds:5.1} s  {name:<18}  {:<34}  {cell}",
                        scene.title()
                    )
                    .expect("a String can be written to");
                }
            }
        }
        text
    }

    fn print(&self, text: &str) -> Result<(), Error> {
        if self.shown == Shown::Quiet || text.is_empty() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(Error::Screen)
    }
}
