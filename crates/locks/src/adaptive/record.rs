//! Records: published closures, in the frames of their callers.
//!
//! # States of a record
//! | state | meaning | next, and who writes it |
//! |---|---|---|
//! | `WAITS` | its thread looks at the record and at the lock | a token (its thread), `DONE` (holder) |
//! | a token's address | its thread stays until the token is set | |
//! | `DONE` | the closure has been run | |
//!
//! A record is in the list of its lock, or in the hands of the thread that holds the lock, until its
//! closure has been run. After the exchange to `DONE` the holder touches it no more. A record whose
//! thread sleeps is among the holder's [`Wakes`] from then on, until its token has been set.

use crate::combining::{Operation, Request};
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::prefetch_write;
use corelay_sync::wait::Token;
use std::ptr::{self, NonNull};

const WAITS: *mut Token = ptr::null_mut();
const DONE: *mut Token = ptr::without_provenance_mut(1);

/// The bit of an address that is a mark.
const MARK: usize = 1;

/// The part of a published closure that does not depend on its type.
#[derive(Debug)]
pub(super) struct Record {
    /// The closure. [`Published::place`] writes it.
    request: Option<Request>,
    state: AtomicPtr<Token>,
    /// The record that was published before, and later the next one of [`Wakes`].
    next: AtomicPtr<Record>,
}

/// A closure that may be published, with its record.
// It begins a line, and a small closure fits on the rest of it, so that one transfer brings all.
#[repr(C, align(64))]
pub(super) struct Published<O> {
    record: Record,
    operation: O,
}

impl<'a, T: ?Sized, F, R> Published<Operation<'a, T, F, R>>
where
    F: FnOnce(&mut T) -> R + Send,
    R: Send,
{
    #[inline]
    pub(super) fn new(operation: Operation<'a, T, F, R>) -> Self {
        Self {
            record: Record {
                request: None,
                state: AtomicPtr::new(WAITS),
                next: AtomicPtr::new(ptr::null_mut()),
            },
            operation,
        }
    }

    /// The record, valid until this moves.
    #[inline]
    pub(super) fn place(&mut self) -> &Record {
        self.record.request = Some(self.operation.request());
        &self.record
    }

    /// The closure's result, or its panic.
    #[inline]
    pub(super) fn into_result(self) -> R {
        self.operation.into_result()
    }
}

/// The side of the caller.
impl Record {
    /// Runs the closure.
    ///
    /// # Safety
    /// The record has its place. The calling thread holds the lock, and nobody has run the closure.
    #[inline]
    pub(super) unsafe fn run(&self) {
        let Some(request) = self.request else {
            unreachable!("a record without a closure");
        };
        // SAFETY: the calling thread holds the lock, so no other request runs, and nobody has run this
        // one (the caller's duties). It stays in its frame until then.
        unsafe { request.run() };
    }

    /// Puts the record into `list`.
    ///
    /// # Safety
    /// The record is fresh. It stays where it is until it is done, and if its thread sleeps, until
    /// the token has been set.
    pub(super) unsafe fn publish(&self, list: &AtomicPtr<Self>) {
        // Relaxed, here and where the exchange fails: only the address is used.
        let mut last = list.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange.
            self.next.store(last, Ordering::Relaxed);
            // Release: pairs with the Acquire of `take`; publishes the record and its closure.
            match list.compare_exchange(
                last,
                ptr::from_ref(self).cast_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => last = now,
            }
        }
    }

    /// Whether the closure has been run; if so, what it did is visible.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        // Acquire: pairs with the Release of `run`.
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Says that the caller sleeps until `token` is set. Returns false if the closure has been run;
    /// then what it did is visible.
    pub(super) fn sleep_on(&self, token: &Token) -> bool {
        let token = ptr::from_ref(token).cast_mut();
        // Release: pairs with the Acquire of `run`; publishes the token. Acquire: as in `is_done`.
        self.state
            .compare_exchange(WAITS, token, Ordering::Release, Ordering::Acquire)
            .is_ok()
    }
}

/// Marks `list`: its lock has sleepers of another kind. Whoever takes the records takes the mark.
pub(super) fn mark(list: &AtomicPtr<Record>) {
    // Relaxed, here and where the exchange fails: only the address is used.
    let mut last = list.load(Ordering::Relaxed);
    // An exchange even if there is a mark, so that whoever takes it sees what this thread did.
    // Release: pairs with the Acquire of `take`.
    while let Err(now) = list.compare_exchange(
        last,
        last.map_addr(|address| address | MARK),
        Ordering::Release,
        Ordering::Relaxed,
    ) {
        last = now;
    }
}

/// Takes all records, and the mark, out of `list`. The last record to be published is the first.
#[inline]
pub(super) fn take(list: &AtomicPtr<Record>) -> Option<NonNull<Record>> {
    // Acquire: pairs with the Release of `publish` and `mark`.
    unmarked(list.swap(ptr::null_mut(), Ordering::Acquire))
}

/// The record of a link that may bear a mark.
#[inline]
fn unmarked(link: *mut Record) -> Option<NonNull<Record>> {
    NonNull::new(link.map_addr(|address| address & !MARK))
}

/// The records that are done and whose callers have to be woken, a list. They are woken at the latest
/// when this is dropped, also if a waker unwinds.
#[derive(Debug, Default)]
pub(super) struct Wakes(Option<NonNull<Record>>);

impl Drop for Wakes {
    fn drop(&mut self) {
        self.wake_all();
    }
}

impl Wakes {
    /// Runs the closure of `record` and tells its caller; if that sleeps, the record is added here.
    /// Returns the record that was published before it.
    ///
    /// # Safety
    /// The calling thread holds the lock, and has [taken](take) the record out of its list.
    #[inline]
    pub(super) unsafe fn run(&mut self, at: NonNull<Record>) -> Option<NonNull<Record>> {
        // SAFETY: the record is not done, so it stays where it is.
        let record = unsafe { at.as_ref() };
        // Relaxed: the exchange that published the record publishes it.
        let next = unmarked(record.next.load(Ordering::Relaxed));
        if let Some(next) = next {
            // It arrives while this closure runs.
            prefetch_write(next.as_ptr());
        }
        // SAFETY: the calling thread holds the lock. Nobody has run the closure, for only the thread
        // that has taken the record does, and its caller stays until it is done.
        unsafe { record.run() };
        // Release: pairs with the Acquire of `is_done` and `sleep_on`; publishes the result.
        // Acquire: pairs with the Release of `sleep_on`; the token is initialised.
        let done = record
            .state
            .compare_exchange(WAITS, DONE, Ordering::Release, Ordering::Acquire);
        if done.is_err() {
            // Its caller sleeps.
            // Relaxed: its caller does not read it, and this thread is the only one that does.
            let others = self.0.map_or(ptr::null_mut(), NonNull::as_ptr);
            record.next.store(others, Ordering::Relaxed);
            self.0 = Some(at);
        }
        next
    }

    /// Wakes the callers of all records.
    pub(super) fn wake_all(&mut self) {
        while let Some(record) = self.0 {
            // SAFETY: its caller sleeps until the token is set, which happens below.
            let record = unsafe { record.as_ref() };
            // Relaxed: this thread has written it.
            self.0 = NonNull::new(record.next.load(Ordering::Relaxed));
            // Relaxed: the exchange in `run` has acquired it.
            let token = record.state.load(Ordering::Relaxed);
            // SAFETY: its caller stored the token before it slept, and keeps it until it is set.
            let token = unsafe { &*token };
            token.notify();
        }
    }
}
