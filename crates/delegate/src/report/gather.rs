//! Makes a report from the state that trustees and clients have published.

use crate::dedicated::Trustees;
use crate::object::shared::Shared;
use crate::observe::counts::{Counts, SharedCounts};
use crate::observe::roster::{Connected, Lists, Name};
use crate::observe::sampler::Samples;
use crate::report::place::Surveyor;
use crate::report::{
    ClientObserved, ClientReport, ClosureReport, HeldReport, ObjectReport, Report, SLOWEST,
    TrusteeObserved, TrusteeReport, TypeReport,
};
use crate::wait_graph;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::NoSwitch;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

impl Trustees {
    /// Reports which trustee owns which objects for which clients, and where time goes, as it is
    /// now. See [`crate::report`] for the meaning of the figures.
    ///
    /// ```
    /// # use corelay_delegate::{ClientGuard, Trustees};
    /// let trustees = Trustees::dedicated(1).name("owner").observe(true).start()?;
    /// let hits = trustees.entrust(0u64).named("hits");
    /// let _client = ClientGuard::named("front end");
    /// hits.apply(|h| *h += 1);
    ///
    /// let report = trustees.report();
    /// println!("{report}"); // a table
    /// let owner = &report.trustees[0];
    /// assert_eq!(owner.name, "owner-0");
    /// assert_eq!((&*owner.objects[0].name, &*owner.objects[0].type_name), ("hits", "u64"));
    /// assert_eq!(owner.clients[0].name.as_deref(), Some("front end"));
    /// assert_eq!(owner.clients[0].queued, 0); // everything asked for has run
    /// assert!(report.to_json().starts_with(r#"{"nodes":"#));
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn report(&self) -> Report {
        NoSwitch::refuse("Trustees::report");
        self.reporter().report()
    }

    /// Returns a reporter, which makes reports also after these trustees have been shut down: for a
    /// thread that watches.
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, report::State};
    /// let trustees = Trustees::dedicated(1).start().unwrap();
    /// let reporter = trustees.reporter();
    /// trustees.shutdown();
    /// let over = reporter.report();
    /// assert_eq!(over.trustees[0].state, State::ShutDown);
    /// assert!(over.to_string().contains("shut down"));
    /// ```
    pub fn reporter(&self) -> Reporter {
        Reporter {
            trustees: self.members.iter().map(|m| Arc::clone(&m.shared)).collect(),
        }
    }
}

/// A source of reports, from [`Trustees::reporter`]. Keeps no trustee running.
#[derive(Clone)]
pub struct Reporter {
    trustees: Vec<Arc<Shared>>,
}

impl Reporter {
    /// Makes a report, like [`Trustees::report`].
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn report(&self) -> Report {
        NoSwitch::refuse("Reporter::report");
        let surveyor = Surveyor::new();
        let trustees = self.trustees.iter();
        Report {
            nodes: surveyor.nodes,
            trustees: trustees.map(|shared| trustee(shared, surveyor)).collect(),
        }
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.trustees.iter().map(|shared| &shared.name);
        f.debug_tuple("Reporter")
            .field(&names.collect::<Vec<_>>())
            .finish()
    }
}

fn trustee(shared: &Shared, surveyor: Surveyor) -> TrusteeReport {
    // Before the counters: those of a trustee that has ended are complete.
    let state = shared.report_state();
    // The lock is not held while the kernel is asked about addresses: clients that connect or leave
    // wait for it.
    let (types, clients, gone, gone_observed) = copy(&shared.roster.lists());
    let cpu = shared.settings.cpu;
    TrusteeReport {
        name: shared.name.clone(),
        state,
        cpu,
        node: surveyor.node_of_cpu(cpu),
        metrics: shared.counters.load(),
        objects: types.iter().flat_map(|of| of.named(surveyor)).collect(),
        unnamed: types.iter().filter_map(|of| of.unnamed(surveyor)).collect(),
        held: wait_graph::held(shared).into_iter().map(held).collect(),
        clients: clients.into_iter().map(|c| c.report(surveyor)).collect(),
        gone,
        window: shared.settings.window,
        observed: shared
            .samples
            .as_deref()
            .map(|samples| observed(samples, gone_observed)),
    }
}

fn held((name, waits_for): (String, Vec<String>)) -> HeldReport {
    HeldReport { name, waits_for }
}

/// The objects of one type as the roster lists them, copied so that its lock can be released.
struct OfType {
    type_name: &'static str,
    count: usize,
    names: Vec<(usize, Name)>,
    addresses: Vec<usize>,
}

/// A client as the roster lists it, copied so that its lock can be released.
struct Client {
    name: Option<Name>,
    queued: u32,
    cpu: Option<usize>,
    counts: Option<SharedCounts>,
}

fn copy(lists: &Lists) -> (Vec<OfType>, Vec<Client>, u64, ClientObserved) {
    let types = lists.types.iter().map(|(type_name, of)| OfType {
        type_name,
        count: of.count,
        names: of.names.iter().map(|(&at, n)| (at, n.clone())).collect(),
        addresses: of.addresses.clone(),
    });
    let clients = lists.clients.iter().map(|client: &Connected| Client {
        name: client.name.clone(),
        queued: client.channel().queued(),
        cpu: client.cpu,
        counts: client.counts.clone(),
    });
    (
        types.collect(),
        clients.collect(),
        lists.gone,
        lists.gone_observed,
    )
}

