//! Chance, as an argument: nonces, commit ids and jitter.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

/// Mints what must be unique or random.
pub trait Ids: Debug + Send + Sync {
    /// A new random UUID (version 4).
    fn uuid(&self) -> Uuid;
    /// Random bytes, for keys and AEAD nonces.
    fn fill(&self, bytes: &mut [u8]);
    /// A number in `0.0..1.0`, for jitter.
    fn unit(&self) -> f64;
}

/// Ids from a generator: seeded by the operating system in a process, by a seed in a
/// simulation, where the same seed gives the same ids in the same order.
#[derive(Debug)]
pub struct RandomIds(Mutex<StdRng>);

impl RandomIds {
    /// Seeded by the operating system.
    #[must_use]
    pub fn from_os() -> Self {
        Self(Mutex::new(StdRng::from_os_rng()))
    }

    /// Seeded by `seed`: the same ids in the same order, for a simulation.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ids for RandomIds {
    fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.with(|rng| rng.fill(bytes));
    }

    fn unit(&self) -> f64 {
        self.with(Rng::random)
    }
}
