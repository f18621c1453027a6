//! ffwd (Roghanchi, Eriksson and Basu, "ffwd: delegation is (much) faster than you think",
//! SOSP 2017): a request line per client and server, answers for 15 clients at once.
//!
//! ```text
//!                 byte 0        8                                       64
//! request line         | toggle | function and six words               |   the client's
//!
//!                 byte 0        8                                      128
//! response lines       | 15     | 15 answers                           |   the server's
//!                      | toggles|  (two lines for a group of clients)  |
//! ```
//! The server looks at the groups in turn. It executes a group's requests, keeps the answers and
//! the turned toggles in a buffer of its own, and then copies the buffer to the group's response
//! lines. So two lines are modified for up to 15 answers. Between two batches all copies of these
//! lines are shared.
//!
//! # Proof sketch
//! *The request line has one owner*, by its toggle and the client's bit in the response: see [the
//! line](crate::line).
//! *Each client gets its own answer.* A copy writes every answer of the group again, even those
//! that clients are reading. Such a client's toggles are equal, so it has asked for nothing since,
//! and the buffer still has the same answer. That is why answers are atomic words, and why the
//! toggles are written after them.
//!
//! We depart from the paper in two ways: every word of a request is loaded, however many the
//! function takes; and a copy is as long as the group has clients.

use crate::delegation::sealed::Sealed;
use crate::delegation::{Blocking, Delegation, Protocol, Work};
use crate::footprint::Footprint;
use crate::line::RequestLine;
use crate::request::Request;
use crate::row::{Row, Rows};
use crate::wait::Wait;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::cell::UnsafeCell;

/// Clients that share response lines.
const GROUP: usize = 15;

/// Objects behind [ffwd's lines](FfwdLines): see [`Delegation`].
///
/// ```
/// use corelay_literature::Ffwd;
///
/// let (hits, mut servers) = Ffwd::new(1, 1, 1, |_| 40_u64);
/// std::thread::scope(|s| {
///     let asking = s.spawn(|| hits.client(0).unwrap().apply(0, |hits: &mut u64| *hits + 2));
///     while servers[0].pass() == 0 {}
///     assert_eq!(asking.join().unwrap(), 42);
/// });
/// ```
pub type Ffwd<T> = Delegation<FfwdLines, T>;

/// The lines between a server and its clients, in the layout of ffwd.
#[derive(Debug)]
pub struct FfwdLines {
    /// One line for each client, which the client makes.
    requests: Rows<RequestLine>,
    /// The response lines of each group of clients, which the server makes.
    responses: Row<ResponseLines>,
}

/// The answers to a group of clients, written by the server.
#[derive(Debug)]
#[repr(C, align(128))]
struct ResponseLines {
    /// Bit `i` is the toggle of the group's client `i`.
    toggles: AtomicU64,
    answers: [AtomicU64; GROUP],
}

// The models' atomics and cells are larger.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
const _: () = assert!(size_of::<ResponseLines>() == 128 && align_of::<ResponseLines>() == 128);

/// The server's copy of a group's response lines: the toggles and answers that it is going to copy
/// there.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffer {
    toggles: u64,
    answers: [u64; GROUP],
}

/// A client's own state for one server.
#[doc(hidden)]
#[derive(Debug)]
pub struct FfwdClient {
    index: usize,
    /// The toggle of its request line, as the client set it last.
    toggle: u64,
}

impl Sealed for FfwdLines {}

// SAFETY: see the module's proof sketch.
unsafe impl Protocol for FfwdLines {
    type Setting = ();
    /// A buffer for each group, in lines of its own: it is written at every answer.
    type Server = Box<[CachePadded<Buffer>]>;
    type Client = FfwdClient;

    fn new((): (), clients: usize) -> Self {
        Self {
            requests: Rows::of(clients, 1),
            responses: Row::of(clients.div_ceil(GROUP)),
        }
    }

