//! The end of a fibre, and who waits for it.
//!
//! One word:
//!
//! ```text
//!            the fibre ends
//!   RUNNING ───────────────► DONE        the handle has the result
//!   RUNNING ── join ──► a waiter ──► DONE, and the waiter is woken
//!   RUNNING ── handle dropped ──► DETACHED; the fibre drops its result
//! ```

use crate::fibre::Fibre;
use crate::header::Header;
use crate::local::Locals;
use crate::switch::Yielder;
use crate::wait::{Cancelled, block, unwind};
use crate::waiter::Waiter;
use corelay_sync::facade::atomic::Ordering;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

pub(crate) const RUNNING: usize = 0;
const DONE: usize = 2;
const DETACHED: usize = 4;

/// Where a fibre leaves its result: behind its header, or, where that would take much of the stack,
/// in the heap.
struct ResultSlot<T>(PhantomData<T>);

impl<T> ResultSlot<T> {
    const IS_IN_HEAP: bool =
        size_of::<T>() > MOST_ON_STACK || align_of::<T>() > align_of::<Header>();

    /// Bytes behind the header.
    const BYTES: usize = if Self::IS_IN_HEAP {
        size_of::<Box<std::thread::Result<T>>>()
    } else {
        size_of::<std::thread::Result<T>>()
    };

    /// # Safety
    /// `header` is of a fibre with this result.
    unsafe fn of(header: NonNull<Header>) -> NonNull<u8> {
        // SAFETY: the builder has left room; a header's size is a multiple of its alignment.
        unsafe { header.add(1) }.cast()
    }

    /// # Safety
    /// As [`of`](Self::of); once, and nobody reads meanwhile.
    unsafe fn write(header: NonNull<Header>, result: std::thread::Result<T>) {
        // SAFETY: the caller's duty.
        let place = unsafe { Self::of(header) };
        if Self::IS_IN_HEAP {
            // SAFETY: room for a box.
            unsafe { place.cast().write(Box::new(result)) };
        } else {
            // SAFETY: room for it.
            unsafe { place.cast().write(result) };
        }
    }

    /// # Safety
    /// As [`of`](Self::of); written, and read once.
    unsafe fn read(header: NonNull<Header>) -> std::thread::Result<T> {
        // SAFETY: the caller's duty.
        let place = unsafe { Self::of(header) };
        if Self::IS_IN_HEAP {
            // SAFETY: a box was written.
            *unsafe { place.cast::<Box<std::thread::Result<T>>>().read() }
        } else {
            // SAFETY: it was written.
            unsafe { place.cast().read() }
        }
    }
}

/// Bytes of a closure or a result that lie on a stack, at most.
pub(crate) const MOST_ON_STACK: usize = 1024;

/// Bytes at the top of the stack of a fibre with this result.
pub(crate) const fn top_bytes<T>() -> usize {
    size_of::<Header>() + ResultSlot::<T>::BYTES
}

/// Runs `f` and leaves its result: the root of a fibre. True where it has panicked.
///
/// # Safety
/// `header` is that of the fibre that runs here, with [room](top_bytes) for the result; once.
pub(crate) unsafe fn root<F: FnOnce() -> T, T>(
    header: NonNull<Header>,
    yielder: &Yielder,
    f: F,
) -> bool {
    // SAFETY: alive while the fibre runs.
    let stand = &unsafe { header.as_ref() }.stand;
    // SAFETY: its own yielder.
    unsafe { stand.begin(yielder) };
    let mut result = catch_unwind(AssertUnwindSafe(f));
    // SAFETY: alive while the fibre runs.
    let locals = &unsafe { header.as_ref() }.locals;
    end_locals(locals, |payload| {
        discard(std::mem::replace(&mut result, Err(payload)));
    });
    let has_panicked = result
        .as_ref()
        .is_err_and(|payload| !payload.is::<Cancelled>());
    // SAFETY: nobody reads it before DONE.
    unsafe { ResultSlot::write(header, result) };
    // Release: pairs with the Acquires of the handle; publishes the result. Acquire: pairs with
    // the Release of a joiner that has stopped.
    // SAFETY: alive while the fibre runs.
    match unsafe { header.as_ref() }
        .outcome
        .swap(DONE, Ordering::AcqRel)
    {
        RUNNING => {}
        DETACHED => {
            // SAFETY: written above; the handle is gone.
            discard(unsafe { ResultSlot::<T>::read(header) });
            // Its drop may have used some.
            end_locals(locals, |payload| discard::<()>(Err(payload)));
        }
        waiter => {
            let word = std::ptr::with_exposed_provenance_mut(waiter);
            // SAFETY: left by the one joiner.
            unsafe { Waiter::from_word(word) }.wake();
        }
    }
    has_panicked
}

