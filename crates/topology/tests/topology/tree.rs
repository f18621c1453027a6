//! Generated trees of `sys` and `proc`, laid out as Linux does.

use corelay_topology::{CpuSet, Topology};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A root folder that vanishes when dropped.
pub(crate) struct Tree {
    folder: TempDir,
    root: PathBuf,
    /// Every text is stored once, outside the root, and linked to wherever it occurs: a
    /// big machine has thousands of small files and few different ones.
    texts: RefCell<HashMap<Vec<u8>, PathBuf>>,
}

impl Tree {
    /// In memory where possible: making many files on a disk is slow.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a temporary folder");
        let root = folder.path().join("root");
        fs::create_dir(&root).expect("a folder");
        Self {
            folder,
            root,
            texts: RefCell::default(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn topology(&self) -> Topology {
        Topology::read(self.root())
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a file below the root")).expect("folders");
        if path.exists() {
            // Writing over it would change every file with the same text.
            fs::remove_file(&path).expect("removed");
        }
        let mut texts = self.texts.borrow_mut();
        let number = texts.len();
        let original = texts.entry(text.as_ref().to_owned()).or_insert_with(|| {
            let original = self.folder.path().join(number.to_string());
            fs::write(&original, text.as_ref()).expect("a file");
            original
        });
        fs::hard_link(original, path).expect("a link");
    }

    /// Writes a line, as the kernel ends every file.
    pub(crate) fn line(&self, path: &str, text: impl std::fmt::Display) {
        self.write(path, format!("{text}\n"));
    }

    /// Removes a file, or a folder with all it holds.
    pub(crate) fn remove(&self, path: &str) {
        let path = self.root().join(path);
        if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
        .expect("removed");
    }
}

/// How the kernel numbers SMT siblings.
#[derive(Clone, Copy)]
pub(crate) enum Siblings {
    /// All first CPUs of cores, then all second ones: 0+28, 1+29, … (most x86 servers).
    Last,
    /// One core after the other: 0+1, 2+3, … (POWER, some x86 laptops).
    Adjacent,
}

/// A machine of equal packages.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) packages: usize,
    /// Cores of each package.
    pub(crate) cores: usize,
    /// CPUs of each core.
    pub(crate) threads: usize,
    /// NUMA nodes of each package.
    pub(crate) nodes: usize,
    /// Cores that share a last-level cache.
    pub(crate) group: usize,
    pub(crate) siblings: Siblings,
    /// CPU numbers are multiples of this: 1, or more for holes.
    pub(crate) stride: usize,
    /// CPU numbers that are switched off.
    pub(crate) offline: Vec<usize>,
    /// Also L1 and L2: many files on a big machine.
    pub(crate) private_caches: bool,
}

impl Machine {
    pub(crate) fn new(packages: usize, cores: usize, threads: usize) -> Self {
        Self {
            packages,
            cores,
            threads,
            nodes: 1,
            group: cores,
            siblings: Siblings::Last,
            stride: 1,
            offline: Vec::new(),
            private_caches: true,
        }
    }

    fn number(&self, core: usize, thread: usize) -> usize {
        let number = match self.siblings {
            Siblings::Last => thread * self.packages * self.cores + core,
            Siblings::Adjacent => core * self.threads + thread,
        };
        number * self.stride
    }

    /// The CPUs of a range of cores, counted through all packages, that are switched on.
    fn online(&self, cores: std::ops::Range<usize>) -> CpuSet {
        let threads = |core| (0..self.threads).map(move |thread| self.number(core, thread));
        cores
            .flat_map(threads)
            .filter(|cpu| !self.offline.contains(cpu))
            .collect()
    }

