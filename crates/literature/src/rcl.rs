//! Remote core locking (Lozi, David, Thomas, Lawall and Muller, "Remote Core Locking: Migrating
//! Critical-Section Execution to Improve the Performance of Multithreaded Applications", USENIX
//! ATC 2012): one line for each client, which carries the answer, too.
//!
//! ```text
//! byte 0      8         16                                          64
//!      | lock | context | function or null | …                      |
//!                 │
//!                 └──► the client's frame: the section's variables, and its result
//! ```
//! A client writes the lock of its critical section, the address of the section's variables, and
//! last the function that the section has become. The server looks at all lines in turn, runs the
//! sections it finds and clears their functions, for which the clients wait.
//!
//! | function | meaning | who may touch line and context |
//! |---|---|---|
//! | null | no request, or the section has been executed | the client |
//! | set | a section to be executed | the server |
//!
//! # Proof sketch
//! *One owner.* The client sets the function when it is null, the server clears it when it is set,
//! and each only when it has finished with line and context. The Release of one store and the
//! Acquire of the look that finds it order these accesses.
//! *The frame stays*: the client does not return before the function is null.
//!
//! We depart from the paper in this: a server has one servicing thread, so a lock, which is the
//! address of its object, is never found taken and keeps no state. The paper's further threads, for
//! sections that block or lock again, and its profiler are not here.

use crate::delegation::sealed::Sealed;
use crate::delegation::{Blocking, Delegation, Protocol, Work};
use crate::footprint::Footprint;
use crate::row::Rows;
use crate::wait::Wait;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::memory;
use std::mem::ManuallyDrop;
use std::ptr;

/// Objects behind [remote core locking's lines](RclLines): see [`Delegation`].
///
/// ```
/// use corelay_literature::Rcl;
///
/// let (hits, mut servers) = Rcl::new(1, 1, 1, |_| 40_u64);
/// std::thread::scope(|s| {
///     let asking = s.spawn(|| hits.client(0).unwrap().apply(0, |hits: &mut u64| *hits + 2));
///     while servers[0].pass() == 0 {}
///     assert_eq!(asking.join().unwrap(), 42);
/// });
/// ```
pub type Rcl<T> = Delegation<RclLines, T>;

/// The lines between a server and its clients, in the layout of remote core locking.
///
/// Each client makes its own line. The server makes none: the answers use the clients' lines.
#[derive(Debug)]
pub struct RclLines(Rows<SectionLine>);

/// A section as a function of lock and context. Nothing unwinds out of it (a panic aborts the
/// process).
type Function = unsafe extern "C" fn(*const (), *const ());

/// The line of one client, which the client writes, and which the server writes after it has
/// executed a section.
#[derive(Debug)]
#[repr(C, align(64))]
struct SectionLine {
    /// Lock and context; the function decides who may touch them.
    section: UnsafeCell<[*const (); 2]>,
    /// A [`Function`], or null.
    function: AtomicPtr<()>,
}

// The models' atomics and cells are larger.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
const _: () = assert!(size_of::<SectionLine>() == 64 && align_of::<SectionLine>() == 64);

// SAFETY: lock and context belong to one side at a time (the module's table). What they point to is
// `Send` (`Blocking::call`), and alive as long as the function is set.
unsafe impl Sync for SectionLine {}
// SAFETY: lock and context belong to one side at a time; what they point to is `Send`, and alive as
// long as the function is set.
unsafe impl Send for SectionLine {}

/// The operation of a section, and the place for its answer, in the frame of the client that waits.
struct Context<O> {
    operation: UnsafeCell<ManuallyDrop<O>>,
    answer: UnsafeCell<u64>,
}

impl Sealed for RclLines {}

// SAFETY: see the module's proof sketch.
unsafe impl Protocol for RclLines {
    type Setting = ();
    type Server = ();
    /// The client's number; a client keeps nothing else.
    type Client = usize;

    fn new((): (), clients: usize) -> Self {
        Self(Rows::of(clients, 1))
    }

    unsafe fn server(&self) {}

    unsafe fn client(&self, index: usize) -> usize {
        let line = |_| SectionLine {
            section: UnsafeCell::new([ptr::null(); 2]),
            function: AtomicPtr::new(ptr::null_mut()),
        };
        // SAFETY: this is the only client of that number, and what earlier ones did happens before
        // this (the caller's duty).
        unsafe { self.0.at(index).make(line) };
        index
    }

