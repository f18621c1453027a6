//! A queue of blocks of slots, which costs an allocation for many values.

mod block;
mod end;
mod stock;

use crate::exhaust::exhaust;
use crate::step::step;
use block::{Block, Slot};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, Ordering, fence};
use end::{Claim, End};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use stock::Stock;

/// An unbounded lock-free queue whose nodes are blocks of `SLOTS` values.
///
/// ```
/// use corelay_structures::lockfree::BlockQueue;
///
/// let queue = BlockQueue::new();
/// std::thread::scope(|s| {
///     s.spawn(|| (0..100).for_each(|n| queue.push(n)));
///     s.spawn(|| (100..200).for_each(|n| queue.push(n)));
/// });
/// assert_eq!(queue.pop().map(|n| n % 100), Some(0));
/// assert_eq!(queue.into_iter().count(), 199);
/// ```
///
/// # When not to use it
/// If a consumer should wait for values: use a channel. If there are very many queues, nearly all of
/// them empty: each has a block, about a kilobyte for values of a word; a [`MsQueue`](super::MsQueue)
/// has one small node. If values are large, let a block have fewer of them, by
/// [`with_slots`](Self::with_slots).
///
/// # Guarantees
/// * **Order.** First in, first out. `push` and `pop` are linearizable: a push takes effect when it
///   moves the tail over the slot in which its value arrives, a pop that returns a value when it
///   moves the head over that slot, and a pop that returns `None` when it finds the tail where the
///   head is. A pop happens after the push of its value.
/// * **Progress.** Lock-free. A call is repeated only if another one has moved the same end, or if
///   a pop gives up the slot of a push: if that push is stopped after it has claimed the slot, the
///   pop waits for about a microsecond and goes on to the next slot. The push needs another slot
///   then; at the latest when it links a block, its value is in it already.
/// * **Fairness.** None is promised. A call that loses a race for its end waits while others work
///   there without rest, up to about 60 microseconds at a time, because turns cost more.
/// * **Cost.** Each call takes a constant number of steps if it is not disturbed: a push has a
///   compare-exchange and a swap, a pop has a compare-exchange. There is an allocation for `SLOTS`
///   values, or none if an emptied block can be used again. There is no `len`: it would count
///   pushes that are under way.
/// * **Memory.** A value is moved out by `pop`, so it is dropped where and when the caller drops
///   it. A block is freed, or kept for the next one, by a call that moves an end to another block.
///   All are freed with the queue: none waits for other structures' calls. A thread that is stopped
///   inside a call keeps others from freeing blocks, not from their calls. A queue that is dropped
///   drops its values, the others even if the drop of one panics.
/// * **Panics.** No code of the caller runs inside a call, so none can panic there. A drop of a
///   value may use the queue.
///
/// # How it works
/// ```text
///            head                                 tail
///             v                                    v
///   [ - - - | c | d ] ──next──> [ e | f | g | h | _ | _ ] ──next──> null
/// ```
/// Blocks are linked as nodes of [`MsQueue`](super::MsQueue) are. Inside a block a call claims the
/// next slot by a compare-exchange of its end, and then writes its value, or takes it. The push
/// that finds the last block at its end links the next one, with its value in the first slot.
/// A block that both ends have passed is reclaimed by counts, without epochs: each slot says
/// whether its push and pop have left it, and threads that move an end to another block are counted.
///
/// A pop reads the tail only if it has seen no position of the tail past the head yet, so a consumer
/// that lags behind does not take the producers' cache line.
///
/// *Sources.* A list of arrays whose cells are claimed by position, and given up by a consumer that
/// does not find a value: Yang and Mellor-Crummey, "A wait-free queue as fast as fetch-and-add",
/// PPoPP 2016, section 3. An array that is linked with a value in it, without which pushes and
/// pops could undo each other's work for ever: Morrison and Afek, "Fast concurrent queues for x86
/// processors", PPoPP 2013.
///
/// *Departures.* Positions are claimed by compare-exchange, not by fetch-and-add: no pop claims a
/// slot that no push has claimed, so none is wasted on an empty queue. A slot has a state beside its
/// value, which can thus be of any size. There are no records to help each other by, so the queue
/// is lock-free and not wait-free.
pub struct BlockQueue<T, const SLOTS: usize = 63> {
    head: CachePadded<Head<T, SLOTS>>,
    tail: CachePadded<End<T, SLOTS>>,
    stock: CachePadded<Stock<T, SLOTS>>,
}

