//! The cache space that delegation itself takes (SPEC D23), from the sizes of the real types.
//!
//! ```text
//!   core of a server and a client, of S servers and C clients in all
//!     the server   C pairs:  lines of both  +  its own state
//!     the client   S pairs:  lines of both  +  its own state (queues, arrays, callbacks)
//! ```
//! Both sides have the lines that they exchange in their caches. If the two share a core, as in
//! the thesis's runs, they share the caches, too. The thesis says "about 93 KB" for such a core
//! of its 16 servers and 40 clients with 16 request lines and queues of 32, and that "this amount
//! consumes the entire L1 cache and 62 KB of the L2". It does not say what it counted.

use corelay::report::{Footprint, Traffic};
use corelay_literature::{AsyncLines, Delegation, FfwdLines, Protocol, RclLines, Shape};
use serde::Serialize;

/// The thesis's size for a core with one server and one client of [`SOURCE_PAIRS`], in bytes:
/// "about 93 KB". KB may be 1,000 bytes or 1,024: the thesis calls an L2 of 2^20 bytes 1,024 KB.
pub const SOURCE_BYTES: [usize; 2] = [93_000, 93 << 10];

/// Servers and clients of the thesis's run.
pub const SOURCE_PAIRS: (usize, usize) = (16, 40);

/// The size of a fetch-add request in corelay's own channel, in words: the closure and the callback
/// capture nothing, and the answer is one word.
const FETCH_ADD: Traffic = Traffic {
    captures: 0,
    answer: 1,
    callback: 0,
};

/// One pair's share of a channel, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Lines that both sides have: requests and answers.
    pub both: f64,
    /// Memory of the server alone.
    pub server: f64,
    /// Memory of the client alone.
    pub client: f64,
}

impl Pair {
    /// Returns the bytes that a server with so many clients has in its caches.
    pub fn of_server(self, clients: usize) -> f64 {
        (self.both + self.server) * clients as f64
    }

    /// Returns the bytes that a client of so many servers has in its caches.
    pub fn of_client(self, servers: usize) -> f64 {
        (self.both + self.client) * servers as f64
    }

    /// Returns the bytes that a core with a server and a client has in its caches.
    ///
    /// ```
    /// use corelay_lab_report::model::footprint::Pair;
    ///
    /// let pair = Pair { both: 100.0, server: 10.0, client: 20.0 };
    /// assert_eq!(pair.of_core(2, 3), 3.0 * 110.0 + 2.0 * 120.0);
    /// ```
    pub fn of_core(self, servers: usize, clients: usize) -> f64 {
        self.of_server(clients) + self.of_client(servers)
    }
}

/// Computes the size of ffwd's lines for a pair; 15 clients share a line of responses.
pub fn ffwd(clients: usize) -> Pair {
    of::<FfwdLines>(&Delegation::<_, u64>::new(1, clients, 0, |_| 0).0, clients)
}

/// Computes the size of remote core locking's lines for a pair.
pub fn rcl() -> Pair {
    of::<RclLines>(&Delegation::<_, u64>::new(1, 1, 0, |_| 0).0, 1)
}

/// Computes the size of the thesis's lines and queues for a pair, with plain functions as
/// callbacks.
///
/// ```
/// use corelay_lab_report::model::footprint::async_lines;
///
/// // 16 lines of 64 and 16 bytes.
/// assert_eq!(async_lines(Default::default()).both, 16.0 * 80.0);
/// ```
pub fn async_lines(shape: Shape) -> Pair {
    let (lines, _) = AsyncLines::<u64, fn(u64)>::shaped(shape, 1, 1, 0, |_| 0);
    of(&lines, 1)
}

fn of<P: Protocol>(lines: &Delegation<P, u64>, clients: usize) -> Pair {
    let all = lines.footprint();
    let each = |bytes: usize| bytes as f64 / clients as f64;
    Pair {
        both: each(all.requests + all.responses),
        server: each(all.server),
        client: each(all.clients),
    }
}

/// Computes the size of corelay's channel after its first request.
pub fn product_first() -> Pair {
    product(Footprint::first())
}

/// Computes the size of corelay's channel with a whole window of fetch-add in flight.
pub fn product_filled(window: usize, ring_bytes: usize) -> Pair {
    product(Footprint::filled(window, ring_bytes, FETCH_ADD))
}

fn product(all: Footprint) -> Pair {
    Pair {
        both: (all.shared + all.rings) as f64,
        server: all.trustee as f64,
        client: (all.client + all.callbacks) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The papers have a line of 64 bytes for each client, and 128 bytes for 15 of them.
    #[test]
    fn lines_have_the_lengths_of_the_papers() {
        assert_eq!(ffwd(15).both, 64.0 + 128.0 / 15.0);
        assert_eq!(ffwd(1).both, 64.0 + 128.0);
        assert_eq!(ffwd(16).both, 64.0 + 256.0 / 16.0);
        assert_eq!(rcl().both, 64.0);
        // Responses have 16 bytes, four to a line.
        let lines = |n| async_lines(Shape::direct(n).unwrap()).both;
        assert_eq!((lines(1), lines(4), lines(5)), (128.0, 320.0, 448.0));
    }

    /// Our size and the thesis's are close; the thesis does not say what it counted.
    #[test]
    fn a_core_of_the_thesis_has_about_its_printed_size() {
        let (servers, clients) = SOURCE_PAIRS;
        let pair = async_lines(Shape::default());
        let ours = pair.of_core(servers, clients);
        let said = SOURCE_BYTES[0] as f64;
        assert!((0.75..1.5).contains(&(ours / said)), "{ours} for {said}");
        // Its queues, beside the lines, take most of a client's space.
        let direct = async_lines(Shape::direct(16).unwrap());
        assert!(direct.of_core(servers, clients) < 0.75 * ours);
    }

    #[test]
    fn the_product_grows_with_its_window() {
        let total = |pair: Pair| pair.both + pair.server + pair.client;
        let first = total(product_first());
        let full = |window| total(product_filled(window, 64 << 10));
        assert!(first <= full(16) && full(16) < full(256) && full(256) < full(4096));
    }
}
