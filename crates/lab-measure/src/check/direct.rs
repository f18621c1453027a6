//! The method `direct`: threads use a concurrent structure as it is.

use super::structure::{Concurrent, Make};
use super::worker::Recorded;
use crate::method::{Contender, Entry, Form, Kind, Method, Schedule};
use crate::workload::operation::Answer;
use crate::workload::random::Client;
use std::ops::Range;

/// The name of the method of concurrent structures, which threads use as they are.
pub const NAME: &str = "direct";

/// The method `direct`.
pub(super) fn entry() -> Entry<Recorded> {
    Entry {
        method: Method::new(NAME, Kind::Direct, |workload, point, _| {
            let Make::Concurrent(make) = workload.structure.make else {
                let name = workload.structure.name;
                return Err(format!("`{name}` is not shared without a method"));
            };
            Ok(Box::new(Direct {
                workload,
                threads: point.threads,
                objects: (0..point.vars).map(|_| make()).collect(),
            }))
        }),
        form: Form::Waits,
        what: "no method: threads use a concurrent structure directly",
        compared: None,
        schedule: Schedule::Never("is checked only"),
    }
}

struct Direct {
    workload: Recorded,
    threads: usize,
    objects: Box<[Concurrent]>,
}

impl Contender for Direct {
    fn clients(&self) -> Range<usize> {
        0..self.threads
    }

    fn client(&self, client: Client) -> u64 {
        client.call_each(self.workload, |var, request| {
            let reply = self.objects[var](request.action);
            request.replied(reply).number()
        })
    }

    fn total(&self) -> Result<u64, String> {
        Ok(0)
    }
}
