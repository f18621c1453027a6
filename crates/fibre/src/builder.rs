//! How clusters and fibres are to be made.

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

/// A cluster in the making.
#[derive(Clone, Debug)]
pub struct ClusterBuilder {
    processors: usize,
    cpus: Option<Vec<usize>>,
    stack_size: StackSize,
    name: String,
}

impl ClusterBuilder {
    /// So many processors; otherwise as many as there are CPUs for this process, by affinity and
    /// quota.
    pub fn processors(mut self, processors: usize) -> Self {
        self.processors = processors;
        self
    }

    /// Keeps processor *i* on the *i*-th of these CPUs, again from the first where there are fewer.
    pub fn cpus(mut self, cpus: Vec<usize>) -> Self {
        self.cpus = (!cpus.is_empty()).then_some(cpus);
        self
    }

    /// How large its fibres' stacks are, unless their builders say otherwise: 64 KiB by default.
    pub fn stack_size(mut self, size: StackSize) -> Self {
        self.stack_size = size;
        self
    }

    /// What its threads are called, each with its number; up to a NUL, if there is one.
    pub fn name(mut self, name: &str) -> Self {
        let end = name.find('\0').unwrap_or(name.len());
        name[..end].clone_into(&mut self.name);
        self
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// A number of processors out of range; the system refuses a thread, its CPU or its signal
    /// stack.
    ///
    /// # Safety
    /// As [`Cluster::start`].
    pub unsafe fn start(self) -> Result<Cluster, StartError> {
        if !(1..usize::from(NOWHERE)).contains(&self.processors) {
            return Err(StartError::Processors(self.processors));
        }
        Cluster::launch(self.processors, self.cpus, self.stack_size, &self.name)
    }
}

impl Cluster {
    /// A cluster in the making.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            cpus: None,
            stack_size: StackSize::DEFAULT,
            name: "fibres".to_owned(),
        }
    }
}

/// A fibre in the making.
#[derive(Clone)]
pub struct Builder<'a> {
    shared: &'a Shared,
    name: Option<Box<str>>,
    stack_size: StackSize,
    guards: Guards,
    is_migrating: bool,
    home: u16,
}

/// Why there is no fibre.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no memory for its stack, or no guard can be had.
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

/// Bytes for what goes to a fibre's stack beside its closure, with padding: corosensei takes
/// [`MOST_ON_STACK`] in all.
const BESIDE: usize = 64;

