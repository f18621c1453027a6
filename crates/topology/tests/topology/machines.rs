//! Topologies that are read from the trees of whole machines.

use crate::tree::{Machine, Siblings, hybrid_laptop, many_caches, more_than_1024, two_sockets};
use corelay_topology::{CacheKind, CacheLevel, CpuSet, Topology};

fn set(list: &str) -> CpuSet {
    list.parse().expect("a list of CPUs")
}

fn counts(machine: &Topology) -> (usize, usize, usize, usize) {
    (
        machine.packages().len(),
        machine.nodes().len(),
        machine.cores().len(),
        machine.cpus().len(),
    )
}

/// (level, bytes, sharers, instances) of the caches that hold data.
fn data_caches(machine: &Topology) -> Vec<(u32, u64, usize, usize)> {
    let row = |c: &CacheLevel| (c.level, c.bytes.expect("a size"), c.sharers, c.instances);
    let levels = machine.cache_levels();
    levels
        .iter()
        .filter(|c| c.kind != CacheKind::Instruction)
        .map(row)
        .collect()
}

#[test]
fn two_sockets_with_a_node_each() {
    let machine = two_sockets().tree().topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(counts(&machine), (2, 2, 28, 56));
    assert_eq!(machine.usable(), &set("0-55"));
    assert_eq!(machine.packages()[1].cpus, set("14-27,42-55"));
    assert_eq!(machine.nodes()[0].cpus, set("0-13,28-41"));
    assert_eq!(machine.core_of(28).expect("a core").cpus, set("0,28"));
    assert_eq!(machine.cpu(28).map(|cpu| cpu.smt), Some(1));
    assert_eq!(machine.node_of(14), Some(1));
    assert_eq!(machine.node_of(56), None);
    assert_eq!(
        (machine.distance(0, 0), machine.distance(0, 1)),
        (Some(10), Some(32))
    );
    assert_eq!(machine.distance(0, 2), None);
    let expected = [
        (1, 32 << 10, 2, 28),
        (2, 1 << 20, 2, 28),
        (3, 19_712 << 10, 28, 2),
    ];
    assert_eq!(data_caches(&machine), expected);
    let last = machine.last_level_of(55).expect("a cache");
    assert_eq!((last.level, last.line_bytes), (3, Some(64)));
    assert_eq!(last.cpus, set("14-27,42-55"));
    assert!(machine.has_smt() && !machine.is_hybrid());
    assert_eq!((machine.quota_cpus(), machine.parallelism()), (None, 56));
}

#[test]
fn eight_nodes_and_32_last_level_caches() {
    let machine = many_caches().tree().topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(counts(&machine), (2, 8, 128, 256));
    assert_eq!(
        data_caches(&machine).last(),
        Some(&(3, 19_712 << 10, 8, 32))
    );
    assert_eq!(machine.nodes()[5].cpus, set("80-95,208-223"));
    assert_eq!(
        machine.last_level_of(131).expect("a cache").cpus,
        set("0-3,128-131")
    );
    let to = |node| machine.distance(1, node).expect("a distance");
    assert_eq!((to(1), to(3), to(4)), (10, 12, 32));
}

#[test]
fn four_sockets() {
    let machine = Machine::new(4, 24, 2).tree().topology();
    assert_eq!(counts(&machine), (4, 4, 96, 192));
    assert_eq!(machine.packages()[3].cpus, set("72-95,168-191"));
    assert_eq!(
        machine
            .cpu(168)
            .map(|cpu| (cpu.package, cpu.node, cpu.core)),
        Some((3, 3, 72))
    );
}

