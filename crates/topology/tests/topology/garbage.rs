//! Files and folders that are missing or hold garbage: noted, never a panic.

use crate::tree::{Machine, Tree, hybrid_laptop, two_sockets};
use corelay_topology::{CpuSet, Order, Topology};
use proptest::prelude::*;
use std::path::PathBuf;

const CPUS: &str = "sys/devices/system/cpu";

fn counts(machine: &Topology) -> (usize, usize, usize, usize) {
    (
        machine.packages().len(),
        machine.nodes().len(),
        machine.cores().len(),
        machine.cpus().len(),
    )
}

#[test]
fn an_empty_tree_is_one_cpu() {
    let machine = Tree::empty().topology();
    assert_eq!(counts(&machine), (1, 1, 1, 1));
    assert_eq!(machine.last_level_of(0), None);
    assert_eq!(machine.sequence(&Order::FillNode), Ok(vec![0]));
    let expected = [
        "sys/devices/system/cpu/online is missing, and there are no folders of CPUs; taken as CPU 0",
        "proc/self/cgroup is missing; no limits of a control group are known",
        "sys/devices/system/node has no folders of NUMA nodes; taken as one node",
        "CPU 0: no caches are listed",
        "CPU 0: no folder `topology`; taken as a core of its own in package 0",
    ];
    assert_eq!(machine.unavailable(), expected);
    assert_eq!(Topology::read("/no/such/folder").unavailable(), expected);
}

#[test]
fn nothing_but_an_affinity_mask() {
    let mask: CpuSet = "3,2000".parse().expect("a list");
    let machine = Topology::read_within(Tree::empty().root(), &mask);
    assert_eq!(machine.usable(), &mask);
    assert_eq!(counts(&machine), (1, 1, 2, 2));
    let none = Topology::read_within(Tree::empty().root(), &CpuSet::new());
    assert_eq!(none.usable().to_string(), "0");
}

#[test]
fn no_list_of_online_cpus() {
    let tree = Machine {
        offline: vec![3],
        ..Machine::new(1, 4, 1)
    }
    .tree();
    tree.remove("sys/devices/system/cpu/online");
    let machine = tree.topology();
    assert_eq!(machine.usable().to_string(), "0-2");
    let expected =
        "sys/devices/system/cpu/online is missing; CPUs are taken from the folders there";
    assert_eq!(machine.unavailable(), [expected]);
}

#[test]
fn no_caches() {
    let tree = two_sockets().tree();
    for cpu in 0..56 {
        tree.remove(&format!("{CPUS}/cpu{cpu}/cache"));
    }
    let machine = tree.topology();
    assert_eq!(machine.unavailable(), ["CPU 0-55: no caches are listed"]);
    assert!(machine.caches().is_empty() && machine.last_level_of(0).is_none());
    assert_eq!(machine.sequence(&Order::CoresFirst), Ok((0..56).collect()));
}

#[test]
fn no_last_level_cache_on_some() {
    let tree = Machine::new(1, 2, 1).tree();
    tree.remove(&format!("{CPUS}/cpu1/cache/index3"));
    let machine = tree.topology();
    let level = |cpu| machine.last_level_of(cpu).map(|cache| cache.level);
    assert_eq!((level(0), level(1)), (Some(3), Some(2)));
    for index in [0, 2] {
        tree.remove(&format!("{CPUS}/cpu1/cache/index{index}"));
    }
    let machine = tree.topology();
    assert_eq!(
        machine.last_level_of(1),
        None,
        "instructions are not shared data"
    );
}

#[test]
fn no_nodes() {
    let tree = two_sockets().tree();
    tree.remove("sys/devices/system/node");
    let machine = tree.topology();
    assert_eq!(counts(&machine), (2, 1, 28, 56));
    let expected = "sys/devices/system/node has no folders of NUMA nodes; taken as one node";
    assert_eq!(machine.unavailable(), [expected]);
    assert_eq!(machine.sequence(&Order::FillNode), Ok((0..56).collect()));
}

