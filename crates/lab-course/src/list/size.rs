//! The size of the runs, in words and as a table.

use super::climb::{Climbed, Seconds};
use corelay_lab_measure::measure::stats::median;
use corelay_lab_measure::schema::Mode;
use corelay_lab_report::plot::{grouped, significant};
use corelay_lab_report::table::grid::Grid;

/// Says what the threads of a run do, and how much of it.
pub(super) fn what(first: Option<&Climbed>, seconds: Option<Seconds>, mode: Mode) -> String {
    let before = match first.map(|climbed| climbed.point.pages.name()) {
        Some("untouched") => "Keys are made, and memory is first touched, in the timed phase.",
        Some("recycled") => {
            "Keys are made before the timed phase, and all memory, that of the allocators too, has been used \
             once."
        }
        _ => {
            "Keys are made, and arrays and pools touched, before the timed phase; allocators ask the system as \
             they go."
        }
    };
    format!(
        "{} {before} In the end the lists are joined, and each key was found once. Figures are medians of \
         runs in turn, {}.",
        keys(first, seconds),
        match mode {
            Mode::Near => "while the CPUs were near each other",
            Mode::Far => "while the CPUs were far from each other",
            _ => "wherever the CPUs were",
        }
    )
}

/// Says how many keys are inserted.
fn keys(first: Option<&Climbed>, seconds: Option<Seconds>) -> String {
    let Some(seconds) = seconds else {
        let share = first.map_or(0, |climbed| climbed.point.share);
        return format!(
            "Each thread inserts {} keys into doubly linked lists.",
            grouped(share as u64)
        );
    };
    format!(
        "Threads insert keys into doubly linked lists, for about {} s in each run (`--secs`): two runs before \
         have shown how many keys that takes. At most {} keys fit into the memory that was available, with as \
         much left free; a run that has inserted them sooner begins again with new lists, and only the time \
         of the insertions counts.",
        significant(seconds.secs),
        grouped(seconds.most_keys as u64)
    )
}

/// Makes the table of the lengths of named runs, if runs were to have one.
pub(super) fn lengths<'a>(
    seconds: Option<Seconds>,
    runs: impl Iterator<Item = (String, &'a Climbed)>,
) -> Option<Grid> {
    let seconds = seconds?;
    let row = |(name, climbed): (String, &Climbed)| {
        let ended = || climbed.ended.iter().map(|(_, run)| run);
        let wall = median(
            &ended()
                .map(|run| run.wall().as_secs_f64())
                .collect::<Vec<_>>(),
        );
        let passes = ended().map(|run| run.passes).max();
        vec![
            name,
            grouped(climbed.point.threads as u64),
            grouped(climbed.point.share as u64),
            passes.map_or("–".to_owned(), |n| grouped(n.into())),
            wall.map_or("–".to_owned(), significant),
        ]
    };
    Some(Grid {
        title: format!(
            "Runs of about {} s: keys of a thread at once, how often the lists were filled, and the time of \
             all insertions of a run (median)",
            significant(seconds.secs)
        ),
        head: ["rung", "threads", "keys of a thread", "times", "seconds"]
            .map(str::to_owned)
            .to_vec(),
        rows: runs.map(row).collect(),
    })
}
