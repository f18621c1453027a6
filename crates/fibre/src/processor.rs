//! A processor: a thread that runs fibres.
//!
//! It has five places for ready fibres, and takes from them so that no fibre starves:
//!
//! | place | who pushes | who takes |
//! |---|---|---|
//! | [`lane`](crate::ready::lane) | the processor | the processor; others if it is stuck |
//! | [`ring`](crate::ready::ring) | the processor | the processor, in batches into the lane; others |
//! | [`pinned`](crate::ready::pinned): fibres that stay here | the processor | the processor |
//! | `home`: such fibres, made ready elsewhere | anybody | the processor, into `pinned` |
//! | `arrivals`: other fibres, made ready by other threads | anybody | the processor; others if it is stuck |
//!
//! Fibres that may run anywhere go to lane and ring, in order. Those that stay and those that may
//! run anywhere take turns.

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
use corelay_sync::facade::{MODEL, hint};
use corelay_sync::trace::{self, Mark};
use corelay_sync::wait::{self, Sleeper};
use std::cell::Cell;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};

/// The number of pops for which a processor does without its lane, after other processors have
/// taken the lane twice within as many pops. Taking a lane costs the taker some 7 µs. Doing without
/// costs an exchange for each pop, 5 ns. (One taking may only mean that the system has let another
/// thread run.)
const LANE_COOLDOWN_POPS: u64 = 1 << 13;
/// Pops between two polls of the [sources](wait::poll_sources) of this thread, such as the answers
/// of trustees.
const POLL_EVERY: u64 = 128;
/// The number of polls for answers by which a processor without ready fibres begins, before it
/// looks for work elsewhere: some round trips.
const LOOKS_FOR_ANSWERS: u32 = if MODEL { 1 } else { 64 };
/// Pops between two calls of [`look_around`](Processor::look_around). That looks at another
/// processor only when [`help`](crate::help) says that a look is due.
const LOOK_EVERY: u64 = 16;

pub(crate) struct Processor {
    pub(crate) number: usize,
    shared: Cell<*const Shared>,
    // The fields that other threads read, too.
    pub(crate) ring: Ring<Header>,
    pub(crate) lane: Lane<Header>,
    /// The number of fibres that the processor has taken to run. If others find it unchanged for
    /// long, the processor is stuck.
    pub(crate) pops: SingleWriterCounter,
    /// Fibres that stay on this processor and were made ready by other threads.
    home: Inbox<Header>,
    /// Fibres that may run anywhere and were made ready by threads that are no processor of this
    /// cluster.
    arrivals: Inbox<Header>,
    pub(crate) sleeper: OnceLock<Arc<Sleeper>>,
    pub(crate) counters: Counters,
    /// A flag for other threads: 1 while the processor is idle, otherwise 0.
    pub(crate) waiting: SingleWriterCounter,
    // The fields that only its own thread writes.
    pub(crate) running: AtomicPtr<Header>,
    /// The stopped fibre whose wait is being published: see [`wait`](crate::wait).
    pub(crate) publishing: AtomicPtr<Header>,
    pinned: UnsafeCell<Pinned<Header>>,
    /// Whether newly ready fibres go to the ring and not to the lane, because the ring may hold
    /// some already, or the lane is out of use.
    is_ring_used: Cell<bool>,
    /// The own count of pops until which the lane is out of use.
    no_lane_until: Cell<u64>,
    /// The own count of pops at which the processor last found that others had taken its lane.
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

// SAFETY: only the processor's own thread uses the cells and `pinned` (`shared` is set before it
// starts); the rest is shared by atomics.
unsafe impl Send for Processor {}
// SAFETY: only the processor's own thread uses the cells and `pinned`; the rest is shared by
// atomics.
unsafe impl Sync for Processor {}

/// The span, in a recording, from a fibre's resumption to its next stop.
static RUN: Mark = Mark::new("fibre").with_arg("number");

/// The processor that runs on this thread; null on a thread that is none.
///
/// Not inlined: a fibre may go on on another thread, and a compiler that has seen the address of a
/// thread-local keeps it (seen in a shared library).
#[inline(never)]
pub(crate) fn here() -> *const Processor {
    here_inlined()
}

/// Returns what [`here`] does, for functions that are not inlined themselves and in which no fibre
/// is suspended.
#[inline(always)]
pub(crate) fn here_inlined() -> *const Processor {
    wait::scheduler().cast()
}

/// Makes `processor` the one that runs on this thread; null ends that.
pub(crate) fn run_here(processor: *const Processor) {
    // SAFETY: only this function sets the pointer on a processor's thread. The cluster keeps its
    // processors until their threads have left it, and `leave` sets null.
    unsafe { wait::set_scheduler(processor.cast()) };
}

/// Makes a fibre ready, from any thread.
///
/// Not inlined: see [`here`].
#[inline(never)]
pub(crate) fn ready(fibre: Runnable) {
    // SAFETY: `here` is null or points to the processor that this thread runs, which lives
    // meanwhile.
    match unsafe { here_inlined().as_ref() } {
        Some(processor) if ptr::eq(processor.shared.get(), fibre.header().cluster) => {
            processor.make_ready(fibre);
        }
        _ => Shared::inject(fibre),
    }
}

/// Prefetches what a switch to the next fibre touches: the lines below its header, which hold the
/// link to the processor's stack and the frames of a fibre that waits near its root. Prefetches the
/// header of the fibre after it as well, which is read before anything else of that fibre.
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

