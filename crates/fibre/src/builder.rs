//! Builders: the settings of clusters and of fibres.

use crate::cluster::{Cluster, Shared, StartError};
use crate::fibre::Fibre;
use crate::header::{Header, HeaderRef, NOWHERE};
use crate::join::{JoinHandle, MOST_ON_STACK, root, top_bytes};
use crate::processor::{self, Processor};
use crate::stack::{self, Guards, Kind, StackError, StackSize};
use crate::switch::{Base, Runnable, Suspended};
use corelay_sync::wait::CoroutineState;
use std::fmt;
use std::ptr::NonNull;

/// The settings of a cluster that is to be started.
#[derive(Clone, Debug)]
pub struct ClusterBuilder {
    processors: usize,
    cpus: Option<Vec<usize>>,
    stack_size: StackSize,
    name: String,
}

impl ClusterBuilder {
    /// Sets the number of processors. By default there are as many as there are CPUs for this
    /// process, by affinity and quota.
    pub fn processors(mut self, processors: usize) -> Self {
        self.processors = processors;
        self
    }

    /// Pins processor *i* to the *i*-th of these CPUs, starting over if there are fewer CPUs.
    pub fn cpus(mut self, cpus: Vec<usize>) -> Self {
        self.cpus = (!cpus.is_empty()).then_some(cpus);
        self
    }

    /// Sets the size of the stacks of the cluster's fibres, for which a fibre's own builder may
    /// choose another: 64 KiB by default.
    pub fn stack_size(mut self, size: StackSize) -> Self {
        self.stack_size = size;
        self
    }

    /// Sets the name of the processors' threads. Each thread's number follows the name, which ends
    /// at the first NUL.
    pub fn name(mut self, name: &str) -> Self {
        let end = name.find('\0').unwrap_or(name.len());
        name[..end].clone_into(&mut self.name);
        self
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// The number of processors is out of range, or the system refuses a thread, a CPU or a signal
    /// stack.
    ///
    /// # Safety
    /// As for [`Cluster::start`].
    pub unsafe fn start(self) -> Result<Cluster, StartError> {
        if !(1..usize::from(NOWHERE)).contains(&self.processors) {
            return Err(StartError::Processors(self.processors));
        }
        Cluster::launch(self.processors, self.cpus, self.stack_size, &self.name)
    }
}

impl Cluster {
    /// A builder for a cluster.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            cpus: None,
            stack_size: StackSize::DEFAULT,
            name: "fibres".to_owned(),
        }
    }
}

/// The settings of a fibre that is to be spawned.
#[derive(Clone)]
pub struct Builder<'a> {
    shared: &'a Shared,
    name: Option<Box<str>>,
    stack_size: StackSize,
    guards: Guards,
    is_migrating: bool,
    home: u16,
}

/// The reason why a fibre was not spawned.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no memory for the fibre's stack, or no guard can be placed below the stack.
    Stack(StackError),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stack(why) => write!(f, "no stack for a fibre: {why}"),
        }
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Stack(why) => Some(why),
        }
    }
}

/// The bytes, padding included, that corosensei puts on a fibre's stack beside the closure. Closure
/// and these together take at most [`MOST_ON_STACK`].
const BESIDE: usize = 64;

/// The number of places for the header at the top of a stack, one cache line apart, among which
/// fibres take turns. Stacks lie a multiple of a page from each other, so headers at the same place
/// of all stacks would share a few sets of a cache.
const COLOURS: usize = 16;

