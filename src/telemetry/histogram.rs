//! A histogram of spans of time, of fixed bounds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets, in milliseconds; what is above the last is in one more.
/// Half a second to the answer is quick, and the longest ringing is 80 s.
pub const BOUNDS_MS: [u64; 13] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 90_000,
];

/// Counts spans. It starts empty with the process.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS_MS.len() + 1],
    sum_ms: AtomicU64,
}

/// What a histogram has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans {
    /// How many spans are at most as long as each bound of [`BOUNDS_MS`] and longer than the
    /// one before; the last are those above all bounds.
    pub buckets: Vec<u64>,
    /// All of them together, in milliseconds.
    pub sum_ms: u64,
}

impl Spans {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Histogram {
    /// Counts a span.
    pub fn add(&self, span: Duration) {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let place = BOUNDS_MS.partition_point(|bound| *bound < ms);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// What was counted so far.
    #[must_use]
    pub fn counted(&self) -> Spans {
        let count = |bucket: &AtomicU64| bucket.load(Ordering::Relaxed);
        Spans {
            buckets: self.buckets.iter().map(count).collect(),
            sum_ms: self.sum_ms.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_in_the_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::default();
        for ms in [0, 100, 101, 90_000, 90_001, 10_000_000] {
            histogram.add(Duration::from_millis(ms));
        }
        let counted = histogram.counted();
        assert_eq!(counted.buckets.first(), Some(&2));
        assert_eq!(counted.buckets.get(1), Some(&1));
        assert_eq!(counted.buckets.get(12), Some(&1));
        assert_eq!(counted.buckets.last(), Some(&2));
        assert_eq!((counted.count(), counted.sum_ms), (6, 10_180_202));
    }
}
