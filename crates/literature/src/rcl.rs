//! Remote core locking (Lozi, David, Thomas, Lawall and Muller, "Remote Core Locking: Migrating
//! Critical-Section Execution to Improve the Performance of Multithreaded Applications", USENIX
//! ATC 2012): a line per client, which is the answer's too.
//!
//! ```text
//! byte 0      8         16                                          64
//!      | lock | context | function or null | …                      |
//!                 │
//!                 └──► the client's frame: the section's variables, and its result
//! ```
//! A client writes which lock its critical section is under, where the section's variables are,
//! and last which function the section has become; the server looks at all lines in turn, runs
//! what it finds and clears the function, for which the client waits.
//!
//! | function | meaning | who may touch line and context |
//! |---|---|---|
//! | null | nothing is asked for, or the section has been executed | the client |
//! | set | a section to be executed | the server |
//!
//! # Proof sketch
//! *One owner.* The client sets the function where it is null, the server clears it where it is
//! set, and each only after it has done with line and context. The Release of one store and the
//! Acquire of the look that finds it order these accesses. *The frame stays*: the client does
//! not return before the function is null.
//!
//! Departures: a server has one servicing thread, so that a lock, which is the address of its
//! object, is never found taken and keeps no state; the paper's further threads, for sections
//! that block or lock again, and its profiler are not here.

use crate::delegation::sealed::Sealed;
use crate::delegation::{Blocking, Delegation, Protocol, Work};
use crate::footprint::Footprint;
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
/// let (hits, mut servers) = Rcl::new(1, 1, [40_u64]);
/// std::thread::scope(|s| {
///     let asking = s.spawn(|| hits.client(0).unwrap().apply(0, |hits: &mut u64| *hits + 2));
///     while servers[0].pass() == 0 {}
///     assert_eq!(asking.join().unwrap(), 42);
/// });
/// ```
pub type Rcl<T> = Delegation<RclLines, T>;

/// The lines between a server and its clients, as remote core locking has them.
#[derive(Debug)]
pub struct RclLines(Box<[SectionLine]>);

/// A section as a function of lock and context; nothing unwinds out of it (a panic aborts the
/// process).
type Function = unsafe extern "C" fn(*const (), *const ());

/// Written by its client, and, where a section has been executed, by the server.
#[derive(Debug)]
#[repr(C, align(64))]
struct SectionLine {
    /// Lock and context: whose they are says the function.
    section: UnsafeCell<[*const (); 2]>,
    /// A [`Function`], or null.
    function: AtomicPtr<()>,
}

// The models' atomics and cells are larger.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
const _: () = assert!(size_of::<SectionLine>() == 64 && align_of::<SectionLine>() == 64);

// SAFETY: lock and context belong to one side at a time (the module's table); what they point to
// is `Send` (`Blocking::call`), and alive as long as the function is set.
unsafe impl Sync for SectionLine {}
// SAFETY: as above.
unsafe impl Send for SectionLine {}

/// What a section shares with the frame it was taken out of.
struct Context<O> {
    operation: UnsafeCell<ManuallyDrop<O>>,
    answer: UnsafeCell<u64>,
}

impl Sealed for RclLines {}

// SAFETY: see the module's proof sketch.
unsafe impl Protocol for RclLines {
    type Setting = ();
    type Server = ();
    /// Its number.
    type Client = usize;

    fn new((): (), clients: usize) -> Self {
        let line = |_| SectionLine {
            section: UnsafeCell::new([ptr::null(); 2]),
            function: AtomicPtr::new(ptr::null_mut()),
        };
        Self((0..clients).map(line).collect())
    }

    fn server(&self) {}

    unsafe fn client(&self, index: usize) -> usize {
        index
    }

    #[inline]
    unsafe fn pass(&self, (): &mut ()) -> Work {
        let mut work = Work::default();
        for line in &self.0 {
            // SAFETY: we are the server, and the objects are ours (our caller).
            work.requests += u64::from(unsafe { line.serve() });
        }
        // Each is answered on its own line.
        work.batches = work.requests;
        work
    }