    unsafe fn server(&self) -> Box<[CachePadded<Buffer>]> {
        let response = |_| ResponseLines {
            toggles: AtomicU64::new(0),
            answers: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        // SAFETY: this is the server (the caller's duty).
        unsafe { self.responses.make(response) };
        vec![CachePadded::new(Buffer::default()); self.responses.len()].into()
    }

    unsafe fn client(&self, index: usize) -> FfwdClient {
        // SAFETY: this is the only client of that number, and what earlier ones did happens before
        // this (the caller's duty).
        unsafe { self.requests.at(index).make(|_| RequestLine::new()) };
        FfwdClient {
            index,
            toggle: self.request(index).own_toggle(),
        }
    }

    #[inline]
    unsafe fn pass(&self, buffers: &mut Box<[CachePadded<Buffer>]>) -> Work {
        let mut work = Work::default();
        let groups = self.responses().iter().zip(buffers).enumerate();
        for (group, (responses, buffer)) in groups {
            let first = group * GROUP;
            let clients = GROUP.min(self.requests.len() - first);
            let asked = work.requests;
            for client in 0..clients {
                let Some([line]) = self.requests.at(first + client).get() else {
                    continue;
                };
                let answered = (buffer.toggles >> client) & 1;
                // SAFETY: this is the server (the caller's duty), and the buffered toggle is what
                // `copy` writes.
                if let Some(request) = unsafe { line.look(answered) } {
                    // SAFETY: the object is the server's (the caller's duty); the buffered toggle
                    // is turned below, so this request is not found again.
                    buffer.answers[client] = unsafe { request.run() };
                    buffer.toggles ^= 1 << client;
                    work.requests += 1;
                }
            }
            if work.requests > asked {
                responses.copy(buffer, clients);
                work.batches += 1;
            }
        }
        work
    }

    unsafe fn is_quiet(&self) -> bool {
        // Clients wait for their answers, so without a client there is no request.
        true
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            requests: size_of::<RequestLine>() * self.requests.len(),
            responses: size_of::<ResponseLines>() * self.responses.len(),
            server: size_of::<CachePadded<Buffer>>() * self.responses.len(),
            clients: size_of::<CachePadded<FfwdClient>>() * self.requests.len(),
        }
    }
}

impl FfwdLines {
    /// The request line of client `index`, who has made it.
    #[inline(always)]
    fn request(&self, index: usize) -> &RequestLine {
        match self.requests.at(index).get() {
            Some([line]) => line,
            _ => unreachable!("a client has made its line"),
        }
    }

    /// The response lines of all groups, which the server has made.
    #[inline(always)]
    fn responses(&self) -> &[ResponseLines] {
        let responses = self.responses.get();
        responses.expect("a server has made its lines before its objects")
    }
}

impl ResponseLines {
    /// Writes the buffer's answers and toggles for the group's first `clients` clients.
    #[inline(always)]
    fn copy(&self, buffer: &Buffer, clients: usize) {
        for (answer, value) in self.answers.iter().zip(&buffer.answers).take(clients) {
            // Relaxed: published by the toggles below.
            answer.store(*value, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `call`; the answers are there, and the request lines
        // belong to their clients again.
        self.toggles.store(buffer.toggles, Ordering::Release);
    }
}

// SAFETY: `call` returns when the toggles are equal again, and the server makes them so after the
// execution.
unsafe impl Blocking for FfwdLines {
    #[inline]
    unsafe fn call<T, O>(
        &self,
        client: &mut FfwdClient,
        object: &UnsafeCell<T>,
        operation: O,
    ) -> u64
    where
        O: FnOnce(&mut T) -> u64 + Send,
    {
        let line = self.request(client.index);
        client.toggle ^= 1;
        // SAFETY: this is the line's client (the caller's duty), and between calls the toggles are
        // equal.
        unsafe { line.ask(Request::new(object, operation), client.toggle) };

        let (group, client_bit) = (client.index / GROUP, client.index % GROUP);
        let responses = &self.responses()[group];
        let mut wait = None;
        // Acquire: pairs with the Release in `copy`; the answer is there, what the server did is
        // seen, and the line is the client's again.
        while (responses.toggles.load(Ordering::Acquire) >> client_bit) & 1 != client.toggle {
            wait.get_or_insert_with(Wait::new).again();
        }
        // Relaxed: the toggles published it; it stays until this client asks again.
        responses.answers[client_bit].load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;
    use crate::Served;
    use std::thread;

    /// Has each of `clients` clients ask once, all before the server's one pass. Returns the counts
    /// of that pass and the answers.
    fn one_pass(clients: usize) -> (Work, Vec<u64>) {
        let (hits, mut servers) = Ffwd::new(1, clients, 1, |_| 0_u64);
        let (server, lines) = (&mut servers[0], hits.lines(0));
        server.begin();
        thread::scope(|s| {
            let ask = |index| {
                let mut client = hits.client(index).unwrap();
                s.spawn(move || {
                    client.apply(0, |hits: &mut u64| {
                        *hits += 1;
                        *hits
                    })
                })
            };
            let asking: Vec<_> = (0..clients).map(ask).collect();
            for line in (0..clients).map(|client| lines.requests.at(client)) {
                while !line.get().is_some_and(|line| line[0].is_turned()) {
                    thread::yield_now();
                }
            }
            server.pass();
            let Served {
                requests, batches, ..
            } = server.served();
            let answers = asking.into_iter().map(|asking| asking.join().unwrap());
            (Work { requests, batches }, answers.collect())
        })
    }

    #[test]
    fn a_group_is_answered_by_one_copy() {
        // Two modified lines for 15 answers, four for 16.
        for (clients, batches) in [(1, 1), (15, 1), (16, 2), (31, 3)] {
            let (work, mut answers) = one_pass(clients);
            assert_eq!(work.requests, clients as u64);
            assert_eq!(work.batches, batches, "{clients} clients");
            answers.sort_unstable();
            assert!(answers.into_iter().eq(1..=clients as u64));
        }
    }
}