    /// Sets the processor's cluster, before its thread starts.
    pub(crate) fn join_cluster(&self, shared: *const Shared) {
        self.shared.set(shared);
    }

    /// The pointer to the processor's cluster, made from the cluster's `Arc`.
    pub(crate) fn shared_ptr(&self) -> *const Shared {
        self.shared.get()
    }

    #[inline(always)]
    pub(crate) fn shared(&self) -> &Shared {
        // SAFETY: the cluster keeps its processors, so it lives as long as they do.
        unsafe { &*self.shared.get() }
    }

    /// Makes a fibre ready, on the thread of this processor: enqueues it here, or sends it to the
    /// processor that it stays on.
    #[inline(always)]
    pub(crate) fn make_ready(&self, fibre: Runnable) {
        let home = fibre.header().home.get();
        if home == NOWHERE {
            self.push(fibre.into_raw());
        } else if usize::from(home) == self.number {
            // SAFETY: only this thread uses `pinned`, and no other reference to it is alive here.
            unsafe { &mut *place_of(&self.pinned) }.push(fibre.into_raw());
        } else {
            self.send_home(fibre);
        }
    }

    /// Makes a fibre ready that stopped and need not wait after all, like
    /// [`make_ready`](Self::make_ready).
    #[inline(never)]
    pub(crate) fn make_ready_again(&self, fibre: Runnable) {
        self.make_ready(fibre);
    }

    /// Makes a fibre ready that stays on another processor.
    #[inline(never)]
    fn send_home(&self, fibre: Runnable) {
        let home = usize::from(fibre.header().home.get());
        self.shared().processors[home].receive(fibre);
    }

    /// Makes a fibre ready on this processor, from any thread.
    pub(crate) fn receive(&self, fibre: Runnable) {
        let place = if fibre.header().home.get() == NOWHERE {
            &self.arrivals
        } else {
            &self.home
        };
        // SAFETY: a `Runnable` is the only right to its fibre, so the fibre lies in no queue.
        unsafe { place.push(fibre.into_raw()) };
        self.wake();
    }

