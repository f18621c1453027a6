//! The orders of placement, asserted CPU by CPU.

use crate::tree::{
    Machine, Siblings, Tree, hybrid_laptop, many_caches, more_than_1024, two_sockets,
};
use corelay_topology::{CpuSet, Order, PlaceError, Topology};

fn sequence(tree: &Tree, order: Order) -> Vec<usize> {
    tree.topology()
        .sequence(&order)
        .expect("an order that fits")
}

fn chain<const N: usize>(ranges: [std::ops::Range<usize>; N]) -> Vec<usize> {
    ranges.into_iter().flatten().collect()
}

fn up_to(end: usize) -> Vec<usize> {
    (0..end).collect()
}

fn some(cpus: &[usize]) -> Vec<Option<usize>> {
    cpus.iter().copied().map(Some).collect()
}

#[test]
fn cores_first_on_two_sockets() {
    assert_eq!(
        sequence(&two_sockets().tree(), Order::CoresFirst),
        up_to(56)
    );
}

#[test]
fn fill_node_on_two_sockets() {
    let expected = chain([0..14, 28..42, 14..28, 42..56]);
    assert_eq!(sequence(&two_sockets().tree(), Order::FillNode), expected);
}

/// The thesis: "Threads are assigned in the order 0, 14, 1, 15, etc."
#[test]
fn sockets_on_two_sockets() {
    let machine = two_sockets().tree().topology();
    let placement = machine
        .place(&Order::Sockets, 3, 53)
        .expect("an order that fits");
    assert_eq!(placement.servers(), some(&[0, 14, 1]));
    let interleaved = |range: std::ops::Range<usize>| range.flat_map(|cpu| [cpu, cpu + 14]);
    let all: Vec<usize> = interleaved(0..14).chain(interleaved(28..42)).collect();
    assert_eq!(placement.clients(), some(&all[3..]));
    assert_eq!(placement.shared(), 0);
    assert_eq!(
        placement.notes(),
        ["56 CPUs on 28 cores: some are SMT siblings"]
    );
}

#[test]
fn adjacent_siblings_come_last_all_the_same() {
    let tree = Machine {
        siblings: Siblings::Adjacent,
        ..Machine::new(2, 2, 2)
    }
    .tree();
    assert_eq!(sequence(&tree, Order::CoresFirst), [0, 2, 4, 6, 1, 3, 5, 7]);
    assert_eq!(sequence(&tree, Order::FillNode), [0, 2, 1, 3, 4, 6, 5, 7]);
    assert_eq!(sequence(&tree, Order::Sockets), [0, 4, 2, 6, 1, 5, 3, 7]);
}

#[test]
fn eight_nodes() {
    let tree = many_caches().tree();
    assert_eq!(sequence(&tree, Order::CoresFirst), up_to(256));
    let node = |n: usize| [n * 16..n * 16 + 16, 128 + n * 16..128 + n * 16 + 16];
    let expected: Vec<usize> = (0..8).flat_map(node).flatten().collect();
    assert_eq!(sequence(&tree, Order::FillNode), expected);
    let interleaved = |range: std::ops::Range<usize>| range.flat_map(|cpu| [cpu, cpu + 64]);
    let expected: Vec<usize> = interleaved(0..64).chain(interleaved(128..192)).collect();
    assert_eq!(sequence(&tree, Order::Sockets), expected);
}

#[test]
fn fill_node_goes_to_the_nearest_node_next() {
    let tree = Machine::new(4, 2, 1).tree();
    tree.line("sys/devices/system/node/node0/distance", "10 31 21 21");
    assert_eq!(sequence(&tree, Order::FillNode), [0, 1, 4, 5, 6, 7, 2, 3]);
}

#[test]
fn fill_node_starts_where_most_cores_are() {
    let tree = two_sockets().tree();
    let mask: CpuSet = "0,28,14-16".parse().expect("a list");
    let machine = Topology::read_within(tree.root(), &mask);
    assert_eq!(
        machine.sequence(&Order::FillNode),
        Ok(vec![14, 15, 16, 0, 28])
    );
    assert_eq!(
        machine.sequence(&Order::CoresFirst),
        Ok(vec![0, 14, 15, 16, 28])
    );
}