impl<'a> Builder<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            name: None,
            stack_size: shared.stack_size,
            guards: Guards::Required,
            is_migrating: false,
            home: NOWHERE,
        }
    }

    /// Makes the fibre stay on this processor; no other one takes it even before it has run.
    pub(crate) fn at_home(mut self, processor: &Processor) -> Self {
        self.home = processor.number as u16;
        self
    }

    /// Sets the fibre's name, for dumps and messages.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the size of the fibre's stack.
    pub fn stack_size(mut self, size: StackSize) -> Self {
        self.stack_size = size;
        self
    }

    /// Spawns the fibre even if no guard can be placed below its stack, because the system's limit
    /// of mappings is reached.
    ///
    /// # Safety
    /// Whatever the fibre runs fits into its stack: without a guard, an overflow writes into
    /// another fibre's stack.
    pub unsafe fn unguarded(mut self) -> Self {
        self.guards = Guards::IfPossible;
        self
    }

    /// Lets the fibre continue on another processor after any wait.
    ///
    /// # Safety
    /// Beyond the duties of [`Cluster::start`], the code that the fibre runs, libraries included:
    ///
    /// * holds nothing over a wait that must stay on its thread (no value that is not `Send`);
    /// * keeps no reference to a thread-local over a wait. A compiler may keep one by itself, in a
    ///   function that waits and reads a thread-local, or inlines a function that does. Put such
    ///   reads into functions marked `#[inline(never)]` that do not wait. In corelay these are:
    ///   sections of RLU, TL2 and oplogs, and the locks of `corelay-locks`;
    /// * asks trustees of corelay by `Trust::apply` alone. It may be inlined, except where the fibre
    ///   cannot be suspended, such as inside a section. Their other calls look up this thread's
    ///   client where they are inlined.
    pub unsafe fn migrating(mut self) -> Self {
        self.is_migrating = true;
        self
    }

    /// Runs `f` in a new fibre.
    ///
    /// # Errors
    /// There is no stack for the fibre.
    pub fn spawn<F, T>(self, f: F) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: `'static` types borrow nothing that could end before the fibre.
        unsafe { self.spawn_unchecked(f, |_| {}) }
    }

    /// Runs `task`, which need not be `Send`, in a new fibre on this thread.
    ///
    /// # Safety
    /// The builder is [at home](Self::at_home) on the processor that is, or will be, this thread.
    pub(crate) unsafe fn spawn_here(
        self,
        task: impl FnOnce() + 'static,
    ) -> Result<JoinHandle<()>, SpawnError> {
        struct OfThread<F>(F);
        // SAFETY: the fibre stays on its home processor, which is this thread (the caller's duty),
        // so the task never leaves it.
        unsafe impl<F> Send for OfThread<F> {}
        impl<F: FnOnce()> OfThread<F> {
            fn run(self) {
                (self.0)();
            }
        }
        let task = OfThread(task);
        self.spawn(move || task.run())
    }

    /// Runs `f` in a new fibre. Calls `after` when the result has been written or dropped, with
    /// whether `f` panicked.
    ///
    /// # Safety
    /// Whatever the types borrow outlives the handle and the call of `after`; `after` does not
    /// unwind.
    pub(crate) unsafe fn spawn_unchecked<F, T>(
        self,
        f: F,
        after: impl FnOnce(bool),
    ) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // A closure that would take much of the stack goes to the heap. So does one that needs a
        // larger alignment than the rest, which would all be padded by it.
        if size_of::<F>() > MOST_ON_STACK - BESIDE || align_of::<F>() > BESIDE {
            let f = Box::new(f);
            // SAFETY: the caller keeps what the types borrow alive, and boxing `f` borrows nothing
            // more.
            return unsafe { self.start(f, after) };
        }
        // SAFETY: the caller keeps what the types borrow alive until `after` has been called.
        unsafe { self.start(f, after) }
    }

    /// Takes a stack for the fibre, lays out its header and its coroutine there, and makes the
    /// fibre ready.
    ///
    /// # Safety
    /// As for [`spawn_unchecked`](Self::spawn_unchecked).
    unsafe fn start<F, T>(self, f: F, after: impl FnOnce(bool)) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let shared = self.shared;
        let stack =
            stack::take(Kind::new(self.stack_size, self.guards)).map_err(SpawnError::Stack)?;
        // SAFETY: `stack::take` has just given the stack to this call alone, and nothing runs on
        // it.
        unsafe { CoroutineState::prepare(stack.extent()) };
        let id = shared.new_id();
        let colour = (id as usize % COLOURS) * 64;
        let at =
            (stack.top().addr().get() - top_bytes::<T>() - colour) & !(align_of::<Header>() - 1);
        let top = stack.top().as_ptr();
        top.expose_provenance();
        let place = NonNull::new(top.with_addr(at).cast::<Header>()).expect("not at 0");
        // SAFETY: the place lies in the stack that this call alone has, with room for the header.
        unsafe { Header::write_stack(place, stack) };
        // SAFETY: the line above wrote the stack into the header, whose address is exposed; what
        // lies below is unused. The rest of the header is written before the coroutine runs.
        let base = unsafe { Base::below(place) };
        let body = move |yielder: &_, ()| {
            // SAFETY: the header is this fibre's, has room for the result, and is written before
            // the fibre runs.
            after(unsafe { root(place, yielder, f) });
            // SAFETY: the fibre holds a reference to its header as long as it runs.
            let header = unsafe { place.as_ref() };
            // SAFETY: this is the last thing that the fibre does.
            unsafe { header.stand.end() };
        };
        // SAFETY: the body never unwinds through the switch, for `root` catches panics; the borrows
        // outlive it (the caller's duty); and the stack is given back only after the fibre has
        // ended.
        let suspended = unsafe { Suspended::with_stack_unchecked(base, body) };
        shared.begins();
        let header = Header::new(suspended, self.is_migrating, shared, stack, id, self.name);
        header.home.set(self.home);
        // SAFETY: the place is aligned and lies in the stack that this call alone has, above the
        // coroutine's part.
        unsafe { place.write(header) };
        // SAFETY: `Processor::end` removes the fibre from the registry before it drops the fibre's
        // reference.
        unsafe { shared.registry.add(place) };
        // SAFETY: this is the reference that the fibre has while it lives, which `header` was made
        // with; it is not dropped here.
        let own = std::mem::ManuallyDrop::new(unsafe { HeaderRef::from_counted(place) });
        // SAFETY: the fibre's result has type `T`, and this is its only join handle.
        let handle = unsafe { JoinHandle::new(Fibre((*own).clone())) };
        // SAFETY: the fibre has never run and lies in no queue.
        processor::ready(unsafe { Runnable::new(place) });
        Ok(handle)
    }
}

impl fmt::Debug for Builder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .field("is_migrating", &self.is_migrating)
            .finish_non_exhaustive()
    }
}
