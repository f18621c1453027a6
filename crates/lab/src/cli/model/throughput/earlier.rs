//! Runs that were measured earlier, from a file of results.

use super::measured::divided;
use super::{Args, Measured, observe};
use corelay_lab_measure::schema::Run;
use corelay_lab_report::model::throughput::Work;
use corelay_lab_report::overlay::read;
use std::path::Path;

/// Reads the runs of the wanted method at one number of threads and variables: the threads
/// asked for, where the file has them, or else what it has most runs of. The work is that of the
/// runs with most on both sides, which are the ones the others serve to explain.
///
/// # Errors
/// A sentence that names the file, and the method where there is none of it.
pub(super) fn read(args: &Args, file: &Path) -> Result<(Measured, Work), String> {
    let refused = |why: String| format!("--from {}: {why}", file.display());
    let input = read::read(file).map_err(|why| format!("--from {why}"))?;
    let name = args.method.name();
    let mut runs: Vec<Run> = input.runs().cloned().collect();
    runs.retain(|run| run.method == name && run.load.is_none() && divided(run).is_some());
    let key = |run: &Run| (run.params.threads, run.params.vars);
    let asked = |run: &&Run| args.vars.is_none_or(|n| run.params.vars == n);
    let most = runs.iter().filter(asked).map(key).max_by_key(|wanted| {
        let is_asked = args.threads.is_some_and(|n| wanted.0 as u64 == n);
        let same = runs.iter().filter(|run| key(run) == *wanted).count();
        // Of as many, the most threads and the fewest variables.
        (is_asked, same, wanted.0, std::cmp::Reverse(wanted.1))
    });
    let Some(wanted) = most else {
        return Err(refused(format!(
            "it has no run of {name} with servers and these variables; see --method and --vars"
        )));
    };
    runs.retain(|run| key(run) == wanted);
    let (mode, observed) = observe(&runs, divided);
    // Also where its run has no figure.
    let work = runs.iter().filter_map(divided).map(|(_, work)| work);
    let work = work.max_by_key(|work| u64::from(work.server) + u64::from(work.client));
    let measured = Measured {
        machine: input.first().machine.clone(),
        runs,
        observed,
        mode,
        threads: wanted.0,
        is_interrupted: false,
    };
    Ok((measured, work.unwrap_or_default()))
}
