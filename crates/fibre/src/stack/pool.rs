//! Stacks that are free, per kind and processor.
//!
//! A processor takes from and gives to lists of its own, without an atomic; batches go between
//! those and lists that all share, behind a mutex. The stack that was given last is taken first:
//! its top is in the cache.
//!
//! **What a stack's memory holds.** Zeros at first. The top page then keeps what its last owner
//! left, so that a fibre's record can count its owners; the rest is unspecified, because
//! [`Stacks::trim`] gives it back to the system.

use super::slab::{self, Slab, StackError};
use super::{Kind, Stack};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stacks that go at once between a processor and the shared lists.
const BATCH: usize = 32;

/// Free stacks of a kind that a processor keeps, at most.
const MOST_KEPT: usize = 2 * BATCH;

/// The stacks of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    shared: Mutex<BTreeMap<Kind, Shared>>,
}

/// The shared lists of one kind.
#[derive(Debug, Default)]
struct Shared {
    slabs: Vec<Slab>,
    /// Free, and with whatever memory their owners touched. Those given first are in front.
    used: VecDeque<Stack>,
    /// Free, and with a page of memory at most.
    fresh: Vec<Stack>,
    /// Stacks of all slabs, whoever has them.
    made: usize,
}

impl Stacks {
    /// No stacks yet.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    #[cfg(test)]
    /// How many stacks exist: those in use, and those that are free.
    pub(crate) fn made(&self) -> usize {
        self.lock().values().map(|shared| shared.made).sum()
    }

    #[cfg(test)]
    /// How many stacks lie in the shared lists.
    pub(crate) fn free(&self) -> usize {
        let lists = self.lock();
        lists.values().map(|s| s.used.len() + s.fresh.len()).sum()
    }

    /// Gives memory of free stacks back to the system: of each kind all but `keep` in the shared
    /// lists, and all but the top page of each. A system call for each of them, so it is for
    /// those who have nothing else to do; taking and giving never does it.
    pub(crate) fn trim(&self, keep: usize) {
        let kinds: Vec<Kind> = self.lock().keys().copied().collect();
        for kind in kinds {
            while self.trim_batch(kind, keep) {}
        }
    }

    /// Trims a batch without holding the others up; false where nothing is left to do.
    fn trim_batch(&self, kind: Kind, keep: usize) -> bool {
        let batch: Vec<Stack> = {
            let mut lists = self.lock();
            let used = &mut lists.entry(kind).or_default().used;
            let count = used.len().saturating_sub(keep).min(BATCH);
            used.drain(..count).collect()
        };
        for stack in &batch {
            // SAFETY: it has come out of a free list, so we alone have it; a slab stays while
            // `self` does.
            unsafe { slab::release(*stack) };
        }
        let mut lists = self.lock();
        let shared = lists.entry(kind).or_default();
        shared.fresh.extend_from_slice(&batch);
        !batch.is_empty()
    }