/// Home is home even where the firmware's distances are nonsense.
#[test]
fn fill_node_starts_at_home_whatever_the_distances() {
    let tree = Machine::new(3, 1, 1).tree();
    tree.line("sys/devices/system/node/node0/distance", "90 20 10");
    assert_eq!(sequence(&tree, Order::FillNode), [0, 2, 1]);
}

/// Nodes stay together, whatever the CPUs are numbered.
#[test]
fn nodes_stay_together() {
    let tree = Machine {
        nodes: 2,
        ..Machine::new(1, 4, 1)
    }
    .tree();
    tree.line("sys/devices/system/node/node0/cpulist", "0,2");
    tree.line("sys/devices/system/node/node1/cpulist", "1,3");
    assert_eq!(sequence(&tree, Order::CoresFirst), [0, 2, 1, 3]);
}

/// Groups of cores that share a cache stay together, whatever the CPUs are numbered.
#[test]
fn neighbours_stay_together() {
    let tree = Machine::new(1, 4, 1).tree();
    for (cpu, group) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
        tree.line(
            &format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list"),
            group,
        );
    }
    assert_eq!(sequence(&tree, Order::CoresFirst), [0, 2, 1, 3]);
}

#[test]
fn four_sockets() {
    let tree = Machine::new(4, 2, 2).tree();
    assert_eq!(sequence(&tree, Order::CoresFirst), up_to(16));
    assert_eq!(
        sequence(&tree, Order::FillNode),
        [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]
    );
    assert_eq!(
        sequence(&tree, Order::Sockets),
        [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]
    );
}

/// The siblings of a small package come after the cores of a large one, and in turn too.
#[test]
fn sockets_of_unequal_size() {
    let tree = Machine::new(2, 4, 2).tree();
    let sockets = |mask: &str| {
        let mask: CpuSet = mask.parse().expect("a list");
        Topology::read_within(tree.root(), &mask)
            .sequence(&Order::Sockets)
            .expect("fits")
    };
    assert_eq!(sockets("0,8,4-6,12"), [0, 4, 5, 6, 8, 12]);
    assert_eq!(sockets("0-2,8-9,4-5,12-13"), [0, 4, 1, 5, 2, 8, 12, 9, 13]);
}

/// Phones number their slow cores first.
#[test]
fn fast_cores_come_first_whatever_their_number() {
    let tree = Machine::new(1, 4, 1).tree();
    for (cpu, capacity) in [250, 250, 1024, 700].into_iter().enumerate() {
        tree.line(
            &format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"),
            capacity,
        );
    }
    assert_eq!(sequence(&tree, Order::CoresFirst), [2, 3, 0, 1]);
    assert_eq!(sequence(&tree, Order::FillNode), [2, 3, 0, 1]);
}

#[test]
fn fast_cores_then_slow_cores_then_siblings() {
    let tree = hybrid_laptop();
    let expected = [0, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 1, 3, 5, 7];
    assert_eq!(sequence(&tree, Order::CoresFirst), expected);
    assert_eq!(sequence(&tree, Order::FillNode), expected);
    let machine = tree.topology();
    let notes = |clients| {
        machine
            .place(&Order::CoresFirst, 0, clients)
            .expect("fits")
            .notes()
            .to_vec()
    };
    assert_eq!(notes(4), [""; 0]);
    assert_eq!(notes(5), ["threads run on cores of different speed"]);
}

#[test]
fn holes_and_cpus_switched_off() {
    let tree = Machine {
        stride: 3,
        offline: vec![0, 3, 15],
        ..Machine::new(2, 2, 2)
    }
    .tree();
    assert_eq!(sequence(&tree, Order::CoresFirst), [12, 6, 9, 18, 21]);
    assert_eq!(sequence(&tree, Order::FillNode), [6, 9, 18, 21, 12]);
    assert_eq!(sequence(&tree, Order::Sockets), [12, 6, 9, 18, 21]);
}

