//! The figures that the source of the course prints, beside the reader's own.
//!
//! The source says of its machine that it has 20 CPU cores, and no more. So its figures are no
//! target: each stands beside the reader's, and a sentence says whether both point the same way.

use crate::list::words::compare;
use corelay_lab_report::plot::{grouped, percent, significant};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{count, times};
use serde::Serialize;
use std::cmp::Ordering;

/// Throughput of `list --iterations=1M --threads=1`, the source's `biglock`, in Mops.
const LONE_MOPS: f64 = 8.63;

/// Share of the CPU time that `malloc` takes in `list-p`: more than this.
const ALLOCATION: f64 = 0.5;

/// Throughput of `list-pm` over that of `list-p`.
const PREALLOCATED: (f64, f64) = (4.0, 5.0);

/// Time of the slowest worker over that of the fastest in `list-pm`: as high as this.
const STRAGGLERS: f64 = 3.0;

/// Milliseconds of `list-pml --iterations=10M` until the first worker is done: with one thread, and
/// with two.
const SHARED_MS: (f64, f64) = (271.0, 360.0);

/// A figure of the source and the reader's own.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Printed {
    /// The name of the figure.
    figure: &'static str,
    /// The figure as the source prints it.
    source: &'static str,
    /// The reader's figure.
    here: String,
    /// A sentence that compares them.
    #[serde(skip)]
    pub(crate) sentence: String,
}

/// Makes the table of both; `None` if the reader has none of the figures.
pub(crate) fn table(all: &[Printed]) -> Option<Grid> {
    let row = |printed: &Printed| {
        vec![
            printed.figure.to_owned(),
            printed.source.to_owned(),
            printed.here.clone(),
        ]
    };
    (!all.is_empty()).then(|| Grid {
        title: "Figures that the course's source prints, of its machine with 20 CPU cores, beside \
                those of this machine"
            .to_owned(),
        head: ["figure", "the source, 20 cores", "here"]
            .map(str::to_owned)
            .to_vec(),
        rows: all.iter().map(row).collect(),
    })
}

/// Compares `biglock` with one thread, which inserted so many keys.
pub(crate) fn lone_biglock(keys: usize, mops: f64) -> Printed {
    let here = significant(mops);
    let ratio = times(mops / LONE_MOPS);
    let what = match compare(mops, LONE_MOPS) {
        Ordering::Greater => format!("Here it does {here} Mops, {ratio} as many."),
        Ordering::Equal => format!("Here it does about as many: {here} Mops."),
        Ordering::Less => format!("Here it does fewer: {here} Mops, {ratio} as many."),
    };
    Printed {
        figure: "biglock with 1 thread",
        source: "8.63 Mops, 1,000,000 keys",
        here: format!("{here} Mops, {} keys", grouped(keys as u64)),
        sentence: format!(
            "The source prints 8.63 Mops for one thread and one lock, on its machine with 20 CPU cores. {what}"
        ),
    }
}

/// Compares the throughput of `preallocated` over that of `partitioned`, with so many threads.
pub(crate) fn preallocated(ratio: f64, threads: usize) -> Printed {
    let here = times(ratio);
    let (low, high) = PREALLOCATED;
    let what = if compare(ratio, 1.0).is_le() {
        format!("Not here: {here} as fast.")
    } else if ratio < low {
        format!("Here they gain less: {here} as fast.")
    } else if ratio <= high {
        format!("Here, too: {here} as fast.")
    } else {
        format!("Here they gain more: {here} as fast.")
    };
    Printed {
        figure: "preallocated over partitioned",
        source: "4 to 5 ×",
        here: format!("{here}, {}", count(threads as u64, "thread", "threads")),
        sentence: format!(
            "On the source's machine with 20 CPU cores nodes that are made before made the program 4 to 5 × \
             as fast. {what}"
        ),
    }
}

/// Compares the share of the threads' time in `partitioned` that goes into allocation and page
/// faults.
pub(crate) fn allocation(share: f64) -> Printed {
    let here = percent(share);
    let what = match share > ALLOCATION {
        true => format!("Here, too, more than half: {here}"),
        false => format!("Not here: {here}"),
    };
    Printed {
        figure: "allocation in partitioned",
        source: "malloc: more than 50 % of the CPU time",
        here: format!("{here} of the threads' time, page faults included"),
        sentence: format!(
            "In the source's profile of `partitioned`, on its machine with 20 CPU cores, `malloc` takes more \
             than 50 % of the CPU time. {what} of the threads' time, with the page faults of new nodes, which \
             a profile counts as the kernel's."
        ),
    }
}

/// Compares the share of the samples in `partitioned` that are of the C library's allocator.
pub(crate) fn malloc(share: f64) -> Printed {
    let here = percent(share);
    let what = match share > ALLOCATION {
        true => format!("Here, too, more than half: {here}"),
        false => format!("Not here: {here}"),
    };
    Printed {
        figure: "malloc in partitioned",
        source: "more than 50 % of the CPU time",
        here: format!("{here} of the inserting threads' samples"),
        sentence: format!(
            "In the source's profile of `partitioned`, on its machine with 20 CPU cores, `malloc` takes more \
             than 50 % of the CPU time. {what} of the inserting threads' samples are of the C library's \
             allocator."
        ),
    }
}

