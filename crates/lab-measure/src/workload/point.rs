//! The parameters of a run, whatever its workload.
//!
//! When `bench` measures throughput, the number of variables is rounded up to a multiple of the
//! threads, so that each member of a flat team has as many (D18, flat). When methods are compared
//! on the same variables (`compare`, and any load), the number stays as it is; some members have
//! one variable more than others, or one member has the only variable.
//!
//! Trustees beyond the number of variables would have no work, so the number of trustees is at
//! most that of variables (D18, dedicated). The freed threads become clients, so that `threads`
//! stays as asked for.

use crate::method::{Kind, Method};
use crate::workload::random::Choice;
use corelay_literature::Shape;
use std::sync::Arc;

/// The largest number of variables: 2^32 objects of one line each are 256 GiB.
pub const MAX_VARS: u64 = 1 << 32;

/// A point of the sweep: the parameters of one method, as used.
#[derive(Clone, Debug)]
pub struct Point {
    /// Number of all threads, servers included.
    pub threads: usize,
    /// Number of trustees among them; 0 if the method has none.
    pub servers: usize,
    /// Number of shared variables.
    pub vars: u64,
    /// Requests in flight per client and trustee.
    pub window: usize,
    /// Operations per second that arrive at all clients together (the workload
    /// [`latency`](super::latency)); `None` for a closed loop, where each operation follows the
    /// previous one at once.
    pub load: Option<u64>,
    /// Request lines and pending queue; set from the method when it is built.
    pub lines: Shape,
    /// Fibres per client; set from the method when it is built.
    pub fibres: usize,
    /// The distribution by which variables are chosen.
    pub choice: Choice,
    /// Seed of the random generators.
    pub seed: u64,
    /// CPU of each thread, servers first; `None` for a thread that is not pinned.
    pub placement: Arc<[Option<usize>]>,
}

impl Point {
    /// A small point: one variable, one server, and threads that are not pinned.
    pub fn small(threads: usize) -> Self {
        Self {
            threads,
            servers: 1,
            vars: 1,
            window: 8,
            load: None,
            lines: Shape::default(),
            fibres: 0,
            choice: Choice::Uniform,
            seed: 1,
            placement: vec![None; threads].into(),
        }
    }

    /// Adjusts the number of threads to the method, and the number of servers also to the number of
    /// variables. Returns a sentence for the result if that took threads away, or servers from a
    /// method that has them (D18).
    pub(crate) fn adjust<W>(&mut self, method: &Method<W>) -> Option<String> {
        if method.kind() == Kind::Alone {
            let asked = std::mem::replace(&mut self.threads, 1);
            self.servers = 0;
            return (asked > 1).then(|| {
                format!("one thread instead of {asked}, because nothing synchronises several")
            });
        }
        if !method.is_dedicated() {
            self.servers = 0;
            return None;
        }
        let asked = self.servers;
        self.servers = asked.min(usize::try_from(self.vars).unwrap_or(usize::MAX));
        (self.servers < asked).then(|| {
            format!(
                "servers reduced from {asked} to {}, the number of variables; the others are clients",
                self.servers
            )
        })
    }

    /// Rounds the variables up for a flat team, so that each member has as many. Returns a sentence
    /// for the result if that changed their number (D18).
    pub fn even_out<W>(&mut self, method: &Method<W>) -> Option<String> {
        let (threads, asked) = (self.threads as u64, self.vars);
        if method.kind() == Kind::Flat {
            self.vars = asked.next_multiple_of(threads);
        }
        (self.vars > asked).then(|| {
            format!(
                "variables rounded up from {asked} to {}, as many for each of {threads} members",
                self.vars
            )
        })
    }

    /// The number of variables as a `usize`; it was checked against [`MAX_VARS`] and memory.
    pub(crate) fn vars_len(&self) -> usize {
        usize::try_from(self.vars).expect("the number of variables was checked against memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{Entry, METHODS};

    #[test]
    fn only_even_out_changes_the_variables_of_a_flat_team() {
        for Entry { method, .. } in METHODS.iter() {
            let mut point = Point {
                servers: 2,
                vars: 4,
                ..Point::small(3)
            };
            let is_alone = method.kind() == Kind::Alone;
            assert_eq!(point.adjust(method).is_some(), is_alone);
            assert_eq!(
                (point.vars, point.threads == 1),
                (4, is_alone),
                "{method:?}"
            );
            let told = point.even_out(method);
            match method.kind() {
                Kind::Flat => assert!(point.vars == 6 && told.unwrap().contains("from 4 to 6")),
                _ => assert!(point.vars == 4 && told.is_none()),
            }
        }
    }
}