#[test]
fn one_cpu_takes_all_threads() {
    let machine = Machine::new(1, 1, 1).tree().topology();
    let placement = machine
        .place(&Order::FillNode, 1, 2)
        .expect("an order that fits");
    assert_eq!(placement.cpus(), some(&[0, 0, 0]));
    assert_eq!(placement.shared(), 2);
    assert_eq!(
        placement.notes(),
        ["3 threads on 1 CPU: 2 share a CPU with an earlier one"]
    );
    assert_eq!(placement.to_string(), "servers on 0; clients on 0,0");
}

#[test]
fn more_threads_than_cpus_start_again() {
    let machine = Machine::new(2, 2, 1).tree().topology();
    let placement = machine
        .place(&Order::Sockets, 1, 5)
        .expect("an order that fits");
    assert_eq!(placement.cpus(), some(&[0, 2, 1, 3, 0, 2]));
    assert_eq!(placement.shared(), 2);
    assert_eq!(
        placement.notes(),
        ["6 threads on 4 CPUs: 2 share a CPU with an earlier one"]
    );
}

#[test]
fn an_explicit_list_is_taken_as_written() {
    let machine = two_sockets().tree().topology();
    let order: Order = "5,3,14-15,3".parse().expect("a list");
    let placement = machine.place(&order, 2, 4).expect("an order that fits");
    assert_eq!(placement.cpus(), some(&[5, 3, 14, 15, 3, 5]));
    assert_eq!(placement.shared(), 2);
    assert_eq!(
        placement.to_string(),
        "servers on 5,3; clients on 14-15,3,5"
    );
}

#[test]
fn an_explicit_list_outside_the_process_is_refused() {
    let tree = two_sockets().tree();
    let machine = Topology::read_within(tree.root(), &"0-3".parse().expect("a list"));
    let error = machine
        .place(&Order::Explicit(vec![2, 9, 4]), 1, 1)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "this process may not use CPU 4,9, only 0-3"
    );
    let beyond = machine.place(&Order::Explicit(vec![usize::MAX]), 1, 1);
    assert!(
        matches!(beyond, Err(PlaceError::NotUsable { .. })),
        "{beyond:?}"
    );
    assert_eq!(
        machine.place(&Order::Explicit(Vec::new()), 1, 1),
        Err(PlaceError::Empty)
    );
}

#[test]
fn an_unpinned_placement_says_so() {
    let machine = two_sockets().tree().topology();
    let placement = machine
        .place(&Order::None, 1, 1)
        .expect("an order that fits");
    assert_eq!(placement.cpus(), [None, None]);
    assert_eq!(
        (placement.shared(), placement.to_string().as_str()),
        (0, "not pinned")
    );
    assert_eq!(placement.notes(), ["threads are not pinned"]);
}

#[test]
fn one_package_cannot_show_sockets() {
    let machine = Machine::new(1, 4, 1).tree().topology();
    let placement = machine
        .place(&Order::Sockets, 1, 1)
        .expect("an order that fits");
    assert_eq!(
        placement.notes(),
        ["one package: `sockets` places as `cores-first` does"]
    );
}

#[test]
fn no_threads_give_an_empty_placement() {
    let machine = Machine::new(1, 2, 1).tree().topology();
    for order in [Order::None, Order::CoresFirst, Order::FillNode] {
        let placement = machine.place(&order, 0, 0).expect("an order that fits");
        assert!(
            placement.cpus().is_empty() && placement.notes().is_empty(),
            "{placement:?}"
        );
    }
}

#[test]
fn more_than_1024_cpus() {
    let tree = more_than_1024().tree();
    assert_eq!(sequence(&tree, Order::CoresFirst), up_to(1280));
    let all: CpuSet = sequence(&tree, Order::FillNode).into_iter().collect();
    assert_eq!(all.to_string(), "0-1279");
    assert_eq!(
        sequence(&tree, Order::Sockets)[..9],
        [0, 80, 160, 240, 320, 400, 480, 560, 1]
    );
}
