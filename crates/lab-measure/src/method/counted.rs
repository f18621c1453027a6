//! Any method, with its loads from memory counted: the wrapper behind the figure of DRAM loads
//! (D25).
//!
//! Servers are threads of the contender, so their loads are counted by a counter that is opened
//! before them and inherited. Clients are threads of the crew and older than that: each opens a
//! counter of its own while it runs. What is loaded while nothing runs (setting up, summing up)
//! is not counted.

use crate::measure::counters::{Counters, Counts};
use crate::method::{Contender, Method, Patience};
use crate::schema::{Loads, Trustee};
use crate::workload::fetch_add::FetchAdd;
use crate::workload::point::Point;
use crate::workload::random::Client;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counted contenders of fetch-add, by the method that they are.
pub struct Counted {
    inner: Box<dyn Contender>,
    tally: Mutex<Tally>,
}

struct Tally {
    /// Of whatever the contender's own threads load.
    servers: Counters,
    /// Their counts when the first client of a slice began.
    before: Counts,
    running: usize,
    loads: Counts,
    ops: u64,
}

impl Counted {
    /// Sets up `method` with counters around its threads.
    ///
    /// # Errors
    /// A sentence that says what could not be had.
    pub fn start(
        method: &Method,
        point: &Point,
        patience: &Patience,
    ) -> Result<Box<dyn Contender>, String> {
        let servers = Counters::inherited()?;
        let inner = method.build(FetchAdd, point, patience)?;
        Ok(Box::new(Self {
            inner,
            tally: Mutex::new(Tally {
                servers,
                before: Counts::default(),
                running: 0,
                loads: Counts::default(),
                ops: 0,
            }),
        }))
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contender for Counted {
    fn clients(&self) -> Range<usize> {
        self.inner.clients()
    }

    fn client(&self, client: Client) -> u64 {
        let mut own = Counters::own().ok();
        let begun = own.as_mut().map(Counters::read);
        {
            let mut tally = self.tally();
            if tally.running == 0 {
                tally.before = tally.servers.read();
            }
            tally.running += 1;
        }
        let ops = self.inner.client(client);
        let mut tally = self.tally();
        tally.running -= 1;
        tally.ops += ops;
        if let Some((own, begun)) = own.as_mut().zip(begun) {
            tally.loads += own.read() - begun;
        }
        if tally.running == 0 {
            let served = tally.servers.read() - tally.before;
            tally.loads += served;
        }
        ops
    }

    fn total(&self) -> Result<u64, String> {
        self.inner.total()
    }

    fn loads(&self) -> Option<Loads> {
        let tally = self.tally();
        let each = |count: u64| count as f64 / tally.ops as f64;
        (tally.ops > 0).then(|| Loads {
            local: each(tally.loads.local),
            remote: each(tally.loads.remote),
        })
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.inner.end()
    }
}
