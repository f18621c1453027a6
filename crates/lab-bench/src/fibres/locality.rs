//! Locality (C5): each fibre touches an array, then enters a random spot, wakes the fibre that
//! waited there, and waits itself. With `share`, the woken fibre also gets the waker's array.
//!
//! A spot is one word: empty, closed, or the number of the fibre that waits there.
//!
//! ```text
//! EMPTY ── me ──► me ── you ──► you …      the previous occupant is woken
//!                 └──── main ─► CLOSED     at the end: a fibre that reads this is done
//! ```
//! With `share`, a woken fibre continues with the waker's array, which is in that processor's
//! caches. The waker in turn gets an array from the fibre that wakes it. So with t fibres and n
//! spots only t - n arrays are in use.

use super::chains::Trail;
use super::fibre::{self, BinarySemaphore};
use super::spec::Spec;
use super::team::{FibreRandom, StopCondition, Tally, Work};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The value of an empty spot.
const EMPTY: usize = usize::MAX;
/// The value of a spot after the end of the run.
const CLOSED: usize = usize::MAX - 1;

/// Words that keep the ends of an array off its neighbours' cache lines.
const MARGIN: usize = 16;

/// The spots, fibres and arrays of a run.
pub(super) struct Locality {
    spots: Box<[CachePadded<AtomicUsize>]>,
    contexts: Box<[CachePadded<Context>]>,
    arrays: Box<[CachePadded<Array>]>,
    words: usize,
    touches: usize,
    share: bool,
    seed: u64,
    /// Whether the fibres note their migrations.
    notes: bool,
}

/// The part of a fibre's state that other fibres use.
struct Context {
    semaphore: BinarySemaphore,
    /// The number of the fibre's array. A waker may change it before it wakes the fibre.
    array: AtomicUsize,
}

/// An array, which one fibre holds at a time. Its words are atomic only for the compiler's sake: as
/// the holder is alone with them, a load and a store are enough.
struct Array {
    words: Box<[AtomicU64]>,
    /// The processor that touched the array last.
    last: AtomicUsize,
}

/// The value of [`Array::last`] before the first touch, and if the processor is unknown.
const NOWHERE: usize = usize::MAX;

impl Array {
    fn new(words: usize) -> Self {
        Self {
            words: (0..words + 2 * MARGIN).map(|_| AtomicU64::new(0)).collect(),
            last: AtomicUsize::new(NOWHERE),
        }
    }

    /// The words without the margins.
    fn own(&self) -> &[AtomicU64] {
        &self.words[MARGIN..self.words.len() - MARGIN]
    }
}

impl Locality {
    pub(super) fn new(
        spec: &Spec,
        spots: usize,
        words: usize,
        touches: usize,
        share: bool,
    ) -> Self {
        let context = |array| Context {
            semaphore: BinarySemaphore::new(false),
            array: AtomicUsize::new(array),
        };
        let all = || 0..spec.fibres;
        Self {
            spots: (0..spots)
                .map(|_| CachePadded::new(AtomicUsize::new(EMPTY)))
                .collect(),
            contexts: all().map(|me| CachePadded::new(context(me))).collect(),
            arrays: all().map(|_| CachePadded::new(Array::new(words))).collect(),
            words,
            touches,
            share,
            seed: spec.seed,
            notes: spec.chains,
        }
    }

    /// Puts fibre `me` into the spot. Returns its previous value, or `None` if the spot is closed.
    fn enter(spot: &AtomicUsize, me: usize) -> Option<usize> {
        loop {
            // Relaxed: only the exchange below transfers anything.
            let occupant = spot.load(Ordering::Relaxed);
            if occupant == CLOSED {
                return None;
            }
            // AcqRel: Release publishes this fibre's context to its waker, which writes to it next;
            // Acquire pairs with the Release of the previous occupant.
            let entered = spot.compare_exchange(occupant, me, Ordering::AcqRel, Ordering::Relaxed);
            if entered.is_ok() {
                return Some(occupant);
            }
        }
    }
}

