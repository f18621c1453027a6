//! What the model checkers' tests see of the crate, beside its public face: the protocols one by
//! one, and processors without threads of their own.
//!
//! The sources are those that are shipped; only the switch of stacks is another, see
//! [`coroutine`].

pub(crate) mod coroutine;

use crate::cluster::Shared;
use crate::join::JoinHandle;
use crate::park;
use crate::processor;
use crate::ready::{inbox, lane, ring};
use crate::stack::StackSize;
use crate::switch::{self, Runnable};
use crate::wait;
use crate::waiter::Waiter;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;

/// What lies in queues: a word to tell it by, and a link.
#[derive(Debug)]
pub struct Item<T> {
    /// Whatever the test looks at.
    pub value: T,
    next: AtomicPtr<Self>,
}

// SAFETY: `next` serves inboxes alone.
unsafe impl<T> inbox::Item for Item<T> {
    fn next(&self) -> &AtomicPtr<Self> {
        &self.next
    }
}

impl<T> Item<T> {
    /// To be freed by [`take_back`](Self::take_back).
    pub fn new(value: T) -> NonNull<Self> {
        let next = AtomicPtr::default();
        NonNull::from(Box::leak(Box::new(Self { value, next })))
    }

    /// # Safety
    /// From [`new`](Self::new), once.
    pub unsafe fn take_back(item: NonNull<Self>) -> T {
        // SAFETY: the caller's duty.
        unsafe { Box::from_raw(item.as_ptr()) }.value
    }
}

/// The lane of a processor.
#[allow(missing_debug_implementations)]
pub struct Lane<T>(lane::Lane<T>);

impl<T> Lane<T> {
    /// Empty.
    #[expect(clippy::new_without_default, reason = "as the one inside")]
    pub fn new() -> Self {
        Self(lane::Lane::new())
    }

    /// Adds `item`; false where there is no room.
    ///
    /// # Safety
    /// Only the owner.
    pub unsafe fn push(&self, item: NonNull<T>) -> bool {
        // SAFETY: the caller's duty.
        unsafe { self.0.try_push(item) }
    }

    /// Adds several at once; false where there is no room.
    ///
    /// # Safety
    /// Only the owner.
    pub unsafe fn push_all<const N: usize>(&self, items: [NonNull<T>; N]) -> bool {
        // SAFETY: the caller's duty.
        if unsafe { self.0.room() } < N {
            return false;
        }
        // SAFETY: as above.
        let tail = unsafe { self.0.tail() };
        for (place, item) in (tail..).zip(items) {
            // SAFETY: as above, and there is room.
            unsafe { self.0.stage(place, item.as_ptr()) };
        }
        // SAFETY: as above.
        unsafe { self.0.push_staged(tail + N as u64) };
        true
    }

    /// Takes the first.
    ///
    /// # Safety
    /// Only the owner.
    pub unsafe fn pop(&self) -> Option<NonNull<T>> {
        // SAFETY: the caller's duty.
        unsafe { self.0.pop(|| (), |_| ()) }
    }

    /// Takes all, by another.
    pub fn take(&self, give: impl FnMut(NonNull<T>)) -> bool {
        self.0.take(give)
    }
}

/// The ring of a processor.
#[allow(missing_debug_implementations)]
pub struct Ring<T>(ring::Ring<T>);

impl<T> Ring<T> {
    /// Empty.
    #[expect(clippy::new_without_default, reason = "as the one inside")]
    pub fn new() -> Self {
        Self(ring::Ring::new())
    }

    /// Adds `item`.
    ///
    /// # Safety
    /// Only the owner.
    pub unsafe fn push(&self, item: NonNull<T>) {
        // SAFETY: the caller's duty.
        while !unsafe { self.0.try_push(item) } {
            // SAFETY: as above.
            unsafe { self.0.make_room() };
        }
    }

    /// Takes up to `most`.
    pub fn take(&self, most: usize, give: impl FnMut(NonNull<T>)) -> usize {
        self.0.take(|there| there.min(most), give)
    }
}

// SAFETY: as of the one inside; items are passed on whole.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

/// An inbox of a processor.
#[allow(missing_debug_implementations)]
pub struct Inbox<T>(inbox::Inbox<Item<T>>);

impl<T> Inbox<T> {
    /// Empty.
    #[expect(clippy::new_without_default, reason = "as the one inside")]
    pub fn new() -> Self {
        Self(inbox::Inbox::new())
    }

    /// Adds `item`.
    ///
    /// # Safety
    /// It is the caller's to give, and lies in no inbox.
    pub unsafe fn push(&self, item: NonNull<Item<T>>) {
        // SAFETY: the caller's duty.
        unsafe { self.0.push(item) };
    }

