//! Chance: one generator for each concern, all from one seed, so that what one of them draws
//! more does not move the others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A seeded generator. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Chance(Arc<Mutex<StdRng>>);

impl Chance {
    /// The generator of `seed` for one concern.
    pub(super) fn new(seed: u64, concern: &str) -> Self {
        let mixed = concern
            .bytes()
            .fold(seed, |so_far, byte| mix(so_far ^ u64::from(byte)));
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(mixed))))
    }

    /// A number below `limit`; 0 if that is 0.
    pub(super) fn below(&self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        self.with(|rng| rng.random_range(0..limit))
    }

    /// Whether something comes true that does so in this share of all cases.
    pub(super) fn hits(&self, share: f64) -> bool {
        share > 0.0 && self.with(Rng::random::<f64>) < share
    }

    /// A span of whole milliseconds, from `least` to less than `most`.
    pub(super) fn span(&self, least: Duration, most: Duration) -> Duration {
        let room = most.saturating_sub(least).as_millis();
        least + Duration::from_millis(self.below(u64::try_from(room).unwrap_or(u64::MAX)))
    }

    /// The same in milliseconds.
    pub(super) fn millis(&self, least: u64, most: u64) -> Duration {
        self.span(Duration::from_millis(least), Duration::from_millis(most))
    }

    /// So much, in either direction.
    pub(super) fn signed(&self, most: Duration) -> i64 {
        let micros = i64::try_from(self.span(Duration::ZERO, most).as_micros()).unwrap_or(0);
        if self.hits(0.5) { micros } else { -micros }
    }

    /// The place of one of `count`.
    pub(super) fn index(&self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap_or(0)
    }

    /// One of these; there is at least one.
    pub(super) fn of<T: Copy>(&self, first: T, rest: &[T]) -> T {
        match self.index(rest.len() + 1) {
            0 => first,
            at => rest.get(at - 1).copied().unwrap_or(first),
        }
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The finalizer of splitmix64: neighbours come out far apart.
pub(super) const fn mix(seed: u64) -> u64 {
    let a = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    c ^ (c >> 31)
}