impl OfType {
    fn named(&self, surveyor: Surveyor) -> Vec<ObjectReport> {
        let report = |(at, name): &(usize, Name)| ObjectReport {
            name: name.to_string(),
            type_name: self.type_name.into(),
            node: surveyor.node_of(*at),
        };
        let mut named: Vec<_> = self.names.iter().map(report).collect();
        named.sort_by(|a, b| a.name.cmp(&b.name));
        named
    }

    fn unnamed(&self, surveyor: Surveyor) -> Option<TypeReport> {
        let count = self.count - self.names.len();
        (count > 0).then(|| TypeReport {
            type_name: self.type_name.into(),
            count,
            places: surveyor.places(self.addresses.iter().copied()),
        })
    }
}

impl Client {
    fn report(self, surveyor: Surveyor) -> ClientReport {
        let queues = |counts: &Counts| {
            // Relaxed: a figure.
            let addresses = counts.queues.iter().map(|at| at.load(Ordering::Relaxed));
            surveyor.places(addresses)
        };
        ClientReport {
            name: self.name.map(|name| name.to_string()),
            queued: self.queued,
            node: surveyor.node_of_cpu(self.cpu),
            places: self.counts.as_deref().and_then(|counts| queues(counts)),
            observed: self
                .counts
                .as_deref()
                .map(|counts| ClientObserved::read(counts)),
        }
    }
}

fn observed(samples: &Samples, gone: ClientObserved) -> TrusteeObserved {
    let all = samples.all();
    // The compiler may make several functions of one, or one of several with equal names.
    let mut by_name: BTreeMap<&'static str, ClosureReport> = BTreeMap::new();
    for taken in &all {
        let name = (taken.name)();
        let closure = by_name.entry(name).or_insert(ClosureReport {
            name: name.into(),
            samples: 0,
            total: Duration::ZERO,
            longest: Duration::ZERO,
        });
        closure.samples += taken.samples;
        closure.total += taken.total;
        closure.longest = closure.longest.max(taken.longest);
    }
    let mut slowest: Vec<_> = by_name.into_values().collect();
    slowest.sort_by_key(|closure| std::cmp::Reverse(closure.mean()));
    slowest.truncate(SLOWEST);
    TrusteeObserved {
        samples: all.iter().map(|taken| taken.samples).sum(),
        slowest,
        gone,
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;
    use corelay_topology::{node_of, node_of_cpu};

    /// A report as on a machine with several nodes: everything is looked at, and found where this
    /// machine has its memory.
    #[test]
    fn memory_nodes_are_looked_up() {
        let cpu = corelay_topology::current_cpu();
        let trustees = Trustees::dedicated(1).observe(true).pin(cpu).start();
        let trustees = trustees.expect("threads");
        let here = [0u64; 8];
        let node = node_of(&here);
        let known = usize::from(node.is_some());
        let _named = trustees.entrust([0u8; 3]).named("three");
        let many = trustees.entrust_all((0..100).map(|_| [0u8; 5]));
        for t in &many {
            t.apply_then(|five| five[0] = 1, |()| ());
        }
        crate::barrier().expect("all well");

        let several = Surveyor { nodes: Some(2) };
        let report = trustee(&trustees.members[0].shared, several);
        assert_eq!(report.objects[0].node.is_some(), node.is_some());
        let places = report.unnamed[0].places.as_ref().expect("looked at");
        let on_nodes = |known: &[(usize, usize)]| known.iter().map(|on| on.1).sum::<usize>();
        assert_eq!((places.asked, on_nodes(&places.by_node)), (16, 16 * known));
        let client = &report.clients[0];
        let places = client.places.as_ref().expect("looked at");
        assert_eq!((places.asked, on_nodes(&places.by_node)), (3, 3 * known));
        let near = cpu.and_then(node_of_cpu);
        assert_eq!((report.node, client.node), (near, near));
        if let (Some(1), Some(node)) = (corelay_topology::memory_nodes(), node) {
            assert_eq!((places.on(node), report.node), (3, Some(node)));
        }
    }

    #[test]
    fn slowest_come_first_and_one_name_once() {
        fn quick() -> &'static str {
            "quick"
        }
        fn slow() -> &'static str {
            "slow"
        }
        // Another function for a name that is there already.
        fn slow_too() -> &'static str {
            let name = "slowest";
            &name[..4]
        }
        let samples = Samples::default();
        for micros in [1, 2, 9] {
            samples.add(quick, 1, Duration::from_micros(micros));
        }
        samples.add(slow, 1, Duration::from_micros(5));
        samples.add(slow_too, 1, Duration::from_micros(7));
        let found = observed(&samples, ClientObserved::default());
        assert_eq!(found.samples, 5);
        let [first, second] = &found.slowest[..] else {
            panic!("two names, not {found:?}");
        };
        assert_eq!((&*first.name, first.samples), ("slow", 2));
        assert_eq!(first.mean(), Duration::from_micros(6));
        assert_eq!(
            (&*second.name, second.mean()),
            ("quick", Duration::from_micros(4))
        );
        assert_eq!(second.longest, Duration::from_micros(9));
    }
}