    /// Whether this processor is idle. Called from other threads.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.read() == 1
    }

    /// Wakes the processor's thread if it sleeps. The caller has published before what the thread
    /// is to find.
    pub(crate) fn wake(&self) {
        // Pairs with the heavy barrier of a processor that goes to sleep: if its sleeper is not
        // seen here, it sees what it is woken for.
        barrier::light();
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.wake_if_asleep();
        }
    }

    /// Enqueues a fibre that may run anywhere, after the others: in the lane, or in the ring if
    /// that is used or a processor is idle.
    #[inline(always)]
    pub(crate) fn push(&self, fibre: NonNull<Header>) {
        if !self.is_ring_used.get() {
            // SAFETY: `push` runs on this processor's thread, the lane's owner.
            if !self.shared().idle.is_any() && unsafe { self.lane.try_push(fibre) } {
                return;
            }
            self.is_ring_used.set(true);
        }
        self.push_to_ring(fibre);
    }

    /// Enqueues a fibre in the ring, where others can take it at less cost than from the lane.
    /// Wakes an idle processor for it if there is one.
    #[inline(always)]
    fn push_to_ring(&self, fibre: NonNull<Header>) {
        // SAFETY: this runs on this processor's thread, the ring's owner.
        if !unsafe { self.ring.try_push(fibre) } {
            self.push_where_there_is_room(fibre);
        } else if self.shared().idle.may_be_any() {
            self.offer();
        }
    }

    #[cold]
    #[inline(never)]
    fn push_where_there_is_room(&self, fibre: NonNull<Header>) {
        // SAFETY: this runs on this processor's thread, the ring's owner.
        unsafe { self.ring.make_room() };
        self.push_to_ring(fibre);
    }

    /// Wakes an idle processor if two fibres or more lie in the ring, so that it finds one to take.
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

    /// Whether the lane is in use. It is not for a while after others have taken it repeatedly: a
    /// processor that is stuck now and then keeps its fibres where others can take them at less
    /// cost.
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

    /// Takes the next fibre to run, alternately one that stays here and one that may run anywhere.
    /// Now and then looks at other processors first.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<NonNull<Header>> {
        let pops = self.pops.get();
        if pops.is_multiple_of(LOOK_EVERY) {
            self.look_around(pops);
        }
        // Checked each time: if slices are long, whoever put a fibre there waits for several of
        // them.
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

    /// Takes the next fibre of those that stay here.
    #[inline(always)]
    fn next_pinned(&self) -> Option<NonNull<Header>> {
        // SAFETY: only this thread uses `pinned`, and the reference ends here.
        unsafe { &mut *place_of(&self.pinned) }.pop(prefetch)
    }

    /// Takes the next fibre of those that may run anywhere.
    #[inline(always)]
    fn next_here(&self) -> Option<NonNull<Header>> {
        // SAFETY: this runs on this processor's thread, the lane's owner.
        let next = unsafe { self.lane.pop(|| self.lane_was_taken(), prefetch) };
        if next.is_none() && self.is_ring_used.get() {
            return self.claim();
        }
        next
    }

    /// Moves a batch from the ring to the lane, and takes its first fibre.
    #[inline(never)]
    fn claim(&self) -> Option<NonNull<Header>> {
        // SAFETY: this runs on this processor's thread, the lane's owner.
        let room = || unsafe { self.lane.room() };
        let most = if self.has_lane() { 1 + room() } else { 1 };
        // If there are other processors, half is left for them; the lane holds less than one batch
        // of theirs.
        let all = self.watch.is_alone();
        let share = |there: usize| if all { there } else { there.div_ceil(2) }.min(most);
        let mut first = ptr::null_mut();
        // SAFETY: this runs on this processor's thread, the lane's owner.
        let before = unsafe { self.lane.tail() };
        let n = self.ring.claim(share, |at, fibre| {
            if at == 0 {
                first = fibre;
            } else {
                // SAFETY: this is the lane's owner; `most` keeps the batch within one fibre and the
                // lane's room.
                unsafe { self.lane.stage(before + at as u64 - 1, fibre) };
            }
        });
        if n > 1 {
            // SAFETY: this is the lane's owner; `claim` took these fibres from the ring, and each
            // was staged.
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

    /// Publishes this thread's requests to other threads, when nothing is ready, and polls for a
    /// while whether their answers make fibres ready. Returns whether something is ready.
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

    /// Takes in the fibres that other threads made ready. Returns whether there were any.
    pub(crate) fn fetch(&self) -> bool {
        let mut some = false;
        self.home.take(|fibre| {
            some = true;
            // SAFETY: only this thread uses `pinned`, and no other reference to it is alive here.
            unsafe { &mut *place_of(&self.pinned) }.push(fibre);
        });
        some | self.take_arrivals(|fibre| self.push(fibre))
    }

    /// Takes the arrivals, which may run anywhere. Called by any processor. Returns whether there
    /// were any.
    pub(crate) fn take_arrivals(&self, mut give: impl FnMut(NonNull<Header>)) -> bool {
        let mut some = false;
        self.arrivals.take(|fibre| {
            some = true;
            give(fibre);
        });
        some
    }

    /// Whether fibres are ready here that others may take, as far as others see.
    pub(crate) fn has_something(&self) -> bool {
        self.lane.len() > 0 || self.ring.len() > 0 || !self.arrivals.is_empty()
    }

    /// Whether no fibre is ready here.
    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: only this thread uses `pinned`, and no other reference to it is alive here.
        let pinned = unsafe { &*place_of(&self.pinned) };
        self.ring.len() == 0
            && self.lane.len() == 0
            && pinned.is_empty()
            && self.home.is_empty()
            && self.arrivals.is_empty()
    }

    #[inline(always)]
    fn run_fibre(&self, fibre: NonNull<Header>) {
        // SAFETY: the fibre was ready, and the pop gave it to this thread alone.
        let header = unsafe { fibre.as_ref() };
        // Relaxed: shown with the fibre.
        let last = header.last.load(Ordering::Relaxed);
        if usize::from(last) != self.number {
            self.arrive(header, last);
        }
        // Relaxed: read by this thread, and by dumps, which only want to know.
        self.running.store(fibre.as_ptr(), Ordering::Relaxed);
        // SAFETY: the fibre was ready, and the pop took it out of its queue.
        let fibre = unsafe { Runnable::new(fibre) };
        let ended = if trace::is_on() {
            self.resume_traced(fibre)
        } else {
            // SAFETY: this is the processor's thread, on its own stack and not on a fibre's.
            unsafe { switch::resume(self, fibre) }
        };
        // Relaxed: read by this thread, and by dumps, which only want to know.
        self.running.store(ptr::null_mut(), Ordering::Relaxed);
        if let Err(fibre) = ended {
            self.end(fibre);
        }
    }

    #[cold]
    #[inline(never)]
    fn resume_traced(&self, fibre: Runnable) -> Result<(), Runnable> {
        let _span = trace::span(&RUN).with(fibre.header().id);
        // SAFETY: this is the processor's thread, on its own stack and not on a fibre's.
        unsafe { switch::resume(self, fibre) }
    }

    /// Notes that a fibre now runs here which has not run yet, or ran elsewhere last. From its
    /// first run on, a fibre that may not migrate stays here.
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
        // SAFETY: this is the reference that a fibre has while it lives, and it has just ended.
        drop(unsafe { HeaderRef::from_counted(fibre.into_raw()) });
        self.shared().ended();
    }

    /// Makes the calling thread's sleeper the processor's, by which others wake it.
    pub(crate) fn become_sleeper(&self) {
        let _ = self.sleeper.set(Sleeper::current());
    }

    /// Watches this thread, which is the processor's, as long as the guard lives: if a fibre
    /// overflows its stack here, it is named before the process ends.
    ///
    /// # Errors
    /// There is no memory for a signal stack.
    ///
    /// # Safety
    /// The processor outlives the guard.
    pub(crate) unsafe fn watch_overflows(&self) -> io::Result<OverflowGuard> {
        // SAFETY: the processor outlives the guard (the caller's duty), and `running` is null or
        // the fibre that runs here, whose header lives meanwhile.
        unsafe { OverflowGuard::install(&self.running) }
    }

    /// The body of the processor's thread, until the cluster closes.
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
        // SAFETY: this is the thread's own stack, or that of the caller who lends the thread; it is
        // no fibre's, so nothing suspends it.
        unsafe { wait::enter(&Seam(self), turns) };
        self.leave();
    }

    /// Ends this thread's time as a processor, because the cluster is over, and wakes the threads that
    /// sleep, which have not found that yet.
    pub(crate) fn leave(&self) {
        run_here(ptr::null());
        self.shared().wake_all();
    }
}