impl Work for Locality {
    fn fibre(&self, me: usize, end: &StopCondition) -> Tally {
        let (context, mut random) = (&self.contexts[me], FibreRandom::of(self.seed, me));
        let mut array = me;
        let mut words = self.arrays[array].own();
        let mut home = fibre::processor();
        let mut trail = self.notes.then(Trail::start);
        let (mut operations, mut moved, mut data_moved) = (0, 0, 0);
        loop {
            for _ in 0..self.touches {
                let word = &words[random.below(self.words)];
                // Relaxed: the fibre that holds the array is alone with it; semaphores pass it on.
                word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            let spot = &self.spots[random.below(self.spots.len())];
            let Some(occupant) = Self::enter(spot, me) else {
                break;
            };
            if occupant != EMPTY {
                let occupant = &self.contexts[occupant];
                if self.share {
                    // Relaxed: the post publishes it.
                    occupant.array.store(array, Ordering::Relaxed);
                }
                occupant.semaphore.post();
            }
            context.semaphore.wait();
            // Relaxed: the wait pairs with the post of the waker that has written it.
            array = context.array.load(Ordering::Relaxed);
            words = self.arrays[array].own();
            if end.is_stopped() {
                break;
            }
            operations += 1;
            let here = fibre::processor();
            if here != home {
                moved += 1;
                home = here;
                if let Some(trail) = &mut trail {
                    trail.moved(here);
                }
            }
            let here = here.unwrap_or(NOWHERE);
            let last = &self.arrays[array].last;
            // Relaxed: the fibre that holds the array is alone with it.
            let before = last.load(Ordering::Relaxed);
            if before != here {
                last.store(here, Ordering::Relaxed);
                data_moved += u64::from(before != NOWHERE);
            }
        }
        Tally {
            migrations: Some((moved, data_moved)),
            trail,
            ..Tally::of(operations)
        }
    }

    fn wake_all(&self) {
        for spot in &self.spots {
            // Acquire: pairs with the Release of the occupant.
            let occupant = spot.swap(CLOSED, Ordering::Acquire);
            if occupant != EMPTY {
                self.contexts[occupant].semaphore.post();
            }
        }
    }

    /// Sums up all words. Each fibre touched its array before each operation and once more before
    /// its end. If two fibres ever held one array at the same time, increments are missing.
    fn check(&self, tallies: &[Tally]) -> Result<(), String> {
        let passes: u64 = tallies.iter().map(|tally| tally.operations + 1).sum();
        let expected = passes * self.touches as u64;
        // Relaxed: the fibres have been joined.
        let sum = |array: &CachePadded<Array>| -> u64 {
            let words = array.own().iter();
            words.map(|word| word.load(Ordering::Relaxed)).sum()
        };
        let touched: u64 = self.arrays.iter().map(sum).sum();
        if touched == expected {
            return Ok(());
        }
        Err(format!(
            "wrong result: {expected} touches, but the words sum up to {touched}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fibres::spec::{Bench, Length};
    use std::sync::Arc;
    use std::time::Duration;

    /// Runs the benchmark for 20 ms; returns the touches of each array, fewest first.
    fn touches(share: bool) -> Vec<u64> {
        let (fibres, spots, words, touches) = (8, 6, 5, 3);
        let spec = Spec {
            bench: Bench::Locality {
                spots,
                words,
                touches,
                share,
            },
            processors: 2,
            fibres,
            length: Length::Time(Duration::from_millis(20)),
            seed: 3,
            chains: false,
        };
        let work = Locality::new(&spec, spots, words, touches, share);
        let shared = Arc::new((work, StopCondition::by_time()));
        let cluster = crate::cluster::start(2).unwrap();
        let spawn = |me| {
            let shared = Arc::clone(&shared);
            cluster.spawn(move || shared.0.fibre(me, &shared.1))
        };
        let fibres: Vec<_> = (0..fibres).map(spawn).collect();
        std::thread::sleep(Duration::from_millis(20));
        let (work, end) = &*shared;
        end.stop();
        work.wake_all();
        let tallies: Vec<Tally> = fibres.into_iter().map(|f| f.join().unwrap()).collect();
        work.check(&tallies).unwrap();
        let sum = |array: &CachePadded<Array>| {
            let words = array.own().iter();
            words.map(|word| word.load(Ordering::Relaxed)).sum()
        };
        let mut sums: Vec<u64> = work.arrays.iter().map(sum).collect();
        sums.sort_unstable();
        sums
    }

    /// Checks that six arrays fall out of use: those of the fibres that entered the empty spots.
    #[test]
    fn sharing_leaves_two_arrays_in_use() {
        let shared = touches(true);
        let (gone, used): (u64, u64) = (shared[..6].iter().sum(), shared[6..].iter().sum());
        assert!(used > 4 * gone, "{shared:?}");
        // Without `share` every fibre keeps its own array.
        let own = touches(false);
        assert!(own[0] > 0, "{own:?}");
    }
}
