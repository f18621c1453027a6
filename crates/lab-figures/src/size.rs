//! The reader's size: the figures' parameters, scaled to the machine at hand.
//!
//! The thesis's machine runs 56 threads, 16 of them servers. Here there are as many threads as
//! CPUs (2 at least), placed as in the thesis: round-robin over sockets, servers first (D19).
//! More threads than CPUs would only measure the scheduler, so there are none.

use super::declare::{Cell, OfStructure};
use super::hyperthreads;
use corelay_lab_bench::fibres::method::Method as Runtime;
use corelay_lab_bench::fibres::session::Item as OfFibres;
use corelay_lab_bench::fibres::spec::{Bench, Length, Spec};
use corelay_lab_bench::ordered::contest::Entrant;
use corelay_lab_bench::ordered::{self, spec::Spec as Ordered};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::method::{self, Kind, METHODS, Method};
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::Choice;
use corelay_lab_measure::workload::structure::{SharedStructure, Structure};
use corelay_literature::Shape;
use corelay_topology::{Core, Order, Topology};
use std::sync::Arc;
use std::time::Duration;

/// The order of placement (D19).
pub const ORDER: Order = Order::Sockets;

/// The placement of fibres' processors (C7): one node without SMT siblings, then its siblings,
/// then further nodes.
const FIBRES_ORDER: Order = Order::FillNode;

/// Leaders of `transfer` in a sample, and in one of a smoke pass. Each takes up to about 20 ms.
const LEADERS: u64 = 500;
const LEADERS_SHORT: u64 = 50;

/// The most threads of any figure, more than machines have.
const MOST_THREADS: usize = 1024;

/// The size of the figures on one machine: its CPUs and threads.
#[derive(Clone, Debug)]
pub struct Size {
    /// CPUs of this process.
    pub cpus: usize,
    /// Threads, servers included.
    pub threads: usize,
    /// CPUs of this process in the first socket, where there are several sockets.
    pub(crate) socket: Option<usize>,
    /// Whether this is a smoke pass, with fewer points.
    pub(crate) short: bool,
    placement: Arc<[Option<usize>]>,
    /// CPUs for the processors of fibres.
    processors: Arc<[Option<usize>]>,
    processor_notes: Vec<String>,
    notes: Vec<String>,
    /// Pairs of CPUs for one server and one client, by what lies between them.
    pairs: Vec<(&'static str, Pair)>,
}

/// The CPUs of one server and one client.
pub(super) type Pair = [Option<usize>; 2];

/// Finds pairs of CPUs on one core, on two cores of a socket, and on two sockets, where there are such.
fn pairs(topology: &Topology) -> Vec<(&'static str, Pair)> {
    let cores = topology.cores();
    let Some(first) = cores.first() else {
        return Vec::new();
    };
    let sibling = first.cpus.iter().nth(1);
    let of = |wanted: &dyn Fn(&Core) -> bool| {
        let core = cores[1..].iter().find(|core| wanted(core))?;
        core.cpus.first()
    };
    let found = [
        (hyperthreads::ONE_CORE, sibling),
        (
            hyperthreads::TWO_CORES,
            of(&|core| core.package == first.package),
        ),
        (
            hyperthreads::TWO_SOCKETS,
            of(&|core| core.package != first.package),
        ),
    ];
    let pair = |(label, other): (&'static str, Option<usize>)| {
        Some((label, [first.cpus.first(), Some(other?)]))
    };
    found.into_iter().filter_map(pair).collect()
}

impl Size {
    /// Returns the size for `host`.
    ///
    /// # Errors
    /// A sentence that says why threads cannot be placed.
    pub fn of(host: &Host, short: bool) -> Result<Self, String> {
        let cpus = host.topology.parallelism().max(1);
        let threads = cpus.clamp(2, MOST_THREADS);
        let placement = host.place(&ORDER, threads)?;
        let processors = host.place(&FIBRES_ORDER, cpus.min(MOST_THREADS))?;
        let sockets = host.topology.packages();
        let socket = sockets.first().filter(|_| sockets.len() > 1);
        Ok(Self {
            cpus,
            threads,
            socket: socket.map(|socket| socket.cpus.len().min(threads)),
            short,
            placement: placement.cpus().into(),
            processors: processors.cpus().into(),
            processor_notes: processors.notes().to_vec(),
            notes: placement.notes().to_vec(),
            pairs: pairs(&host.topology),
        })
    }

    /// Returns a made-up size, for tests.
    #[cfg(test)]
    pub(crate) fn test(cpus: usize) -> Self {
        Self {
            cpus,
            threads: cpus.max(2),
            socket: (cpus >= 4).then_some(cpus / 2),
            short: true,
            placement: vec![None; cpus.max(2)].into(),
            processors: vec![None; cpus].into(),
            processor_notes: Vec::new(),
            notes: Vec::new(),
            pairs: pairs(&Topology::regular(2, cpus.div_ceil(4), 2)),
        }
    }