/// Drops the fibre's values; again where a drop has panicked, for there may be others.
fn end_locals(locals: &Locals, mut has_panicked: impl FnMut(Box<dyn Any + Send>)) {
    while !locals.is_none() {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| locals.end())) {
            has_panicked(payload);
        }
    }
}

/// Drops a result that nobody wants.
fn discard<T>(result: std::thread::Result<T>) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(result))) {
        // Nobody is there to hear of it, and it may panic too.
        std::mem::forget(payload);
    }
}

/// A fibre's end, to be waited for. Dropped, it lets the fibre run on by itself.
pub struct JoinHandle<T> {
    fibre: Fibre,
    _result: PhantomData<fn() -> T>,
}

impl<T> JoinHandle<T> {
    /// # Safety
    /// The fibre has a result of this type, and this is its one join handle.
    pub(crate) unsafe fn new(fibre: Fibre) -> Self {
        Self {
            fibre,
            _result: PhantomData,
        }
    }

    /// The fibre.
    pub fn fibre(&self) -> &Fibre {
        &self.fibre
    }

    /// True where it has ended.
    pub fn is_finished(&self) -> bool {
        // Acquire: pairs with the Release of the end.
        self.fibre.0.outcome.load(Ordering::Acquire) == DONE
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The payload of the panic that has ended it.
    ///
    /// # Panics
    /// Where nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
    #[track_caller]
    pub fn join(self) -> Result<T, Box<dyn Any + Send>> {
        let outcome = &self.fibre.0.outcome;
        if !self.is_finished() {
            let remove = |waiter: *mut u8| {
                let word = waiter.expose_provenance();
                // Acquire: pairs with the Release below: the joiner has stopped.
                outcome
                    .compare_exchange(word, RUNNING, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
                    // SAFETY: taken out.
                    .then(|| unsafe { Waiter::from_word(waiter) })
            };
            let ended = block("JoinHandle::join", &remove, |waiter| {
                let waiter = waiter.into_word();
                let word = waiter.expose_provenance();
                // Release: pairs with the Acquire of the end; hands the stopped joiner over.
                let ended =
                    outcome.compare_exchange(RUNNING, word, Ordering::Release, Ordering::Acquire);
                // SAFETY: ended meanwhile; nobody else has the word.
                (ended.is_err()).then(|| unsafe { Waiter::from_word(waiter) })
            });
            if let Err(why) = ended {
                unwind(why);
            }
        }
        // Acquire: pairs with the Release of the end.
        let ended = outcome.load(Ordering::Acquire);
        debug_assert_eq!(ended, DONE);
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: DONE, and this handle is consumed.
        let result = unsafe { ResultSlot::<T>::read(this.fibre.0.as_ptr()) };
        // SAFETY: not used again.
        drop(unsafe { std::ptr::read(&raw const this.fibre) });
        result
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let outcome = &self.fibre.0.outcome;
        // Acquire where it fails: pairs with the Release of the end.
        if outcome
            .compare_exchange(RUNNING, DETACHED, Ordering::Relaxed, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: DONE, and this is the one handle.
            drop(unsafe { ResultSlot::<T>::read(self.fibre.0.as_ptr()) });
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("fibre", &self.fibre)
            .field("is_finished", &self.is_finished())
            .finish()
    }
}
