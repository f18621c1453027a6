//! Fetch-and-add at the most threads over variables (F2, F5). Delegation by ffwd loses as soon as
//! there are about as many locks as threads.

use super::baseline;
use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::one_variable::{LOCKS, METHODS};
use super::size::{Size, named};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::plot::{grouped, significant};
use corelay_lab_report::words::{code, times};

pub(super) const FIGURE: Figure = Figure {
    name: "many-variables",
    title: "From how many variables on do locks win?",
    source: Source::Ffwd("fetch-and-add, 128 threads"),
    whole: 4,
    fewer: "two threads seldom contend, so locks win early.",
    panels,
    printed: &[Printed {
        what: "ffwd falls behind locks from",
        there: "about as many variables as threads (128)",
        here: |m| {
            Some(match falls_behind(m)? {
                Some((x, lock)) => format!("{} ({lock})", grouped(x as u64)),
                None => "nowhere here".to_owned(),
            })
        },
        drawn: Drawn::At {
            panel: "vars",
            x: 128.0,
            label: "slides: 128 threads",
        },
    }],
    tables: |m| baseline::table(m, "vars").into_iter().collect(),
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let last = if size.short { 12 } else { 18 };
    let vars = || (0..=last).step_by(3).map(|shift| 1u64 << shift);
    let line = |name| {
        let cell = |vars: u64| size.cell(vars as f64, named(name), 1, vars);
        FigureLine::new(name, vars().map(cell))
    };
    let alone = |vars: u64| size.cell_of(1, vars as f64, named(baseline::ALONE), 1, vars);
    let mut lines = vec![baseline::line(vars().map(alone))];
    lines.extend(METHODS.map(line));
    vec![Panel {
        key: "vars",
        title: "Over variables, one server",
        axis: Axis::vars(),
        quantities: &[Throughput],
        lines,
    }]
}

/// Returns the first number of variables at which a lock is ahead of ffwd, and that lock. Returns
/// `Some(None)` if no lock is, and `None` if ffwd has no figure.
fn falls_behind(m: &Measured<'_>) -> Option<Option<(f64, &'static str)>> {
    let points = m.throughput("vars", "ffwd");
    points.first()?;
    let ahead = |&(x, ffwd): &(f64, f64)| {
        let (lock, mops) = m.best_of("vars", LOCKS, x)?;
        (mops > ffwd).then_some((x, lock))
    };
    Some(points.iter().find_map(ahead))
}

/// The number of variables from which on a lock is ahead, with so many threads.
fn ahead_from(lock: &str, vars: u64, threads: usize) -> String {
    let why = match (vars < 128, threads < 128) {
        (true, true) => "; fewer threads contend less for each of them",
        (true, false) | (false, true) => ", unlike here",
        (false, false) => "",
    };
    format!(
        "{} is ahead of ffwd from {} on. The source's 128 threads fall behind at about 128 variables{why}.",
        code(lock),
        corelay_lab_report::words::count(vars, "variable", "variables")
    )
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(Some((x, lock))) = falls_behind(m) {
        let threads = m
            .outcome()
            .results
            .runs
            .iter()
            .map(|run| run.params.threads);
        said.push(ahead_from(lock, x as u64, threads.max().unwrap_or(1)));
    }
    if let Some((last, ffwd)) = m.last("vars", "ffwd")
        && let Some((best, mops)) = m.best_of("vars", LOCKS.into_iter().chain(["atomic"]), last)
        && mops > ffwd
    {
        said.push(format!(
            "At {} variables {} does {} Mops and ffwd {}: {} as much. This is where ffwd loses.",
            grouped(last as u64),
            code(best),
            significant(mops),
            significant(ffwd),
            times(mops / ffwd)
        ));
    }
    said.extend(baseline::words(m, "vars"));
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_threads_explain_an_earlier_loss_alone() {
        assert!(ahead_from("ttas", 8, 2).contains("fewer threads"));
        assert!(ahead_from("ttas", 8, 256).contains("unlike here"));
        assert!(ahead_from("ttas", 512, 2).contains("unlike here"));
        assert!(ahead_from("ttas", 256, 128).ends_with("128 variables."));
    }
}