/// Compares the time of the slowest thread over that of the fastest, in each of some runs of `rung`, a name in backquotes.
/// `None` without a run of several threads.
pub(crate) fn stragglers(rung: &str, ratios: &[f64], threads: usize) -> Option<Printed> {
    let largest = ratios.iter().copied().max_by(f64::total_cmp)?;
    if threads < 2 {
        return None;
    }
    let here = times(largest);
    let what = if largest >= STRAGGLERS {
        format!("Here up to {here}: as far apart.")
    } else if compare(largest, 1.0).is_gt() {
        format!("Here up to {here}: less far apart.")
    } else {
        format!("Not here: up to {here}, so there was no straggler.")
    };
    let threads = count(threads as u64, "thread", "threads");
    Some(Printed {
        figure: "slowest over fastest thread",
        source: "as high as 3 ×, equal shares",
        here: format!("up to {here}, {threads} of {}", rung.replace('`', "")),
        sentence: format!(
            "On the source's machine with 20 CPU cores the slowest of its threads took as much as 3 × the time \
             of the fastest, with equal shares. {what} That is of {} of {rung} with {threads}.",
            count(ratios.len() as u64, "run", "runs")
        ),
    })
}

/// Compares the time of a thread of `balanced`, alone and beside another one, from the throughput of
/// one and of two threads in Mops.
pub(crate) fn false_sharing(one: f64, two: f64) -> Printed {
    // Two threads share the throughput.
    let (alone, beside) = (1e3 / one, 2e3 / two);
    let (ratio, printed) = (beside / alone, SHARED_MS.1 / SHARED_MS.0);
    let here = times(ratio);
    let what = if compare(ratio, 1.0).is_lt() {
        format!("Not here: beside another one it takes {here} as long, which is less.")
    } else if compare(ratio, 1.0).is_eq() {
        format!("Not here: {here} as long beside another one as alone.")
    } else {
        match compare(ratio, printed) {
            Ordering::Less => format!("Here it suffers less: {here} as long."),
            Ordering::Equal => format!("Here, too: {here} as long."),
            Ordering::Greater => format!("Here it suffers more: {here} as long."),
        }
    };
    Printed {
        figure: "a thread of balanced, alone → beside another",
        source: "271 → 360 ms, 10,000,000 keys each (1.33 ×)",
        here: format!(
            "{} → {} ns for each key ({here})",
            significant(alone),
            significant(beside)
        ),
        sentence: format!(
            "On the source's machine with 20 CPU cores, threads that share no list but a cache line of heads \
             disturb each other: one alone took 271 ms, one of two 360 ms, 1.33 × as long. {what}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(printed: &Printed, word: &str) {
        let text = printed.sentence.replace('\u{a0}', " ");
        assert!(text.contains(word), "{word}: {text}");
        assert!(
            text.contains("20 CPU cores") && text.contains("source's")
                || text.contains("The source")
        );
    }

    #[test]
    fn agreement_is_claimed_only_if_the_figures_agree() {
        holds(&lone_biglock(1_000_000, 8.7), "about as many");
        holds(&lone_biglock(1_000_000, 30.0), "3.5 × as many");
        holds(&lone_biglock(1_000_000, 2.0), "fewer: 2.00 Mops");
        holds(&preallocated(4.5, 2), "Here, too");
        holds(&preallocated(12.0, 2), "gain more");
        holds(&preallocated(2.0, 2), "gain less");
        holds(&allocation(0.81), "Here, too, more than half");
        holds(&malloc(0.6), "Here, too, more than half");
        let straggling = |ratios: &[f64]| stragglers("`preallocated`", ratios, 2).unwrap();
        holds(&straggling(&[1.0, 3.5]), "as far apart");
        holds(&straggling(&[1.0, 1.6]), "less far apart");
        holds(&false_sharing(400.0, 600.0), "Here, too");
        holds(&false_sharing(400.0, 100.0), "suffers more: 8.0 ×");
        holds(&false_sharing(400.0, 680.0), "suffers less");
    }

    /// The opposite of what the source has seen is told as it is.
    #[test]
    fn opposite_figures_are_told_as_they_are() {
        let all = [
            preallocated(0.5, 2),
            preallocated(1.0, 2),
            allocation(0.2),
            allocation(0.5),
            malloc(0.3),
            stragglers("`preallocated`", &[1.0, 1.02], 2).unwrap(),
            false_sharing(400.0, 800.0),
            false_sharing(400.0, 1_600.0),
        ];
        for printed in &all {
            holds(printed, "Not here: ");
            assert!(!printed.sentence.contains("Here, too"), "{printed:?}");
        }
        holds(&all[0], "0.50 × as fast");
        holds(&all[7], "which is less");
        assert!(stragglers("`preallocated`", &[], 2).is_none());
        assert!(stragglers("`preallocated`", &[1.0], 1).is_none());
    }

    #[test]
    fn each_figure_names_its_machine() {
        let rows = [allocation(0.3)];
        let grid = table(&rows).unwrap();
        assert!(grid.title.contains("20 CPU cores") && grid.head[1].contains("20 cores"));
        assert_eq!(grid.rows[0][1], "malloc: more than 50 % of the CPU time");
        assert!(table(&[]).is_none());
    }
}
