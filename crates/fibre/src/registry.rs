//! All fibres of a cluster that have not ended, for who asks what they do.
//!
//! Lists through the headers, in several parts, each under a lock of its own: a fibre is made and
//! ends with one turn at one of them.

use crate::header::{Header, HeaderRef};
use corelay_sync::CachePadded;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

const PARTS: usize = 16;

#[derive(Default)]
pub(crate) struct Registry {
    parts: [CachePadded<Mutex<First>>; PARTS],
}

#[derive(Default)]
struct First(Option<NonNull<Header>>);

// SAFETY: the headers in it live; the lock says who touches their links.
unsafe impl Send for First {}

/// In a header; touched under the lock of its part.
#[derive(Default)]
pub(crate) struct Links {
    before: Cell<Option<NonNull<Header>>>,
    next: Cell<Option<NonNull<Header>>>,
}

impl Registry {
    fn part(&self, header: &Header) -> MutexGuard<'_, First> {
        lock(&self.parts[header.id as usize % PARTS])
    }

    /// Adds a fibre.
    ///
    /// # Safety
    /// It is [removed](Self::remove) before its header goes.
    pub(crate) unsafe fn add(&self, header: NonNull<Header>) {
        // SAFETY: it lives.
        let fibre = unsafe { header.as_ref() };
        let mut first = self.part(fibre);
        let next = first.0.replace(header);
        fibre.links.next.set(next);
        if let Some(next) = next {
            // SAFETY: in the list, so it lives.
            unsafe { next.as_ref() }.links.before.set(Some(header));
        }
    }

    /// Removes a fibre that was added.
    pub(crate) fn remove(&self, fibre: &Header) {
        let mut first = self.part(fibre);
        let (before, next) = (fibre.links.before.get(), fibre.links.next.get());
        match before {
            // SAFETY: in the list, so it lives.
            Some(before) => unsafe { before.as_ref() }.links.next.set(next),
            None => first.0 = next,
        }
        if let Some(next) = next {
            // SAFETY: as above.
            unsafe { next.as_ref() }.links.before.set(before);
        }
    }

    /// Those that there are, by number.
    pub(crate) fn all(&self) -> Vec<HeaderRef> {
        let mut all = Vec::new();
        for part in &self.parts {
            let first = lock(part);
            let mut at = first.0;
            while let Some(header) = at {
                // SAFETY: the reference that a fibre has while it lives; it stays in the list.
                let own = std::mem::ManuallyDrop::new(unsafe { HeaderRef::from_counted(header) });
                all.push((*own).clone());
                at = own.links.next.get();
            }
        }
        all.sort_unstable_by_key(|fibre| fibre.id);
        all
    }
}

fn lock(part: &Mutex<First>) -> MutexGuard<'_, First> {
    // Nothing in it panics.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