#[test]
fn a_node_short_of_cpus_and_distances() {
    let tree = Machine::new(2, 2, 1).tree();
    tree.line("sys/devices/system/node/node0/cpulist", "0");
    tree.line("sys/devices/system/node/node1/cpulist", "0,2-3");
    tree.line("sys/devices/system/node/node1/distance", "10");
    let machine = tree.topology();
    assert_eq!(machine.nodes()[0].cpus.to_string(), "0-1");
    assert_eq!(machine.nodes()[1].cpus.to_string(), "2-3");
    let expected = [
        "sys/devices/system/node/node1/distance has 1 figures for 2 nodes; the distances of node 1 are unknown",
        "CPU 1: in no NUMA node; taken as one of node 0",
    ];
    assert_eq!(machine.unavailable(), expected);
}

/// Arm without firmware tables: packages are numbered -1.
#[test]
fn packages_unknown() {
    let tree = Machine::new(1, 4, 1).tree();
    for cpu in 0..4 {
        tree.line(&format!("{CPUS}/cpu{cpu}/topology/physical_package_id"), -1);
    }
    let machine = tree.topology();
    assert_eq!(counts(&machine), (1, 1, 4, 4));
    assert_eq!(
        machine.unavailable(),
        ["CPU 0-3: the package is unknown; taken as package 0"]
    );
}

#[test]
fn an_older_kernel_names_siblings_otherwise() {
    let tree = Machine::new(1, 2, 2).tree();
    for cpu in 0..4 {
        tree.remove(&format!("{CPUS}/cpu{cpu}/topology/core_cpus_list"));
        tree.line(
            &format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"),
            format!("{},{}", cpu % 2, cpu % 2 + 2),
        );
    }
    let machine = tree.topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(machine.cores().len(), 2);
}

#[test]
fn files_of_one_cpu_that_make_no_sense() {
    let cases = [
        (
            "topology/core_cpus_list",
            "1-",
            "core_cpus_list makes no sense; taken as a core of its own",
        ),
        (
            "topology/core_cpus_list",
            "0",
            "core_cpus_list leaves out the CPU itself; taken as a core of its own",
        ),
        (
            "topology/physical_package_id",
            "one",
            "physical_package_id makes no sense; taken as package 0",
        ),
        (
            "cache/index3/level",
            "III",
            "the level of a cache makes no sense; the cache is left out",
        ),
        (
            "cache/index3/type",
            "Trace",
            "the type of a cache makes no sense; the cache is left out",
        ),
        (
            "cache/index3/shared_cpu_list",
            "0-99999",
            "shared_cpu_list (L3) makes no sense; taken as private",
        ),
        (
            "cache/index3/shared_cpu_list",
            "0",
            "shared_cpu_list (L3) leaves out the CPU itself; taken as private",
        ),
        (
            "cache/index0/size",
            "big",
            "the size of its L1 cache makes no sense",
        ),
        (
            "cache/index0/size",
            "99999999999999999G",
            "the size of its L1 cache makes no sense",
        ),
        (
            "cpu_capacity",
            "\u{fffd}",
            "cpu_capacity makes no sense; taken as a fast core",
        ),
    ];
    for (file, text, note) in cases {
        let tree = Machine::new(1, 2, 1).tree();
        tree.line(&format!("{CPUS}/cpu1/{file}"), text);
        let machine = tree.topology();
        assert_eq!(
            machine.unavailable(),
            [format!("CPU 1: {note}")],
            "{file}: {text}"
        );
        assert_eq!(counts(&machine), (1, 1, 2, 2), "{file}: {text}");
    }
}

