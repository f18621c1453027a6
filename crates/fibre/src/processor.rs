//! A thread that runs fibres.
//!
//! It has five places for those that are ready, and takes from them so that none starves:
//!
//! | place | who pushes | who takes |
//! |---|---|---|
//! | [`lane`](crate::ready::lane) | the processor | it; others where it is stuck |
//! | [`ring`](crate::ready::ring) | the processor | it, in batches into the lane; others |
//! | [`pinned`](crate::ready::pinned): fibres that stay here | the processor | the processor |
//! | `home`: the same, made ready elsewhere | anybody | the processor, into `pinned` |
//! | `arrivals`: others, made ready by other threads | anybody | the processor; others where it is stuck |
//!
//! Fibres that may run anywhere go to lane and ring, in order. The two kinds take turns.

use crate::cluster::Shared;
use crate::counters::SingleWriterCounter;
use crate::header::{Header, HeaderRef, NOWHERE};
use crate::ready::inbox::Inbox;
use crate::ready::lane::Lane;
use crate::ready::pinned::Pinned;
use crate::ready::ring::Ring;
use crate::seam::Seam;
use crate::stack::OverflowGuard;
use crate::switch::{self, Runnable};
use corelay_sync::barrier;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::facade::cell::{UnsafeCell, place_of};
use corelay_sync::facade::{MODEL, hint, thread_local};
use corelay_sync::trace::{self, Mark};
use corelay_sync::wait::{self, Sleeper};
use std::cell::Cell;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};

/// Pops for which a processor does without its lane, where that has been taken away twice within as
/// many: taking it costs some 7 us, an exchange for each pop 5 ns. (Once may only mean that the
/// system has let another thread run.)
const LANE_COOLDOWN_POPS: u64 = 1 << 13;
/// Pops between two looks at what the thread itself waits for from other threads.
const POLL_EVERY: u64 = 128;
/// Looks of a processor that has nothing to do, but waits for answers, before it looks around for
/// other work: some round trips.
const LOOKS_FOR_ANSWERS: u32 = if MODEL { 1 } else { 64 };
/// Pops between two looks around, where there is time for one.
const LOOK_EVERY: u64 = 16;

pub(crate) struct Processor {
    pub(crate) number: usize,
    shared: Cell<*const Shared>,
    // What others read too.
    pub(crate) ring: Ring<Header>,
    pub(crate) lane: Lane<Header>,
    /// Fibres taken from all places: who finds it unchanged knows that this processor is stuck.
    pub(crate) pops: SingleWriterCounter,
    home: Inbox<Header>,
    /// Fibres that may run anywhere, from threads that are no processor of this cluster.
    arrivals: Inbox<Header>,
    pub(crate) sleeper: OnceLock<Arc<Sleeper>>,
    pub(crate) counters: Counters,
    /// 1 while it has nothing to do.
    pub(crate) waiting: SingleWriterCounter,
    // What only its thread uses.
    pub(crate) running: AtomicPtr<Header>,
    /// The stopped fibre whose wait is being made known: see [`wait`](crate::wait).
    pub(crate) publishing: AtomicPtr<Header>,
    pinned: UnsafeCell<Pinned<Header>>,
    /// There may be something in the ring, or the lane is not used: what is pushed goes there.
    is_ring_used: Cell<bool>,
    no_lane_until: Cell<u64>,
    /// SingleWriterCounter pops when it was seen that the lane had been taken.
    lane_taken: Cell<u64>,
    pub(crate) watch: crate::help::Watch,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) steals: SingleWriterCounter,
    pub(crate) helps: SingleWriterCounter,
    pub(crate) sleeps: SingleWriterCounter,
    pub(crate) migrations: SingleWriterCounter,
}

// SAFETY: cells and `pinned` are for the processor's own thread (and `shared` is set before it
// starts); the rest is shared by atomics.
unsafe impl Send for Processor {}
// SAFETY: as above.
unsafe impl Sync for Processor {}

/// From when a fibre goes on until it stops.
static RUN: Mark = Mark::new("fibre").with_arg("number");

thread_local! {
    static HERE: Cell<*const Processor> = const { Cell::new(ptr::null()) };
}

/// The processor that runs here; null on a thread that is none.
///
/// Not inlined: a fibre may go on on another thread, and a compiler that has seen the address of a
/// thread-local keeps it (seen in a shared library).
#[inline(never)]
pub(crate) fn here() -> *const Processor {
    here_inlined()
}

/// As [`here`]: for functions that are not inlined themselves, and that nobody is suspended in.
#[inline(always)]
pub(crate) fn here_inlined() -> *const Processor {
    HERE.try_with(Cell::get).unwrap_or(ptr::null())
}

