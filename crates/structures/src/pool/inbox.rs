//! Where slots come back to their heap from outside: one word.
//!
//! [The table of its states and the proof](super#how-it-works) are in the module above.

use super::slot::{Chain, Link, Slot};
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use std::ptr::{self, NonNull};

/// What an inbox's word says.
#[derive(Debug)]
enum State<T> {
    /// The heap is held: the slots that have come back, linked.
    Open(Link<T>),
    /// It will be held no more: how many slots are still out.
    Closed(usize),
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for State<T> {}

/// Slots are aligned to a link at least: the lowest bit of their addresses is free.
const CLOSED: usize = 1;

impl<T> State<T> {
    #[inline(always)]
    fn of(word: *mut Slot<T>) -> Self {
        if word.addr() & CLOSED == 0 {
            Self::Open(NonNull::new(word))
        } else {
            Self::Closed(word.addr() >> 1)
        }
    }

    #[inline(always)]
    fn word(self) -> *mut Slot<T> {
        match self {
            Self::Open(first) => first.map_or(ptr::null_mut(), NonNull::as_ptr),
            Self::Closed(out) => ptr::without_provenance_mut(out << 1 | CLOSED),
        }
    }
}

/// Slots that have come back, or the count of those that are out.
pub(super) struct Inbox<T>(AtomicPtr<Slot<T>>);

impl<T> Inbox<T> {
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(State::Open(None).word()))
    }

    /// Puts back `count` slots, linked from `first` to `last`. True where they were the last ones that
    /// were out of a closed heap: it is the caller's to free.
    ///
    /// The heap may be gone when this returns, but for that caller.
    ///
    /// # Safety
    /// They are slots of this heap, vacant, linked like that, and the caller's, who gives them up.
    #[inline(always)]
    pub(super) unsafe fn put(
        &self,
        first: NonNull<Slot<T>>,
        last: NonNull<Slot<T>>,
        count: usize,
    ) -> bool {
        // Relaxed: a guess, which the exchange confirms.
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let State::Open(others) = State::of(word) else {
                return self.put_closed(word, count);
            };
            // SAFETY: the caller's.
            unsafe { Slot::set_next(last, others) };
            let new = State::Open(Some(first)).word();
            // Release: pairs with the Acquire in `take`, also through the exchanges that follow, for
            // they are read-modify-writes; carries the links and the end of every use of the slots.
            match (self.0).compare_exchange_weak(word, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return false,
                Err(now) => word = now,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn put_closed(&self, mut word: *mut Slot<T>, count: usize) -> bool {
        loop {
            let State::Closed(out) = State::of(word) else {
                unreachable!("a closed heap stays closed");
            };
            debug_assert!(out >= count, "more slots come back than were out");
            let new = State::<T>::Closed(out - count).word();
            // Release: carries the end of every use of the slots to whoever puts back the last one.
            // Acquire: that is here, with all that `close` and the others have released before.
            match (self.0).compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return out == count,
                Err(now) => word = now,
            }
        }
    }

    /// Takes all that has come back.
    ///
    /// # Safety
    /// The caller holds the heap, and no other thread does.
    pub(super) unsafe fn take(&self) -> Option<Chain<T>> {
        // Relaxed: where it says that there is something, the exchange looks again.
        if self.0.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // Acquire: pairs with the Release in `put`.
        let word = self.0.swap(State::Open(None).word(), Ordering::Acquire);
        let State::Open(first) = State::of(word) else {
            unreachable!("a heap that is held is open");
        };
        // SAFETY: what is put in was given up, and only the holder takes it out.
        Some(unsafe { Chain::from_link(first) })
    }

    /// Closes an empty inbox, with `out` slots still to come, at least one; false where it is not empty.
    pub(super) fn close(&self, out: usize) -> bool {
        let open = State::Open(None).word();
        let closed = State::<T>::Closed(out).word();
        // Release: carries what the holder has done with the heap to whoever puts back the last slot.
        self.0
            .compare_exchange(open, closed, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }
}

#[cfg(test)]
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_closed_word_is_its_count(out in 0..usize::MAX >> 1) {
            let word = State::<u64>::Closed(out).word();
            let State::Closed(back) = State::of(word) else { panic!("open") };
            prop_assert_eq!(back, out);
        }

        #[test]
        fn an_open_word_is_its_first_slot(address in 0..usize::MAX >> 3) {
            let first = NonNull::new(ptr::without_provenance_mut::<Slot<u8>>(address << 3));
            let State::Open(back) = State::of(State::Open(first).word()) else { panic!("closed") };
            prop_assert_eq!(back, first);
        }
    }
}
