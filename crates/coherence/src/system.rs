//! The machine's threads, and the schedule that decides which one runs next.
//!
//! A thread is a coroutine with a clock of its own, in steps. Actions that take a step advance the
//! clock. Before a thread touches memory that others may touch too, every thread goes on whose
//! clock is behind, in the order of the [agenda](crate::agenda). That is the whole schedule:
//! nothing in it depends on time, on addresses or on the computer.

use crate::agenda::{Agenda, Why};
use crate::caches::{Caches, Counts, LINE};
use crate::local::Locals;
use crate::machine::Machine;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// Bytes of a thread's stack. Memory is allocated as it is used.
const STACK: usize = 1 << 20;

/// The kinds of memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The thread reads, and needs the value to go on.
    Load,
    /// The thread writes, and goes on.
    Store,
    /// The thread reads and writes at once, even if it then writes nothing: a processor takes the
    /// line for writing before it compares.
    Exchange,
    /// The thread is going to read.
    PrefetchRead,
    /// The thread is going to write.
    PrefetchWrite,
}

impl Access {
    fn writes(self) -> bool {
        !matches!(self, Self::Load | Self::PrefetchRead)
    }

    fn waits(self) -> bool {
        matches!(self, Self::Load | Self::Exchange)
    }
}

type Fibre = Coroutine<(), (), ()>;

struct Processor {
    place: usize,
    /// The thread's clock, in steps.
    clock: u64,
    /// Whether the thread has paused and done nothing since.
    has_paused: bool,
    locals: Rc<Locals>,
    /// The handle by which the thread suspends itself. The thread sets it first of all.
    yielder: *const Yielder<(), ()>,
    /// `None` while the thread runs, and after it has ended.
    fibre: Option<Fibre>,
}

struct System {
    machine: Machine,
    /// The places of threads that are still to be spawned.
    places: std::vec::IntoIter<usize>,
    caches: Caches,
    /// The counts at the last restart.
    before: Vec<Counts>,
    /// For each line, the step from which on it can move again.
    free_at: FxHashMap<usize, u64>,
    processors: Vec<Processor>,
    running: usize,
    ready: Agenda,
    asleep: BTreeMap<usize, VecDeque<usize>>,
    /// The first panic of a thread that nobody has joined.
    unheard: Option<Payload>,
}

thread_local! {
    static SYSTEM: RefCell<Option<System>> = const { RefCell::new(None) };
}

/// Runs `f` on the system; `None` outside of one.
fn with<R>(f: impl FnOnce(&mut System) -> R) -> Option<R> {
    SYSTEM
        .try_with(|system| system.borrow_mut().as_mut().map(f))
        .ok()
        .flatten()
}

/// Runs `main` as the first thread of a machine, and all threads that it spawns, to their ends.
/// The first thread that `main` spawns takes the first of `places`, and so on; `main` itself
/// runs at the first one too.
/// # Panics
/// With the panic of a thread that nobody joins; if every thread sleeps; inside another machine; if
/// a place is not of this machine.
///
/// # Safety
/// All threads of the machine are coroutines of the calling thread, and share the thread-locals of
/// `std`. These rely on a thread to end a call before it begins another. So code that the machine
/// runs calls no function of this crate
///
/// * inside the initialiser or the destructor of such a thread-local;
/// * inside a call during which such a thread-local points to something.
///
/// [`LocalKey`](crate::LocalKey) is each thread's own, and demands nothing.
#[allow(unsafe_code)]
pub unsafe fn run<R: 'static>(
    machine: Machine,
    places: Vec<usize>,
    main: impl FnOnce() -> R + 'static,
) -> R {
    assert!(
        places.iter().all(|&place| place < machine.places()),
        "a machine of {} hardware threads has no place for each of {places:?}",
        machine.places()
    );
    let first = *places.first().expect("a thread needs a place");
    let caches = Caches::new(machine);
    let system = System {
        machine,
        places: places.into_iter(),
        before: caches.counts().to_vec(),
        caches,
        free_at: FxHashMap::default(),
        processors: Vec::new(),
        running: 0,
        ready: Agenda::default(),
        asleep: BTreeMap::new(),
        unheard: None,
    };
    SYSTEM.with(|current| {
        let mut current = current.borrow_mut();
        assert!(current.is_none(), "a machine runs on this thread already");
        *current = Some(system);
    });
    let main = start(first, main);
    let outcome = catch_unwind(AssertUnwindSafe(schedule));
    let system = SYSTEM.with(|current| current.borrow_mut().take());
    if let Err(payload) = outcome {
        // Dropping it would unwind the suspended threads, and run destructors without a machine.
        std::mem::forget(system);
        resume_unwind(payload);
    }
    let result = main
        .take()
        .expect("all threads have ended")
        .unwrap_or_else(|payload| resume_unwind(payload));
    if let Some(payload) = system.and_then(|system| system.unheard) {
        resume_unwind(payload);
    }
    result
}