    /// Moves a batch of free stacks to `list`, and makes some where there are none.
    fn refill(&self, kind: Kind, list: &mut Vec<Stack>) -> Result<(), StackError> {
        let mut lists = self.lock();
        let shared = lists.entry(kind).or_default();
        if shared.used.is_empty() && shared.fresh.is_empty() {
            shared.grow(kind)?;
        }
        // `list` is taken from at its end: those that have memory go first, the last given first.
        let used = shared.used.len().min(BATCH);
        let fresh = shared.fresh.len().min(BATCH - used);
        list.extend(shared.fresh.drain(shared.fresh.len() - fresh..));
        list.extend(shared.used.drain(shared.used.len() - used..));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Kind, Shared>> {
        // Stacks move from list to list by calls that either happen or do not: a panic in
        // between, for want of memory, leaves lists that are true.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Another slab, as large as all before: 1, 1, 2, 4 … stacks, so that a few fibres do not
    /// have many stacks, and many fibres few system calls.
    fn grow(&mut self, kind: Kind) -> Result<(), StackError> {
        let slab = Slab::map(kind, self.made.clamp(1, Slab::most(kind)))?;
        self.fresh.extend(slab.stacks());
        self.made += slab.len();
        self.slabs.push(slab);
        Ok(())
    }
}

impl Drop for Shared {
    /// Unmaps the slabs of which all stacks are back. Others are lost, with whatever still runs
    /// there.
    fn drop(&mut self) {
        let mut free: Vec<usize> = self
            .used
            .iter()
            .chain(&self.fresh)
            .map(|s| s.bottom())
            .collect();
        free.sort_unstable();
        for slab in self.slabs.drain(..) {
            let addresses = slab.addresses();
            let before = free.partition_point(|stack| *stack < addresses.start);
            let until = free.partition_point(|stack| *stack < addresses.end);
            if until - before < slab.len() {
                std::mem::forget(slab);
            }
        }
    }
}

/// The free stacks of one processor.
#[derive(Debug)]
pub(crate) struct LocalStacks {
    /// The kind that was asked for last is in front.
    kept: Vec<(Kind, Vec<Stack>)>,
    shared: Arc<Stacks>,
}

impl LocalStacks {
    /// None yet; they come from `shared`, and go back there when this is dropped.
    pub(crate) fn new(shared: Arc<Stacks>) -> Self {
        Self {
            kept: Vec::new(),
            shared,
        }
    }

    /// Takes a stack, which is the caller's until it is given back, to any processor of the same
    /// cluster.
    ///
    /// Its memory is there as long as the [`Stacks`] are.
    #[inline]
    pub(crate) fn take(&mut self, kind: Kind) -> Result<Stack, StackError> {
        if let Some((front, list)) = self.kept.first_mut()
            && *front == kind
            && let Some(stack) = list.pop()
        {
            return Ok(stack);
        }
        self.take_slowly(kind)
    }

    /// Gives a stack back.
    ///
    /// # Safety
    ///
    /// It was taken from the same [`Stacks`], nothing on it will be used again, and nobody gives
    /// it a second time.
    #[inline]
    pub(crate) unsafe fn give(&mut self, stack: Stack) {
        if let Some((front, list)) = self.kept.first_mut()
            && *front == stack.kind()
            && list.len() < MOST_KEPT
        {
            list.push(stack);
            return;
        }
        self.give_slowly(stack);
    }

    #[cold]
    fn take_slowly(&mut self, kind: Kind) -> Result<Stack, StackError> {
        let shared = Arc::clone(&self.shared);
        let list = self.front(kind);
        if list.is_empty() {
            shared.refill(kind, list)?;
        }
        Ok(list.pop().expect("a refill brings a stack or an error"))
    }

    #[cold]
    fn give_slowly(&mut self, stack: Stack) {
        let shared = Arc::clone(&self.shared);
        let list = self.front(stack.kind());
        if list.len() >= MOST_KEPT {
            // Those that were given first.
            let mut lists = shared.lock();
            let used = &mut lists.entry(stack.kind()).or_default().used;
            used.extend(list.drain(..BATCH));
        }
        list.push(stack);
    }

    /// The list of a kind, moved to the front.
    fn front(&mut self, kind: Kind) -> &mut Vec<Stack> {
        let found = self.kept.iter().position(|(kept, _)| *kept == kind);
        let index = found.unwrap_or_else(|| {
            // Once, so that giving does not allocate.
            self.kept.push((kind, Vec::with_capacity(MOST_KEPT)));
            self.kept.len() - 1
        });
        self.kept.swap(0, index);
        &mut self.kept[0].1
    }
}

impl Drop for LocalStacks {
    fn drop(&mut self) {
        let mut lists = self.shared.lock();
        for (kind, list) in &mut self.kept {
            let used = &mut lists.entry(*kind).or_default().used;
            used.extend(list.drain(..));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::size::page_size;
    use super::super::testing::*;
    use super::*;
    use std::collections::BTreeSet;
    #[cfg(target_os = "linux")]
    use std::fs;

    #[test]
    #[cfg_attr(
        corelay_emulated,
        ignore = "an emulator keeps memory and processes otherwise"
    )]
    fn stacks_are_apart_and_guarded() {
        let stacks = Stacks::new();
        let mut local = LocalStacks::new(stacks.clone());
        let kind = kind(16 << 10);
        let taken: Vec<Stack> = (0..300).map(|_| local.take(kind).unwrap()).collect();
        let mut ranges: Vec<_> = taken
            .iter()
            .map(|s| (s.limit(), s.top().addr().get()))
            .collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        for stack in &taken {
            assert!(stack.bottom().is_multiple_of(page_size()));
            assert_eq!(stack.kind(), kind);
            assert_eq!(stack.top().addr().get() - stack.bottom(), 16 << 10);
            for inside in [stack.bottom(), stack.top().addr().get() - 1] {
                write(inside, 1);
                assert!(is_readable(inside));
            }
            for outside in [stack.limit(), stack.bottom() - 1] {
                assert!(!is_readable(outside));
            }
        }
        for stack in taken {
            // SAFETY: taken above, and nothing runs there.
            unsafe { local.give(stack) };
        }
    }

    #[test]
    fn the_last_given_is_the_first_taken_and_nothing_is_made_anew() {
        let stacks = Stacks::new();
        let mut local = LocalStacks::new(stacks.clone());
        let kinds = [DEFAULT, 16 << 10, 1 << 20].map(kind);
        for kind in kinds {
            let stack = local.take(kind).unwrap();
            // SAFETY: just taken.
            unsafe { local.give(stack) };
        }
        let made = stacks.made();
        for round in 0..1_000 {
            let kind = kinds[round % 3];
            let [first, second] = [(); 2].map(|()| local.take(kind).unwrap());
            assert_ne!(first, second);
            assert_eq!(first.kind(), kind);
            for stack in [first, second] {
                // SAFETY: just taken.
                unsafe { local.give(stack) };
            }
            let last = local.take(kind).unwrap();
            assert_eq!(last, second);
            // SAFETY: just taken.
            unsafe { local.give(last) };
        }
        // A second stack of each kind.
        assert_eq!(made, 3);
        assert_eq!(stacks.made(), 6);
    }

    #[test]
    fn slabs_grow_and_end_at_their_bounds() {
        let stacks = Stacks::new();
        let mut local = LocalStacks::new(stacks.clone());
        let mut made = Vec::new();
        for _ in 0..200 {
            local.take(kind(16 << 10)).unwrap();
            if made.last() != Some(&stacks.made()) {
                made.push(stacks.made());
            }
        }
        assert_eq!(made, [1, 2, 4, 8, 16, 32, 64, 128, 192, 256]);
        // As many as 4 MiB hold, and one where they hold none.
        assert!((1..64).contains(&slab::Slab::most(kind(1 << 20))));
        assert_eq!(slab::Slab::most(kind(1 << 30)), 1);
        let large = local.take(kind(1 << 30)).unwrap();
        write(large.top().addr().get() - 1, 1);
        write(large.bottom(), 1);
    }

    #[test]
    fn stacks_wander_between_threads_and_are_had_by_one_at_a_time() {
        let stacks = Stacks::new();
        let kinds = [DEFAULT, 16 << 10].map(kind);
        let (giver, taker) = std::sync::mpsc::sync_channel::<(Stack, u8)>(100);
        let taker = Arc::new(Mutex::new(taker));
        std::thread::scope(|s| {
            for thread in 0..3_u8 {
                let (giver, stacks) = (giver.clone(), stacks.clone());
                s.spawn(move || {
                    let mut local = LocalStacks::new(stacks);
                    for round in 0..5_000 {
                        let stack = local.take(kinds[round % 2]).unwrap();
                        write(stack.top().addr().get() - 1, thread);
                        giver.send((stack, thread)).unwrap();
                    }
                });
            }
            drop(giver);
            for _ in 0..2 {
                let (taker, stacks) = (taker.clone(), stacks.clone());
                s.spawn(move || {
                    let mut local = LocalStacks::new(stacks);
                    loop {
                        let next = taker.lock().unwrap().recv();
                        let Ok((stack, thread)) = next else { break };
                        assert_eq!(read(stack.top().addr().get() - 1), thread);
                        // SAFETY: taken by another thread, which has handed it over.
                        unsafe { local.give(stack) };
                    }
                });
            }
            // So that those who give learn of those who fail.
            drop(taker);
        });
        // All are back, each once.
        let lists = stacks.lock();
        let free = lists.values().flat_map(|s| s.used.iter().chain(&s.fresh));
        let places: BTreeSet<usize> = free.map(|stack| stack.bottom()).collect();
        drop(lists);
        assert_eq!(places.len(), stacks.made());
        assert_eq!(stacks.free(), stacks.made());
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[cfg_attr(
        corelay_emulated,
        ignore = "an emulator keeps memory and processes otherwise"
    )]
    fn trimming_gives_memory_back_and_keeps_the_top_page() {
        let stacks = Stacks::new();
        let mut local = LocalStacks::new(stacks.clone());
        let taken: Vec<Stack> = (0..100)
            .map(|_| local.take(kind(DEFAULT)).unwrap())
            .collect();
        for stack in &taken {
            for page in (stack.bottom()..stack.top().addr().get()).step_by(page_size()) {
                write(page, 7);
            }
        }
        assert!(taken.iter().all(|stack| resident(*stack) == DEFAULT));
        for stack in &taken {
            // SAFETY: taken above.
            unsafe { local.give(*stack) };
        }
        drop(local);
        stacks.trim(10);
        let whole = taken.iter().filter(|s| resident(**s) == DEFAULT).count();
        let trimmed: Vec<&Stack> = taken
            .iter()
            .filter(|s| resident(**s) == page_size())
            .collect();
        assert_eq!((whole, trimmed.len()), (10, 90));
        for stack in trimmed {
            assert_eq!(read(stack.top().addr().get() - page_size()), 7);
            assert!(!is_readable(stack.bottom() - 1), "guards stay");
        }
        stacks.trim(0);
        assert_eq!(stacks.free(), stacks.made());
    }

    #[test]
    #[cfg_attr(
        corelay_emulated,
        ignore = "an emulator keeps memory and processes otherwise"
    )]
    fn a_pool_unmaps_what_is_back_and_only_that() {
        // By itself, so that nothing else is mapped in a place that has become free.
        if role().is_none() {
            let test = "a_pool_unmaps_what_is_back_and_only_that";
            let output = child(module_path!(), test, "alone", &[]);
            assert!(output.status.success(), "{}", errors(&output));
            return;
        }
        let stacks = Stacks::new();
        let mut local = LocalStacks::new(stacks.clone());
        let [lost, back] = [DEFAULT, 16 << 10].map(|bytes| local.take(kind(bytes)).unwrap());
        write(lost.top().addr().get() - 1, 9);
        // SAFETY: just taken.
        unsafe { local.give(back) };
        drop(local);
        assert!(is_readable(back.bottom()));
        drop(stacks);
        assert!(!is_readable(back.bottom()));
        assert!(is_readable(lost.bottom()));
        assert_eq!(read(lost.top().addr().get() - 1), 9);
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[cfg_attr(
        corelay_emulated,
        ignore = "an emulator keeps memory and processes otherwise"
    )]
    fn without_marks_guards_are_pages_without_access() {
        if role().is_none() {
            let test = "without_marks_guards_are_pages_without_access";
            let output = child(module_path!(), test, "mprotect", &[HATCH]);
            assert!(output.status.success(), "{}", errors(&output));
            return;
        }
        stacks_are_apart_and_guarded();
        trimming_gives_memory_back_and_keeps_the_top_page();
        let guards = || {
            let maps = fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().filter(|line| line.contains(" ---p ")).count()
        };
        let before = guards();
        let mut local = LocalStacks::new(Stacks::new());
        for _ in 0..64 {
            local.take(kind(DEFAULT)).unwrap();
        }
        assert!(guards() >= before + 64);
    }
}