    unsafe fn is_quiet(&self) -> bool {
        // Clients wait for their sections: where there is none, there is no request.
        true
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            requests: size_of_val(&*self.0),
            // The same lines; a context lies in its client's frame, and only as long as it waits.
            responses: 0,
            server: 0,
            clients: size_of::<CachePadded<usize>>() * self.0.len(),
        }
    }
}

impl SectionLine {
    /// Executes the section, where there is one.
    ///
    /// # Safety
    /// The caller is the server, and the section's object is its own.
    #[inline(always)]
    unsafe fn serve(&self) -> bool {
        // Acquire: pairs with the Release in `call`; lock, context and the client's frame are
        // ours, and the section is there.
        let function = self.function.load(Ordering::Acquire);
        if function.is_null() {
            return false;
        }
        let [lock, context] = self.section.with(|section| {
            // SAFETY: the function is set: the client leaves the line alone.
            unsafe { *section }
        });
        // SAFETY: what is not null is the function that `call` stored.
        let function = unsafe { std::mem::transmute::<*mut (), Function>(function) };
        // SAFETY: lock and context are those that were stored with it, and the object is ours.
        unsafe { function(lock, context) };
        // Release: pairs with the Acquire in `call`; the section has been executed, and line and
        // frame are the client's again.
        self.function.store(ptr::null_mut(), Ordering::Release);
        true
    }
}

/// The section that does an `O` on a `T`.
///
/// # Safety
/// `lock` is the object's and nobody else touches it; `context` is a [`Context`] of `O`, which
/// is ours until this returns, and whose operation is still there.
unsafe extern "C" fn section<T, O>(lock: *const (), context: *const ())
where
    O: FnOnce(&mut T) -> u64 + Send,
{
    // SAFETY: it lies in the frame of a client that waits (our caller).
    let context = unsafe { &*context.cast::<Context<O>>() };
    let operation = context.operation.with_mut(|operation| {
        // SAFETY: it is ours, and taken once.
        unsafe { operation.read() }
    });
    let operation = ManuallyDrop::into_inner(operation);
    // SAFETY: it is the object's (our caller).
    let object = unsafe { &*lock.cast::<UnsafeCell<T>>() };
    let answer = object.with_mut(|object| {
        // SAFETY: nobody else touches it (our caller), and the operation cannot keep it, for it
        // must accept any lifetime.
        operation(unsafe { &mut *object })
    });
    context.answer.with_mut(|place| {
        // SAFETY: the context is ours.
        unsafe { *place = answer };
    });
}

// SAFETY: `call` returns when the function is null again, which the server makes it behind the
// execution.
unsafe impl Blocking for RclLines {
    #[inline]
    unsafe fn call<T, O>(&self, client: &mut usize, object: &UnsafeCell<T>, operation: O) -> u64
    where
        O: FnOnce(&mut T) -> u64 + Send,
    {
        let line = &self.0[*client];
        let context = Context {
            operation: UnsafeCell::new(ManuallyDrop::new(operation)),
            answer: UnsafeCell::new(0),
        };
        memory::write(&raw const context, 1);
        line.section.with_mut(|place| {
            let lock = ptr::from_ref(object).cast();
            // SAFETY: between calls the function is null, so the line is ours.
            unsafe { *place = [lock, ptr::from_ref(&context).cast()] };
        });
        let function: Function = section::<T, O>;
        // Release: pairs with the Acquire in `serve`; publishes the section.
        line.function.store(function as *mut (), Ordering::Release);

        let mut wait = None;
        // Acquire: pairs with the Release in `serve`; what the server did is seen, and line and
        // frame are ours again.
        while !line.function.load(Ordering::Acquire).is_null() {
            wait.get_or_insert_with(Wait::new).again();
        }
        context.answer.with(|answer| {
            // SAFETY: the section has been executed, so the frame is ours.
            unsafe { *answer }
        })
    }
}