/// Runs ready threads until none is left.
fn schedule() {
    while let Some(next) = with(|system| system.ready.next()).flatten() {
        let mut fibre = with(|system| {
            system.running = next;
            system.processors[next].fibre.take()
        })
        .flatten()
        .expect("who is ready is suspended");
        if let CoroutineResult::Yield(()) = fibre.resume(()) {
            with(|system| system.processors[next].fibre = Some(fibre));
        }
    }
    let asleep = with(|system| system.asleep.values().map(VecDeque::len).sum::<usize>());
    assert_eq!(
        asleep,
        Some(0),
        "threads sleep, and nobody is left to wake them"
    );
}

impl System {
    fn own(&mut self) -> &mut Processor {
        &mut self.processors[self.running]
    }

    /// The step at whose end the line will have moved, if it is requested now.
    fn move_by(&mut self, line: usize, clock: u64) -> u64 {
        let free_at = self.free_at.entry(line).or_default();
        *free_at = clock.max(*free_at) + 1;
        *free_at
    }
}

/// Lets the threads run whose clocks are behind this thread's.
fn hand_over(why: Why) {
    let others_first = with(|system| {
        let (running, clock) = (system.running, system.own().clock);
        let is_first = system.ready.is_first(clock, why);
        if !is_first {
            system.ready.enter(clock, why, running);
        }
        !is_first
    });
    if others_first == Some(true) {
        suspend();
    }
}

/// Lets the threads run that this thread has passed in its pauses. Call it before any action that
/// concerns other threads.
fn settle() {
    if with(|system| std::mem::take(&mut system.own().has_paused)) == Some(true) {
        hand_over(Why::Other);
    }
}

#[allow(unsafe_code)]
fn suspend() {
    let yielder = with(|system| system.own().yielder).expect("a thread runs");
    // SAFETY: the running thread has set it, from its own coroutine, and it lives as long as that
    // runs.
    unsafe { &*yielder }.suspend(());
}

/// Reports that the running thread accesses `bytes` bytes at `address`. Outside of a machine it
/// does nothing.
pub fn access(address: usize, bytes: usize, access: Access) {
    if bytes == 0 {
        return;
    }
    for line in address / LINE..=(address + bytes - 1) / LINE {
        let mut next = with(|system| system.begin(line, access));
        if next == Some(Next::Settle) {
            settle();
            next = with(|system| system.begin(line, access));
        }
        if next == Some(Next::Wait) {
            hand_over(Why::Arrival);
            with(|system| system.finish(line, access));
        }
    }
}

/// The next action of a thread for its access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    /// The thread begins again when the others have caught up.
    Settle,
    Wait,
}

impl System {
    fn begin(&mut self, line: usize, access: Access) -> Next {
        let Processor {
            place,
            clock,
            has_paused,
            ..
        } = *self.own();
        if has_paused {
            return Next::Settle;
        }
        if self.caches.has(place, line, access.writes()) {
            if access.writes() {
                // Exclusive becomes Modified.
                self.caches.write(place, line);
            }
            return Next::GoOn;
        }
        let arrival = self.move_by(line, clock);
        if access.waits() {
            self.own().clock = arrival;
            return Next::Wait;
        }
        self.own().clock += 1;
        self.finish(line, access);
        Next::GoOn
    }

    fn finish(&mut self, line: usize, access: Access) {
        let place = self.own().place;
        if access.writes() {
            self.caches.write(place, line);
        } else {
            self.caches.read(place, line);
        }
    }
}

/// Waits a step: this thread's next report comes after the reports that others make meanwhile.
pub fn pause() {
    with(|system| {
        let own = system.own();
        own.clock += 1;
        own.has_paused = true;
    });
}

/// Waits until another thread calls [`wake_one`] or [`wake_all`] with the same `key`.
///
/// # Panics
/// Outside of a machine.
pub fn sleep(key: usize) {
    // No other thread runs before this one sleeps, so the reason for its sleep still holds.
    with(|system| {
        let running = system.running;
        system.caches.count_sleep(system.processors[running].place);
        system.asleep.entry(key).or_default().push_back(running);
    })
    .expect("only a machine's thread can sleep");
    suspend();
}

