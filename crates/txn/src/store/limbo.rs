//! Retired memory of one slot, with the epochs in which it was retired.

use super::garbage::{Garbage, discard};
use super::slab::Class;
use std::collections::VecDeque;
use std::ptr::NonNull;

/// Memory that waits to be freed, the oldest first.
#[derive(Default, Debug)]
pub(crate) struct Limbo {
    waiting: VecDeque<(u64, Garbage)>,
    /// Retired by the running transaction; gets its epoch at the end.
    fresh: Vec<Garbage>,
    bytes: u64,
}

impl Limbo {
    pub(super) fn push(&mut self, garbage: Garbage) {
        self.bytes += garbage.bytes() as u64;
        self.fresh.push(garbage);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// The bytes that wait here.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Says that what was retired since the last call could be reached until `epoch`.
    pub(super) fn seal(&mut self, epoch: u64) {
        let fresh = self.fresh.drain(..);
        self.waiting.extend(fresh.map(|garbage| (epoch, garbage)));
    }

    /// Moves what no transaction can reach at `epoch` to `ripe`.
    pub(super) fn ripen(&mut self, epoch: u64, ripe: &mut Vec<Garbage>) {
        while self.waiting.front().is_some_and(|(at, _)| at + 2 <= epoch) {
            let Some((_, garbage)) = self.waiting.pop_front() else {
                return;
            };
            self.bytes -= garbage.bytes() as u64;
            ripe.push(garbage);
        }
    }
}

impl Drop for Limbo {
    fn drop(&mut self) {
        let waiting = self.waiting.drain(..).map(|(_, garbage)| garbage);
        let rest: Vec<Garbage> = waiting.chain(self.fresh.drain(..)).collect();
        // SAFETY: a limbo is dropped with its store, so no transaction runs any more. The blocks go
        // with the slabs.
        unsafe { free_all(rest, |_, _| ()) };
    }
}

/// Frees everything in `ripe`, and gives blocks of slabs to `give_back`. If a destructor panics, the
/// panic goes on after all others have run; a second panic is dropped.
///
/// # Safety
/// Nobody has a reference into any of it.
pub(super) unsafe fn free_all(ripe: Vec<Garbage>, mut give_back: impl FnMut(Class, NonNull<u8>)) {
    struct Rest(Vec<Garbage>);
    impl Drop for Rest {
        fn drop(&mut self) {
            while let Some(garbage) = self.0.pop() {
                // SAFETY: the caller's promise.
                let free = || unsafe { garbage.free() };
                let freed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(free));
                if let Err(payload) = freed {
                    discard(payload);
                }
            }
        }
    }
    let mut rest = Rest(ripe);
    while let Some(garbage) = rest.0.pop() {
        // SAFETY: the caller's promise.
        if let Some((class, block)) = unsafe { garbage.free() } {
            give_back(class, block);
        }
    }
}