struct Head<T, const SLOTS: usize> {
    end: End<T, SLOTS>,
    /// A position that the tail has had.
    seen: AtomicU64,
}

// SAFETY: values are moved in and out by any thread, and never shared. Pointers to blocks are
// followed as the modules of blocks, ends and the stock say.
unsafe impl<T: Send, const SLOTS: usize> Send for BlockQueue<T, SLOTS> {}

// SAFETY: as above.
unsafe impl<T: Send, const SLOTS: usize> Sync for BlockQueue<T, SLOTS> {}

// No code of a user's runs, so nothing can panic, between two steps of a call.
impl<T, const SLOTS: usize> UnwindSafe for BlockQueue<T, SLOTS> {}
impl<T, const SLOTS: usize> RefUnwindSafe for BlockQueue<T, SLOTS> {}

impl<T> BlockQueue<T> {
    /// An empty queue whose blocks have 63 slots. It allocates one block.
    #[must_use]
    pub fn new() -> Self {
        Self::with_slots()
    }
}

impl<T, const SLOTS: usize> BlockQueue<T, SLOTS> {
    /// An empty queue whose blocks have `SLOTS` slots, at least one. It allocates one block.
    ///
    /// ```
    /// use corelay_structures::lockfree::BlockQueue;
    ///
    /// let pages = BlockQueue::<[u8; 4096], 7>::with_slots();
    /// pages.push([0; 4096]);
    /// ```
    #[must_use]
    pub fn with_slots() -> Self {
        step();
        let first = Box::into_raw(Block::new());
        let head = Head {
            end: End::new(first),
            seen: AtomicU64::new(0),
        };
        // SAFETY: the block is a box that the ends do not free.
        let stock = unsafe { Stock::new(first) };
        Self {
            head: CachePadded::new(head),
            tail: CachePadded::new(End::new(first)),
            stock: CachePadded::new(stock),
        }
    }

    /// Appends `value`.
    pub fn push(&self, mut value: T) {
        let mut losses = 0;
        let mut place = self.tail.place();
        loop {
            let pushed = match self.tail.claim(&place) {
                // SAFETY: this push has claimed the slot.
                Claim::Slot(slot) => unsafe { Slot::put(slot, value) },
                Claim::AtEnd => self.append(place.position, value),
                Claim::Lost => {
                    place = self.tail.place_after_loss(&mut losses);
                    continue;
                }
            };
            match pushed {
                Ok(()) => return,
                Err(back) => value = back,
            }
            place = self.tail.place();
        }
    }

    /// Takes the first value, or returns `None` if there is none.
    pub fn pop(&self) -> Option<T> {
        let head = &self.head.end;
        let mut losses = 0;
        let mut place = head.place();
        while self.is_claimed(place.position) {
            match head.claim(&place) {
                Claim::Slot(slot) => {
                    // SAFETY: this pop has claimed the slot, and a push has before.
                    let value = unsafe { Slot::take(slot) };
                    if value.is_some() {
                        return value;
                    }
                }
                Claim::AtEnd => self.pass(place.position),
                Claim::Lost => {
                    place = head.place_after_loss(&mut losses);
                    continue;
                }
            }
            place = head.place();
        }
        None
    }

