//! A topology as text.

use crate::tree::{Machine, Tree, hybrid_laptop, many_caches, more_than_1024, two_sockets};
use corelay_topology::Topology;

fn lines(machine: &Topology) -> Vec<String> {
    machine.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn two_sockets_take_a_line_each() {
    let expected = [
        "2 packages, 2 NUMA nodes, 28 cores, 56 CPUs: 0-55",
        "package 0, node 0, L3 19.25 MiB: 14 cores, 28 CPUs: 0-13,28-41 (siblings 0+28, 1+29, …, 13+41)",
        "package 1, node 1, L3 19.25 MiB: 14 cores, 28 CPUs: 14-27,42-55 (siblings 14+42, 15+43, …, 27+55)",
        "caches: 28 × L1d 32 KiB per 2 CPUs, 28 × L1i 32 KiB per 2 CPUs, 28 × L2 1 MiB per 2 CPUs, \
         2 × L3 19.25 MiB per 28 CPUs",
        "distances from node 0 to 0: 10, 1: 32",
        "distances from node 1 to 0: 32, 1: 10",
    ];
    assert_eq!(lines(&two_sockets().tree().topology()), expected);
}

#[test]
fn thirty_two_caches_take_a_line_per_node() {
    let lines = lines(&many_caches().tree().topology());
    let expected = [
        "2 packages, 8 NUMA nodes, 128 cores, 256 CPUs: 0-255",
        "package 0: 64 cores, 128 CPUs: 0-63,128-191",
        "  node 0, 4 × L3 19.25 MiB, each 4 cores, 8 CPUs: 0-3,128-131 | 4-7,132-135 | 8-11,136-139 | \
         12-15,140-143 (siblings 0+128, 1+129, 2+130, 3+131)",
    ];
    assert_eq!(lines[..3], expected);
    assert_eq!(lines.len(), 1 + 2 + 8 + 1 + 8);
}

#[test]
fn more_than_1024_cpus_still_fit_a_screen() {
    let lines = lines(&more_than_1024().tree().topology());
    assert_eq!(
        lines[0],
        "8 packages, 8 NUMA nodes, 640 cores, 1280 CPUs: 0-1279"
    );
    assert_eq!(lines.len(), 1 + 8 + 1 + 8);
}

#[test]
fn a_wide_matrix_of_distances_is_summed_up() {
    let lines = lines(&Machine::new(17, 1, 1).tree().topology());
    assert_eq!(
        lines.last().map(String::as_str),
        Some("distances of 17 nodes: 10 to 32")
    );
}

#[test]
fn hybrid_laptop_by_kind() {
    let expected = [
        "1 package, 1 NUMA node, 12 cores, 16 CPUs: 0-15",
        "package 0, node 0, L3 18 MiB: 12 cores, 16 CPUs: 0-15 (siblings 0+1, 2+3, 4+5, 6+7)",
        "kinds of cores, fastest first: 0-7 | 8-15",
        "caches: 8 × L1d 32 KiB, 4 × L1d 48 KiB per 2 CPUs, 4 × L1i 32 KiB per 2 CPUs, 8 × L1i 64 KiB, \
         4 × L2 1.25 MiB per 2 CPUs, 2 × L2 2 MiB per 4 CPUs, 1 × L3 18 MiB per 16 CPUs",
    ];
    assert_eq!(lines(&hybrid_laptop().topology()), expected);
}

#[test]
fn unusable_cpus_and_missing_files_are_rendered() {
    let tree = Machine {
        offline: vec![7],
        ..Machine::new(1, 8, 1)
    }
    .tree();
    tree.line("sys/fs/cgroup/cpuset.cpus.effective", "0-3");
    tree.line("sys/fs/cgroup/cpu.max", "133333 100000");
    tree.remove("sys/devices/system/cpu/cpu2/cache/index3");
    tree.line(
        "sys/devices/system/cpu/cpu3/topology/physical_package_id",
        "?",
    );
    let expected = [
        "1 package, 1 NUMA node, 4 cores, 4 CPUs: 0-3",
        "not for this process: 4-6",
        "offline: 7",
        "package 0, node 0: 4 cores, 4 CPUs: 0-3",
        "  L3 19.25 MiB: 3 cores, 3 CPUs: 0-1,3",
        "  L2 1 MiB: 1 core, 1 CPU: 2",
        "caches: 4 × L1d 32 KiB, 4 × L1i 32 KiB, 4 × L2 1 MiB, 1 × L3 19.25 MiB per 7 CPUs",
        "quota: 1.33 CPUs (sys/fs/cgroup/cpu.max)",
        "unavailable: CPU 3: physical_package_id makes no sense; taken as package 0",
    ];
    assert_eq!(lines(&tree.topology()), expected);
}

#[test]
fn next_to_nothing() {
    let lines = lines(&Tree::empty().topology());
    assert_eq!(lines[0], "1 package, 1 NUMA node, 1 core, 1 CPU: 0");
    assert_eq!(
        lines[1],
        "package 0, node 0, no known cache: 1 core, 1 CPU: 0"
    );
    assert!(
        lines[2..]
            .iter()
            .all(|line| line.starts_with("unavailable: ")),
        "{lines:?}"
    );
}
