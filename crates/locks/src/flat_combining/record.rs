//! Publication records: what a session shows to the combiner.
//!
//! # States of a record
//! | word | linked | meaning | next, and who writes it |
//! |---|---|---|---|
//! | `UNLINKED` | no | no request | `ASKS` (session), `RETIRED` (session) |
//! | `ASKS` | yes, or soon | a request; its thread spins, and may combine | an address (its thread), `DONE` (combiner) |
//! | the address of an [`Asleep`] | yes | a request; its thread sleeps until it is woken | `DONE` (combiner) |
//! | `DONE` | yes | no request | `ASKS` (session), `UNLINKED` (combiner), `RETIRED` (session) |
//! | `RETIRED` | yes | its session is gone | freed by the combiner, or with the lock |
//!
//! A session that replaces `UNLINKED` links the record, or frees it if it retires it. So a record is
//! freed by its session or by whoever holds the list, and by one of them only.

use crate::combining::Request;
use crate::combining::asleep::Asleep;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use std::ptr::{self, NonNull};

/// A publication record. It has lines of its own, for its thread reads it while it waits.
#[derive(Debug)]
pub(super) struct Record(CachePadded<Fields>);

#[derive(Debug)]
struct Fields {
    state: AtomicPtr<Asleep>,
    /// Written by the session before it asks.
    request: UnsafeCell<Option<Request>>,
    /// The next record in the list. Written by the session before it links the record, and then by
    /// combiners.
    next: AtomicPtr<Record>,
    /// The number of passes since a request was found here. Only combiners touch it.
    idle: UnsafeCell<u32>,
}

const ASKS: *mut Asleep = ptr::null_mut();
const DONE: *mut Asleep = ptr::without_provenance_mut(1);
const UNLINKED: *mut Asleep = ptr::without_provenance_mut(2);
const RETIRED: *mut Asleep = ptr::without_provenance_mut(3);

/// The contents of a record, as a combiner or the record's session finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A request whose thread spins.
    Asks,
    /// A request whose thread sleeps.
    Sleeps,
    /// No request.
    Idle,
    /// A record without a session.
    Retired,
}

/// The record of one session: none before the session first had to wait.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Seat(Option<NonNull<Record>>);

impl Seat {
    /// The session's record.
    #[inline]
    pub(super) fn record(&mut self) -> NonNull<Record> {
        *self.0.get_or_insert_with(allocate)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(record) = self.0 else {
            return;
        };
        // SAFETY: the session has not retired the record yet, so nobody has freed it.
        let state = &unsafe { record.as_ref() }.0.state;
        // Release: pairs with the Acquire of `Record::found`; the combiner that frees the record
        // does so after this thread's last access. Acquire: pairs with the Release of
        // `Record::unlink`; this thread frees the record after the combiner's last access.
        if state.swap(RETIRED, Ordering::AcqRel) == UNLINKED {
            // SAFETY: the record was in no list, and this session was the only one to know it.
            unsafe { free(record) };
        }
    }
}

#[cold]
fn allocate() -> NonNull<Record> {
    NonNull::from(Box::leak(Box::new(Record(CachePadded::new(Fields {
        state: AtomicPtr::new(UNLINKED),
        request: UnsafeCell::new(None),
        next: AtomicPtr::new(ptr::null_mut()),
        idle: UnsafeCell::new(0),
    })))))
}

/// Frees a record.
///
/// # Safety
/// Nobody else knows the record.
pub(super) unsafe fn free(record: NonNull<Record>) {
    // SAFETY: `allocate` leaked the box, and nobody else knows it (the caller's duty).
    drop(unsafe { Box::from_raw(record.as_ptr()) });
}

/// Both sides.
impl Record {
    /// Looks at the record. After `Idle` the session that has asked sees what its request did.
    #[inline]
    pub(super) fn found(&self) -> Found {
        // Acquire: pairs with the Release of `serve` (the request's result is written), of `ask` (the
        // request is) and of `Seat::drop` (its session has made its last access).
        match self.0.state.load(Ordering::Acquire) {
            ASKS => Found::Asks,
            DONE | UNLINKED => Found::Idle,
            RETIRED => Found::Retired,
            _ => Found::Sleeps,
        }
    }
}