/// From now on `processor` runs on this thread.
pub(crate) fn run_here(processor: *const Processor) {
    HERE.with(|here| here.set(processor));
}

/// Makes a fibre ready, from anywhere.
///
/// Not inlined: see [`here`].
#[inline(never)]
pub(crate) fn ready(fibre: Runnable) {
    // SAFETY: a processor that runs here lives.
    match unsafe { here_inlined().as_ref() } {
        Some(processor) if ptr::eq(processor.shared.get(), fibre.header().cluster) => {
            processor.make_ready(fibre);
        }
        _ => Shared::inject(fibre),
    }
}

/// Asks for what a switch to the next fibre touches: the lines below its header, with the link to the
/// processor's stack and the frames of who waits near the root; and for the header of the one behind
/// it, which is read before anything else of it.
#[inline(always)]
fn prefetch([next, second]: [*const Header; 2]) {
    let lines = next.cast::<u8>();
    for i in 1..=4 {
        corelay_sync::prefetch_read(lines.wrapping_sub(i * 64));
    }
    corelay_sync::prefetch_read(second);
}

impl Processor {
    pub(crate) fn new(number: usize, processors: usize) -> Self {
        Self {
            number,
            shared: Cell::new(ptr::null()),
            ring: Ring::new(),
            lane: Lane::new(),
            pops: SingleWriterCounter::default(),
            home: Inbox::new(),
            arrivals: Inbox::new(),
            sleeper: OnceLock::new(),
            counters: Counters::default(),
            waiting: SingleWriterCounter::default(),
            running: AtomicPtr::default(),
            publishing: AtomicPtr::default(),
            pinned: UnsafeCell::new(Pinned::new()),
            is_ring_used: Cell::new(false),
            no_lane_until: Cell::new(0),
            lane_taken: Cell::new(0),
            watch: crate::help::Watch::new(processors),
        }
    }

    /// Of which cluster: before its thread starts.
    pub(crate) fn join_cluster(&self, shared: *const Shared) {
        self.shared.set(shared);
    }

    /// Of the `Arc` of its cluster.
    pub(crate) fn shared_ptr(&self) -> *const Shared {
        self.shared.get()
    }

    #[inline(always)]
    pub(crate) fn shared(&self) -> &Shared {
        // SAFETY: it keeps its processors.
        unsafe { &*self.shared.get() }
    }

    /// Makes a fibre ready: on the thread of this processor.
    #[inline(always)]
    pub(crate) fn make_ready(&self, fibre: Runnable) {
        let home = fibre.header().home.get();
        if home == NOWHERE {
            self.push(fibre.into_raw());
        } else if usize::from(home) == self.number {
            // SAFETY: on our thread, and nobody holds a reference to it.
            unsafe { &mut *place_of(&self.pinned) }.push(fibre.into_raw());
        } else {
            self.send_home(fibre);
        }
    }

    /// One that has stopped for nothing: as [`make_ready`](Self::make_ready).
    #[inline(never)]
    pub(crate) fn make_ready_again(&self, fibre: Runnable) {
        self.make_ready(fibre);
    }

    /// One that stays on another processor.
    #[inline(never)]
    fn send_home(&self, fibre: Runnable) {
        let home = usize::from(fibre.header().home.get());
        self.shared().processors[home].receive(fibre);
    }

    /// Makes a fibre ready, here at first: from anywhere.
    pub(crate) fn receive(&self, fibre: Runnable) {
        let place = if fibre.header().home.get() == NOWHERE {
            &self.arrivals
        } else {
            &self.home
        };
        // SAFETY: a runnable lies in no queue.
        unsafe { place.push(fibre.into_raw()) };
        self.wake();
    }

