//! Control groups: cpuset and quota, versions 1 and 2, seen from inside and outside.

use crate::tree::{Machine, Tree, many_caches, two_sockets};
use corelay_topology::{CpuSet, Order, Topology};

const V2_MOUNT: &str =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";

fn set(list: &str) -> CpuSet {
    list.parse().expect("a list of CPUs")
}

fn quota(machine: &Topology) -> Option<(f64, String)> {
    let quota = machine.control_group().quota.as_ref()?;
    Some((quota.cpus(), quota.file.display().to_string()))
}

/// A version 2 group at `/a/b`; its parents are there, without limits.
fn nested(machine: &Machine) -> Tree {
    let tree = machine.tree();
    tree.line("proc/self/cgroup", "0::/a/b");
    tree.line(
        "proc/self/mountinfo",
        format!("23 1 0:22 / /sys rw - sysfs sysfs rw\n{V2_MOUNT}"),
    );
    tree.line("sys/fs/cgroup/a/cpu.max", "max 100000");
    tree.line("sys/fs/cgroup/a/b/cpu.max", "max 100000");
    tree
}

#[test]
fn version_2_split_cpuset_and_fractional_quota() {
    let tree = nested(&two_sockets());
    tree.line("sys/fs/cgroup/a/b/cpuset.cpus.effective", "2-3,16-17,30");
    tree.line("sys/fs/cgroup/a/b/cpu.max", "250000 100000");
    let machine = tree.topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(machine.usable(), &set("2-3,16-17,30"));
    assert_eq!((machine.packages().len(), machine.cores().len()), (2, 4));
    assert_eq!(
        quota(&machine),
        Some((2.5, "sys/fs/cgroup/a/b/cpu.max".to_owned()))
    );
    assert_eq!(machine.parallelism(), 2);
    assert_eq!(
        machine.sequence(&Order::CoresFirst),
        Ok(vec![2, 3, 16, 17, 30])
    );
    assert_eq!(
        machine.sequence(&Order::Sockets),
        Ok(vec![2, 16, 3, 17, 30])
    );
    assert_eq!(
        machine.sequence(&Order::FillNode),
        Ok(vec![2, 3, 30, 16, 17])
    );
    let placement = machine
        .place(&Order::CoresFirst, 1, 2)
        .expect("an order that fits");
    assert_eq!(
        placement.notes(),
        ["3 threads under a quota of 2.5 CPUs: they may be throttled"]
    );
}

#[test]
fn version_2_the_tightest_ancestor_counts() {
    let tree = nested(&Machine::new(1, 8, 1));
    tree.line("sys/fs/cgroup/a/cpu.max", "150000 100000");
    tree.line("sys/fs/cgroup/a/b/cpu.max", "400000 100000");
    assert_eq!(
        quota(&tree.topology()),
        Some((1.5, "sys/fs/cgroup/a/cpu.max".to_owned()))
    );
}

#[test]
fn version_2_cpuset_of_an_ancestor() {
    let tree = nested(&Machine::new(1, 8, 1));
    tree.line("sys/fs/cgroup/a/cpuset.cpus.effective", "1,5");
    assert_eq!(tree.topology().usable(), &set("1,5"));
}

#[test]
fn less_than_one_cpu_still_lets_one_thread_run() {
    let tree = nested(&Machine::new(1, 8, 1));
    tree.line("sys/fs/cgroup/a/b/cpu.max", "50000 100000");
    let machine = tree.topology();
    assert_eq!(
        (machine.quota_cpus(), machine.parallelism()),
        (Some(0.5), 1)
    );
}

#[test]
fn a_quota_above_the_cpus_does_not_add_any() {
    let tree = nested(&Machine::new(1, 2, 1));
    tree.line("sys/fs/cgroup/a/b/cpu.max", "900000 100000");
    assert_eq!(tree.topology().parallelism(), 2);
}

/// A host with version 1, seen from the host: each controller has its own hierarchy.
fn version_1(machine: &Machine) -> Tree {
    let tree = machine.tree();
    tree.remove("sys/fs/cgroup/cgroup.controllers");
    tree.line(
        "proc/self/cgroup",
        "5:memory:/m\n4:cpuset:/docker/c1\n3:cpu,cpuacct:/docker/c1\n1:name=systemd:/x",
    );
    tree.line(
        "proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
         34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime shared:10 - cgroup cgroup rw,cpuset\n\
         35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:11 - cgroup cgroup rw,memory",
    );
    tree.line("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", -1);
    tree.line("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", 100_000);
    tree.line(
        "sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_quota_us",
        150_000,
    );
    tree.line(
        "sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_period_us",
        100_000,
    );
    tree.line("sys/fs/cgroup/cpuset/cpuset.cpus", "0-255");
    tree.line("sys/fs/cgroup/cpuset/docker/c1/cpuset.cpus", "0-1,64-65");
    tree
}

