//! From the beginning of a recording to its trace: who records, and what is kept.

use super::clock::{Moment, Scale, stamp};
use super::ring::{INSTANT, Ring, Writer};
use super::{Event, ThreadTrace, Trace, thread};
use crate::CachePadded;
use crate::facade::MODEL;
use crate::facade::sync::Arc;
use std::cmp::Reverse;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of the recording that is under way; 0 where there is none. What code looks at
/// that may be traced, and nothing else: on a line of its own, that nobody writes meanwhile.
static CURRENT: CachePadded<AtomicU32> = CachePadded::new(AtomicU32::new(0));

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
    /// Events of a thread: the last ones are kept, so many or, up to one less than a power of
    /// two, more. 40 bytes each, taken when the thread records its first event. Ordinarily
    /// 16,383.
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
    /// assert_eq!(Limits::in_memory(1_000, 1 << 20).threads, 25); // of 1,024 × 40 bytes each
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
            events: (1 << 14) - 1,
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
        thread::forget_refused();
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
            refused: thread::refused(),
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

/// A thread that has come to a recording: its number there, and its ring.
pub(super) struct Newcomer {
    pub(super) number: u32,
    /// None where there were no rings left.
    pub(super) writer: Option<Writer>,
}

/// Takes the calling thread into `recording`; `None` where that has ended.
pub(super) fn register(recording: u32) -> Option<Newcomer> {
    let current = std::thread::current();
    let mut registry = registry();
    // Relaxed: changed under the lock only.
    if CURRENT.load(Ordering::Relaxed) != recording {
        return None;
    }
    registry.came += 1;
    let number = registry.came;
    if registry.threads.len() >= registry.limits.threads {
        return Some(Newcomer {
            number,
            writer: None,
        });
    }
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
    Some(Newcomer {
        number,
        writer: Some(writer),
    })
}

/// Gives thread `number` of `recording` another name, where it has a ring.
pub(super) fn rename(recording: u32, number: u32, name: String) {
    let mut registry = registry();
    // Relaxed: changed under the lock only.
    if CURRENT.load(Ordering::Relaxed) != recording {
        return;
    }
    if let Some(entry) = registry.threads.iter_mut().find(|e| e.number == number) {
        entry.name = name;
    }
}
