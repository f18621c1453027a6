//! The client's half of [`AsyncLines`](crate::AsyncLines): its pending queue, its in-flight array,
//! and its counts.

use super::queue::Queue;
use super::{Pair, PairLines, Shape};
use crate::delegation::Client;
use crate::line::RequestLine;
use crate::request::Unsent;
use crate::wait::Wait;
use corelay_sync::CachePadded;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// One in this number of a client's requests to a server is timed, beginning with the first.
const TIMED_ONE_IN: u64 = 64;

/// The counts of a client for one server (the thesis plots them over the length of the queue).
///
/// The response-ready rate is `ready / polls`, the share of failed pops is `failed_pops / pops`,
/// the mean depth of a queue is `depths / flushes`, and the mean latency is `latency / timed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Looks at the response of a line that had a request in flight.
    pub polls: u64,
    /// Looks of `polls` that found the answer.
    pub ready: u64,
    /// Times that a pass found a line free and asked the queue for a request.
    pub pops: u64,
    /// Pops that got no request, for the queue was empty.
    pub failed_pops: u64,
    /// Requests that found the queue full.
    pub failed_pushes: u64,
    /// Passes over the lines of the server that could fill free lines from the queue. 0 without a
    /// queue.
    pub flushes: u64,
    /// Sum of the queue's lengths at the beginning of each of these passes.
    pub depths: u64,
    /// Requests that were timed.
    pub timed: u64,
    /// Sum of the times from issuing the timed requests to their callbacks.
    pub latency: Duration,
}

impl AddAssign for Asked {
    fn add_assign(&mut self, other: Self) {
        self.polls += other.polls;
        self.ready += other.ready;
        self.pops += other.pops;
        self.failed_pops += other.failed_pops;
        self.failed_pushes += other.failed_pushes;
        self.flushes += other.flushes;
        self.depths += other.depths;
        self.timed += other.timed;
        self.latency += other.latency;
    }
}

/// A line of a client, on which it has made a request by [`Client::try_issue`].
#[derive(Clone, Copy, Debug)]
pub struct Line {
    server: usize,
    line: usize,
}

/// The client's record of a request in flight.
#[derive(Debug)]
struct InFlight<C> {
    then: C,
    /// The time at which it was issued, if it is timed.
    issued: Option<Instant>,
}

/// A client's own state for one server.
#[doc(hidden)]
#[derive(Debug)]
pub struct LinesClient<C> {
    index: usize,
    /// The toggles of the request lines, as the client set them last.
    toggles: Box<[u64]>,
    /// The request in flight on each line, with its callback; `None` if the line is free.
    in_flight: Box<[Option<InFlight<C>>]>,
    pending: Queue<(Unsent, InFlight<C>)>,
    /// The line of the next request, if requests are written directly.
    next: usize,
    issued: u64,
    asked: Asked,
}

impl<C: FnOnce(u64)> LinesClient<C> {
    pub(super) fn new(shape: Shape, index: usize, lines: &[RequestLine]) -> Self {
        Self {
            index,
            toggles: lines.iter().map(RequestLine::own_toggle).collect(),
            in_flight: lines.iter().map(|_| None).collect(),
            pending: Queue::new(shape.pending().unwrap_or(0)),
            next: 0,
            issued: 0,
            asked: Asked::default(),
        }
    }

    /// The bytes that the state takes in lines of this shape, with its queue and its arrays.
    pub(super) fn bytes(shape: Shape) -> usize {
        let line = size_of::<u64>() + size_of::<Option<InFlight<C>>>();
        let pending = Queue::<(Unsent, InFlight<C>)>::bytes(shape.pending().unwrap_or(0));
        size_of::<CachePadded<Self>>() + shape.lines() * line + pending
    }

    #[inline(always)]
    fn track(&mut self, then: C) -> InFlight<C> {
        let is_timed = self.issued.is_multiple_of(TIMED_ONE_IN);
        self.issued += 1;
        InFlight {
            then,
            issued: is_timed.then(Instant::now),
        }
    }

    /// Takes the answer of a line, if one has come, and runs its callback. The callback finds the
    /// line free again, even if it panics. Returns whether the line is free.
    ///
    /// # Safety
    /// This is the client of `pair`.
    #[inline(always)]
    unsafe fn reap(&mut self, pair: Pair<'_>, line: usize) -> bool {
        let response = pair.response(line);
        // SAFETY: this is the line's client (the caller's duty), and the toggle is that of its
        // request.
        let answer = unsafe { response.look(self.toggles[line]) };
        let Some(answer) = answer else {
            self.asked.polls += 1;
            return false;
        };
        if let Some(InFlight { then, issued }) = self.in_flight[line].take() {
            self.asked.polls += 1;
            self.asked.ready += 1;
            if let Some(issued) = issued {
                self.asked.timed += 1;
                self.asked.latency += issued.elapsed();
            }
            then(answer);
        }
        true
    }