#[test]
fn version_1_split_cpuset_and_fractional_quota() {
    let machine = version_1(&many_caches()).topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!(machine.usable(), &set("0-1,64-65"));
    assert_eq!((machine.packages().len(), machine.nodes().len()), (2, 2));
    let file = "sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_quota_us".to_owned();
    assert_eq!(quota(&machine), Some((1.5, file)));
    assert_eq!(machine.parallelism(), 1);
    assert_eq!(machine.sequence(&Order::Sockets), Ok(vec![0, 64, 1, 65]));
}

/// The cpuset as the kernel applies it is better than the one that was asked for.
#[test]
fn version_1_effective_cpus() {
    let tree = version_1(&many_caches());
    tree.line(
        "sys/fs/cgroup/cpuset/docker/c1/cpuset.effective_cpus",
        "64-65",
    );
    assert_eq!(tree.topology().usable(), &set("64-65"));
}

/// Docker on version 1: the container's own group is mounted as if it were the root, but
/// the path is the host's.
#[test]
fn version_1_from_inside_a_container() {
    let tree = version_1(&many_caches());
    tree.remove("sys/fs/cgroup/cpu,cpuacct/docker");
    tree.remove("sys/fs/cgroup/cpuset/docker");
    tree.line(
        "proc/self/mountinfo",
        "32 31 0:29 /docker/c1 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
         34 31 0:31 /docker/c1 /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset",
    );
    tree.line("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", 300_000);
    tree.line("sys/fs/cgroup/cpuset/cpuset.cpus", "7,9");
    let machine = tree.topology();
    assert_eq!(machine.usable(), &set("7,9"));
    assert_eq!(machine.quota_cpus(), Some(3.0));
}

/// Version 2 without a namespace of its own: the path leads nowhere, the mount point is ours.
#[test]
fn a_path_that_is_not_mounted() {
    for path in ["/system.slice/docker-c1.scope", "/../../other"] {
        let tree = Machine::new(1, 8, 1).tree();
        tree.line("proc/self/cgroup", format!("0::{path}"));
        tree.line("proc/self/mountinfo", V2_MOUNT);
        tree.line("sys/fs/cgroup/cpu.max", "200000 100000");
        tree.line("sys/fs/cgroup/cpuset.cpus.effective", "2-5");
        let machine = tree.topology();
        assert_eq!(machine.usable(), &set("2-5"), "{path}");
        assert_eq!(machine.quota_cpus(), Some(2.0), "{path}");
    }
}

/// A group beside the mounted one must not be read: `..` would leave the mount.
#[test]
fn a_path_out_of_the_namespace_is_not_followed() {
    let tree = Machine::new(1, 8, 1).tree();
    tree.line("proc/self/cgroup", "0::/../other");
    tree.line("proc/self/mountinfo", V2_MOUNT);
    tree.line("sys/fs/other/cpu.max", "100000 100000");
    assert_eq!(tree.topology().quota_cpus(), None);
}

/// Version 1 controllers beside an empty version 2 hierarchy, as systemd's hybrid mode has it.
#[test]
fn both_versions() {
    let tree = Machine::new(1, 8, 1).tree();
    tree.remove("sys/fs/cgroup/cgroup.controllers");
    tree.line("proc/self/cgroup", "2:cpuset:/\n1:cpu:/g h\n0::/g h");
    tree.line(
        "proc/self/mountinfo",
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
         32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
         34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset",
    );
    tree.line("sys/fs/cgroup/cpu/g h/cpu.cfs_quota_us", 250_000);
    tree.line("sys/fs/cgroup/cpu/g h/cpu.cfs_period_us", 100_000);
    tree.line("sys/fs/cgroup/unified/g h/cgroup.procs", "");
    tree.line("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-5");
    let machine = tree.topology();
    assert_eq!(machine.unavailable(), [""; 0]);
    assert_eq!((machine.quota_cpus(), machine.cpus().len()), (Some(2.5), 6));
}

