//! Made-up machines: all sockets alike, all cores alike.

use crate::{ControlGroup, Core, Cpu, CpuSet, Node, Package, Topology};

impl Topology {
    /// A made-up machine of so many packages, cores in each package and hardware threads in each
    /// core. Each number is at least 1. CPUs are numbered as Linux would: first one of each core,
    /// package by package, then their siblings in the same order. A package is a node; caches are
    /// unknown.
    ///
    /// ```
    /// use corelay_topology::{Order, Topology};
    ///
    /// let machine = Topology::regular(2, 4, 2);
    /// assert_eq!(machine.cpus().len(), 16);
    /// let placement = machine.place(&Order::Sockets, 1, 3).unwrap();
    /// assert_eq!(placement.to_string(), "servers on 0; clients on 4,1,5");
    /// ```
    ///
    /// # Panics
    /// If one of the numbers is 0.
    pub fn regular(packages: usize, cores: usize, threads: usize) -> Self {
        assert!(
            packages * cores * threads > 0,
            "a machine has a CPU at least"
        );
        let all = packages * cores;
        let of_cores = |range: std::ops::Range<usize>| -> CpuSet {
            (0..threads)
                .flat_map(|thread| range.clone().map(move |core| thread * all + core))
                .collect()
        };
        let of_package = |package: usize| of_cores(package * cores..(package + 1) * cores);
        let usable = of_cores(0..all);
        Self {
            online: usable.clone(),
            offline: CpuSet::default(),
            cpus: (0..all * threads)
                .map(|id| Cpu {
                    id,
                    core: id % all,
                    smt: id / all,
                    package: id % all / cores,
                    node: id % all / cores,
                    tier: 0,
                    last_level: None,
                })
                .collect(),
            cores: (0..all)
                .map(|core| Core {
                    cpus: of_cores(core..core + 1),
                    package: core / cores,
                    node: core / cores,
                    tier: 0,
                })
                .collect(),
            packages: (0..packages)
                .map(|id| Package {
                    id,
                    cpus: of_package(id),
                })
                .collect(),
            nodes: (0..packages)
                .map(|id| Node {
                    id,
                    cpus: of_package(id),
                    distances: Vec::new(),
                })
                .collect(),
            caches: Vec::new(),
            control_group: ControlGroup::default(),
            unavailable: Vec::new(),
            usable,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Order, Topology};

    #[test]
    fn each_order_takes_every_cpu_once() {
        let machine = Topology::regular(4, 16, 2);
        for order in [Order::CoresFirst, Order::FillNode, Order::Sockets] {
            let mut cpus = machine.sequence(&order).unwrap();
            let first = cpus[..4].to_vec();
            match order {
                Order::Sockets => assert_eq!(first, [0, 16, 32, 48]),
                _ => assert_eq!(first, [0, 1, 2, 3]),
            }
            cpus.sort_unstable();
            assert!(cpus.into_iter().eq(0..128));
        }
    }

    #[test]
    fn a_regular_machine_is_drawn_as_any_other() {
        let shown = Topology::regular(2, 2, 2).to_string();
        let second = "package 1, node 1, no known cache: 2 cores, 4 CPUs: 2-3,6-7";
        assert!(shown.contains(second), "{shown}");
    }
}
