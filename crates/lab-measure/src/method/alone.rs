//! One thread that has all objects to itself and synchronises nothing: the baseline of the ways of
//! sharing ("single-threaded", the slides on ffwd).

use crate::method::{Contender, Kind, Method};
use crate::workload::operation::{Aligned, Answer, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The name of the baseline.
pub const NAME: &str = "alone";

/// The method `alone`.
pub const fn method<W: Workload>() -> Method<W> {
    let method = Method::new(NAME, Kind::Alone, |workload, point, _| {
        Ok(Box::new(Alone::new(workload, point)))
    });
    method.taking(size_of::<Aligned<W::Object>>() as u64)
}

/// The objects of one thread.
struct Alone<W: Workload> {
    workload: W,
    /// The client locks all objects once in a slice, not once in an operation.
    objects: Mutex<Box<[Aligned<W::Object>]>>,
}

impl<W: Workload> Alone<W> {
    fn new(workload: W, point: &Point) -> Self {
        let objects = (0..point.vars).map(|_| Aligned(workload.object()));
        Self {
            workload,
            objects: Mutex::new(objects.collect()),
        }
    }

    fn objects(&self) -> MutexGuard<'_, Box<[Aligned<W::Object>]>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Workload> Contender for Alone<W> {
    fn clients(&self) -> Range<usize> {
        0..1
    }

    fn client(&self, client: Client) -> u64 {
        let objects = &mut **self.objects();
        client.call_each(self.workload, |var, operation| {
            operation.run(&mut objects[var].0).number()
        })
    }

    fn total(&self) -> Result<u64, String> {
        let objects = self.objects();
        let seen = objects.iter().map(|object| self.workload.check(&object.0));
        seen.sum()
    }
}