    /// Returns the numbers of servers to measure, ascending: 1, quarters of the threads, all but
    /// one.
    pub(super) fn servers(&self) -> Vec<usize> {
        let all = self.threads;
        let mut servers = vec![1, all / 8, all / 4, all / 2, 3 * all / 4, all - 1];
        servers.retain(|&n| (1..all).contains(&n));
        servers.sort_unstable();
        servers.dedup();
        servers
    }

    /// Returns the number of servers of figures that have one number: the thesis's share, 16 of
    /// 56.
    pub(super) fn usual_servers(&self) -> usize {
        usual_servers(self.threads)
    }

    /// Returns the numbers of threads to measure, ascending, from `least`.
    pub(super) fn threads_from(&self, least: usize) -> Vec<usize> {
        let powers = (0..).map(|shift| 1usize << shift);
        let mut threads: Vec<usize> = powers.take_while(|&n| n < self.threads).collect();
        threads.push(self.threads);
        threads.retain(|&n| n >= least);
        threads
    }

    /// Returns the numbers of fibres' processors to measure, ascending, from `least`, at most the
    /// CPUs.
    pub(super) fn processors_from(&self, least: usize) -> Vec<usize> {
        let most = self.processors.len();
        let mut processors = self.threads_from(least);
        processors.retain(|&p| p <= most);
        processors
    }

    /// Returns the numbers of variables, every power of two from 1 to 2^22 (D16).
    pub(super) fn vars(&self) -> Vec<u64> {
        let (last, step) = if self.short { (18, 3) } else { (22, 1) };
        (0..=last).step_by(step).map(|shift| 1 << shift).collect()
    }

    /// Makes a contender at the most threads.
    pub(super) fn cell(
        &self,
        x: impl Into<f64>,
        method: Method,
        servers: usize,
        vars: u64,
    ) -> Cell {
        self.cell_of(self.threads, x, method, servers, vars)
    }

    /// Makes a contender at so many threads.
    pub(super) fn cell_of(
        &self,
        threads: usize,
        x: impl Into<f64>,
        method: Method,
        servers: usize,
        vars: u64,
    ) -> Cell {
        let mut point = self.point(threads, servers, vars);
        let mut notes = self.notes.clone();
        notes.extend(point.even_out(&method));
        let item = Item {
            method,
            point,
            notes,
        };
        Cell::new(x, item)
    }

    /// Returns the pairs of CPUs for one server and one client, by what lies between them.
    pub(super) fn pairs(&self) -> &[(&'static str, Pair)] {
        &self.pairs
    }

    /// Makes a contender of one server and one client on these CPUs, on one variable.
    pub(super) fn cell_on(&self, pair: Pair, x: f64, method: Method) -> Cell {
        let point = Point {
            placement: pair.into(),
            ..self.point(2, 1, 1)
        };
        let item = Item {
            method,
            point,
            notes: Vec::new(),
        };
        Cell::new(x, item)
    }

    /// Makes a contender that shares so many structures, at its place on the axis of threads. Half
    /// of the threads are servers, but no more than there are structures.
    pub(super) fn structures<S: Structure>(
        &self,
        threads: usize,
        workload: SharedStructure<S>,
        method: Method<SharedStructure<S>>,
        vars: u64,
    ) -> Cell {
        let servers = (threads / 2).clamp(1, vars as usize);
        let item = Item {
            method: method.with_heap(workload.bytes()),
            point: self.point(threads, servers, vars),
            notes: self.notes.clone(),
        };
        Cell::of_structure(threads as f64, OfStructure { workload, item })
    }

    /// Makes a contender at the most threads that shares the variables of the thesis's second chapter.
    pub(super) fn cell_per_server(
        &self,
        x: impl Into<f64>,
        method: Method,
        servers: usize,
    ) -> Cell {
        self.cell_per_server_of(self.threads, x, method, servers)
    }

    /// Makes a contender at so many threads that shares the variables of the thesis's second chapter:
    /// one of 64 bytes for each server, that is for each thread of a flat team ("More Concurrency with
    /// Request Lines").
    pub(super) fn cell_per_server_of(
        &self,
        threads: usize,
        x: impl Into<f64>,
        method: Method,
        servers: usize,
    ) -> Cell {
        let vars = match method.kind() {
            Kind::Flat => threads,
            _ => servers.max(1),
        };
        self.cell_of(threads, x, method, servers, vars as u64)
    }

    fn point(&self, threads: usize, servers: usize, vars: u64) -> Point {
        Point {
            threads,
            servers,
            vars,
            window: 256,
            load: None,
            lines: Shape::DEFAULT,
            fibres: 0,
            choice: Choice::Uniform,
            seed: 1,
            placement: Arc::clone(&self.placement),
        }
    }

    /// Makes a benchmark of one runtime's fibres on so many processors, at that place of the
    /// axis.
    pub(super) fn fibres(
        &self,
        method: Runtime,
        bench: Bench,
        processors: usize,
        fibres: usize,
        size: &str,
    ) -> Cell {
        let length = match bench {
            Bench::Transfer { .. } if self.short => Length::Iterations(LEADERS_SHORT),
            Bench::Transfer { .. } => Length::Iterations(LEADERS),
            _ => Length::Time(Duration::from_secs(1)),
        };
        let item = OfFibres {
            method,
            spec: Spec {
                bench,
                processors,
                fibres,
                length,
                seed: 1,
                chains: false,
            },
            size: size.to_owned(),
            placement: self.processors[..processors].to_vec(),
            notes: self.processor_notes.clone(),
        };
        Cell::of_fibres(processors as f64, item)
    }
}

impl Size {
    /// Makes a workload that a clock orders, with so many threads, at `x`.
    pub(super) fn ordered(
        &self,
        x: impl Into<f64>,
        spec: Ordered,
        method: &str,
        threads: usize,
    ) -> Cell {
        self.ordered_on(&self.placement, x, spec, method, threads)
    }