    /// Takes all.
    pub fn take(&self, give: impl FnMut(NonNull<Item<T>>)) {
        self.0.take(give);
    }
}

/// A fibre's ticket.
#[allow(missing_debug_implementations)]
pub struct Ticket(park::Ticket);

impl Ticket {
    /// Neither parked nor unparked.
    #[expect(clippy::new_without_default, reason = "as the one inside")]
    pub fn new() -> Self {
        Self(park::Ticket::new())
    }

    /// By the fibre: true where an unpark has come, which is taken.
    pub fn take(&self) -> bool {
        self.0.take()
    }

    /// By its processor: true where the fibre waits now.
    pub fn park(&self) -> bool {
        self.0.park()
    }

    /// True where the fibre was parked, and is the caller's.
    pub fn unpark(&self) -> bool {
        self.0.unpark()
    }

    /// By who interrupts: true where the fibre was parked, and is the caller's.
    pub fn withdraw(&self) -> bool {
        self.0.withdraw()
    }
}

/// Processors without threads of their own: the test is what drives each.
#[allow(missing_debug_implementations)]
#[derive(Clone)]
pub struct Processors(Arc<Shared>);

impl Processors {
    /// So many.
    pub fn new(processors: usize) -> Self {
        Self(Shared::new(processors, StackSize::DEFAULT))
    }

    /// As [`Cluster::spawn`](crate::Cluster::spawn), and it may migrate.
    pub fn spawn<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        // SAFETY: the tests keep nothing of the kind.
        let builder = unsafe { crate::Builder::new(&self.0).migrating() };
        builder.spawn(f).expect("a stack")
    }

    /// On the thread that is processor `number` from now on: runs the next fibre until it stops;
    /// false where nothing is ready.
    pub fn run_one(&self, number: usize) -> bool {
        let processor = &*self.0.processors[number];
        processor::run_here(processor);
        if processor.pops.get() == 0 {
            // Spares the look around at the first, which adds nothing but schedules.
            processor.pops.set(1);
        }
        if processor.is_empty() {
            return false;
        }
        processor.fetch();
        let Some(fibre) = processor.next() else {
            return false;
        };
        // Relaxed: this thread's.
        processor.running.store(fibre.as_ptr(), Ordering::Relaxed);
        // SAFETY: on the thread of this processor; the fibre was ready.
        let ended = unsafe { switch::resume(processor, Runnable::new(fibre)) };
        // Relaxed: as above.
        processor
            .running
            .store(std::ptr::null_mut(), Ordering::Relaxed);
        if let Err(fibre) = ended {
            processor.end(fibre);
        }
        true
    }

    /// On the same: what a processor does that has nothing to run; returns when something may be.
    pub fn idle(&self, number: usize) -> bool {
        self.0.processors[number].idle()
    }

    /// Ends the waits whose time has come, as the monitor does.
    pub fn end_due_waits(&self) {
        self.0.timers.run();
    }

    /// The cluster is to end.
    pub fn close(&self) {
        self.0.close();
    }

    /// The thread of a processor that has found it over.
    pub fn leave(&self, number: usize) {
        self.0.processors[number].leave();
    }

    /// From now on this thread is processor `number`, also where it sleeps.
    pub fn become_one(&self, number: usize) {
        let processor = &*self.0.processors[number];
        processor::run_here(processor);
        processor.become_sleeper();
    }

    /// On the same: true where something is ready there.
    pub fn has_work(&self, number: usize) -> bool {
        !self.0.processors[number].is_empty()
    }
}

/// A wait of a fibre for what the test makes up: `publish` gets a word, `remove` gives it back
/// where it is still there, else 0.
///
/// # Errors
/// As every wait.
pub fn block(
    deadline: Option<std::time::Instant>,
    remove: impl Fn() -> usize,
    publish: impl Fn(usize),
) -> Result<(), crate::Interrupted> {
    let remove = |_| {
        let word = remove();
        // SAFETY: given by `publish`, and taken back.
        (word != 0).then(|| unsafe { Waiter::from_word(with_exposed_provenance_mut(word)) })
    };
    let limit = deadline.map_or(wait::Limit::None, wait::Limit::Until);
    wait::block_within(limit, "a wait of the model", &remove, |waiter| {
        publish(waiter.into_word().expose_provenance());
        None
    })
}

/// Lets who waits go on.
///
/// # Safety
/// The word is from [`block`], and nobody else has it.
pub unsafe fn wake(word: usize) {
    // SAFETY: the caller's duty.
    unsafe { Waiter::from_word(with_exposed_provenance_mut(word)) }.wake();
}
