//! From the beginning of a recording to its trace: who records, and what is kept.

use super::clock::{Moment, Scale, stamp};
use super::mark::{Args, Mark};
use super::ring::{INSTANT, Raw, Ring, Writer};
use super::{Event, Refused, ThreadTrace, Trace};
use crate::CachePadded;
use crate::facade::sync::Arc;
use crate::facade::{MODEL, thread_local};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of the recording that is under way; 0 where there is none. What code looks at
/// that may be traced, and nothing else: on a line of its own, that nobody writes meanwhile.
static CURRENT: CachePadded<AtomicU32> = CachePadded::new(AtomicU32::new(0));

/// Events refused because their thread came when there were no rings left.
static REFUSED_BEYOND: AtomicU64 = AtomicU64::new(0);
/// Events refused because their thread was too near its end, or inside the tracer.
static REFUSED_ENDING: AtomicU64 = AtomicU64::new(0);

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    recordings: 0,
    limits: Limits {
        events: 0,
        threads: 0,
    },
    came: 0,
    threads: Vec::new(),
});

/// The threads of the recording that is under way.
struct Registry {
    /// Recordings so far.
    recordings: u32,
    limits: Limits,
    /// Threads that have recorded something, or would have.
    came: u32,
    threads: Vec<Entry>,
}

/// A thread that has a ring; kept when the thread has ended.
struct Entry {
    number: u32,
    name: String,
    since: u64,
    ring: Arc<Ring>,
}

/// What a thread knows of itself.
struct Mine {
    recording: u32,
    number: u32,
    /// None where there were no rings left.
    writer: Option<Writer>,
}

thread_local! {
    static MINE: RefCell<Option<Mine>> = const { RefCell::new(None) };
}

/// How much a recording may keep.
///
/// ```
/// use corelay_sync::trace::Limits;
///
/// let limits = Limits { events: 1_000, ..Limits::default() };
/// assert_eq!(limits.threads, 256);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Events of a thread, at least 1: the last ones are kept. 40 bytes each, taken when the
    /// thread records its first event. Ordinarily 16,384.
    pub events: usize,
    /// Threads, those that have ended too. Of later ones nothing is kept. Ordinarily 256.
    pub threads: usize,
}

impl Limits {
    /// So many events of as many threads as have room in `bytes`; of one at least.
    ///
    /// ```
    /// use corelay_sync::trace::Limits;
    ///
    /// assert_eq!(Limits::in_memory(999, 1 << 20).threads, 26); // of 40,000 bytes each
    /// ```
    pub fn in_memory(events: usize, bytes: usize) -> Self {
        let ring = Ring::bytes(events);
        Self {
            events,
            threads: (bytes / ring).max(1),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            events: 1 << 14,
            threads: 256,
        }
    }
}

/// While it lives, the events of all threads of this process are recorded.
///
/// There is one at a time. Dropped without [`stop`](Self::stop), it leaves nothing.
#[derive(Debug)]
#[must_use = "nothing is recorded any more when it is dropped"]
pub struct Recording {
    number: u32,
    begin: Moment,
}

/// A recording is under way already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyRecording;

impl fmt::Display for AlreadyRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a recording is under way already, and there is one at a time")
    }
}

impl std::error::Error for AlreadyRecording {}

/// True while a recording is under way: for code that would have to do something to know what
/// to record. One load and no order.
///
/// In the models it is never.
#[inline(always)]
pub fn is_on() -> bool {
    number() != 0
}

/// The number of the recording that is under way, 0 where there is none: for code that keeps
/// something from one event to the next.
#[inline(always)]
pub fn number() -> u32 {
    if MODEL {
        return 0;
    }
    // Relaxed: a thread that learns of a recording goes to the registry, whose lock publishes
    // all the rest.
    CURRENT.load(Ordering::Relaxed)
}

impl Recording {
    /// Begins to record.
    ///
    /// # Errors
    /// Where a recording is under way.
    pub fn start(limits: Limits) -> Result<Self, AlreadyRecording> {
        let mut registry = registry();
        // Relaxed: changed under the lock only.
        if CURRENT.load(Ordering::Relaxed) != 0 {
            return Err(AlreadyRecording);
        }
        registry.recordings = registry.recordings.checked_add(1).unwrap_or(1);
        registry.limits = limits;
        registry.came = 0;
        registry.threads.clear();
        for refused in [&REFUSED_BEYOND, &REFUSED_ENDING] {
            // Relaxed: a count.
            refused.store(0, Ordering::Relaxed);
        }
        let begin = Moment::now();
        // Relaxed: see `number`.
        CURRENT.store(registry.recordings, Ordering::Relaxed);
        Ok(Self {
            number: registry.recordings,
            begin,
        })
    }

