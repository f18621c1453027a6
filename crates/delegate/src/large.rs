//! Closures and values that are too large to be moved to another stack.
//!
//! To call a closure moves it to the stack of the caller, more than once in unoptimised builds. The
//! caller of corelay boxes a large one, and it runs in the box: a box of an unknown type is called
//! through a pointer and not moved. Large values go from place to place by copies of memory. Only a
//! result is on the stack of the thread that makes it, since a function returns it there: see
//! [`Builder::stack_size`](crate::Builder::stack_size).

use crate::operation::Operation;
use std::mem::MaybeUninit;
use std::thread;

/// The bytes up to which a value is moved from stack to stack; a larger one is boxed by the caller
/// or copied from memory to memory. Several values of this size fit into a launched closure's
/// stack.
const LARGE: usize = 4 << 10;

/// Whether a `V` is too large to be moved around. Callers ask in a `const` block, so that a branch
/// not taken leaves no room for its temporaries on the stack, not even in unoptimised builds.
pub(crate) const fn is_large<V>() -> bool {
    size_of::<V>() > LARGE
}

/// A closure and the room for its result, both boxed. A request then carries their address only.
///
/// A call that waits moves closure and result through several frames, which are all inlined into
/// its caller. LLVM splits what is moved there into its bytes, one pass for each: with tens of
/// kilobytes that takes minutes, with megabytes it does not end.
pub(crate) struct ByAddress<F, R> {
    /// `None` once the closure has been run.
    f: Option<Box<F>>,
    result: Box<MaybeUninit<R>>,
}

impl<F, R> ByAddress<F, R> {
    /// Whether a call of `F` that returns an `R` goes by address, because one of the two is large.
    pub(crate) const IS_BETTER: bool = is_large::<F>() || is_large::<R>();

    pub(crate) fn new(f: F) -> Self {
        Self {
            f: Some(Box::new(f)),
            result: Box::new_uninit(),
        }
    }

    /// The operation that runs the closure, which has not been run yet, and has its name.
    pub(crate) fn operation(&mut self) -> RunByAddress<'_, F, R> {
        RunByAddress(self)
    }

    /// The outcome of the call with the closure's result, or the closure if it has not been run.
    ///
    /// # Safety
    /// `outcome` is `Ok(Ok(()))` only if its [`operation`](Self::operation) has returned, and `Err` only if that
    /// has not been run.
    pub(crate) unsafe fn finish<E>(
        self,
        outcome: Result<thread::Result<()>, E>,
    ) -> Result<thread::Result<R>, (E, F)> {
        match outcome {
            // SAFETY: the operation has returned, as the caller of `finish` promises, so it has written the
            // result.
            Ok(Ok(())) => Ok(Ok(*unsafe { self.result.assume_init() })),
            Ok(Err(payload)) => Ok(Err(payload)),
            Err(why) => Err((why, *self.f.expect("it has not been run"))),
        }
    }
}

/// The operation that a [`ByAddress`] sends.
pub(crate) struct RunByAddress<'a, F, R>(&'a mut ByAddress<F, R>);

impl<T, R, F: Operation<T, R>> Operation<T, ()> for RunByAddress<'_, F, R> {
    #[inline(always)]
    fn run(self, value: &mut T) {
        let f = self.0.f.take().expect("a request runs once");
        self.0.result.write(f.run_boxed(value));
    }

    fn run_boxed(self: Box<Self>, value: &mut T) {
        self.run(value);
    }

    fn name() -> &'static str {
        F::name()
    }
}

/// Writes a closure to `place`, which has room for it: the closure itself or, if it is large, the
/// address of a box with it.
///
/// # Safety
/// `place` can be written.
#[inline(always)]
pub(crate) unsafe fn put<F>(place: *mut F, f: F) {
    if const { is_large::<F>() } {
        let boxed = Box::into_raw(Box::new(f));
        // SAFETY: the caller promises a writable place. A large `F` has room for an address.
        unsafe { place.cast::<*mut F>().write_unaligned(boxed) };
    } else {
        // SAFETY: the caller promises a writable place.
        unsafe { place.write(f) };
    }
}

/// Takes the box of a large closure that [`put`] has written.
///
/// # Safety
/// [`put`] has written it, nobody has taken it, and `F` is large.
unsafe fn take_box<F>(place: *mut F) -> Box<F> {
    // SAFETY: `put` has written the address of a box here, since `F` is large.
    let boxed = unsafe { place.cast::<*mut F>().read_unaligned() };
    // SAFETY: `put` made the address by `Box::into_raw`, and the caller takes it once.
    unsafe { Box::from_raw(boxed) }
}

/// Takes the closure that [`put`] has written, unrun.
///
/// # Safety
/// [`put`] has written it, and nobody has taken it.
#[inline(always)]
pub(crate) unsafe fn take<F>(place: *mut F) -> F {
    if const { is_large::<F>() } {
        // SAFETY: `F` is large; the caller promises that `put` has written it and nobody has taken
        // it.
        *unsafe { take_box(place) }
    } else {
        // SAFETY: the caller promises that `put` has written the closure and nobody has taken it.
        unsafe { place.read() }
    }
}

/// Takes the closure that [`put`] has written and runs it on `value`; a large one runs in its box.
///
/// # Safety
/// [`put`] has written it, and nobody has taken it.
#[inline(always)]
pub(crate) unsafe fn run<T, R, F: Operation<T, R>>(place: *mut F, value: &mut T) -> R {
    if const { is_large::<F>() } {
        // SAFETY: `F` is large; the caller promises that `put` has written it and nobody has taken
        // it.
        unsafe { take_box(place) }.run_boxed(value)
    } else {
        // SAFETY: the caller promises that `put` has written the closure and nobody has taken it.
        unsafe { place.read() }.run(value)
    }
}

/// Drops the closure that [`put`] has written, unrun.
///
/// # Safety
/// [`put`] has written it, and nobody has taken it.
pub(crate) unsafe fn discard<F>(place: *mut F) {
    if const { is_large::<F>() } {
        // SAFETY: `F` is large; the caller promises that `put` has written it and nobody has taken
        // it.
        drop(unsafe { take_box(place) });
    } else {
        // SAFETY: the caller promises that `put` has written the closure and nobody has taken it.
        unsafe { place.drop_in_place() };
    }
}