    /// Puts a request on a line.
    ///
    /// # Safety
    /// This is the client of `pair`, and the line is free.
    #[inline(always)]
    unsafe fn ask(
        &mut self,
        pair: Pair<'_>,
        line: usize,
        (request, in_flight): (Unsent, InFlight<C>),
    ) {
        self.in_flight[line] = Some(in_flight);
        self.toggles[line] ^= 1;
        // SAFETY: this is the line's client, and the line is free (the caller's duties).
        unsafe { pair.requests[line].ask(request.send(), self.toggles[line]) };
    }

    /// Looks at every line once: takes the answers that have come, and gives free lines requests
    /// from the queue. Returns whether anything has moved.
    ///
    /// # Safety
    /// This is a client of `lines`.
    #[inline]
    unsafe fn flush(&mut self, lines: &PairLines<C>) -> bool {
        // Nothing was asked of a server that has not begun.
        let Some(pair) = lines.pair(self.index) else {
            return false;
        };
        let ready = self.asked.ready;
        let mut has_moved = false;
        let has_queue = lines.shape.pending().is_some();
        self.asked.flushes += u64::from(has_queue);
        self.asked.depths += self.pending.len() as u64;
        for line in 0..self.toggles.len() {
            // SAFETY: this is a client of `lines` (the caller's duty).
            if !unsafe { self.reap(pair, line) } || !has_queue {
                continue;
            }
            self.asked.pops += 1;
            if let Some(next) = self.pending.pop() {
                // SAFETY: this is a client of `lines` (the caller's duty), and `reap` has found the
                // line free.
                unsafe { self.ask(pair, line, next) };
                has_moved = true;
            } else {
                self.asked.failed_pops += 1;
            }
        }
        has_moved || self.asked.ready > ready
    }

    /// Whether no request waits in the queue and none is in flight.
    fn is_done(&self) -> bool {
        self.pending.len() == 0 && self.in_flight.iter().all(Option::is_none)
    }

    /// Waits until every request is executed and its callback has run.
    ///
    /// # Safety
    /// This is a client of `lines`.
    unsafe fn barrier(&mut self, lines: &PairLines<C>) {
        let mut wait = Wait::new();
        while !self.is_done() {
            // SAFETY: this is a client of `lines` (the caller's duty).
            if unsafe { self.flush(lines) } {
                wait = Wait::new();
            } else {
                wait.again();
            }
        }
    }

    /// Waits for everything, at the client's end (the thesis does so before a client is joined).
    ///
    /// # Safety
    /// This is a client of `lines`.
    pub(super) unsafe fn leave(&mut self, lines: &PairLines<C>) {
        // SAFETY: this is a client of `lines` (the caller's duty).
        unsafe { self.barrier(lines) };
    }
}

impl<C: FnOnce(u64), T> Client<PairLines<C>, T> {
    /// Asks the server of object `var` for `operation`. `then` gets the answer, once, inside a later
    /// call of this client, or when the client is dropped.
    ///
    /// It waits if the pending queue is full or, without a queue, if the next line is taken; and
    /// until the object's server has begun.
    ///
    /// # Panics
    /// If there is no object of that number. With the panic of a callback, which may be another
    /// request's: earlier requests stay as they are, but the operation of the call that panics is
    /// dropped. A panic of the operation aborts the process.
    #[inline]
    pub fn issue<O>(&mut self, var: usize, operation: O, then: C)
    where
        O: FnOnce(&mut T) -> u64 + Send + 'static,
    {
        self.issue_meanwhile(var, operation, then, |_| false);
    }

    /// Does [`issue`](Self::issue). While it waits for room, it calls `meanwhile` before each look,
    /// with the number of the server; that returns whether it has done anything.
    #[inline]
    pub(crate) fn issue_meanwhile<O>(
        &mut self,
        var: usize,
        operation: O,
        then: C,
        mut meanwhile: impl FnMut(usize) -> bool,
    ) where
        O: FnOnce(&mut T) -> u64 + Send + 'static,
    {
        let (lines, states, objects) = self.parts();
        let (server, object) = objects.at(var);
        let state = &mut states[server];
        let mut item = (Unsent::new(object, operation), state.track(then));
        let mut wait = None;
        if lines[server].shape.pending().is_none() {
            let pair = lines[server].pair(state.index);
            let pair = pair.expect("a server has made its lines before its objects");
            let line = state.next;
            // SAFETY: `client` made the state for these lines.
            while !unsafe { state.reap(pair, line) } {
                match meanwhile(server) {
                    true => wait = None,
                    false => wait.get_or_insert_with(Wait::new).again(),
                }
            }
            state.next = if line + 1 < state.toggles.len() {
                line + 1
            } else {
                0
            };
            // SAFETY: `client` made the state for these lines, and `reap` has found the line free.
            unsafe { state.ask(pair, line, item) };
            return;
        }
        let mut is_first = true;
        while let Err(back) = states[server].pending.push(item) {
            item = back;
            states[server].asked.failed_pushes += u64::from(std::mem::take(&mut is_first));
            let has_done = meanwhile(server);
            if flush(lines, states) | has_done {
                wait = None;
            } else {
                wait.get_or_insert_with(Wait::new).again();
            }
        }
    }

