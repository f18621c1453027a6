//! What there is of a fibre beside its frames: a header at the top of its own stack, so that a
//! blocked fibre touches one page.
//!
//! ```text
//!   high  ┌──────────────────────┐ Stack::top
//!         │ Frame<T>: header     │
//!         │           result     │
//!         ├──────────────────────┤ base of the coroutine
//!         │ closure, frames ...  │
//!         │          ▼           │
//!   low   └──────────────────────┘ then the guard
//! ```
//! The header is counted: by the fibre while it lives, by its join handle and by every
//! [`Fibre`](crate::Fibre). The stack goes back to its pool with the last of them, so a stale
//! handle never reaches the next owner.

use crate::cluster::Shared;
use crate::local::Locals;
use crate::park::Ticket;
use crate::ready::inbox::Item;
use crate::registry::Links;
use crate::seam;
use crate::stack::{self, Label, Labelled, Stack};
use crate::switch::Suspended;
use crate::wait;
use corelay_sync::facade::Shadow;
use corelay_sync::facade::atomic::{
    AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering,
};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::wait::CoroutineState;
use std::cell::Cell;
use std::ptr::NonNull;

#[repr(C, align(64))]
pub(crate) struct Header {
    // One line: all that a switch and a wake-up touch.
    pub(crate) suspended: UnsafeCell<Suspended>,
    /// Alive as long as the fibre is.
    pub(crate) cluster: *const Shared,
    // What it waits for, whether it has been cancelled, who interrupts it: see `wait`.
    pub(crate) waiting: AtomicPtr<()>,
    pub(crate) cancelled: AtomicU8,
    pub(crate) interrupter: AtomicU8,
    /// Number of the processor where it stays: [`NOWHERE`] before it has run, and always where it
    /// may migrate.
    pub(crate) home: Cell<u16>,
    /// Number of the processor that ran it last: written there, read by dumps.
    pub(crate) last: AtomicU16,
    pub(crate) ticket: Ticket,
    /// How it stops, by which the waiting seam knows it too; all but its first word, which only the
    /// seam needs, is on the next line.
    pub(crate) stand: CoroutineState,
    // The rest.
    /// In an inbox.
    next: AtomicPtr<Header>,
    /// Who waits for its end: see [`join`](crate::join).
    pub(crate) outcome: AtomicUsize,
    references: AtomicU32,
    /// In the list of its cluster.
    pub(crate) links: Links,
    pub(crate) is_migrating: bool,
    pub(crate) stack: Stack,
    /// For who overflows it.
    pub(crate) label: Label,
    pub(crate) id: u64,
    pub(crate) name: Option<Box<str>>,
    pub(crate) locals: Locals,
    /// [`FRAMES`] and [`LIFE`].
    pub(crate) memory: Shadow,
}

/// Unit of the shadow: what it has on its stack and in its registers.
pub(crate) const FRAMES: usize = 0;
/// That the header is there: read by whoever lets go of it, written at its end.
const LIFE: usize = 1;

#[cfg(not(any(corelay_loom, corelay_shuttle, corelay_tsan, corelay_asan)))]
const _: () = assert!(std::mem::offset_of!(Header, next) == 80);

/// No processor's number.
pub(crate) const NOWHERE: u16 = u16::MAX;

// SAFETY: `next` serves inboxes alone.
unsafe impl Item for Header {
    fn next(&self) -> &AtomicPtr<Self> {
        &self.next
    }
}

impl Labelled for Header {
    fn label(&self) -> &Label {
        &self.label
    }
}

impl Header {
    /// Writes the one field that is looked at before the header is there: by the coroutine that it
    /// gets.
    ///
    /// # Safety
    /// There is room for a header at `place`, which is the caller's.
    pub(crate) unsafe fn write_stack(place: NonNull<Self>, stack: Stack) {
        // SAFETY: the caller's duty; only an address.
        let field = unsafe { &raw mut (*place.as_ptr()).stack };
        // SAFETY: as above.
        unsafe { field.write(stack) };
    }

    /// Of a fibre that has not run yet; with one reference.
    pub(crate) fn new(
        suspended: Suspended,
        is_migrating: bool,
        cluster: *const Shared,
        stack: Stack,
        id: u64,
        name: Option<Box<str>>,
    ) -> Self {
        Self {
            next: AtomicPtr::default(),
            suspended: UnsafeCell::new(suspended),
            stand: seam::stand(),
            waiting: AtomicPtr::default(),
            cancelled: AtomicU8::new(wait::at_rest()),
            interrupter: AtomicU8::new(wait::at_rest()),
            home: Cell::new(NOWHERE),
            last: AtomicU16::new(NOWHERE),
            links: Links::default(),
            is_migrating,
            ticket: Ticket::new(),
            references: AtomicU32::new(1),
            outcome: AtomicUsize::new(crate::join::RUNNING),
            cluster,
            stack,
            // The name stays where it is while the header does.
            label: Label::new(stack, name.as_deref().unwrap_or("")),
            id,
            name,
            locals: Locals::new(),
            memory: Shadow::new(2),
        }
    }
}

/// A counted reference to a header.
#[derive(Debug)]
pub(crate) struct HeaderRef(NonNull<Header>);

// SAFETY: of the header, those who only hold a reference use the ticket, the outcome, the count
// and what never changes.
unsafe impl Send for HeaderRef {}
// SAFETY: as above.
unsafe impl Sync for HeaderRef {}

impl HeaderRef {
    /// Takes over a reference that is counted already.
    ///
    /// # Safety
    /// It is, and it is the caller's.
    pub(crate) unsafe fn from_counted(header: NonNull<Header>) -> Self {
        Self(header)
    }

    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.0
    }
}

impl std::ops::Deref for HeaderRef {
    type Target = Header;

    fn deref(&self) -> &Header {
        // SAFETY: counted.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for HeaderRef {
    fn clone(&self) -> Self {
        // Relaxed: made from a reference that lives.
        let before = self.references.fetch_add(1, Ordering::Relaxed);
        if before > u32::MAX / 2 {
            // Forgotten handles, billions of them.
            std::process::abort();
        }
        Self(self.0)
    }
}

impl Drop for HeaderRef {
    fn drop(&mut self) {
        self.memory.read(LIFE, 1);
        // Release: pairs with the load; what was done with the header comes before its end.
        if self.references.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // Acquire: pairs with the Releases of the others. No fence: ThreadSanitizer knows none.
        self.references.load(Ordering::Acquire);
        self.memory.write(LIFE, 1);
        // SAFETY: the last reference.
        let stack = unsafe { self.0.as_ref() }.stack;
        // SAFETY: as above; the result has been taken or dropped by the join handle.
        unsafe { self.0.drop_in_place() };
        // SAFETY: taken by the builder; the fibre has ended.
        unsafe { stack::give(stack) };
    }
}
