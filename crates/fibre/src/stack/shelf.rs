//! All stacks of one kind, of which those lie here that are free and that no thread keeps.
//!
//! A free stack is *warm*, with whatever memory its owners have touched, or *cold*, without any.
//! Warm ones lie in a list, cold ones are bits of their slab. A slab all of whose stacks are cold
//! goes back to the system.

use super::pool::KEEP;
use super::slab::{Slab, StackError};
use super::{Kind, Stack};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// By the lowest address of each.
    slabs: BTreeMap<usize, Shelved>,
    /// Slabs that have cold stacks.
    colds: BTreeSet<usize>,
    /// Stacks, those given first in front.
    warm: VecDeque<Stack>,
    /// Stacks of all slabs, whoever has them.
    made: usize,
    cold: usize,
}

#[derive(Debug)]
struct Shelved {
    slab: Slab,
    /// A bit for each stack, from the lowest.
    cold: u64,
}

impl Shelved {
    /// Whether nobody has one of its stacks, if these many more are free.
    fn is_whole(&self, more: usize) -> bool {
        self.cold.count_ones() as usize + more == self.slab.len()
    }
}

impl Shelf {
    /// How many stacks exist.
    #[cfg(test)]
    pub(super) fn made(&self) -> usize {
        self.made
    }

    /// How many lie here.
    pub(super) fn free(&self) -> usize {
        self.warm.len() + self.cold
    }

    /// How many lie here with memory.
    #[cfg(test)]
    pub(super) fn warm(&self) -> usize {
        self.warm.len()
    }

    /// How many fibres and threads have.
    pub(super) fn in_use(&self) -> usize {
        self.made - self.free()
    }

    /// How many are to stay with their memory while there are clusters: as many as are in use.
    pub(super) fn to_stay(&self) -> usize {
        self.in_use().max(KEEP)
    }

    /// Whether there are more.
    pub(super) fn has_spare(&self) -> bool {
        self.warm.len() > self.to_stay()
    }

    /// Puts stacks here, with the memory that they have.
    pub(super) fn put(&mut self, stacks: impl Iterator<Item = Stack>) {
        self.warm.extend(stacks);
    }

    /// Moves some free stacks to `list`, `most` of them, and makes some where there are none.
    pub(super) fn fill(
        &mut self,
        kind: Kind,
        list: &mut Vec<Stack>,
        most: usize,
    ) -> Result<(), StackError> {
        if self.free() == 0 {
            self.grow(kind)?;
        }
        // `list` is taken from at its end: those that have memory go first, the last given first.
        let warm = self.warm.len().min(most);
        self.take_cold(most - warm, list);
        list.extend(self.warm.drain(self.warm.len() - warm..));
        Ok(())
    }

    /// Another slab, as large as all before: 1, 1, 2, 4 … stacks, so that a few fibres do not
    /// have many stacks, and many fibres few system calls.
    fn grow(&mut self, kind: Kind) -> Result<(), StackError> {
        let slab = Slab::map(kind, self.made.clamp(1, Slab::most(kind)))?;
        let low = slab.addresses().start;
        let cold = u64::MAX >> (64 - slab.len());
        self.made += slab.len();
        self.cold += slab.len();
        self.slabs.insert(low, Shelved { slab, cold });
        self.colds.insert(low);
        Ok(())
    }

    fn take_cold(&mut self, most: usize, list: &mut Vec<Stack>) {
        for _ in 0..most {
            let Some(&low) = self.colds.last() else { break };
            let shelved = self.slabs.get_mut(&low).expect("it has cold stacks");
            list.push(shelved.slab.stack(shelved.cold.trailing_zeros() as usize));
            shelved.cold &= shelved.cold - 1;
            self.cold -= 1;
            if shelved.cold == 0 {
                self.colds.remove(&low);
            }
        }
    }

    /// Takes warm stacks away that have lain longest, `most` of them, and leaves `keep`. Where they
    /// are all that its slab has out, the slab comes in their place.
    pub(super) fn take_unwanted(
        &mut self,
        keep: usize,
        most: usize,
        slabs: &mut Vec<Slab>,
        stacks: &mut Vec<Stack>,
    ) {
        let count = self.warm.len().saturating_sub(keep).min(most);
        let mut taken: Vec<Stack> = self.warm.drain(..count).collect();
        taken.sort_unstable_by_key(|stack| stack.bottom());
        let mut taken = taken.as_slice();
        while let Some(first) = taken.first() {
            let low = self.home(*first);
            let shelved = &self.slabs[&low];
            let end = shelved.slab.addresses().end;
            let (of_slab, rest) = taken.split_at(taken.partition_point(|s| s.bottom() < end));
            if shelved.is_whole(of_slab.len()) {
                slabs.push(self.remove(low));
            } else {
                stacks.extend_from_slice(of_slab);
            }
            taken = rest;
        }
        // Of a hundred thousand it takes megabytes itself.
        if self.warm.capacity() > 4 * self.warm.len().max(keep) {
            self.warm.shrink_to(2 * self.warm.len());
        }
    }

    /// Puts a stack here that has no memory any more. Its slab comes back where nobody has one of it.
    pub(super) fn put_cold(&mut self, stack: Stack) -> Option<Slab> {
        let low = self.home(stack);
        let shelved = self.slabs.get_mut(&low).expect("the slab of a stack stays");
        shelved.cold |= 1 << shelved.slab.index_of(stack);
        self.cold += 1;
        self.colds.insert(low);
        shelved.is_whole(0).then(|| self.remove(low))
    }

    /// The lowest address of a stack's slab.
    fn home(&self, stack: Stack) -> usize {
        let before = self.slabs.range(..stack.bottom()).next_back();
        *before.expect("a stack has a slab").0
    }

    fn remove(&mut self, low: usize) -> Slab {
        let shelved = self.slabs.remove(&low).expect("it is here");
        self.colds.remove(&low);
        self.cold -= shelved.cold.count_ones() as usize;
        self.made -= shelved.slab.len();
        shelved.slab
    }
}

impl Drop for Shelf {
    /// Unmaps the slabs of which all stacks are back. Others are lost, with whatever still runs
    /// there.
    fn drop(&mut self) {
        while let Some(stack) = self.warm.pop_front() {
            drop(self.put_cold(stack));
        }
        for (_, shelved) in std::mem::take(&mut self.slabs) {
            if !shelved.is_whole(0) {
                std::mem::forget(shelved.slab);
            }
        }
    }
}
