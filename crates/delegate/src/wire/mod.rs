//! The channel between one client thread and one trustee: replaceable as a whole.
//!
//! ```text
//!            client writes                         trustee writes
//!  mail   +------------------------------------+
//!  line   | word: (ring cursor, call number)   |   done: the mail it answers
//!         | mail call: vtable, object, 4 words |   4 words of result
//!         +------------------------------------+
//!  head   | position of every request, at once |
//!         +------------------------------------+
//!  tail                                            | position executed, fault count |
//!
//!  request ring   [label][captures …][label][captures …][label] …   client → trustee
//!  answer ring    [result][result] …                                 trustee → client
//!  callbacks      [reap][position][callback …] …                     client's own
//! ```
//!
//! **Streams.** A request is written into the request ring and the *head* is advanced at once; the
//! *mail* word, which the trustee polls, is advanced once in a third of the window, at least every
//! 128 requests, and at once when the client is slow. A trustee that has been idle for a while
//! looks at the heads too (the *live tail*), so that no accepted request waits for its client. The
//! trustee writes results into the answer ring and then advances *tail* once per batch.
//!
//! **A mail call** travels in the mail line itself and is answered there: one line goes to and fro.
//! Its mail word publishes everything that the client has in the ring, and the call runs after
//! that.
//!
//! `docs/design/0001-channel.md` has the states, the proof sketch and what was tried.

pub(crate) mod inbox;
pub(crate) mod ring;
pub(crate) mod waiters;
pub(crate) mod word;

