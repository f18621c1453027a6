//! Threads that begin at the same moment.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time for which a thread spins for the others before it yields its CPU. It is long, because
/// races need the threads on their CPUs at the same time: threads that sleep are woken so far
/// apart that a short round is over before the second begins. On a busy machine the rounds then
/// happen while all of the threads have a CPU.
const SPIN: Duration = Duration::from_micros(200);
/// The same for threads that have not a CPU each: others need this one.
const SHORT_SPIN: Duration = Duration::from_micros(2);

/// A barrier that the threads of a crew pass again and again.
pub struct Meeting {
    threads: usize,
    arrived: AtomicUsize,
    spin: Duration,
}

impl Meeting {
    fn new(threads: usize) -> Self {
        // On one CPU, spinning would only keep the others from arriving.
        let spin = match threads <= cpus() {
            _ if cpus() == 1 => Duration::ZERO,
            true => SPIN,
            false => SHORT_SPIN,
        };
        let arrived = AtomicUsize::new(0);
        Self {
            threads,
            arrived,
            spin,
        }
    }

    /// Waits until every thread has called this as often as the caller.
    pub fn wait(&self) {
        let before = self.arrived.fetch_add(1, Ordering::SeqCst);
        let all = (before / self.threads + 1) * self.threads;
        self.until(|arrived| arrived >= all);
    }

    /// Waits for the turn of thread `number`, does `work`, and passes the turn on.
    pub fn turn<R>(&self, number: usize, work: impl FnOnce() -> R) -> R {
        self.until(|arrived| arrived == number);
        let result = work();
        self.arrived.fetch_add(1, Ordering::SeqCst);
        result
    }

    fn until(&self, is_so: impl Fn(usize) -> bool) {
        let mut since = Instant::now();
        while !is_so(self.arrived.load(Ordering::SeqCst)) {
            std::hint::spin_loop();
            if since.elapsed() >= self.spin {
                thread::yield_now();
                since = Instant::now();
            }
        }
    }
}

/// Runs `work` on so many threads and returns their results.
pub fn together<R: Send>(threads: usize, work: impl Fn(usize, &Meeting) -> R + Sync) -> Vec<R> {
    let meeting = Meeting::new(threads);
    thread::scope(|scope| {
        let one = |thread| {
            let (meeting, work) = (&meeting, &work);
            scope.spawn(move || work(thread, meeting))
        };
        let all: Vec<_> = (0..threads).map(one).collect();
        // A panic ended the program before this line.
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of threads that run at the same time: one for each CPU, two to four.
pub fn few() -> usize {
    cpus().clamp(2, 4)
}

/// Returns more threads than can run at once, so that some are stopped in the middle of a call.
pub fn many() -> usize {
    2 * cpus().clamp(2, 8)
}

/// Runs `work` on so many threads, which now and then yield or sleep between a table's lock
/// operations, and returns their results.
pub fn noisy<R: Send>(threads: usize, work: impl Fn(usize, &Meeting) -> R + Sync) -> Vec<R> {
    static SEED: AtomicUsize = AtomicUsize::new(0);
    let seed = SEED.fetch_add(threads, Ordering::SeqCst);
    together(threads, |thread, meeting| {
        turns::with_noise((seed + thread) as u64, || work(thread, meeting))
    })
}