    #[inline]
    unsafe fn pass(&self, (): &mut ()) -> Work {
        let mut work = Work::default();
        for line in self.0.made().flatten() {
            // SAFETY: this is the server, and the sections' objects are its own (the caller's
            // duties).
            work.requests += u64::from(unsafe { line.serve() });
        }
        // Each section is answered on its own line.
        work.batches = work.requests;
        work
    }

    unsafe fn is_quiet(&self) -> bool {
        // Clients wait for their sections, so without a client there is no request.
        true
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            requests: size_of::<SectionLine>() * self.0.len(),
            // The answers use the request lines; a context lies in its client's frame, and only
            // while it waits.
            responses: 0,
            server: 0,
            clients: size_of::<CachePadded<usize>>() * self.0.len(),
        }
    }
}

impl SectionLine {
    /// Executes the section, if there is one. Returns whether there was.
    ///
    /// # Safety
    /// The caller is the server, and the section's object is its own.
    #[inline(always)]
    unsafe fn serve(&self) -> bool {
        // Acquire: pairs with the Release in `call`; the section is there, and lock, context and
        // the client's frame are the server's.
        let function = self.function.load(Ordering::Acquire);
        if function.is_null() {
            return false;
        }
        let [lock, context] = self.section.with(|section| {
            // SAFETY: the function is set, so the client leaves the line alone.
            unsafe { *section }
        });
        // SAFETY: the pointer is not null, so `call` stored it, and made it of a `Function`.
        let function = unsafe { std::mem::transmute::<*mut (), Function>(function) };
        // SAFETY: `call` stored lock and context with this function, and the object is the server's
        // (the caller's duty).
        unsafe { function(lock, context) };
        // Release: pairs with the Acquire in `call`; the section has been executed, and line and
        // frame are the client's again.
        self.function.store(ptr::null_mut(), Ordering::Release);
        true
    }
}

/// Runs an operation of type `O` on an object of type `T`.
///
/// # Safety
/// `lock` is the address of the object, which nobody else touches. `context` is a [`Context`] of
/// `O`, which belongs to the server until this returns, and whose operation has not been taken.
unsafe extern "C" fn section<T, O>(lock: *const (), context: *const ())
where
    O: FnOnce(&mut T) -> u64 + Send,
{
    // SAFETY: the context lies in the frame of a client that waits (the caller's duty).
    let context = unsafe { &*context.cast::<Context<O>>() };
    let operation = context.operation.with_mut(|operation| {
        // SAFETY: the context is the server's now, and its operation is taken once (the caller's
        // duties).
        unsafe { operation.read() }
    });
    let operation = ManuallyDrop::into_inner(operation);
    // SAFETY: `lock` is the address of the object, which lives (the caller's duty).
    let object = unsafe { &*lock.cast::<UnsafeCell<T>>() };
    let answer = object.with_mut(|object| {
        // SAFETY: nobody else touches the object (the caller's duty). The operation cannot keep the
        // reference, for it must accept any lifetime.
        operation(unsafe { &mut *object })
    });
    context.answer.with_mut(|place| {
        // SAFETY: the context belongs to the server until this returns (the caller's duty).
        unsafe { *place = answer };
    });
}

// SAFETY: `call` returns when the function is null again, and the server makes it so after the
// execution.
unsafe impl Blocking for RclLines {
    #[inline]
    unsafe fn call<T, O>(&self, client: &mut usize, object: &UnsafeCell<T>, operation: O) -> u64
    where
        O: FnOnce(&mut T) -> u64 + Send,
    {
        let Some([line]) = self.0.at(*client).get() else {
            unreachable!("a client has made its line");
        };
        let context = Context {
            operation: UnsafeCell::new(ManuallyDrop::new(operation)),
            answer: UnsafeCell::new(0),
        };
        memory::write(&raw const context, 1);
        line.section.with_mut(|place| {
            let lock = ptr::from_ref(object).cast();
            // SAFETY: between calls the function is null, so the line is the client's.
            unsafe { *place = [lock, ptr::from_ref(&context).cast()] };
        });
        let function: Function = section::<T, O>;
        // Release: pairs with the Acquire in `serve`; publishes the section.
        line.function.store(function as *mut (), Ordering::Release);

        let mut wait = None;
        // Acquire: pairs with the Release in `serve`; what the server did is seen, and line and
        // frame are the client's again.
        while !line.function.load(Ordering::Acquire).is_null() {
            wait.get_or_insert_with(Wait::new).again();
        }
        context.answer.with(|answer| {
            // SAFETY: the section has been executed, so the frame is the client's.
            unsafe { *answer }
        })
    }
}