/// A folder where a file should be, and the other way round.
#[test]
fn files_and_folders_exchanged() {
    let tree = Machine::new(1, 3, 1).tree();
    tree.remove("sys/devices/system/cpu/online");
    tree.write("sys/devices/system/cpu/online/x", "");
    tree.remove("sys/devices/system/node");
    tree.write("sys/devices/system/node", "");
    tree.remove("sys/devices/system/cpu/cpu0/cache");
    tree.write("sys/devices/system/cpu/cpu0/cache", "");
    tree.remove("sys/devices/system/cpu/cpu2");
    tree.write("sys/devices/system/cpu/cpu2", "");
    let machine = tree.topology();
    assert_eq!(counts(&machine), (1, 1, 3, 3));
    let [online, others @ ..] = machine.unavailable() else {
        panic!("no notes")
    };
    assert!(online.contains("cpu/online cannot be read"), "{online}");
    let expected = [
        "sys/devices/system/node has no folders of NUMA nodes; taken as one node",
        "CPU 0,2: no caches are listed",
        "CPU 2: no folder `topology`; taken as a core of its own in package 0",
    ];
    assert_eq!(others, expected);
}

/// Two folders that spell the same number are one node.
#[test]
fn a_node_twice() {
    let tree = Machine::new(2, 1, 1).tree();
    tree.line("sys/devices/system/node/node01/cpulist", 0);
    let machine = tree.topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(machine.nodes().len(), 2);
}

/// Every file of a tree, relative to its root.
fn files(tree: &Tree) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![tree.root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                &mut folders
            } else {
                &mut files
            }
            .push(path);
        }
    }
    files.sort();
    files
        .iter()
        .map(|file| file.strip_prefix(tree.root()).expect("below").to_owned())
        .collect()
}

/// Checks the invariants of any topology, however strange its tree.
fn is_consistent(machine: &Topology) {
    assert!(!machine.cpus().is_empty());
    assert!(machine.parallelism() >= 1);
    let ids: CpuSet = machine.cpus().iter().map(|cpu| cpu.id).collect();
    assert_eq!(&ids, machine.usable());
    let total = |sets: Vec<&CpuSet>| -> usize { sets.into_iter().map(CpuSet::len).sum() };
    assert_eq!(
        total(machine.cores().iter().map(|core| &core.cpus).collect()),
        ids.len()
    );
    assert_eq!(
        total(machine.nodes().iter().map(|node| &node.cpus).collect()),
        ids.len()
    );
    assert_eq!(
        total(
            machine
                .packages()
                .iter()
                .map(|package| &package.cpus)
                .collect()
        ),
        ids.len()
    );
    for cpu in machine.cpus() {
        assert!(machine.cores()[cpu.core].cpus.contains(cpu.id));
        assert!(
            machine
                .last_level_of(cpu.id)
                .is_none_or(|cache| cache.cpus.contains(cpu.id))
        );
    }
    for order in [Order::CoresFirst, Order::FillNode, Order::Sockets] {
        let sequence = machine.sequence(&order).expect("an order that fits");
        assert_eq!(sequence.len(), ids.len(), "{order}");
        assert_eq!(sequence.into_iter().collect::<CpuSet>(), ids, "{order}");
    }
    assert!(!machine.to_string().is_empty());
}

fn garbage() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        "[0-9,. :/-]{0,12}".prop_map(String::into_bytes),
        (0..70_000u32, 0..70_000u32).prop_map(|(a, b)| format!("{a}-{b}\n").into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_garbage_in_any_files(
        laptop in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), proptest::option::of(garbage())), 1..12),
    ) {
        let machine = Machine { nodes: 2, ..Machine::new(2, 2, 2) };
        let tree = if laptop { hybrid_laptop() } else { machine.tree() };
        let files = files(&tree);
        for (index, change) in changes {
            let file = index.get(&files).to_str().expect("a plain name");
            match change {
                Some(garbage) => tree.write(file, garbage),
                None if tree.root().join(file).exists() => tree.remove(file),
                None => {}
            }
        }
        is_consistent(&tree.topology());
    }
}
