//! Locality (C5): each fibre touches an array of its own, then waits in a random spot with a
//! single seat and wakes who sat there; with share, the array goes along.
//!
//! A spot is one word: empty, closed, or the fibre that sits there.
//!
//! ```text
//! EMPTY ── me ──► me ── you ──► you …      the one before is woken
//!                 └──── main ─► CLOSED     at the end: the run is over for who reads it
//! ```
//! With share, who is woken goes on with the waker's array, which is in that processor's
//! caches. The waker's own comes from whoever wakes it: only t - n arrays are then in use.

use super::fibre::{self, BinarySemaphore};
use super::spec::Spec;
use super::team::{Dice, End, Tally, Work};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, AtomicUsize, Ordering};

const EMPTY: usize = usize::MAX;
const CLOSED: usize = usize::MAX - 1;

/// Words that keep an array's ends away from its neighbours' lines.
const MARGIN: usize = 16;

pub(super) struct Locality {
    spots: Box<[CachePadded<AtomicUsize>]>,
    contexts: Box<[CachePadded<Context>]>,
    arrays: Box<[CachePadded<Array>]>,
    words: usize,
    touches: usize,
    share: bool,
    seed: u64,
}

/// What others need of a fibre.
struct Context {
    seat: BinarySemaphore,
    /// Its array, by number. Whoever wakes the fibre may change it before.
    array: AtomicUsize,
}

/// An array. Who holds it is alone with it: its words are atomic for the compiler's sake, and
/// a load and a store are as good as any other.
struct Array {
    words: Box<[AtomicU64]>,
    /// The processor that touched it last.
    last: AtomicUsize,
}

/// On no processor yet.
const NOWHERE: usize = usize::MAX;

impl Array {
    fn new(words: usize) -> Self {
        Self {
            words: (0..words + 2 * MARGIN).map(|_| AtomicU64::new(0)).collect(),
            last: AtomicUsize::new(NOWHERE),
        }
    }

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
            seat: BinarySemaphore::new(false),
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
        }
    }

    /// Sits down in the spot; says who sat there, or nothing once the spot is closed.
    fn sit(spot: &AtomicUsize, me: usize) -> Option<usize> {
        loop {
            // Relaxed: only the exchange below takes anything over.
            let sitter = spot.load(Ordering::Relaxed);
            if sitter == CLOSED {
                return None;
            }
            // AcqRel: Release for whoever wakes this fibre, which writes its context after the
            // fibre last did; Acquire pairs with that of who sits here.
            let seated = spot.compare_exchange(sitter, me, Ordering::AcqRel, Ordering::Relaxed);
            if seated.is_ok() {
                return Some(sitter);
            }
        }
    }
}

impl Work for Locality {
    fn fibre(&self, me: usize, end: &End) -> Tally {
        let (context, mut dice) = (&self.contexts[me], Dice::of(self.seed, me));
        let mut array = me;
        let mut words = self.arrays[array].own();
        let mut home = fibre::processor();
        let (mut operations, mut moved, mut data_moved) = (0, 0, 0);
        loop {
            for _ in 0..self.touches {
                let word = &words[dice.below(self.words)];
                // Relaxed: whoever holds the array is alone with it; the semaphore hands it on.
                word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            let spot = &self.spots[dice.below(self.spots.len())];
            let Some(sitter) = Self::sit(spot, me) else {
                break;
            };
            if sitter != EMPTY {
                let sitter = &self.contexts[sitter];
                if self.share {
                    // Relaxed: the post publishes it.
                    sitter.array.store(array, Ordering::Relaxed);
                }
                sitter.seat.post();
            }
            context.seat.wait();
            // Relaxed: the wait pairs with the post of who has set it.
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
            }
            let here = here.unwrap_or(NOWHERE);
            let last = &self.arrays[array].last;
            // Relaxed: it belongs to who holds the array.
            let before = last.load(Ordering::Relaxed);
            if before != here {
                last.store(here, Ordering::Relaxed);
                data_moved += u64::from(before != NOWHERE);
            }
        }
        Tally {
            migrations: Some((moved, data_moved)),
            ..Tally::of(operations)
        }
    }

    fn wake_all(&self) {
        for spot in &self.spots {
            // Acquire: pairs with the Release of who sits here.
            let sitter = spot.swap(CLOSED, Ordering::Acquire);
            if sitter != EMPTY {
                self.contexts[sitter].seat.post();
            }
        }
    }

    /// Each fibre touched its array before each operation and once more before its end; where
    /// two held one array at the same time, increments are lost.
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

    /// Runs it for 20 ms; the touches of each array, fewest first.
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
        };
        let work = Locality::new(&spec, spots, words, touches, share);
        let shared = Arc::new((work, End::by_time()));
        let cluster = crate::cluster::start(2).unwrap();
        let spawn = |me| {
            let shared = Arc::clone(&shared);
            cluster.spawn(move || shared.0.fibre(me, &shared.1))
        };
        let fibres: Vec<_> = (0..fibres).map(spawn).collect();
        std::thread::sleep(Duration::from_millis(20));
        let (work, end) = &*shared;
        end.reach();
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

    /// Six sat down in empty seats, and their arrays are gone: two go from hand to hand.
    #[test]
    fn shared_arrays_go_along() {
        let shared = touches(true);
        let (gone, used): (u64, u64) = (shared[..6].iter().sum(), shared[6..].iter().sum());
        assert!(used > 4 * gone, "{shared:?}");
        // Without share everybody keeps its own.
        let own = touches(false);
        assert!(own[0] > 0, "{own:?}");
    }
}