    /// Ends the recording; what was recorded. Threads need not have ended, and take no notice.
    pub fn stop(self) -> Trace {
        let entries = self.end();
        let now = Moment::now();
        let scale = Scale::between(self.begin, now);
        Trace {
            length_ns: scale.ns(stamp()),
            threads: entries.iter().map(|entry| entry.trace(scale)).collect(),
            // Relaxed, both: counts.
            refused: Refused {
                beyond_limit: REFUSED_BEYOND.load(Ordering::Relaxed),
                ending: REFUSED_ENDING.load(Ordering::Relaxed),
            },
        }
    }
}

impl Recording {
    /// The threads that have recorded something; none where it has been ended already.
    fn end(&self) -> Vec<Entry> {
        let mut registry = registry();
        // Relaxed: changed under the lock only.
        if CURRENT.load(Ordering::Relaxed) != self.number {
            return Vec::new();
        }
        // Relaxed: see `number`.
        CURRENT.store(0, Ordering::Relaxed);
        std::mem::take(&mut registry.threads)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end();
    }
}

fn registry() -> MutexGuard<'static, Registry> {
    // Nothing in it is ever half done.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Entry {
    fn trace(&self, scale: Scale) -> ThreadTrace {
        let found = self.ring.read();
        let mut events: Vec<Event> = found
            .events
            .into_iter()
            .map(|raw| {
                let begin_ns = scale.ns(raw.begin);
                let until = |end: u64| scale.ns(end).saturating_sub(begin_ns);
                Event {
                    mark: raw.mark,
                    begin_ns,
                    duration_ns: (raw.end != INSTANT).then(|| until(raw.end)),
                    args: raw.args,
                }
            })
            .collect();
        // A span is recorded when it ends, and goes before what lies in it.
        events.sort_by_key(|event| (event.begin_ns, Reverse(event.duration_ns)));
        ThreadTrace {
            number: self.number,
            name: self.name.clone(),
            since_ns: scale.ns(self.since),
            recorded: found.recorded,
            events,
        }
    }
}

/// Records an event of this thread.
#[inline(never)]
pub(super) fn record(mark: &'static Mark, begin: u64, end: u64, Args(args): Args) {
    let recording = number();
    if recording == 0 {
        // It has ended since the caller asked.
        return;
    }
    let event = Raw {
        mark,
        begin,
        end,
        args,
    };
    let recorded = with_mine(recording, |mine| match &mut mine.writer {
        Some(writer) => writer.record(event),
        None => refuse(&REFUSED_BEYOND),
    });
    if recorded.is_none() {
        refuse(&REFUSED_ENDING);
    }
}

#[cold]
fn refuse(why: &AtomicU64) {
    // Relaxed: a count.
    why.fetch_add(1, Ordering::Relaxed);
}

/// Gives this thread another name in the recording that is under way, if there is one. Without,
/// it has the name that it was spawned with.
///
/// ```
/// use corelay_sync::trace::{Limits, Recording, name_thread};
///
/// let recording = Recording::start(Limits::default())?;
/// name_thread("front end");
/// assert_eq!(recording.stop().threads[0].name, "front end");
/// # Ok::<(), corelay_sync::trace::AlreadyRecording>(())
/// ```
pub fn name_thread(name: &str) {
    let recording = number();
    if recording == 0 {
        return;
    }
    let Some(number) = with_mine(recording, |mine| mine.number) else {
        return;
    };
    let name = name.to_owned();
    let mut registry = registry();
    if let Some(entry) = registry.threads.iter_mut().find(|e| e.number == number) {
        entry.name = name;
    }
}

/// Runs `f` with what this thread keeps of `recording`; `None` where the thread keeps nothing
/// any more, or is here already: an allocator may record events too.
#[inline(always)]
fn with_mine<R>(recording: u32, f: impl FnOnce(&mut Mine) -> R) -> Option<R> {
    let found = MINE.try_with(|mine| {
        let mut mine = mine.try_borrow_mut().ok()?;
        match &mut *mine {
            Some(mine) if mine.recording == recording => Some(f(mine)),
            other => Some(f(other.insert(Mine::new(recording)))),
        }
    });
    found.ok().flatten()
}

impl Mine {
    /// Registers this thread.
    #[cold]
    #[inline(never)]
    fn new(recording: u32) -> Self {
        let current = std::thread::current();
        let mut registry = registry();
        let number = registry.came + 1;
        let full = registry.threads.len() >= registry.limits.threads;
        // Relaxed: changed under the lock only.
        if full || CURRENT.load(Ordering::Relaxed) != recording {
            registry.came = number;
            return Self {
                recording,
                number,
                writer: None,
            };
        }
        registry.came = number;
        let writer = Writer::new(registry.limits.events);
        let name = match current.name() {
            Some(name) => name.to_owned(),
            None => format!("thread {number}"),
        };
        registry.threads.push(Entry {
            number,
            name,
            since: stamp(),
            ring: Arc::clone(writer.ring()),
        });
        Self {
            recording,
            number,
            writer: Some(writer),
        }
    }
}
