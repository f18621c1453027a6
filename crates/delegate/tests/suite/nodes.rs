//! On a machine with several memory nodes, objects and rings lie where they are used. Elsewhere
//! this says nothing; `CORELAY_NODES=2` demands two nodes.

use crate::support::{start, watchdog};
use corelay_delegate::{ClientGuard, Trustees};
use corelay_topology::{PinGuard, Topology};
use std::sync::Barrier;
use std::thread;

#[test]
fn objects_and_rings_lie_on_the_nodes_of_their_threads() {
    let _watch = watchdog();
    let machine = Topology::current();
    let demanded = std::env::var("CORELAY_NODES").map_or(1, |nodes| nodes.parse().unwrap());
    let nodes = machine.nodes();
    assert!(
        nodes.len() >= demanded,
        "{} of {demanded} nodes",
        nodes.len()
    );
    let [one, other, ..] = nodes else { return };
    let cpu_of = |node: &corelay_topology::Node| node.cpus.iter().next().unwrap();
    // All threads live at the same time, and begin on their CPUs: an allocator gives what a thread
    // has touched and left behind to the next one.
    let start_on = |node| start(Trustees::dedicated(1).observe(true).pin([cpu_of(node)]));
    let turns = [[one, other], [other, one]].map(|turn| (turn, start_on(turn[0])));
    let both = Barrier::new(2);
    thread::scope(|s| {
        for ([trustee, client], trustees) in &turns {
            let _pinned = PinGuard::pin(cpu_of(client)).unwrap();
            s.spawn(|| {
                both.wait();
                check(trustees, trustee.id, client.id);
            });
        }
    });
}

/// Checks where a trustee's object, and the rings of the calling thread, lie.
fn check(trustees: &Trustees, trustee: usize, client: usize) {
    let _client = ClientGuard::named("client");
    let pages = trustees.entrust_with(|| [1_u64; 4096]).named("pages");
    pages.apply(|_| ());
    let report = trustees.report().trustees.remove(0);
    assert_eq!(report.node, Some(trustee));
    assert_eq!(report.objects[0].node, Some(trustee));
    let mut clients = report.clients.iter();
    let found = clients.find(|found| found.name.as_deref() == Some("client"));
    let found = found.unwrap();
    assert_eq!(found.node, Some(client));
    let places = found.places.as_ref().unwrap();
    assert_eq!(places.on(client), places.asked, "{places:?}");
}