/// A group below the container's own: the path is the host's, the mount starts half way down.
#[test]
fn a_group_below_the_mounted_one() {
    let tree = Machine::new(1, 8, 1).tree();
    tree.line("proc/self/cgroup", "0::/docker/c1/worker");
    tree.line(
        "proc/self/mountinfo",
        "30 23 0:26 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
    );
    tree.line("sys/fs/cgroup/cpu.max", "600000 100000");
    tree.line("sys/fs/cgroup/worker/cpu.max", "200000 100000");
    let file = "sys/fs/cgroup/worker/cpu.max".to_owned();
    assert_eq!(quota(&tree.topology()), Some((2.0, file)));
}

/// One hierarchy mounted twice: the mount that shows our group is the one to read.
#[test]
fn a_hierarchy_mounted_twice() {
    let tree = Machine::new(1, 8, 1).tree();
    tree.line("proc/self/cgroup", "0::/a");
    tree.line(
        "proc/self/mountinfo",
        "29 23 0:26 /other /elsewhere rw - cgroup2 cgroup2 rw\n\
         30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
    );
    tree.line("elsewhere/cpu.max", "100000 100000");
    tree.line("sys/fs/cgroup/a/cpu.max", "300000 100000");
    assert_eq!(tree.topology().quota_cpus(), Some(3.0));
}

/// Mount points with spaces are escaped in mountinfo.
#[test]
fn an_escaped_mount_point() {
    let tree = Machine::new(1, 4, 1).tree();
    tree.line("proc/self/cgroup", "0::/");
    tree.line(
        "proc/self/mountinfo",
        r"30 23 0:26 / /control\040\134groups rw - cgroup2 cgroup2 rw",
    );
    tree.line(r"control \groups/cpu.max", "100000 50000");
    assert_eq!(tree.topology().quota_cpus(), Some(2.0));
}

#[test]
fn without_mountinfo_the_usual_places() {
    let tree = version_1(&many_caches());
    tree.remove("proc/self/mountinfo");
    assert_eq!(quota(&tree.topology()).map(|(cpus, _)| cpus), Some(1.5));
    assert_eq!(tree.topology().usable(), &set("0-1,64-65"));
    let tree = nested(&Machine::new(1, 8, 1));
    tree.remove("proc/self/mountinfo");
    tree.line("sys/fs/cgroup/a/b/cpu.max", "300000 100000");
    assert_eq!(tree.topology().quota_cpus(), Some(3.0));
}

#[test]
fn no_control_groups_at_all() {
    let tree = Machine::new(1, 4, 1).tree();
    tree.remove("proc");
    let machine = tree.topology();
    assert_eq!(machine.cpus().len(), 4);
    let expected = "proc/self/cgroup is missing; no limits of a control group are known";
    assert_eq!(machine.unavailable(), [expected]);
}

#[test]
fn garbage_limits_are_noted_and_ignored() {
    for bad in [
        "",
        "max",
        "1 2 3",
        "-5 100000",
        "100000 0",
        "0 100000",
        "lots 100000",
        "99999999999999999999 1",
    ] {
        let tree = nested(&Machine::new(1, 4, 1));
        tree.line("sys/fs/cgroup/a/b/cpu.max", bad);
        let machine = tree.topology();
        assert_eq!(machine.quota_cpus(), None, "{bad:?}");
        let expected = "sys/fs/cgroup/a/b/cpu.max makes no sense; it is taken as no quota";
        assert_eq!(machine.unavailable(), [expected], "{bad:?}");
    }
    let tree = nested(&Machine::new(1, 4, 1));
    tree.line("sys/fs/cgroup/a/b/cpuset.cpus.effective", "1-x");
    assert_eq!(tree.topology().cpus().len(), 4);
    let expected = "sys/fs/cgroup/a/b/cpuset.cpus.effective makes no sense; it is ignored";
    assert_eq!(tree.topology().unavailable(), [expected]);
}

#[test]
fn a_cpuset_that_leaves_nothing_is_not_believed() {
    let tree = nested(&Machine::new(1, 4, 1));
    tree.line("sys/fs/cgroup/a/b/cpuset.cpus.effective", "70-71");
    let machine = tree.topology();
    assert_eq!(machine.usable(), &set("0-3"));
    let expected = "the cpuset of the control group (70-71) leaves none of CPU 0-3; it is ignored";
    assert_eq!(machine.unavailable(), [expected]);
}
