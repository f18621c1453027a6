//! How full the pending queues are when a client writes its requests out (the thesis, "Hurry Up and
//! Wait: The Pending Request Queue").
//!
//! The thesis finds that gains cease at queues of twice the request lines, and suggests that "the
//! probability of having enough requests in all queues to fill all request lines approaches 1" there.
//! The model is that client: it draws servers at random, each with a queue of L requests. If the queue
//! that it draws is full, it moves up to N requests of every queue into N free lines, and goes on.
//!
//! ```text
//!   draw a server ─► its queue has room? ─ yes ─► enqueue
//!                                        └ no ──► each queue gives min(N, what it holds) to its lines
//! ```
//!
//! The answer is a simulation of many such moments with a fixed seed. It assumes that servers have
//! answered everything by then, so that all lines are free: clients are the limit, not servers.

use corelay_lab_measure::workload::random::Random;

/// The queues of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Servers, each with a queue, at least 1.
    pub servers: usize,
    /// Request lines of each pair, at least 1.
    pub lines: usize,
    /// Length of each queue, at least 1.
    pub length: usize,
}

/// How full queues are at the moments when one of them has no room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filled {
    /// The probability that every queue can fill all its lines, 0 to 1.
    pub all: f64,
    /// The probability that a queue can fill all its lines, 0 to 1.
    pub each: f64,
    /// The share of lines that find a request, 0 to 1.
    pub lines: f64,
}

impl Filled {
    /// The share of free lines that find no request: failed pops.
    pub fn failed_pops(self) -> f64 {
        1.0 - self.lines
    }
}

/// Moments that are simulated, after [`WARM_UP`] others.
const MOMENTS: u32 = 2_000;

/// Moments at the start, whose queues still remember that they were empty.
const WARM_UP: u32 = 200;

impl Queues {
    /// Simulates the client.
    ///
    /// ```
    /// use corelay_lab_report::model::queues::Queues;
    ///
    /// // One server: a queue that is full fills its lines if it is as long as they are many.
    /// let one = Queues { servers: 1, lines: 16, length: 32 };
    /// assert_eq!(one.filled().all, 1.0);
    /// assert_eq!(Queues { length: 8, ..one }.filled().all, 0.0);
    ///
    /// // Sixteen servers, as in the thesis: most lines find a request, but hardly ever all of them.
    /// let filled = Queues { servers: 16, ..one }.filled();
    /// assert!(filled.lines > 0.85 && filled.all < 0.1);
    /// ```
    pub fn filled(self) -> Filled {
        let mut random = Random::new(1);
        let mut held = vec![0usize; self.servers];
        let (mut all, mut each, mut lines) = (0u64, 0u64, 0u64);
        let mut moments = 0;
        while moments < WARM_UP + MOMENTS {
            let server = random.below(self.servers as u64) as usize;
            if held[server] == self.length {
                moments += 1;
                if moments > WARM_UP {
                    let full = held.iter().filter(|held| **held >= self.lines).count();
                    all += u64::from(full == self.servers);
                    each += full as u64;
                    lines += held
                        .iter()
                        .map(|held| *held.min(&self.lines) as u64)
                        .sum::<u64>();
                }
                for held in &mut held {
                    *held -= self.lines.min(*held);
                }
            }
            held[server] += 1;
        }
        let moments = f64::from(MOMENTS);
        let of_servers = moments * self.servers as f64;
        Filled {
            all: all as f64 / moments,
            each: each as f64 / of_servers,
            lines: lines as f64 / (of_servers * self.lines as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_queues_fill_more_lines() {
        let filled = |length| {
            Queues {
                servers: 16,
                lines: 16,
                length,
            }
            .filled()
        };
        let lengths = [2, 4, 8, 16, 32, 64].map(filled);
        for (short, long) in lengths.iter().zip(&lengths[1..]) {
            assert!(short.lines < long.lines && short.each <= long.each);
            assert!(long.all <= long.each && long.each <= long.lines);
        }
        // Queues shorter than the lines never fill them all.
        assert_eq!((lengths[2].all, lengths[2].each), (0.0, 0.0));
        // Two servers by hand: with one line and queues of one, the client draws each server once, or
        // one of them twice: that meets the full queue with the other empty in half of the cases.
        let two = Queues {
            servers: 2,
            lines: 1,
            length: 1,
        };
        assert!((two.filled().all - 0.5).abs() < 0.05, "{:?}", two.filled());
    }
}
