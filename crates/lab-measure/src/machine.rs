//! A description of the machine, as far as it explains figures.

use crate::schema;
use corelay_topology::{CacheKind, Facts, Topology};

/// Describes the machine for a result file. [`crate::host::Host::results`] adds the round trip.
pub fn describe(topology: &Topology, facts: &Facts) -> schema::Machine {
    let unknown = || "unknown".to_owned();
    let mut unavailable: Vec<String> = facts.unavailable.clone();
    unavailable.extend(topology.unavailable().iter().cloned());
    unavailable.extend(no_counters());
    schema::Machine {
        model: facts.model.clone().unwrap_or_else(unknown),
        arch: facts.arch.to_owned(),
        kernel: facts.kernel.clone().unwrap_or_else(unknown),
        hypervisor: facts.hypervisor.clone(),
        cpus: topology.cpus().len(),
        cores: topology.cores().len(),
        packages: topology.packages().len(),
        nodes: topology.nodes().len(),
        quota_cpus: topology.quota_cpus(),
        caches: caches(topology),
        core_ghz: clock_ghz(),
        rtt_min_ns: None,
        unavailable,
    }
}

/// The name under which round trips of this machine are remembered. It survives restarts, and
/// differs between two machines that share a home folder.
pub(crate) fn identity(topology: &Topology, facts: &Facts) -> String {
    let name = ["/etc/machine-id", "/proc/sys/kernel/hostname"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .map(|text| text.trim().to_owned())
        .find(|text| !text.is_empty());
    format!(
        "{} | {} | {} CPUs in {} cores, {} packages, {} nodes | {}",
        facts.model.as_deref().unwrap_or("unknown"),
        facts.hypervisor.as_deref().unwrap_or("no hypervisor"),
        topology.online().len(),
        topology.cores().len(),
        topology.packages().len(),
        topology.nodes().len(),
        name.as_deref().unwrap_or("no name"),
    )
}

/// Data and unified caches of the first CPU.
fn caches(topology: &Topology) -> Vec<schema::CacheLevel> {
    let Some(first) = topology.cpus().first() else {
        return Vec::new();
    };
    let levels = topology.cache_levels();
    let of_first = topology
        .caches()
        .iter()
        .filter(|c| c.cpus.contains(first.id));
    of_first
        .filter(|cache| cache.kind != CacheKind::Instruction)
        .filter_map(|cache| {
            let same = levels.iter().find(|l| {
                (l.level, l.kind, l.bytes, l.sharers)
                    == (cache.level, cache.kind, cache.bytes, cache.sharers)
            })?;
            Some(schema::CacheLevel {
                level: cache.level,
                bytes: cache.bytes?,
                sharers: cache.sharers,
                instances: same.instances,
            })
        })
        .collect()
}

/// The reason why hardware counters cannot be read here; `None` if they can.
#[cfg(target_os = "linux")]
pub(crate) fn no_counters() -> Option<String> {
    use perf_event::{Builder, events::Hardware};
    let error = Builder::new(Hardware::INSTRUCTIONS).build().err()?;
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "this (virtual) processor offers none".to_owned(),
        std::io::ErrorKind::PermissionDenied => {
            "this process may not read them (see /proc/sys/kernel/perf_event_paranoid)".to_owned()
        }
        _ => error.to_string(),
    };
    Some(format!("hardware counters: {why}"))
}

/// The reason why hardware counters cannot be read here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn no_counters() -> Option<String> {
    Some("hardware counters: read on Linux only".to_owned())
}

/// The clock rate of the first CPU in GHz, as the kernel reports it; `None` if it does not. If
/// the core changes its rate, this is the present one.
pub fn clock_ghz() -> Option<f64> {
    first_mhz(&std::fs::read_to_string("/proc/cpuinfo").ok()?).map(|mhz| mhz / 1000.0)
}

fn first_mhz(cpuinfo: &str) -> Option<f64> {
    let mut values = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let (_, mhz) = values.find(|(key, _)| key.trim() == "cpu MHz")?;
    mhz.trim().parse().ok().filter(|mhz| *mhz > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_mhz_takes_the_first_cpu() {
        let cpuinfo = "processor\t: 0\ncpu MHz\t\t: 2599.998\nflags : a\n\ncpu MHz : 1000.0\n";
        assert_eq!(first_mhz(cpuinfo), Some(2599.998));
        assert_eq!(first_mhz("processor : 0\nBogoMIPS : 50.00\n"), None);
        assert_eq!(first_mhz("cpu MHz : unknown\n"), None);
    }

    #[test]
    fn machine_counts_are_consistent() {
        let (topology, facts) = (Topology::current(), Facts::current());
        let machine = describe(&topology, &facts);
        assert!(machine.cpus >= machine.cores && machine.cores >= machine.packages);
        assert!(
            machine
                .caches
                .iter()
                .all(|c| c.level >= 1 && c.bytes > 0 && c.instances >= 1)
        );
        assert_eq!(identity(&topology, &facts), identity(&topology, &facts));
    }
}