/// Places of a header at the top of a stack, a line apart: stacks lie a multiple of a page from each
/// other, and what all have at the same place falls into the same few sets of a cache.
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

    /// It stays on this processor, and is not taken by another one before it has run either.
    pub(crate) fn at_home(mut self, processor: &Processor) -> Self {
        self.home = processor.number as u16;
        self
    }

    /// A name, for dumps and messages.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How large its stack is.
    pub fn stack_size(mut self, size: StackSize) -> Self {
        self.stack_size = size;
        self
    }

    /// Makes it also where no guard can be had below its stack, because the system's limit of
    /// mappings is reached.
    ///
    /// # Safety
    /// What the fibre runs fits into its stack: without a guard, an overflow writes into another
    /// fibre's.
    pub unsafe fn unguarded(mut self) -> Self {
        self.guards = Guards::IfPossible;
        self
    }

    /// Lets it go on on another processor than before, after any wait.
    ///
    /// # Safety
    /// Beyond the duties of [`Cluster::start`], what the fibre runs, the libraries that it calls
    /// included:
    ///
    /// * holds nothing over a wait that must stay on its thread (no value that is not `Send`);
    /// * keeps no reference to a thread-local over a wait.
    /// * asks trustees of corelay by `Trust::apply` alone. Their other calls look up this thread's
    ///   client where they are inlined, and a compiler may keep what it has found over a wait.
    pub unsafe fn migrating(mut self) -> Self {
        self.is_migrating = true;
        self
    }

    /// Runs `f` in a fibre.
    ///
    /// # Errors
    /// No stack.
    pub fn spawn<F, T>(self, f: F) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: they borrow nothing.
        unsafe { self.spawn_unchecked(f, |_| {}) }
    }

    /// Runs `task`, which need not be `Send`, in a fibre.
    ///
    /// # Safety
    /// [At home](Self::at_home) on the processor that is, or will be, this thread.
    pub(crate) unsafe fn spawn_here(
        self,
        task: impl FnOnce() + 'static,
    ) -> Result<JoinHandle<()>, SpawnError> {
        struct OfThread<F>(F);
        // SAFETY: it does not leave this thread, by the caller.
        unsafe impl<F> Send for OfThread<F> {}
        impl<F: FnOnce()> OfThread<F> {
            fn run(self) {
                (self.0)();
            }
        }
        let task = OfThread(task);
        self.spawn(move || task.run())
    }

    /// Runs `f` in a fibre, and `after` when its result has been written or dropped, with true where it
    /// has panicked.
    ///
    /// # Safety
    /// What the types borrow outlives the call of `after`, which does not unwind, and the handle.
    pub(crate) unsafe fn spawn_unchecked<F, T>(
        self,
        f: F,
        after: impl FnOnce(bool),
    ) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // What would take much of the stack lies in the heap; so does what must be aligned to more
        // than the rest, by which it would all be padded.
        if size_of::<F>() > MOST_ON_STACK - BESIDE || align_of::<F>() > BESIDE {
            let f = Box::new(f);
            // SAFETY: the caller's duty.
            return unsafe { self.start(f, after) };
        }
        // SAFETY: as above.
        unsafe { self.start(f, after) }
    }

    /// # Safety
    /// As [`spawn_unchecked`](Self::spawn_unchecked).
    unsafe fn start<F, T>(self, f: F, after: impl FnOnce(bool)) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let shared = self.shared;
        let stack =
            stack::take(Kind::new(self.stack_size, self.guards)).map_err(SpawnError::Stack)?;
        // SAFETY: just taken, ours alone.
        unsafe { CoroutineState::prepare(stack.extent()) };
        let id = shared.new_id();
        let colour = (id as usize % COLOURS) * 64;
        let at =
            (stack.top().addr().get() - top_bytes::<T>() - colour) & !(align_of::<Header>() - 1);
        let top = stack.top().as_ptr();
        top.expose_provenance();
        let place = NonNull::new(top.with_addr(at).cast::<Header>()).expect("not at 0");
        // SAFETY: in the stack, which is ours.
        unsafe { Header::write_stack(place, stack) };
        // SAFETY: as above; the rest of the header is written below.
        let base = unsafe { Base::below(place) };
        let body = move |yielder: &_, ()| {
            // SAFETY: its own header, which is written before it runs.
            after(unsafe { root(place, yielder, f) });
            // SAFETY: alive while the fibre runs.
            let header = unsafe { place.as_ref() };
            // SAFETY: the last thing that it does.
            unsafe { header.stand.end() };
        };
        // SAFETY: it never unwinds through the switch, and ends before its stack is used again.
        let suspended = unsafe { Suspended::with_stack_unchecked(base, body) };
        shared.begins();
        let header = Header::new(suspended, self.is_migrating, shared, stack, id, self.name);
        header.home.set(self.home);
        // SAFETY: in the stack, which is ours, above the coroutine's part; aligned.
        unsafe { place.write(header) };
        // SAFETY: removed when it has ended.
        unsafe { shared.registry.add(place) };
        // SAFETY: the reference that the fibre itself keeps while it lives; not dropped here.
        let own = std::mem::ManuallyDrop::new(unsafe { HeaderRef::from_counted(place) });
        // SAFETY: of this type; the one handle.
        let handle = unsafe { JoinHandle::new(Fibre((*own).clone())) };
        // SAFETY: it has not run.
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