/// The side of the session.
impl Record {
    /// Asks for `request`. Returns whether the record is linked; if not, the session links it.
    ///
    /// # Safety
    /// The calling thread's session has this record, and its last request has been answered. The
    /// request's operation stays until this one is.
    #[inline]
    pub(super) unsafe fn ask(&self, request: Request) -> bool {
        self.0.request.with_mut(|place| {
            // SAFETY: there is no request here (the caller's duty), so no combiner reads it.
            unsafe { *place = Some(request) };
        });
        // Release: pairs with the Acquire of `found`; publishes the request. Acquire: pairs with
        // the Release of `unlink`; the links are this thread's.
        self.0.state.swap(ASKS, Ordering::AcqRel) == DONE
    }

    /// Says that the thread will sleep until `asleep` is woken. Returns false if the request has been
    /// answered; then what it did is visible.
    #[inline]
    pub(super) fn sleep_on(&self, asleep: &Asleep) -> bool {
        // Release: pairs with the Acquire of `serve`; `asleep` is initialised. Acquire: pairs with
        // the Release of `serve`.
        self.0
            .state
            .compare_exchange(
                ASKS,
                ptr::from_ref(asleep).cast_mut(),
                Ordering::Release,
                Ordering::Acquire,
            )
            .is_ok()
    }

    /// Puts this record before the first one of the list at `head`.
    #[cold]
    #[inline(never)]
    pub(super) fn link(&self, head: &AtomicPtr<Self>) {
        // Relaxed, here and where the exchange fails: only the address is used.
        let mut first = head.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange.
            self.0.next.store(first, Ordering::Relaxed);
            // Release: pairs with the Acquire of the combiner's load; publishes the record.
            match head.compare_exchange(
                first,
                ptr::from_ref(self).cast_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
}

/// The side of the combiner, which holds the lock.
impl Record {
    /// Runs the request and tells its thread. Returns the sleeper, which the combiner wakes, if the
    /// thread sleeps.
    ///
    /// # Safety
    /// The calling thread holds the lock, and has found a request here.
    #[inline]
    pub(super) unsafe fn serve(&self) -> Option<NonNull<Asleep>> {
        self.0.idle.with_mut(|idle| {
            // SAFETY: only the holder of the lock touches it (the caller's duty).
            unsafe { *idle = 0 };
        });
        let request = self.0.request.with(|request| {
            // SAFETY: the session wrote it before it asked, and does not write before the answer.
            unsafe { *request }
        });
        let Some(request) = request else {
            unreachable!("a record asks without a request");
        };
        // SAFETY: the calling thread holds the lock, so no other request runs, and nobody has run
        // this one, for it is not answered. Its thread stays in its frame until then.
        unsafe { request.run() };
        // Release: pairs with the Acquire of `found` and `sleep_on`; publishes the result.
        // Acquire: pairs with the Release of `sleep_on`; the sleeper is initialised.
        NonNull::new(self.0.state.swap(DONE, Ordering::AcqRel))
    }

    /// The record behind this one.
    #[inline]
    pub(super) fn next(&self) -> *mut Self {
        // Relaxed: the exchange that linked the record published it, and since then only holders of
        // the lock have written it.
        self.0.next.load(Ordering::Relaxed)
    }

    /// Counts a pass in which no request was found here. Returns the number of such passes since the
    /// last request.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    #[inline]
    pub(super) unsafe fn pass_over(&self) -> u32 {
        self.0.idle.with_mut(|idle| {
            // SAFETY: only the holder of the lock touches it (the caller's duty).
            let idle = unsafe { &mut *idle };
            *idle = idle.saturating_add(1);
            *idle
        })
    }

    /// Takes `record`, which is behind this one and had no request, out of the list; frees it if its
    /// session is gone. Returns false, and leaves it in the list, if its session has asked meanwhile.
    ///
    /// # Safety
    /// The calling thread holds the lock, and `record` is the one behind this in the list.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn unlink(&self, record: NonNull<Self>) -> bool {
        // SAFETY: it is in the list, where only the holder of the lock frees records.
        let fields = &unsafe { record.as_ref() }.0;
        let next = fields.next.load(Ordering::Relaxed);
        // Relaxed: only holders of the lock read and write the links of linked records.
        self.0.next.store(next, Ordering::Relaxed);
        // Release: pairs with the Acquire of `ask` and `Seat::drop`; the record is the session's.
        // Acquire: pairs with the Release of `Seat::drop`.
        let unlinked =
            fields
                .state
                .compare_exchange(DONE, UNLINKED, Ordering::Release, Ordering::Acquire);
        match unlinked {
            Ok(_) => true,
            Err(RETIRED) => {
                // SAFETY: its session is gone, and it is in no list any more.
                unsafe { free(record) };
                true
            }
            Err(_) => {
                // Relaxed: as above.
                self.0.next.store(record.as_ptr(), Ordering::Relaxed);
                false
            }
        }
    }
}
