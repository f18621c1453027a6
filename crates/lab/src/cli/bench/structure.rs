//! `corelay bench list`, `queue`, `hash` and so on: the throughput of structures that threads
//! share.

use super::common::{self, Common, Listed};
use super::throughput::{self, Methods, method_help, methods};
use crate::cli::list::{List, Numbers};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::memory::available_bytes;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::workload::structure::{MAX_SIZE, SharedStructure, Structure};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::table;

#[derive(Debug, clap::Args)]
pub(crate) struct Args<S: Structure> {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = methods::<SharedStructure<S>>,
          help = method_help::<SharedStructure<S>>())]
    method: Methods<SharedStructure<S>>,

    /// Structures that share the keys (shards), each with its own lock or trustee
    #[arg(long, visible_alias = "shards", allow_negative_numbers = true, value_name = "LIST", default_value = "1", value_parser = common::vars)]
    vars: List,

    /// Keys in each structure at the start; if operations name keys, these are drawn from twice as many
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = S::USUAL_SIZE, value_parser = sizes)]
    size: List,

    /// Percentage of operations that insert or remove, in turn; the others read
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = S::USUAL_UPDATES, value_parser = percents)]
    updates: List,

    #[command(flatten)]
    common: Common,
}

fn sizes(text: &str) -> Result<List, String> {
    let (bounds, word) = (1..=MAX_SIZE, None);
    Numbers { bounds, word }.list(text)
}

fn percents(text: &str) -> Result<List, String> {
    let (bounds, word) = (0..=100, None);
    Numbers { bounds, word }.list(text)
}

pub(super) fn listed<S: Structure>() -> Vec<Listed> {
    throughput::listed::<SharedStructure<S>>()
}

pub(super) fn run<S: Structure>(args: &Args<S>) -> Result<Exit, String> {
    args.run(SharedStructure::new)
}

/// Runs the workload by its other name, which it has with few updates.
pub(super) fn run_if_read<S: Structure>(args: &Args<S>) -> Result<Exit, String> {
    args.run(|size, updates| SharedStructure::new(size, updates).if_read())
}

impl<S: Structure> Args<S> {
    /// Measures the workloads that `of` makes of each size and share of updates.
    fn run(&self, of: fn(u64, u64) -> SharedStructure<S>) -> Result<Exit, String> {
        let team = &self.common.team;
        team.check_threads(self.method.0.iter())?;
        let workloads = self.workloads(of);
        for workload in &workloads {
            check_memory(workload, &self.vars.0)?;
        }
        let host = Host::look(COMMIT);
        let items: Vec<_> = workloads
            .iter()
            .map(|&workload| self.items(workload, &host))
            .collect::<Result<_, _>>()?;
        let mut opened = team.open(&host, &items.concat())?;
        let mut runs = Vec::new();
        for (workload, items) in workloads.into_iter().zip(items) {
            if !opened.rig.is_interrupted() {
                runs.extend(self.common.measure(workload, &mut opened.rig, items)?);
            }
        }
        let wrong = common::has_wrong(&runs);
        opened.deliver(&host, runs, wrong, table::structure::of)
    }

    /// The workload of each size and each share of updates.
    fn workloads(&self, of: fn(u64, u64) -> SharedStructure<S>) -> Vec<SharedStructure<S>> {
        let of_size = |&size: &u64| {
            let updates = self.updates.0.iter();
            updates.map(move |&updates| of(size, updates))
        };
        self.size.0.iter().flat_map(of_size).collect()
    }

    /// The contenders of a workload: all methods at all points.
    fn items(
        &self,
        workload: SharedStructure<S>,
        host: &Host,
    ) -> Result<Vec<Item<SharedStructure<S>>>, String> {
        let mut items = Vec::new();
        for noted in self.common.points(host, &self.vars)? {
            // No variables are added for a flat team: that would be more keys than others have.
            items.extend(self.method.0.iter().map(|&method| Item {
                method: method.with_heap(workload.bytes()),
                point: noted.point.clone(),
                notes: noted.notes.clone(),
            }));
        }
        Ok(items)
    }
}

/// Checks that the keys of each number of structures fit into nine tenths of the available memory.
pub(crate) fn check_memory<S: Structure>(
    workload: &SharedStructure<S>,
    vars: &[u64],
) -> Result<(), String> {
    let Some(available) = available_bytes() else {
        return Ok(());
    };
    for &vars in vars {
        let bytes = workload.bytes().saturating_mul(vars);
        if bytes > available / 10 * 9 {
            return Err(format!(
                "--size {} --vars {vars}: the keys would take {} MiB, and {} MiB are available; \
                 use fewer",
                workload.size,
                bytes >> 20,
                available >> 20
            ));
        }
    }
    Ok(())
}
