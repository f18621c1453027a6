//! Thread-locals that are consistent whenever a fibre waits.

use super::eight;
use corelay::fibre::{current, yield_now};
use crossbeam_epoch::{self as epoch, Atomic, Owned};
use rand::Rng;
use rayon::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The generator's state is borrowed only for the time of one draw.
#[test]
fn fibres_keep_the_generator_of_rand_over_waits() {
    let drawn = eight(|_| {
        let mut random = rand::rng();
        let draw = |_| {
            yield_now();
            random.next_u64()
        };
        (0..100).map(draw).collect::<Vec<_>>()
    });
    let different: HashSet<u64> = drawn.into_iter().flatten().collect();
    assert_eq!(different.len(), 800, "no number comes twice");
}

/// It counts the guards of a thread, and nothing is freed while there is one.
#[test]
fn fibres_keep_guards_of_crossbeam_epoch_over_waits() {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    static NUMBER: Atomic<Numbered> = Atomic::null();
    struct Numbered(u64, Box<u64>);
    impl Drop for Numbered {
        fn drop(&mut self) {
            *self.1 = u64::MAX;
            FREED.fetch_add(1, Ordering::Relaxed);
        }
    }
    eight(|i| {
        for k in 0..100 {
            let guard = epoch::pin();
            let seen = NUMBER.load(Ordering::Acquire, &guard);
            yield_now(); // others retire what this fibre has seen
            // SAFETY: if it has been retired, then after this fibre made its guard, which it still
            // holds.
            if let Some(seen) = unsafe { seen.as_ref() } {
                assert_eq!(*seen.1, seen.0);
            }
            let number = i * 100 + k;
            let new = Owned::new(Numbered(number, Box::new(number)));
            let old = NUMBER.swap(new, Ordering::AcqRel, &guard);
            if !old.is_null() {
                // SAFETY: this fibre alone has swapped the pointer out, so it retires it once.
                unsafe { guard.defer_destroy(old) };
            }
        }
    });
    while FREED.load(Ordering::Relaxed) < 799 {
        epoch::pin().flush();
    }
}

/// The fibre's processor is blocked meanwhile; rayon runs the closures on rayon's threads.
#[test]
fn fibres_call_rayon_which_blocks_their_processor() {
    let sums = eight(|i| {
        let (is_thread, sum) = rayon::join(
            || current().is_none(),
            || (0..1_000).into_par_iter().map(|k| k * i).sum::<u64>(),
        );
        yield_now();
        assert!(is_thread, "what waits there blocks a thread of rayon's");
        sum
    });
    assert_eq!(sums.iter().sum::<u64>(), 28 * 499_500);
}
