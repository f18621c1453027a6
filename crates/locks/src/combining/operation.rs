//! Operations: a closure and its result in the frame of the caller, run by any thread.
//!
//! ```text
//!  Operation in the frame of `apply`            Request
//!  | run: how to run this type | value | body |  <── its address
//! ```
//! The body is the closure, then nothing while that runs, then its result or its panic.

use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::memory;
use corelay_sync::wait::{CodeName, NoSwitch};
use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::{mem, thread};

/// The address of an operation, whatever its type.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Request(NonNull<Header>);

/// The first field of every operation.
#[derive(Debug)]
struct Header {
    run: unsafe fn(Request),
}

impl Request {
    /// Runs the closure and leaves its result or its panic in the operation.
    ///
    /// # Safety
    /// The operation is still in its frame, and its own thread does not touch it meanwhile. Nobody
    /// has run it, and no other request of the same lock runs.
    #[inline]
    pub(crate) unsafe fn run(self) {
        // For the made-up machine: the header is in another thread's frame.
        memory::read(self.0.as_ptr(), 1);
        // SAFETY: the operation is in its frame (the caller's duty).
        let run = unsafe { self.0.as_ref() }.run;
        // SAFETY: the caller's duties; `run` is for the operation's type, for `Operation::new` put
        // it there.
        unsafe { run(self) };
    }
}

/// A closure for a value, and later its result.
// In a build that counts lines it begins with one, or the counts would depend on where the compiler
// puts it in the frame.
#[repr(C)]
#[cfg_attr(corelay_lines, repr(align(64)))]
pub(crate) struct Operation<'a, T: ?Sized, F, R> {
    /// First, so that the address of the operation is that of its header.
    header: Header,
    value: &'a UnsafeCell<T>,
    body: UnsafeCell<Body<F, R>>,
}

enum Body<F, R> {
    Closure(F),
    Running,
    Outcome(thread::Result<R>),
}

impl<'a, T: ?Sized, F: FnOnce(&mut T) -> R + Send, R: Send> Operation<'a, T, F, R> {
    #[inline]
    pub(crate) fn new(value: &'a UnsafeCell<T>, closure: F) -> Self {
        Self {
            header: Header { run: Self::run },
            value,
            body: UnsafeCell::new(Body::Closure(closure)),
        }
    }

    /// The address, valid until the operation moves or ends.
    #[inline]
    pub(crate) fn request(&self) -> Request {
        Request(NonNull::from(self).cast())
    }

    /// Runs the operation. A panic is caught under loom too, since it belongs to another thread; a
    /// fault that loom reports by a panic goes on in the caller.
    ///
    /// # Safety
    /// As for [`Request::run`]; the request is of an operation of this very type.
    unsafe fn run(request: Request) {
        // SAFETY: it is the address of an operation of this type, in its frame (the caller's
        // duties).
        let operation = unsafe { request.0.cast::<Self>().as_ref() };
        let Body::Closure(closure) = operation.replace(Body::Running) else {
            unreachable!("an operation has been run twice");
        };
        let outcome = operation.value.with_mut(|value| {
            // SAFETY: no other request of this lock runs (the caller's duty), so this is the only
            // reference to the value. The closure cannot keep it, for it must accept any lifetime.
            let value = unsafe { &mut *value };
            as_leaf(name_of::<F>(), || closure(value))
        });
        operation.replace(Body::Outcome(outcome));
    }

    #[inline]
    fn replace(&self, body: Body<F, R>) -> Body<F, R> {
        self.body.with_mut(|place| {
            // SAFETY: the thread that runs the operation is the only one that touches the body (the
            // duty of `run`'s caller), and it keeps no reference.
            mem::replace(unsafe { &mut *place }, body)
        })
    }

    /// Takes the result out, or goes on with the closure's panic.
    ///
    /// # Panics
    /// If the operation has not been run.
    #[inline]
    pub(crate) fn into_result(self) -> R {
        // Not `into_inner`, which loom does not watch.
        match self.replace(Body::Running) {
            Body::Outcome(Ok(result)) => result,
            Body::Outcome(Err(panic)) => resume_unwind(panic),
            Body::Closure(_) | Body::Running => unreachable!("an operation has not been run"),
        }
    }
}

/// The name of a closure's type.
#[inline(always)]
pub(crate) const fn name_of<F>() -> &'static CodeName<'static> {
    const { &CodeName::new(&(), |()| type_name::<F>()) }
}

/// Runs user code that must not wait, and catches its panic. `name` is for the message that refuses
/// a wait inside.
#[inline]
fn as_leaf<R>(name: &'static CodeName<'static>, f: impl FnOnce() -> R) -> thread::Result<R> {
    // SAFETY: the guard is dropped at the end of this frame, on this thread, for the code below
    // cannot be suspended; and the name is a constant.
    let _leaf = unsafe { NoSwitch::enter(name) };
    catch_unwind(AssertUnwindSafe(f))
}