/// Wakes the thread that sleeps longest with this `key`, a step later.
pub fn wake_one(key: usize) {
    settle();
    with(|system| {
        let woken = system.asleep.get_mut(&key).and_then(VecDeque::pop_front);
        woken.into_iter().for_each(|thread| system.wake(thread));
    });
}

/// Wakes all threads that sleep with this `key`, a step later.
pub fn wake_all(key: usize) {
    settle();
    with(|system| {
        let woken = system.asleep.remove(&key).unwrap_or_default();
        woken.into_iter().for_each(|thread| system.wake(thread));
    });
}

impl System {
    fn wake(&mut self, thread: usize) {
        let now = self.own().clock + 1;
        let woken = &mut self.processors[thread];
        woken.clock = woken.clock.max(now);
        let clock = woken.clock;
        self.ready.enter(clock, Why::Other, thread);
    }
}

type Payload = Box<dyn Any + Send>;

/// The shared result of a thread. A handle to it may be kept or dropped on any thread of the
/// process, although only the machine's threads can join.
type SharedResult<T> = Arc<ResultCell<T>>;

struct ResultCell<T>(Mutex<Option<Result<T, Payload>>>);

impl<T> ResultCell<T> {
    fn leave(&self, ended: Result<T, Payload>) {
        *self.0.lock().expect("never poisoned") = Some(ended);
    }

    fn take(&self) -> Option<Result<T, Payload>> {
        self.0.lock().expect("never poisoned").take()
    }
}

impl<T> Drop for ResultCell<T> {
    /// Passes a panic that nobody has joined on to the machine.
    fn drop(&mut self) {
        if let Some(Err(payload)) = self.take() {
            with(|system| _ = system.unheard.get_or_insert(payload));
        }
    }
}

/// A thread of the machine, like `std::thread::JoinHandle`.
pub struct Thread<T> {
    outcome: SharedResult<T>,
}

impl<T> Thread<T> {
    /// Waits for the thread's end and returns its result.
    ///
    /// # Errors
    /// The thread's panic.
    pub fn join(self) -> Result<T, Payload> {
        loop {
            if let Some(outcome) = self.outcome.take() {
                return outcome;
            }
            sleep(Arc::as_ptr(&self.outcome).addr());
        }
    }
}

impl<T> std::fmt::Debug for Thread<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Thread").finish_non_exhaustive()
    }
}

/// Starts a thread at the next place.
///
/// # Panics
/// Outside of a machine; if there is no place left.
pub fn spawn<T: 'static>(f: impl FnOnce() -> T + 'static) -> Thread<T> {
    let place = with(|system| system.places.next()).expect("only a machine's thread spawns");
    let outcome = start(place.expect("there is a place for each thread"), f);
    Thread { outcome }
}

fn start<T: 'static>(place: usize, f: impl FnOnce() -> T + 'static) -> SharedResult<T> {
    let outcome = Arc::new(ResultCell(Mutex::new(None)));
    let kept = Arc::clone(&outcome);
    let stack = DefaultStack::new(STACK).expect("there is memory for another stack");
    let fibre = Fibre::with_stack(stack, move |yielder, ()| {
        let locals = with(|system| {
            system.own().yielder = yielder;
            Rc::clone(&system.own().locals)
        });
        let ended = catch_unwind(AssertUnwindSafe(f));
        locals.expect("a thread runs").drop_all();
        kept.leave(ended);
        wake_all(Arc::as_ptr(&kept).addr());
    });
    with(|system| {
        let thread = system.processors.len();
        let clock = system.processors.get(system.running).map_or(0, |p| p.clock);
        system.processors.push(Processor {
            place,
            clock,
            has_paused: false,
            locals: Rc::default(),
            yielder: std::ptr::null(),
            fibre: Some(fibre),
        });
        system.ready.enter(clock, Why::Other, thread);
    });
    outcome
}

/// Sets all counts to 0.
pub fn restart_counts() {
    with(|system| system.before = system.caches.counts().to_vec());
}

/// The counts of each place since the [last restart](restart_counts). Empty outside of a machine.
pub fn counts() -> Vec<Counts> {
    let counts = with(|system| {
        let now = system.caches.counts().iter();
        let since = now.zip(&system.before).map(|(now, before)| *now - *before);
        debug_assert_eq!(system.machine.places(), system.before.len());
        since.collect()
    });
    counts.unwrap_or_default()
}