#[test]
fn hybrid_laptop_by_kind_of_core() {
    let machine = hybrid_laptop().topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(counts(&machine), (1, 1, 12, 16));
    assert!(machine.is_hybrid());
    let tiers: Vec<usize> = machine.cpus().iter().map(|cpu| cpu.tier).collect();
    assert_eq!(tiers, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    let l2 = machine
        .cache_levels()
        .into_iter()
        .filter(|cache| cache.level == 2);
    let l2: Vec<_> = l2
        .map(|cache| (cache.bytes, cache.sharers, cache.instances))
        .collect();
    assert_eq!(l2, [(Some(1280 << 10), 2, 4), (Some(2048 << 10), 4, 2)]);
}

#[test]
fn hybrid_machine_with_unusable_fast_cores() {
    let tree = hybrid_laptop();
    let machine = Topology::read_within(tree.root(), &set("9-11"));
    assert!(
        !machine.is_hybrid(),
        "cores that cannot be used do not count"
    );
    assert_eq!(machine.cpus()[0].tier, 0);
}

#[test]
fn hybrid_machine_by_capacity() {
    let tree = Machine::new(1, 8, 1).tree();
    // One prime core, three big ones of which the firmware favours some a little, four small.
    for (cpu, capacity) in [300, 300, 300, 300, 850, 855, 860, 1024]
        .into_iter()
        .enumerate()
    {
        tree.line(
            &format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"),
            capacity,
        );
    }
    let tiers: Vec<usize> = tree.topology().cpus().iter().map(|cpu| cpu.tier).collect();
    assert_eq!(tiers, [2, 2, 2, 2, 1, 1, 1, 0]);
}

#[test]
fn one_cpu() {
    let machine = Machine::new(1, 1, 1).tree().topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(counts(&machine), (1, 1, 1, 1));
    assert_eq!(machine.parallelism(), 1);
    assert!(!machine.has_smt());
}

#[test]
fn more_than_1024_cpus() {
    let machine = more_than_1024().tree().topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(counts(&machine), (8, 8, 640, 1280));
    assert_eq!(machine.core_of(1279).expect("a core").cpus, set("639,1279"));
    assert_eq!(machine.node_of(1279), Some(7));
}

#[test]
fn adjacent_siblings() {
    let machine = Machine {
        siblings: Siblings::Adjacent,
        ..Machine::new(2, 2, 4)
    }
    .tree()
    .topology();
    assert_eq!(machine.core_of(6).expect("a core").cpus, set("4-7"));
    let smt: Vec<usize> = machine.cpus().iter().map(|cpu| cpu.smt).collect();
    assert_eq!(smt, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn holes_in_the_numbers_and_cpus_switched_off() {
    let machine = Machine {
        stride: 3,
        // The first CPU of core 0, and both of core 1.
        offline: vec![0, 3, 15],
        ..Machine::new(2, 2, 2)
    };
    let machine = machine.tree().topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(machine.usable(), &set("6,9,12,18,21"));
    assert_eq!(machine.offline(), &set("0,3,15"));
    assert_eq!(counts(&machine), (2, 2, 3, 5));
    let sibling = machine.cpu(12).expect("a CPU");
    assert_eq!(
        (sibling.smt, sibling.package),
        (0, 0),
        "its sibling is off, so it comes first"
    );
    assert_eq!(machine.core_of(21).expect("a core").cpus, set("9,21"));
}

#[test]
fn only_what_the_affinity_mask_permits() {
    let tree = two_sockets().tree();
    let machine = Topology::read_within(tree.root(), &set("13,14,28,42,99"));
    assert_eq!(machine.usable(), &set("13-14,28,42"));
    assert_eq!(machine.online().len(), 56);
    assert_eq!(counts(&machine), (2, 2, 3, 4));
    let last = machine.last_level_of(13).expect("a cache");
    assert_eq!((last.sharers, &last.cpus), (28, &set("13,28")));
    assert_eq!(machine.cpu(0), None);
}

/// Only the second CPU of the first core is ours: it is numbered after the second core's.
#[test]
fn cores_go_by_their_first_usable_cpu() {
    let tree = Machine::new(1, 2, 2).tree();
    let machine = Topology::read_within(tree.root(), &set("1-2"));
    let cores: Vec<String> = machine
        .cores()
        .iter()
        .map(|core| core.cpus.to_string())
        .collect();
    assert_eq!(cores, ["1", "2"]);
}

#[test]
fn a_node_of_memory_without_cpus() {
    let tree = Machine::new(1, 2, 1).tree();
    tree.line("sys/devices/system/node/node0/distance", "10 20");
    tree.line("sys/devices/system/node/node2/cpulist", "");
    tree.line("sys/devices/system/node/node2/distance", "20 10");
    let machine = tree.topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(machine.nodes().len(), 1);
    assert_eq!(machine.distance(0, 2), Some(20));
}

#[test]
fn this_machine() {
    let machine = Topology::current();
    assert!(!machine.cpus().is_empty() && !machine.nodes().is_empty());
    if let Ok(mask) = corelay_topology::affinity() {
        assert!(machine.usable().is_subset(&mask));
    }
    for cpu in machine.cpus() {
        assert!(machine.cores()[cpu.core].cpus.contains(cpu.id));
        assert_eq!(
            machine
                .packages()
                .iter()
                .filter(|p| p.cpus.contains(cpu.id))
                .count(),
            1
        );
        assert_eq!(
            machine
                .nodes()
                .iter()
                .filter(|n| n.cpus.contains(cpu.id))
                .count(),
            1
        );
    }
}
