//! Closures and values that are too large to be moved to the stack of whoever takes them.
//!
//! To call a closure is to move it to the stack of the caller, and more than once where nothing is
//! optimised. One that is large is boxed by who asks, and runs where it lies: called through a
//! pointer, a box of an unknown type, it is not moved. Large values go from place to place by copies
//! of memory. Only results are on the stack of who makes them, since a function returns to there: see
//! [`Builder::stack_size`](crate::Builder::stack_size).

use std::mem::MaybeUninit;
use std::thread;

/// Bytes; what is larger stays where it is. Several of this size fit into a launched closure's stack.
const LARGE: usize = 4 << 10;

/// Whether a `V` is too large to be moved around. Asked in a `const` block: of a branch that is not
/// taken not even the room of its temporaries is left, also where nothing is optimised.
pub(crate) const fn is_large<V>() -> bool {
    size_of::<V>() > LARGE
}

/// Runs a closure in its box.
pub(crate) fn run_boxed<A, R, F: FnOnce(A) -> R>(f: Box<F>, a: A) -> R {
    let f: Box<dyn FnOnce(A) -> R + '_> = f;
    f(a)
}

/// A closure and the room of its result, in boxes: what asks for it carries their address only.
///
/// A call that waits moves closure and result through several frames, which are all inlined into
/// its caller. LLVM splits what is moved there into its bytes, one pass for each: with tens of
/// kilobytes that takes minutes, with megabytes it does not end.
pub(crate) struct ByAddress<F, R> {
    /// Taken by who runs it.
    f: Option<Box<F>>,
    result: Box<MaybeUninit<R>>,
}

impl<F, R> ByAddress<F, R> {
    /// Whether a call of `F` is to be made this way.
    pub(crate) const IS_BETTER: bool = is_large::<F>() || is_large::<R>();

    pub(crate) fn new(f: F) -> Self {
        Self {
            f: Some(Box::new(f)),
            result: Box::new_uninit(),
        }
    }

    /// Runs the closure, which has not been run yet.
    pub(crate) fn run<T>(&mut self, value: &mut T)
    where
        F: FnOnce(&mut T) -> R,
    {
        let f = self.f.take().expect("a request runs once");
        self.result.write(run_boxed(f, value));
    }

    /// The outcome of the call with the closure's result, or the closure where it has not been run.
    ///
    /// # Safety
    /// `outcome` is `Ok(Ok(()))` only if [`run`](Self::run) has returned, and `Err` only if it has
    /// not been called.
    pub(crate) unsafe fn finish<E>(
        self,
        outcome: Result<thread::Result<()>, E>,
    ) -> Result<thread::Result<R>, (E, F)> {
        match outcome {
            // SAFETY: `run` has written it, by the caller's duty.
            Ok(Ok(())) => Ok(Ok(*unsafe { self.result.assume_init() })),
            Ok(Err(payload)) => Ok(Err(payload)),
            Err(why) => Err((why, *self.f.expect("it has not been run"))),
        }
    }
}

/// Puts a closure into a place of its size: the closure, or the box of a large one.
///
/// # Safety
/// `place` can be written.
#[inline(always)]
pub(crate) unsafe fn put<F>(place: *mut F, f: F) {
    if const { is_large::<F>() } {
        let boxed = Box::into_raw(Box::new(f));
        // SAFETY: the caller's duty; a large place has room for an address.
        unsafe { place.cast::<*mut F>().write_unaligned(boxed) };
    } else {
        // SAFETY: the caller's duty.
        unsafe { place.write(f) };
    }
}

/// # Safety
/// As [`take`], and `F` is large.
unsafe fn take_box<F>(place: *mut F) -> Box<F> {
    // SAFETY: the caller's duty.
    let boxed = unsafe { place.cast::<*mut F>().read_unaligned() };
    // SAFETY: from `Box::into_raw` in `put`, once.
    unsafe { Box::from_raw(boxed) }
}

/// Takes the closure back.
///
/// # Safety
/// [`put`] has put it there, and nobody has taken it.
#[inline(always)]
pub(crate) unsafe fn take<F>(place: *mut F) -> F {
    if const { is_large::<F>() } {
        // SAFETY: the caller's duty.
        *unsafe { take_box(place) }
    } else {
        // SAFETY: the caller's duty.
        unsafe { place.read() }
    }
}

/// Takes the closure and runs it.
///
/// # Safety
/// As [`take`].
#[inline(always)]
pub(crate) unsafe fn run<A, R, F: FnOnce(A) -> R>(place: *mut F, a: A) -> R {
    if const { is_large::<F>() } {
        // SAFETY: the caller's duty.
        run_boxed(unsafe { take_box(place) }, a)
    } else {
        // SAFETY: the caller's duty.
        let f = unsafe { place.read() };
        f(a)
    }
}

/// Takes the closure and drops it.
///
/// # Safety
/// As [`take`].
pub(crate) unsafe fn discard<F>(place: *mut F) {
    if const { is_large::<F>() } {
        // SAFETY: the caller's duty.
        drop(unsafe { take_box(place) });
    } else {
        // SAFETY: the caller's duty.
        unsafe { place.drop_in_place() };
    }
}