    /// Whether there is no value at some moment during the call. A push that is under way may count
    /// as a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.is_claimed(self.head.end.position())
    }

    /// Whether a push has moved the tail past `position`, which was read from the head. If not, the
    /// head is there still, because it is never past the tail.
    #[inline]
    fn is_claimed(&self, position: u64) -> bool {
        step();
        // Acquire: pairs with the Release below, and through it with the Release of the tail's
        // position. So a thread that claims after this look has seen the tail past its position,
        // and the next one, which sees its claim, finds the tail there at least.
        if self.head.seen.load(Ordering::Acquire) > position {
            return true;
        }
        let mut tail = self.tail.position();
        if tail == position {
            // SeqCst: pairs with the same fence in another call. Two threads that each push to one
            // queue, and then look into the other's, do not both find nothing.
            fence(Ordering::SeqCst);
            tail = self.tail.position();
            if tail == position {
                return false;
            }
        }
        if tail > position + 1 {
            // Release: pairs with the Acquire above. It may replace a later position, which is only
            // read again then.
            self.head.seen.store(tail, Ordering::Release);
        }
        true
    }

    /// Moves the tail from `end`, the end of a block, to the next one. If this call links the next
    /// block, `value` is in it; otherwise `value` comes back.
    #[cold]
    fn append(&self, end: u64, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.visit(|| {
            // SAFETY: this is a visit. The first slot of the next block is taken.
            unsafe {
                self.tail
                    .advance(end, 1, |last| self.link(last, &mut value))
            };
        });
        value.map_or(Ok(()), Err)
    }

    /// The block after `last`. If there is none, links one with `value` in it.
    fn link(&self, last: &Block<T, SLOTS>, value: &mut Option<T>) -> *mut Block<T, SLOTS> {
        let next = last.next();
        if !next.is_null() {
            return next;
        }
        let mut new = self.stock.take();
        new.begin(last.lap() + 1, value.take().expect("it is linked once"));
        let new = Box::into_raw(new);
        match last.link(new) {
            Ok(()) => new,
            Err(next) => {
                // SAFETY: it was a box, and is not linked.
                let mut new = unsafe { Box::from_raw(new) };
                // SAFETY: `begin` was called last.
                *value = Some(unsafe { new.take_back() });
                self.stock.keep(new);
                next
            }
        }
    }

    /// Moves the head from `end`, the end of a block, to the next one. There is a next one, because
    /// the tail is past `end`.
    #[cold]
    fn pass(&self, end: u64) {
        self.visit(|| {
            // SAFETY: this is a visit.
            unsafe { self.head.end.advance(end, 0, Block::next) };
        });
    }

    /// Makes a call that follows pointers to blocks. Then frees blocks, if it was the last of such
    /// calls.
    fn visit(&self, call: impl FnOnce()) {
        self.stock.enter();
        call();
        // SAFETY: this thread visits, so that it may follow the pointer.
        let lap = unsafe { &*self.head.end.block() }.lap();
        // SAFETY: it has entered, the head is at that lap, and it holds no pointers any more.
        unsafe { self.stock.leave(lap) };
    }
}

impl<T, const SLOTS: usize> Drop for BlockQueue<T, SLOTS> {
    fn drop(&mut self) {
        exhaust(std::iter::from_fn(|| self.pop()));
    }
}

impl<T, const SLOTS: usize> Default for BlockQueue<T, SLOTS> {
    fn default() -> Self {
        Self::with_slots()
    }
}

impl<T, const SLOTS: usize> fmt::Debug for BlockQueue<T, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockQueue").finish_non_exhaustive()
    }
}

impl<T, const SLOTS: usize> Extend<T> for BlockQueue<T, SLOTS> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl<T, const SLOTS: usize> FromIterator<T> for BlockQueue<T, SLOTS> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut queue = Self::default();
        queue.extend(values);
        queue
    }
}

impl<T, const SLOTS: usize> IntoIterator for BlockQueue<T, SLOTS> {
    type Item = T;
    type IntoIter = IntoValues<T, SLOTS>;

    fn into_iter(self) -> IntoValues<T, SLOTS> {
        IntoValues(self)
    }
}

/// The values of a [`BlockQueue`], in the order in which `pop` would have returned them.
pub struct IntoValues<T, const SLOTS: usize>(BlockQueue<T, SLOTS>);

impl<T, const SLOTS: usize> Iterator for IntoValues<T, SLOTS> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.pop()
    }
}

impl<T, const SLOTS: usize> std::iter::FusedIterator for IntoValues<T, SLOTS> {}

impl<T, const SLOTS: usize> fmt::Debug for IntoValues<T, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoValues").finish_non_exhaustive()
    }
}