    /// Makes a workload that a clock orders, on all CPUs of a socket. `None` if there is only one.
    pub(super) fn ordered_on_socket(
        &self,
        x: impl Into<f64>,
        spec: Ordered,
        method: &str,
    ) -> Option<Cell> {
        let threads = self.socket?;
        Some(self.ordered_on(&self.processors, x, spec, method, threads))
    }

    fn ordered_on(
        &self,
        placement: &[Option<usize>],
        x: impl Into<f64>,
        spec: Ordered,
        method: &str,
        threads: usize,
    ) -> Cell {
        let method = ordered::method::named(spec.bench, method);
        let entrant = Entrant {
            spec,
            method: method.expect("a figure names methods that there are"),
            point: Point {
                threads,
                servers: 1,
                vars: 1,
                window: 1,
                load: None,
                lines: Shape::DEFAULT,
                fibres: 0,
                choice: Choice::Uniform,
                seed: 1,
                placement: placement[..threads].into(),
            },
            notes: self.notes.clone(),
        };
        Cell::ordered(x, entrant)
    }
}

/// Returns the thesis's share of servers, 16 of 56, of so many threads.
pub(super) fn usual_servers(threads: usize) -> usize {
    (threads * 16 / 56).max(1)
}

/// Returns the method of that name, which may contain parameters.
pub(super) fn named(name: &str) -> Method {
    let method = method::named(&METHODS, name).and_then(Result::ok);
    method.expect("a figure names methods that there are")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_where_there_are_such() {
        let of = |sockets, cores, threads| -> Vec<(&str, Pair)> {
            pairs(&Topology::regular(sockets, cores, threads))
        };
        let [one, cores, sockets] = &*of(2, 14, 2) else {
            panic!("three pairs")
        };
        assert_eq!(one.0, hyperthreads::ONE_CORE);
        assert_eq!(
            (cores.0, sockets.0),
            (hyperthreads::TWO_CORES, hyperthreads::TWO_SOCKETS)
        );
        assert!(one.1 != cores.1 && cores.1 != sockets.1);
        assert_eq!(of(1, 2, 1).len(), 1);
        assert!(of(1, 1, 1).is_empty());
    }

    #[test]
    fn servers_leave_a_client() {
        assert_eq!(Size::test(2).servers(), [1]);
        assert_eq!(Size::test(4).servers(), [1, 2, 3]);
        assert_eq!(Size::test(56).servers(), [1, 7, 14, 28, 42, 55]);
        assert_eq!(Size::test(2).usual_servers(), 1);
        assert_eq!(Size::test(56).usual_servers(), 16);
        assert!((1..300).all(|n| {
            let size = Size::test(n);
            size.usual_servers() < size.threads
        }));
    }

    #[test]
    fn the_second_chapter_has_a_variable_for_each_server() {
        let size = Size::test(8);
        let vars = |name, servers| {
            let cell = size.cell_per_server_of(6, 0.0, named(name), servers);
            cell.work.sharing().map(|item| item.point.vars)
        };
        assert_eq!(vars("trust-then", 2), Some(2));
        assert_eq!(vars("flat-adaptive", 0), Some(6));
        assert_eq!(vars("flat-adaptive", 2), Some(6));
    }

    #[test]
    fn threads_end_with_all() {
        assert_eq!(Size::test(2).threads_from(1), [1, 2]);
        assert_eq!(Size::test(56).threads_from(2), [2, 4, 8, 16, 32, 56]);
        assert_eq!(Size::test(64).threads_from(1), [1, 2, 4, 8, 16, 32, 64]);
    }
}
