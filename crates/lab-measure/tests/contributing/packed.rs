//! `packed-mutex`: the standard library's mutex, variables next to each other in memory.

use crate::method::{Contender, Kind, Method};
use crate::workload::operation::{Answer, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use std::ops::Range;
use std::sync::Mutex;

/// The method `packed-mutex`.
pub const fn packed_mutex<W: Workload>() -> Method<W> {
    Method::new("packed-mutex", Kind::Direct, |workload, point, _| {
        Ok(Box::new(Packed::new(workload, point)))
    })
    .taking(size_of::<Mutex<W::Object>>() as u64)
}

struct Packed<W: Workload> {
    workload: W,
    threads: usize,
    variables: Vec<Mutex<W::Object>>,
}

impl<W: Workload> Packed<W> {
    fn new(workload: W, point: &Point) -> Self {
        let variables = (0..point.vars).map(|_| Mutex::new(workload.object()));
        Self {
            workload,
            threads: point.threads,
            variables: variables.collect(),
        }
    }
}

impl<W: Workload> Contender for Packed<W> {
    /// All threads are clients.
    fn clients(&self) -> Range<usize> {
        0..self.threads
    }

    fn client(&self, client: Client) -> u64 {
        client.call_each(self.workload, |var, operation| {
            let mut object = self.variables[var].lock().expect("no operation panics");
            operation.run(&mut object).number()
        })
    }

    /// How many operations the objects have seen: a method that loses one has no figure.
    fn total(&self) -> Result<u64, String> {
        let seen = |variable: &Mutex<W::Object>| {
            let object = variable.lock().map_err(|_| "an operation has panicked")?;
            self.workload.check(&object)
        };
        self.variables.iter().map(seen).sum()
    }
}
