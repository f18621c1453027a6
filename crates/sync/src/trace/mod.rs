//! What each thread did when: spans and instants, recorded for little and shown on a timeline.
//!
//! ```
//! use corelay_sync::trace::{self, Mark, Limits, Recording};
//!
//! static SORT: Mark = Mark::new("sort").with_arg("words");
//! static EMPTY: Mark = Mark::new("nothing to sort");
//!
//! fn sort(words: &mut [&str]) {
//!     if words.is_empty() {
//!         return trace::instant(&EMPTY, ());
//!     }
//!     let _span = trace::span(&SORT).with(words.len() as u64); // until the end of the block
//!     words.sort_unstable();
//! }
//!
//! let recording = Recording::start(Limits::default())?;
//! sort(&mut ["b", "a"]);
//! sort(&mut []);
//! let trace = recording.stop();
//! let events = &trace.threads[0].events;
//! assert_eq!(events[0].mark.name(), "sort");
//! assert_eq!(events[0].args[0], 2);
//! assert!(events[1].duration_ns.is_none());
//! let mut file = Vec::new();
//! trace.write_json(&mut file)?; // opens at ui.perfetto.dev
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! corelay's own crates mark trustees' passes, clients' batches and waits, sleeps and wake-ups.
//!
//! # What it costs
//! * **Without a recording** a mark is a load of a word that nobody writes and a branch that is
//!   never taken; there is no feature to switch on beforehand, and no other program to build.
//! * **While one is under way** an event costs its stamps ([`ticks`](crate::ticks()): a span has
//!   two, an instant one) and a few nanoseconds more. A stamp is a full fence, and the lines of
//!   the ring take room in the cache: what is traced runs slower, and what is short most so.
//!
//! # What it loses
//! It never waits and never grows. A thread keeps its last [`Limits::events`] events, and the
//! trace says how many older ones were overwritten ([`ThreadTrace::overwritten`]). Of threads
//! beyond [`Limits::threads`] nothing is kept, nor what a thread does when its thread-locals are
//! gone or an allocator inside the tracer: such events are counted as [`Refused`].
//!
//! A span is recorded when it ends. One that has not ended when the recording does is not in
//! the trace; one that began earlier begins with it.
//!
//! | file | idea |
//! |---|---|
//! | `mark` | what a kind of event is called |
//! | `ring` | one thread writes and never waits, anybody reads and gets no torn event |
//! | `recording` | from a recording's beginning to its trace |
//! | `thread` | a thread's way to its ring |
//! | `clock` | stamps, and their nanoseconds |
//! | `json` | a file for the Perfetto UI |

mod clock;
mod json;
mod mark;
mod recording;
#[doc(hidden)]
pub mod ring;
mod thread;

pub use mark::{Args, Mark};
pub use recording::{AlreadyRecording, Limits, Recording, is_on, number};
pub use thread::name_thread;

use clock::stamp;
use ring::{INSTANT, Raw};
use std::marker::PhantomData;

/// Records that something happened now, if a recording is under way.
///
/// ```
/// use corelay_sync::trace::{self, Mark};
///
/// static MISS: Mark = Mark::new("miss").with_args("key", "shard");
/// trace::instant(&MISS, (17, 3));
/// ```
#[inline(always)]
pub fn instant(mark: &'static Mark, args: impl Into<Args>) {
    let recording = number();
    if recording != 0 {
        now(recording, mark, args.into());
    }
}

#[cold]
fn now(recording: u32, mark: &'static Mark, Args(args): Args) {
    thread::record(recording, || Raw {
        mark,
        begin: stamp(),
        end: INSTANT,
        args,
    });
}

/// Begins a span, which lasts until the guard is dropped; nothing where no recording is under
/// way.
///
/// ```
/// use corelay_sync::trace::{self, Mark};
///
/// static LOOKUP: Mark = Mark::new("look-up").with_arg("found");
///
/// let mut span = trace::span(&LOOKUP);
/// let found = [1, 2, 3].iter().filter(|n| **n > 1).count();
/// span.set(found as u64); // known only now
/// ```
#[inline(always)]
pub fn span(mark: &'static Mark) -> Span {
    Span {
        begun: if is_on() { begin(mark) } else { None },
        args: Args::default(),
        _of_this_thread: PhantomData,
    }
}

#[cold]
fn begin(mark: &'static Mark) -> Option<(&'static Mark, u64)> {
    Some((mark, stamp()))
}

/// A span that has begun; from [`span`]. It ends on its thread, when it is dropped, in a panic
/// too.
#[derive(Debug)]
#[must_use = "the span ends when it is dropped"]
pub struct Span {
    begun: Option<(&'static Mark, u64)>,
    args: Args,
    _of_this_thread: PhantomData<*const ()>,
}

impl Span {
    /// The same span with numbers.
    #[inline(always)]
    pub fn with(mut self, args: impl Into<Args>) -> Self {
        self.args = args.into();
        self
    }

    /// Sets its numbers.
    #[inline(always)]
    pub fn set(&mut self, args: impl Into<Args>) {
        self.args = args.into();
    }

    /// Ends it without recording it: there was nothing.
    #[inline(always)]
    pub fn discard(mut self) {
        self.begun = None;
    }

    #[cold]
    fn end(&self, mark: &'static Mark, begin: u64) {
        let recording = number();
        if recording == 0 {
            // It has ended meanwhile.
            return;
        }
        thread::record(recording, || Raw {
            mark,
            begin,
            end: stamp(),
            args: self.args.0,
        });
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some((mark, begin)) = self.begun {
            self.end(mark, begin);
        }
    }
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Trace {
    /// From the recording's beginning to its end, in nanoseconds.
    pub length_ns: u64,
    /// The threads that have recorded something, in the order in which they came.
    pub threads: Vec<ThreadTrace>,
    /// Events that were not recorded.
    pub refused: Refused,
}

/// What one thread has recorded.
#[derive(Clone, Debug)]
pub struct ThreadTrace {
    /// Counted from 1 in the order in which they came, those without a ring too.
    pub number: u32,
    /// Its name: see [`name_thread`].
    pub name: String,
    /// When it came, in nanoseconds since the recording's beginning.
    pub since_ns: u64,
    /// Events that it has recorded.
    pub recorded: u64,
    /// The last of them, by their beginnings; a span goes before what lies in it.
    pub events: Vec<Event>,
}

impl ThreadTrace {
    /// Events that later ones have taken the place of.
    pub fn overwritten(&self) -> u64 {
        self.recorded - self.events.len() as u64
    }
}

/// A span or an instant.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// What it is.
    pub mark: &'static Mark,
    /// When it began, in nanoseconds since the recording's beginning.
    pub begin_ns: u64,
    /// How long it lasted, in nanoseconds; `None` for an instant.
    pub duration_ns: Option<u64>,
    /// Its numbers, as many as its mark names.
    pub args: [u64; 2],
}

/// Events that were not recorded at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Of threads that came when as many had come as [`Limits::threads`] allows.
    pub beyond_limit: u64,
    /// Of threads so near their end that they keep nothing any more, or inside the tracer.
    pub ending: u64,
}

impl Refused {
    /// All of them.
    pub fn all(self) -> u64 {
        self.beyond_limit + self.ending
    }
}