    /// True while it has nothing to do: by others.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.read() == 1
    }

    /// Wakes its thread if it sleeps: behind what that is to see.
    pub(crate) fn wake(&self) {
        // Pairs with the heavy barrier of one that goes to sleep: where its sleeper is not seen, it
        // sees what it is woken for.
        barrier::light();
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.wake_if_asleep();
        }
    }

    /// Behind the others that may run anywhere.
    #[inline(always)]
    pub(crate) fn push(&self, fibre: NonNull<Header>) {
        if !self.is_ring_used.get() {
            // SAFETY: on our thread.
            if !self.shared().idle.is_any() && unsafe { self.lane.try_push(fibre) } {
                return;
            }
            self.is_ring_used.set(true);
        }
        self.push_to_ring(fibre);
    }

    /// As [`push`](Self::push), where others can take it for less.
    #[inline(always)]
    fn push_to_ring(&self, fibre: NonNull<Header>) {
        // SAFETY: on our thread.
        if !unsafe { self.ring.try_push(fibre) } {
            self.push_where_there_is_room(fibre);
        } else if self.shared().idle.may_be_any() {
            self.offer();
        }
    }

    #[cold]
    #[inline(never)]
    fn push_where_there_is_room(&self, fibre: NonNull<Header>) {
        // SAFETY: on our thread.
        unsafe { self.ring.make_room() };
        self.push_to_ring(fibre);
    }

    /// Others may have nothing to do: one is woken where there is more than this processor runs next.
    #[cold]
    #[inline(never)]
    fn offer(&self) {
        // Pairs with the heavy barrier of a processor that goes to sleep: it finds what has been
        // pushed, or is seen here.
        barrier::light();
        if self.shared().idle.is_any() && self.ring.len() >= 2 {
            self.shared().wake_one();
        }
    }

    /// False where the lane has been taken away lately: a processor that is stuck now and then keeps
    /// its fibres where others can take them for less.
    #[inline(always)]
    fn has_lane(&self) -> bool {
        self.pops.get() >= self.no_lane_until.get()
    }

    #[cold]
    #[inline(never)]
    fn lane_was_taken(&self) {
        let pops = self.pops.get();
        if pops < self.lane_taken.replace(pops) + LANE_COOLDOWN_POPS {
            self.no_lane_until.set(pops + LANE_COOLDOWN_POPS);
            self.is_ring_used.set(true);
        }
    }

    /// The next fibre.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<NonNull<Header>> {
        let pops = self.pops.get();
        if pops.is_multiple_of(LOOK_EVERY) {
            self.look_around(pops);
        }
        // With each: where slices are long, somebody waits for as long as several take.
        if !self.home.is_empty() | !self.arrivals.is_empty() {
            self.fetch_here();
        }
        let is_pinned_first = pops & 1 == 0;
        let next = (is_pinned_first.then(|| self.next_pinned()).flatten())
            .or_else(|| self.next_here())
            .or_else(|| self.next_pinned());
        if next.is_some() {
            self.pops.set(pops + 1);
        }
        next
    }

    /// The next of those that stay here.
    #[inline(always)]
    fn next_pinned(&self) -> Option<NonNull<Header>> {
        // SAFETY: on our thread; the reference ends here.
        unsafe { &mut *place_of(&self.pinned) }.pop(prefetch)
    }

    /// The next of those that may run anywhere.
    #[inline(always)]
    fn next_here(&self) -> Option<NonNull<Header>> {
        // SAFETY: on our thread.
        let next = unsafe { self.lane.pop(|| self.lane_was_taken(), prefetch) };
        if next.is_none() && self.is_ring_used.get() {
            return self.claim();
        }
        next
    }

    /// Moves a batch from the ring to the lane, and takes its first.
    #[inline(never)]
    fn claim(&self) -> Option<NonNull<Header>> {
        // SAFETY: on our thread.
        let room = || unsafe { self.lane.room() };
        let most = if self.has_lane() { 1 + room() } else { 1 };
        // Where others are, half is left for them; the lane holds less than a batch of theirs.
        let all = self.watch.is_alone();
        let share = |there: usize| if all { there } else { there.div_ceil(2) }.min(most);
        let mut first = ptr::null_mut();
        // SAFETY: on our thread.
        let before = unsafe { self.lane.tail() };
        let n = self.ring.claim(share, |at, fibre| {
            if at == 0 {
                first = fibre;
            } else {
                // SAFETY: as above, and no more are taken than one and the lane's room.
                unsafe { self.lane.stage(before + at as u64 - 1, fibre) };
            }
        });
        if n > 1 {
            // SAFETY: as above; they have been taken from the ring.
            unsafe { self.lane.push_staged(before + n as u64 - 1) };
            prefetch([before, before + 1].map(|place| self.lane.at(place).cast_const()));
        }
        if self.ring.len() == 0 && self.has_lane() {
            self.is_ring_used.set(false);
        }
        if n == 0 { None } else { NonNull::new(first) }
    }

    #[cold]
    #[inline(never)]
    fn look_around(&self, pops: u64) {
        self.help();
        if pops.is_multiple_of(POLL_EVERY) {
            wait::poll_sources();
        }
    }

    #[cold]
    #[inline(never)]
    fn fetch_here(&self) {
        self.fetch();
    }

    /// Nothing is ready: publishes what this thread has asked of others, and looks for a while whether
    /// the answers make fibres ready. True where something is ready.
    #[inline(never)]
    fn await_answers(&self) -> bool {
        for _ in 0..LOOKS_FOR_ANSWERS {
            let more = wait::poll_sources();
            if !self.is_empty() {
                return true;
            }
            if !more {
                return false;
            }
            hint::spin_loop();
        }
        false
    }

    /// Takes what came from elsewhere; true where there was something.
    pub(crate) fn fetch(&self) -> bool {
        let mut some = false;
        self.home.take(|fibre| {
            some = true;
            // SAFETY: on our thread.
            unsafe { &mut *place_of(&self.pinned) }.push(fibre);
        });
        some | self.take_arrivals(|fibre| self.push(fibre))
    }

    /// Takes what came from other threads, and may run anywhere: by any processor; true where there
    /// was something.
    pub(crate) fn take_arrivals(&self, mut give: impl FnMut(NonNull<Header>)) -> bool {
        let mut some = false;
        self.arrivals.take(|fibre| {
            some = true;
            give(fibre);
        });
        some
    }

    /// True where something is ready here that others may take: as far as others see.
    pub(crate) fn has_something(&self) -> bool {
        self.lane.len() > 0 || self.ring.len() > 0 || !self.arrivals.is_empty()
    }

    /// True where nothing is ready here.
    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: on our thread.
        let pinned = unsafe { &*place_of(&self.pinned) };
        self.ring.len() == 0
            && self.lane.len() == 0
            && pinned.is_empty()
            && self.home.is_empty()
            && self.arrivals.is_empty()
    }

    #[inline(always)]
    fn run_fibre(&self, fibre: NonNull<Header>) {
        // SAFETY: it was ready, and is ours.
        let header = unsafe { fibre.as_ref() };
        // Relaxed: shown with the fibre.
        let last = header.last.load(Ordering::Relaxed);
        if usize::from(last) != self.number {
            self.arrive(header, last);
        }
        // Relaxed: read by this thread, and by who only wants to know.
        self.running.store(fibre.as_ptr(), Ordering::Relaxed);
        // SAFETY: it was ready, and has been taken.
        let fibre = unsafe { Runnable::new(fibre) };
        let ended = if trace::is_on() {
            self.resume_traced(fibre)
        } else {
            // SAFETY: on our thread, on its own stack.
            unsafe { switch::resume(self, fibre) }
        };
        // Relaxed: as above.
        self.running.store(ptr::null_mut(), Ordering::Relaxed);
        if let Err(fibre) = ended {
            self.end(fibre);
        }
    }

    #[cold]
    #[inline(never)]
    fn resume_traced(&self, fibre: Runnable) -> Result<(), Runnable> {
        let _span = trace::span(&RUN).with(fibre.header().id);
        // SAFETY: on our thread, on its own stack.
        unsafe { switch::resume(self, fibre) }
    }

    /// A fibre that has not run, or has run elsewhere.
    #[cold]
    #[inline(never)]
    fn arrive(&self, header: &Header, last: u16) {
        // Relaxed: others only want to know.
        header.last.store(self.number as u16, Ordering::Relaxed);
        if last != NOWHERE {
            self.counters.migrations.add(1);
        } else if !header.is_migrating {
            header.home.set(self.number as u16);
        }
    }

    #[inline(never)]
    pub(crate) fn end(&self, fibre: Runnable) {
        fibre.header().leave_for_good();
        self.shared().registry.remove(fibre.header());
        // SAFETY: the reference that a fibre has while it lives.
        drop(unsafe { HeaderRef::from_counted(fibre.into_raw()) });
        self.shared().ended();
    }

    /// This thread is the one that sleeps when there is nothing to do.
    pub(crate) fn become_sleeper(&self) {
        let _ = self.sleeper.set(Sleeper::current());
    }

    /// While the guard lives, a fibre that overflows its stack on this thread, the processor's, is
    /// named.
    ///
    /// # Errors
    /// There is no memory for a signal stack.
    ///
    /// # Safety
    /// The processor outlives the guard.
    pub(crate) unsafe fn watch_overflows(&self) -> io::Result<OverflowGuard> {
        // SAFETY: the caller's duty; it says which fibre runs here, whose header lives meanwhile.
        unsafe { OverflowGuard::install(&self.running) }
    }

    /// What its thread does, until the cluster closes.
    pub(crate) fn run(&self) {
        self.become_sleeper();
        run_here(self);
        let turns = || {
            loop {
                match self.next() {
                    Some(fibre) => self.run_fibre(fibre),
                    None if self.fetch() || self.await_answers() => {}
                    None if self.idle() => {}
                    None => break,
                }
            }
        };
        // SAFETY: the thread's own stack, or that of whoever lends the thread: no fibre's, so nothing
        // suspends it.
        unsafe { wait::enter(&Seam(self), turns) };
        self.leave();
    }

    /// Its thread has found the cluster over, which others that sleep have not.
    pub(crate) fn leave(&self) {
        run_here(ptr::null());
        self.shared().wake_all();
    }
}