    /// Writes a request for `operation` on a free line to the server of object `var`, past the
    /// queue, and does not wait for one. So Gepard's fibres ask, each of which [looks](Self::look)
    /// for its own answer. Returns the line.
    ///
    /// # Errors
    /// Gives operation and callback back if no line is free.
    ///
    /// # Panics
    /// If there is no object of that number. A panic of the operation aborts the process.
    #[inline]
    pub fn try_issue<O>(&mut self, var: usize, operation: O, then: C) -> Result<Line, (O, C)>
    where
        O: FnOnce(&mut T) -> u64 + Send + 'static,
    {
        let (lines, states, objects) = self.parts();
        let (server, object) = objects.at(var);
        let state = &mut states[server];
        let pair = lines[server].pair(state.index);
        let pair = pair.expect("a server has made its lines before its objects");
        // SAFETY: `client` made the state for these lines.
        let is_free =
            |line: &usize| unsafe { state.in_flight[*line].is_none() && state.reap(pair, *line) };
        let Some(line) = (0..pair.requests.len()).find(is_free) else {
            return Err((operation, then));
        };
        let item = (Unsent::new(object, operation), state.track(then));
        // SAFETY: `client` made the state for these lines, and `reap` has found the line free.
        unsafe { state.ask(pair, line, item) };
        Ok(Line { server, line })
    }

    /// Looks at a line once, and runs the callback of its request if the answer is there.
    ///
    /// # Panics
    /// With the panic of the callback.
    #[inline]
    pub fn look(&mut self, Line { server, line }: Line) {
        let (lines, states, _) = self.parts();
        if let Some(pair) = lines[server].pair(states[server].index) {
            // SAFETY: `client` made the state for these lines.
            unsafe { states[server].reap(pair, line) };
        }
    }

    /// Looks at every line of every server once: runs the callbacks of the requests that are
    /// answered, and puts waiting requests on free lines. Returns whether anything has moved.
    ///
    /// # Panics
    /// With the panic of a callback; the other callbacks run in a later call.
    pub fn flush(&mut self) -> bool {
        let (lines, states, _) = self.parts();
        flush(lines, states)
    }

    /// Whether everything that this client has asked for is executed and its callbacks have run.
    pub(crate) fn is_done(&mut self) -> bool {
        self.parts().1.iter().all(|state| state.is_done())
    }

    /// Waits until everything that this client has asked for is executed and its callbacks have
    /// run. Dropping a client does so, too.
    ///
    /// # Panics
    /// As for [`flush`](Self::flush).
    pub fn barrier(&mut self) {
        let (lines, states, _) = self.parts();
        for (lines, state) in lines.iter().zip(states) {
            // SAFETY: `client` made the state for these lines.
            unsafe { state.barrier(lines) };
        }
    }

    /// The client's counts, by server.
    pub fn asked(&mut self) -> impl Iterator<Item = Asked> {
        self.parts().1.iter().map(|state| state.asked)
    }
}

/// Does [`Client::flush`]. Returns whether anything has moved.
#[inline]
fn flush<C: FnOnce(u64)>(
    lines: &[PairLines<C>],
    states: &mut [CachePadded<LinesClient<C>>],
) -> bool {
    let mut has_moved = false;
    for (lines, state) in lines.iter().zip(states) {
        // SAFETY: `client` made each state for the lines of the same index.
        has_moved |= unsafe { state.flush(lines) };
    }
    has_moved
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_state_takes_what_is_said() {
        for shape in [Shape::default(), Shape::direct(5).unwrap()] {
            let lines: Vec<_> = (0..shape.lines()).map(|_| RequestLine::new()).collect();
            let state = LinesClient::<fn(u64)>::new(shape, 0, &lines);
            let boxes = size_of_val(&*state.toggles) + size_of_val(&*state.in_flight);
            let taken = size_of::<CachePadded<LinesClient<fn(u64)>>>()
                + boxes
                + state.pending.bytes_of_slots();
            assert_eq!(LinesClient::<fn(u64)>::bytes(shape), taken, "{shape:?}");
        }
    }
}
