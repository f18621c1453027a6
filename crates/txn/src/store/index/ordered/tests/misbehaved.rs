//! Keys whose `Ord` panics or lies.

use super::{Bound, OrderedKey, Rows, pin};
use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Comparisons and clones until one panics.
    static FUSE: Cell<u32> = const { Cell::new(u32::MAX) };
}

fn burn() {
    FUSE.set(FUSE.get().saturating_sub(1));
    assert!(FUSE.get() > 0, "the fuse is burnt");
}

#[derive(Debug)]
struct Fused(u32);

impl Clone for Fused {
    fn clone(&self) -> Self {
        burn();
        Self(self.0)
    }
}

impl PartialEq for Fused {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fused {}

impl PartialOrd for Fused {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fused {
    fn cmp(&self, other: &Self) -> Ordering {
        burn();
        self.0.cmp(&other.0)
    }
}

impl OrderedKey for Fused {}

/// Every operation panics at every comparison and clone that it makes. Then it has no effect, and the
/// index stays usable.
#[test]
fn after_a_panic_of_a_key_the_index_is_usable() {
    let rows = Rows::<Fused, 3>::new();
    let mut wanted = std::collections::BTreeSet::new();
    for step in 0..600_u32 {
        let key = step * 7919 % 101;
        let is_insert = step % 3 != 2;
        for fuse in 1.. {
            let guard = pin();
            FUSE.set(fuse);
            let ended = catch_unwind(AssertUnwindSafe(|| match is_insert {
                true => rows.insert(Fused(key), &guard),
                false => rows.remove(&Fused(key), &guard),
            }));
            FUSE.set(u32::MAX);
            if ended.is_ok() {
                match is_insert {
                    true => wanted.insert(key),
                    false => wanted.remove(&key),
                };
            }
            assert_eq!(rows.has(&Fused(key), &guard), wanted.contains(&key));
            if ended.is_ok() {
                break;
            }
        }
        let guard = pin();
        assert!(
            rows.all(&guard)
                .iter()
                .map(|key| key.0)
                .eq(wanted.iter().copied())
        );
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd)]
struct Liar(u32);

thread_local! {
    static NOISE: Cell<u64> = const { Cell::new(1) };
}

fn noise() -> u64 {
    let mut noise = NOISE.get();
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    NOISE.set(noise);
    noise
}

#[allow(clippy::derive_ord_xor_partial_ord)]
impl Ord for Liar {
    fn cmp(&self, _: &Self) -> Ordering {
        [Ordering::Less, Ordering::Equal, Ordering::Greater][noise() as usize % 3]
    }
}

impl OrderedKey for Liar {
    const PREFIX_BITS: Option<u32> = None;

    fn prefix(&self) -> u64 {
        noise() % 3
    }
}

/// Whatever `Ord` says, nothing is freed twice or used after it was freed, and every call returns.
#[test]
fn keys_that_lie_do_no_harm() {
    let rows = Rows::<Liar, 3>::new();
    for step in 0..3_000_u32 {
        let guard = pin();
        let key = Liar(step);
        match step % 4 {
            // The test's own `insert` demands equal keys.
            0..=2 => drop(catch_unwind(AssertUnwindSafe(|| rows.insert(key, &guard)))),
            _ => drop(rows.remove(&key, &guard)),
        }
        let mut range = rows
            .0
            .range(Bound::Included(&Liar(3)), Bound::Unbounded, &guard);
        while range.next().is_some() {}
        let mut range = rows
            .0
            .range(Bound::Included(&Liar(3)), Bound::Unbounded, &guard);
        // This may take a while: the low bounds do not go down.
        (0..100).take_while(|_| range.next_back().is_some()).count();
    }
}