pub(crate) fn locals() -> Option<Rc<Locals>> {
    with(|system| Rc::clone(&system.own().locals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[allow(unsafe_code)]
    fn run<R: 'static>(
        machine: Machine,
        places: Vec<usize>,
        main: impl FnOnce() -> R + 'static,
    ) -> R {
        // SAFETY: the tests use no thread-locals.
        unsafe { super::run(machine, places, main) }
    }

    fn two() -> Machine {
        Machine::new(1, 2, 1).unwrap()
    }

    #[test]
    fn a_line_moves_once_a_step_in_the_order_of_requests() {
        let order = run(Machine::new(1, 4, 1).unwrap(), (0..4).collect(), || {
            let order = Rc::new(RefCell::new(Vec::new()));
            let reader = |number: usize| {
                let order = Rc::clone(&order);
                spawn(move || {
                    // The later threads come, the lower their number.
                    (number..4).for_each(|_| pause());
                    access(0, 8, Access::Load);
                    order.borrow_mut().push(number);
                })
            };
            let readers: Vec<_> = (0..4).map(reader).collect();
            readers
                .into_iter()
                .for_each(|reader| reader.join().unwrap());
            Rc::into_inner(order).unwrap().into_inner()
        });
        assert_eq!(order, [3, 2, 1, 0]);
    }

    #[test]
    fn sleepers_are_woken_in_order() {
        let order = run(two(), vec![0, 1, 0], || {
            let order = Rc::new(RefCell::new(Vec::new()));
            let sleeper = |number| {
                let order = Rc::clone(&order);
                spawn(move || {
                    sleep(7);
                    order.borrow_mut().push(number);
                })
            };
            let sleepers = [sleeper(1), sleeper(2)];
            for awake in 0..2 {
                // The others run when something is reported to the machine.
                (0..4).for_each(|_| pause());
                access(0, 1, Access::Load);
                assert_eq!(order.borrow().len(), awake);
                wake_one(7);
            }
            for sleeper in sleepers {
                sleeper.join().unwrap();
            }
            Rc::into_inner(order).unwrap().into_inner()
        });
        assert_eq!(order, [1, 2]);
    }

    #[test]
    fn a_thread_that_ends_while_its_joiner_falls_asleep_is_joined() {
        let joined = run(two(), vec![0], || {
            let thread = spawn(|| access(0, 8, Access::Load));
            (0..10).for_each(|_| pause());
            thread.join().is_ok()
        });
        assert!(joined);
    }

    #[test]
    fn a_panic_reaches_the_joiner() {
        let caught = run(two(), vec![0], || spawn(|| panic!("as expected")).join());
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"as expected"));
    }

    /// The place of a handle does not matter: it is no part of the machine.
    #[test]
    fn a_handle_may_be_kept_elsewhere() {
        fn is_sent<T: Send + Sync>(handle: T) -> T {
            handle
        }
        let thread = run(two(), vec![0], || is_sent(spawn(|| 7)));
        let dropped = std::thread::spawn(move || drop(thread));
        dropped.join().unwrap();
    }

    #[test]
    #[should_panic(expected = "nobody has joined it")]
    fn a_panic_that_nobody_joins_is_not_lost() {
        run(two(), vec![0], || {
            drop(spawn(|| panic!("nobody has joined it")));
        });
    }

    #[test]
    #[should_panic(expected = "nobody has joined it")]
    fn a_panic_whose_handle_is_dropped_later_is_not_lost() {
        run(two(), vec![0], || {
            let thread = spawn(|| panic!("nobody has joined it"));
            (0..10).for_each(|_| pause());
            access(0, 8, Access::Load);
            drop(thread);
        });
    }

    #[test]
    #[should_panic(expected = "nobody is left to wake them")]
    fn a_machine_that_sleeps_for_ever_says_so() {
        run(two(), vec![0], || sleep(1));
    }

    #[test]
    fn thread_locals_end_with_their_thread_the_last_first() {
        use crate::LocalKey;
        thread_local! {
            static ENDED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        struct Ends(u8);
        impl Drop for Ends {
            fn drop(&mut self) {
                ENDED.with_borrow_mut(|ended| ended.push(self.0));
                assert_eq!(PLAIN.try_with(Cell::get), Ok(5));
                // The last is gone when the first goes.
                assert!(LAST.try_with(|_| ()).is_err());
            }
        }
        static PLAIN: LocalKey<Cell<u8>> = LocalKey::new(|| Cell::new(5));
        static FIRST: LocalKey<Ends> = LocalKey::new(|| Ends(1));
        static LAST: LocalKey<Ends> = LocalKey::new(|| Ends(2));
        run(two(), vec![0], || {
            let thread = spawn(|| {
                FIRST.with(|_| ());
                LAST.with(|_| ());
            });
            thread.join().unwrap();
            ENDED.with_borrow(|ended| assert_eq!(ended[..], [2, 1]));
        });
    }
}