    pub(crate) fn tree(&self) -> Tree {
        let tree = Tree::empty();
        let cores = self.packages * self.cores;
        let online = self.online(0..cores);
        let offline: CpuSet = self.offline.iter().copied().collect();
        tree.line("sys/devices/system/cpu/online", &online);
        tree.line("sys/devices/system/cpu/offline", &offline);
        tree.line("sys/devices/system/cpu/present", online.union(&offline));
        for core in 0..cores {
            let groups = |size: usize| self.online(core / size * size..core / size * size + size);
            for cpu in groups(1).iter() {
                let mut caches = vec![(3, "Unified", "19712K", groups(self.group))];
                if self.private_caches {
                    caches.extend([
                        (1, "Data", "32K", groups(1)),
                        (1, "Instruction", "32K", groups(1)),
                        (2, "Unified", "1024K", groups(1)),
                    ]);
                }
                let package = (core / self.cores) as i64;
                CpuFolders {
                    cpu,
                    package,
                    siblings: groups(1),
                    caches,
                }
                .write(&tree);
            }
        }
        for &cpu in &self.offline {
            // The kernel takes the folders `topology` and `cache` away.
            tree.line(&format!("sys/devices/system/cpu/cpu{cpu}/online"), 0);
        }
        let nodes = self.packages * self.nodes;
        let per_node = self.cores / self.nodes;
        for node in 0..nodes {
            let folder = format!("sys/devices/system/node/node{node}");
            tree.line(
                &format!("{folder}/cpulist"),
                self.online(node * per_node..(node + 1) * per_node),
            );
            let distance = |other: usize| match other {
                _ if other == node => "10",
                _ if other / self.nodes == node / self.nodes => "12",
                _ => "32",
            };
            tree.line(
                &format!("{folder}/distance"),
                (0..nodes).map(distance).collect::<Vec<_>>().join(" "),
            );
        }
        no_control_group(&tree);
        tree
    }
}

/// One CPU's folders.
pub(crate) struct CpuFolders {
    pub(crate) cpu: usize,
    pub(crate) package: i64,
    pub(crate) siblings: CpuSet,
    /// Level, type, size and sharers.
    pub(crate) caches: Vec<(u32, &'static str, &'static str, CpuSet)>,
}

impl CpuFolders {
    pub(crate) fn write(&self, tree: &Tree) {
        let folder = format!("sys/devices/system/cpu/cpu{}", self.cpu);
        tree.line(
            &format!("{folder}/topology/physical_package_id"),
            self.package,
        );
        tree.line(&format!("{folder}/topology/core_cpus_list"), &self.siblings);
        for (level, kind, size, shared) in &self.caches {
            let index = match (level, *kind) {
                (1, "Data") => 0,
                (level, _) => *level,
            };
            let folder = format!("{folder}/cache/index{index}");
            tree.line(&format!("{folder}/level"), level);
            tree.line(&format!("{folder}/type"), kind);
            tree.line(&format!("{folder}/size"), size);
            tree.line(&format!("{folder}/coherency_line_size"), 64);
            tree.line(&format!("{folder}/shared_cpu_list"), shared);
        }
    }
}

/// A process in the root of a version 2 hierarchy, which has no limits.
pub(crate) fn no_control_group(tree: &Tree) {
    tree.line("proc/self/cgroup", "0::/");
    tree.line(
        "proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw",
    );
    tree.line("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory");
}

/// Two packages of 14 cores with 2 CPUs each, a node each: the thesis's machine.
pub(crate) fn two_sockets() -> Machine {
    Machine::new(2, 14, 2)
}

/// Two packages of 64 cores with 2 CPUs each, 4 nodes each, 4 cores to a last-level cache.
pub(crate) fn many_caches() -> Machine {
    Machine {
        nodes: 4,
        group: 4,
        ..Machine::new(2, 64, 2)
    }
}

/// Eight packages of 80 cores with 2 CPUs each: 1,280 CPUs.
pub(crate) fn more_than_1024() -> Machine {
    Machine {
        private_caches: false,
        ..Machine::new(8, 80, 2)
    }
}

/// Four fast cores with two CPUs each (0-7) and eight slow ones (8-15), which share their
/// L2 four by four; all share the L3.
pub(crate) fn hybrid_laptop() -> Tree {
    let tree = Tree::empty();
    let all: CpuSet = (0..16).collect();
    tree.line("sys/devices/system/cpu/online", &all);
    tree.line("sys/devices/system/cpu/present", &all);
    for cpu in 0..16 {
        let fast = cpu < 8;
        let own = if fast {
            cpu / 2 * 2..cpu / 2 * 2 + 2
        } else {
            cpu..cpu + 1
        };
        let module = if fast {
            own.clone()
        } else {
            cpu / 4 * 4..cpu / 4 * 4 + 4
        };
        let (data, code, l2) = if fast {
            ("48K", "32K", "1280K")
        } else {
            ("32K", "64K", "2048K")
        };
        let caches = vec![
            (1, "Data", data, own.clone().collect()),
            (1, "Instruction", code, own.clone().collect()),
            (2, "Unified", l2, module.collect()),
            (3, "Unified", "18432K", all.clone()),
        ];
        CpuFolders {
            cpu,
            package: 0,
            siblings: own.collect(),
            caches,
        }
        .write(&tree);
    }
    tree.line("sys/devices/cpu_core/cpus", "0-7");
    tree.line("sys/devices/cpu_atom/cpus", "8-15");
    tree.line("sys/devices/system/node/node0/cpulist", &all);
    tree.line("sys/devices/system/node/node0/distance", 10);
    no_control_group(&tree);
    tree
}
