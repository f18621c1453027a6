//! ffwd's shared response lines in place of answers in the mail line: an experiment, see
//! `Builder::response_groups`.
//!
//! ```text
//!                 byte 0        8                                      128
//! response lines       | words  | 15 answers                           |   the trustee's
//!                      | of bits|  (two lines for a group of clients)  |
//!
//! bits     63      48 47      32 31      16 15       0
//!         | –        | faults   | in line  | toggles  |   of 15 clients each
//! ```
//! A lone call still travels in its client's mail line. Its answer, if it takes a word at most,
//! goes into a buffer of the trustee's own, and at the end of the pass what is new in the buffers
//! is copied to the groups' response lines: two lines are modified for up to 15 clients, where
//! answers in the mail lines take one line back for each. Larger answers and faults stay in the
//! mail line; the bits say so.
//!
//! # Proof sketch
//! *The mail line has one owner.* The client writes it when its toggle says "answered", the
//! trustee when its mail has come and until it has copied the toggle. The Release of `copy` and
//! the Acquire of `done` order these accesses, as those of the mail's `done` word do elsewhere.
//! *A toggle tells one call from the next*, for every call that is sent is answered, or taken back
//! for ever because the trustee has gone; then the next one is of the same parity.
//! *An answer has one owner*, by the same toggle: the trustee writes it between mail and toggle.
//! ffwd copies the whole buffer; here answers that clients may be reading are left alone, for
//! an answer may be of any type, and not every type can be written over itself while it is read.

use crate::wire::word::Mail;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::memory;
use corelay_sync::facade::sync::{Arc, Mutex};
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Clients that share response lines, as in ffwd.
const GROUP: usize = 15;

const IN_LINE: u32 = 16;
const FAULT: u32 = 32;

/// Written by the trustee.
#[repr(C, align(128))]
struct ResponseLines {
    bits: AtomicU64,
    answers: [UnsafeCell<Answer>; GROUP],
}

/// A word of any type, or less.
type Answer = MaybeUninit<u64>;

// The models' atomics are larger.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
const _: () = assert!(size_of::<ResponseLines>() == 128 && align_of::<ResponseLines>() == 128);

/// What the trustee is going to answer a group. Nobody else looks at it.
struct Buffer {
    bits: Cell<u64>,
    answers: [Cell<Answer>; GROUP],
    /// A bit for each answer that has been added since the last copy.
    new: Cell<u32>,
}

struct Group {
    lines: ResponseLines,
    /// Not in the lines, which the clients read.
    buffer: Box<Buffer>,
    /// A bit for each seat that is taken.
    taken: Mutex<u32>,
}

// SAFETY: the buffer is used by the trustee's lanes only; an answer belongs to one side at a
// time (the proof sketch).
unsafe impl Sync for Group {}
// SAFETY: as above.
unsafe impl Send for Group {}

/// The groups of one trustee.
#[derive(Default)]
pub(crate) struct Groups(Mutex<Vec<Arc<Group>>>);

/// A client's place in a group. Given back when both sides have let the channel go.
pub(crate) struct Seat {
    group: Arc<Group>,
    index: u32,
    /// What the toggle was when the seat was taken.
    toggle: u64,
}

impl Groups {
    /// A free seat, in a new group where there is none.
    pub(crate) fn take(&self) -> Seat {
        let mut groups = self.0.lock().expect("never poisoned");
        if let Some(seat) = groups.iter().find_map(Group::take) {
            return seat;
        }
        let group = Arc::new(Group {
            lines: ResponseLines {
                bits: AtomicU64::new(0),
                answers: std::array::from_fn(|_| UnsafeCell::new(Answer::uninit())),
            },
            buffer: Box::new(Buffer {
                bits: Cell::new(0),
                answers: [const { Cell::new(Answer::uninit()) }; GROUP],
                new: Cell::new(0),
            }),
            taken: Mutex::new(0),
        });
        let seat = Group::take(&group).expect("a new group is empty");
        groups.push(group);
        seat
    }
}

impl Group {
    fn take(group: &Arc<Self>) -> Option<Seat> {
        let mut taken = group.taken.lock().expect("never poisoned");
        let index = taken.trailing_ones();
        (index < GROUP as u32).then(|| {
            *taken |= 1 << index;
            // Relaxed: whoever had the seat before, both sides of it, has released it to us by
            // the lock.
            let bits = group.lines.bits.load(Ordering::Relaxed);
            Seat {
                group: Arc::clone(group),
                index,
                toggle: (bits >> index) & 1,
            }
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.group.taken.lock().expect("never poisoned");
        *taken &= !(1 << self.index);
    }
}

impl Seat {
    /// What [`MailLine::done`](super::MailLine::done) is elsewhere: it answers `mail` once that
    /// has been run.
    #[inline(always)]
    pub(crate) fn done(&self, mail: Mail) -> Mail {
        // Acquire: pairs with the Release of `copy`; publishes the result.
        let bits = self.group.lines.bits.load(Ordering::Acquire) >> self.index;
        if bits & 1 != self.toggle ^ mail.parity() {
            mail.unanswered()
        } else if bits & (1 << FAULT) != 0 {
            mail.faulted()
        } else {
            mail
        }
    }

    /// Puts the answer where its client looks for it, in the mail line's record.
    ///
    /// # Safety
    /// The caller is the client, its call is answered, and `record` is its call's.
    #[inline(always)]
    pub(crate) unsafe fn fetch(&self, record: *mut u64) {
        let lines = &self.group.lines;
        // Relaxed: read in `done` before, and the same until we ask again.
        let bits = lines.bits.load(Ordering::Relaxed) >> self.index;
        if bits & (1 << IN_LINE) == 0 {
            memory::write(record.wrapping_add(2), 1);
            lines.answers[self.index as usize].with(|answer| {
                // SAFETY: the client's, as `record` is: behind vtable and object.
                unsafe { record.wrapping_add(2).cast::<Answer>().copy_from(answer, 1) };
            });
        }
    }

    /// Adds an answer to the trustee's buffer, or that it lies in the line.
    pub(crate) fn answer(&self, word: Option<Answer>, is_fault: bool) {
        let buffer = &self.group.buffer;
        let is_in_line = word.is_none();
        if let Some(word) = word {
            buffer.answers[self.index as usize].set(word);
            buffer.new.set(buffer.new.get() | 1 << self.index);
        }
        let mut bits = buffer.bits.get() ^ (1 << self.index);
        for (bit, value) in [(IN_LINE, is_in_line), (FAULT, is_fault)] {
            let bit = bit + self.index;
            bits = bits & !(1 << bit) | u64::from(value) << bit;
        }
        buffer.bits.set(bits);
    }

    /// Copies what is new to the group's response lines.
    pub(crate) fn copy(&self) {
        let Group { lines, buffer, .. } = &*self.group;
        let mut new = buffer.new.take();
        while new != 0 {
            let index = new.trailing_zeros() as usize;
            new &= new - 1;
            lines.answers[index].with_mut(|line| {
                // SAFETY: its client waits for the bits below.
                unsafe { *line = buffer.answers[index].get() };
            });
        }
        // Relaxed: only this side writes them.
        if lines.bits.load(Ordering::Relaxed) == buffer.bits.get() {
            return;
        }
        // Release: pairs with the Acquire in `done`; the answers are there, what the calls did
        // is seen, and the mail lines are their clients' again.
        lines.bits.store(buffer.bits.get(), Ordering::Release);
    }
}
