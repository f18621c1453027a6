//! How long closures take: a trustee times one request of one batch in 64.
//!
//! A sampled request runs alone, with a stamp before and one after it, and all others run as
//! they would without: what the stamps cost is shared by 64 batches.

use super::dice::Dice;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What one type of closure has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) type_name: fn() -> &'static str,
    pub(crate) samples: u64,
    pub(crate) total: Duration,
    pub(crate) longest: Duration,
}

/// All samples of a trustee. Read by reports, written by the trustee.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// By the address of the function that names the closure: comparing names takes longer,
    /// and is left to reports.
    of: Mutex<BTreeMap<usize, Taken>>,
}

impl Samples {
    fn add(&self, type_name: fn() -> &'static str, took: Duration) {
        // Whoever reads a report must not hold the trustee up: the sample is lost instead.
        let Ok(mut of) = self.of.try_lock() else {
            return;
        };
        let taken = of.entry(type_name as usize).or_insert(Taken {
            type_name,
            samples: 0,
            total: Duration::ZERO,
            longest: Duration::ZERO,
        });
        taken.samples += 1;
        taken.total += took;
        taken.longest = taken.longest.max(took);
    }

    /// All that has been sampled so far.
    pub(crate) fn all(&self) -> Vec<Taken> {
        let of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.values().copied().collect()
    }
}

/// The trustee's side of it.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    dice: Dice,
    samples: Arc<Samples>,
}

impl Sampler {
    pub(crate) fn new(samples: Arc<Samples>) -> Self {
        Self {
            dice: Dice::default(),
            samples,
        }
    }

    #[cfg(test)]
    pub(super) fn samples(&self) -> &Samples {
        &self.samples
    }

    /// True where a request of this batch is to be timed.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.dice.is_due()
    }

    /// Which one: of a batch of so many units, not 0, the one that lies there.
    pub(crate) fn pick(&self, units: u32) -> u32 {
        self.dice.below(units)
    }

    /// A request of that type took so long.
    pub(crate) fn add(&self, type_name: fn() -> &'static str, took: Duration) {
        self.samples.add(type_name, took);
    }
}
