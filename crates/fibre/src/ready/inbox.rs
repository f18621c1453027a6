//! What others have for a processor, or for all: pushed by anybody, taken all at once.
//!
//! A list through the items themselves, the last one first (Treiber 1986); who takes exchanges
//! the whole list for an empty one, so no item can come back unseen, and turns it around.

use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use std::ptr::NonNull;

/// What can lie in an inbox: in one at a time.
///
/// # Safety
/// `next` is one word of the item, used for nothing else meanwhile.
pub(crate) unsafe trait Item: Sized {
    /// The item behind this one.
    fn next(&self) -> &AtomicPtr<Self>;
}

pub(crate) struct Inbox<T> {
    last: AtomicPtr<T>,
}

impl<T: Item> Inbox<T> {
    pub(crate) fn new() -> Self {
        Self {
            last: AtomicPtr::default(),
        }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: who takes looks again.
        self.last.load(Ordering::Relaxed).is_null()
    }

    /// Adds `item`.
    ///
    /// # Safety
    /// It is the caller's to give, and lies in no inbox.
    pub(crate) unsafe fn push(&self, item: NonNull<T>) {
        // Relaxed: checked by the exchange.
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller's item, alive.
            let next = unsafe { item.as_ref() }.next();
            // Relaxed: published by the exchange.
            next.store(last, Ordering::Relaxed);
            // Release: pairs with the Acquire in `take`; publishes the item and its `next`.
            match self.last.compare_exchange_weak(
                last,
                item.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => last = now,
            }
        }
    }

    /// Takes all there is and passes it to `give`, in the order in which it came.
    pub(crate) fn take(&self, mut give: impl FnMut(NonNull<T>)) {
        if self.is_empty() {
            return;
        }
        // Acquire: pairs with the Release in `push`: the exchanges of those before are part of
        // one release sequence.
        let mut at = self.last.swap(std::ptr::null_mut(), Ordering::Acquire);
        let mut first: *mut T = std::ptr::null_mut();
        while let Some(item) = NonNull::new(at) {
            // SAFETY: taken out, so it is ours.
            let next = unsafe { item.as_ref() }.next();
            // Relaxed: ours.
            at = next.load(Ordering::Relaxed);
            next.store(first, Ordering::Relaxed);
            first = item.as_ptr();
        }
        while let Some(item) = NonNull::new(first) {
            // SAFETY: as above; read before it is given away.
            let next = unsafe { item.as_ref() }.next();
            first = next.load(Ordering::Relaxed);
            give(item);
        }
    }
}