use self::inbox::{News, Node};
use self::ring::{Rings, View};
use self::waiters::Waiters;
use crate::error::Faults;
use corelay_sync::facade::Shadow;
use corelay_sync::facade::atomic::{AtomicU32, AtomicU64, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::sync::Mutex;
use corelay_sync::wait::Sleeper;
use corelay_sync::{CachePadded, prefetch_write};
use std::any::Any;

/// The number of a launched closure, unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaunchId(pub(crate) u64);

/// The words of captures, and of the result, that a mail call has room for in the mail line.
pub(crate) const MAIL_WORDS: usize = 4;

/// The line that a mail call travels in. The trustee polls its first word.
#[repr(C, align(64))]
pub(crate) struct MailLine {
    /// [`Mail`](word::Mail), written by the client.
    pub(crate) word: AtomicU64,
    /// The mail with which the last executed mail call came, written by the trustee. It tells the
    /// caller that the call is answered, and whether it faulted.
    pub(crate) done: AtomicU64,
    /// Vtable, object, [`MAIL_WORDS`] of captures; then results or a fault.
    pub(crate) call: UnsafeCell<[u64; 2 + MAIL_WORDS]>,
    /// Stands for `call` in the models.
    pub(crate) shadow: Shadow,
}

// The checkers' atomics and cells are larger. Those of builds that count lines are not.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
const _: () = assert!(size_of::<MailLine>() == 64);

/// The words that the trustee writes once per batch.
pub(crate) struct TailLine {
    /// The tail: the [`Position`](word::Position) up to which requests have been executed.
    pub(crate) position: AtomicU64,
    /// The number of requests that faulted. Advanced before `position`.
    pub(crate) faults: AtomicU32,
}

/// The memory that a client and a trustee share.
pub(crate) struct Channel {
    pub(crate) mail: CachePadded<MailLine>,
    /// The head: the [`Position`](word::Position) of the next request, written by the client.
    pub(crate) head: CachePadded<AtomicU64>,
    pub(crate) tail: CachePadded<TailLine>,
    /// The sleeper of the client's thread.
    pub(crate) sleeper: std::sync::Arc<Sleeper>,
    /// The tasks that wait until the client's window has room.
    pub(crate) waiters: Waiters,
    /// The failures of requests that nobody waits for, until the client's next barrier takes them.
    pub(crate) faults: Mutex<Faults>,
    /// The rings that the channel begins with. A client that has never made a request may have
    /// freed them before its trustee reads this, so the pointer is followed only to serve a
    /// request.
    pub(crate) first: *const Rings,
    /// The request ring of `first`.
    pub(crate) first_requests: View,
    /// The answer ring of `first`.
    pub(crate) first_answers: View,
    /// The node that announces the channel to its trustee.
    pub(crate) register: Node,
    /// The node that announces to the trustee that the client goes.
    pub(crate) detach: Node,
    /// The number of the client's launches that have ended.
    pub(crate) launches: AtomicU64,
    /// The number of the launch, if the client is a launched closure.
    pub(crate) launch: Option<LaunchId>,
}

// SAFETY: only the trustee follows `first`, and only after registration. The protocol in the
// module's page says who may touch which word, and when.
unsafe impl Send for Channel {}
// SAFETY: as for `Send`; each shared word is an atomic or has one owner at a time by the protocol.
unsafe impl Sync for Channel {}

impl Channel {
    /// Makes a channel whose rings begin at `origin`. Tests begin shortly before the wrap.
    pub(crate) fn new(
        first: *const Rings,
        [first_requests, first_answers]: [View; 2],
        origin: word::Position,
        window: u32,
        launch: Option<LaunchId>,
    ) -> Self {
        let mail = word::Mail::new(origin.cursor(), 0);
        Self {
            mail: CachePadded::new(MailLine {
                word: AtomicU64::new(mail.0),
                done: AtomicU64::new(mail.0),
                call: UnsafeCell::new([0; 2 + MAIL_WORDS]),
                shadow: Shadow::new(1),
            }),
            head: CachePadded::new(AtomicU64::new(origin.0)),
            tail: CachePadded::new(TailLine {
                position: AtomicU64::new(origin.0),
                faults: AtomicU32::new(0),
            }),
            sleeper: Sleeper::current(),
            waiters: Waiters::new(window),
            faults: Mutex::new(Faults::default()),
            first,
            first_requests,
            first_answers,
            register: Node::new(News::Register),
            detach: Node::new(News::Detach),
            launches: AtomicU64::new(0),
            launch,
        }
    }

    /// The mail of the last mail call that the trustee has executed. If it
    /// [answers](word::Mail::answers) the mail that the client has sent, the result or the fault
    /// lies in the line.
    #[inline(always)]
    pub(crate) fn done(&self) -> word::Mail {
        // Acquire: pairs with the Release of `Lane::run_call`; publishes the result.
        word::Mail(self.mail.done.load(Ordering::Acquire))
    }

    /// Prefetches the mail line for writing, since the thread that looks at it is going to write
    /// it.
    #[inline(always)]
    pub(crate) fn prefetch_mail(&self) {
        prefetch_write(&raw const self.mail.word);
    }

    /// The number of requests that are accepted and not executed. It is not exact, since both sides go
    /// on meanwhile. Waiting tasks are let in by it: what it counts too many is still to be executed, or
    /// was executed by a trustee that has yet to look for tasks itself (see
    /// [`waiters`](super::waiters)).
    pub(crate) fn queued(&self) -> u32 {
        // Relaxed, all of them: nothing is handed over. Values read at different moments may not
        // fit together, and then count as nothing.
        let tail = word::Position(self.tail.position.load(Ordering::Relaxed));
        let head = word::Position(self.head.load(Ordering::Relaxed));
        let in_ring = head.count().wrapping_sub(tail.count()).cast_signed();
        let mail = word::Mail(self.mail.word.load(Ordering::Relaxed));
        let done = word::Mail(self.mail.done.load(Ordering::Relaxed));
        in_ring.max(0).cast_unsigned() + u32::from(mail.call_differs(done))
    }

    /// Keeps the payload of a failed request without a waiting caller, if it `is_first` or the
    /// earliest so far. Returns the payload that is not kept, for the caller to discard.
    #[must_use]
    pub(crate) fn keep_fault(
        &self,
        payload: Box<dyn Any + Send>,
        is_first: bool,
    ) -> Option<Box<dyn Any + Send>> {
        let mut faults = self.faults.lock().expect("never poisoned");
        faults.add(payload, is_first)
    }

    /// Counts a launch of the client that has ended.
    pub(crate) fn end_launch(&self) {
        // Release: pairs with the Acquire of `Client::has_launches`; publishes what the closure
        // did. An addition, since both coroutines of the trustee's thread and a client that takes
        // its request back make it.
        self.launches.fetch_add(1, Ordering::Release);
        self.sleeper.wake_if_asleep();
    }
}
