//! The best of each method over any number of threads, and at the most threads (F4). There are
//! two tables, because a method can be good until it is overcrowded and collapse then.

use super::baseline;
use super::declare::{Drawn, Figure, Panel, Printed, Source};
use super::one_variable::over_threads;
use super::size::Size;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::plot::significant;
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{code, count, times};

const PANELS: [(&str, &str); 2] = [("one", "1 variable"), ("many", "1,024 variables")];

pub(super) const FIGURE: Figure = Figure {
    name: "best",
    title: "Which method is best over any number of threads, and which at the most?",
    source: Source::Ffwd("application benchmarks: comparing best performance"),
    whole: 4,
    fewer: "the most threads are two, and any number is one or two.",
    panels,
    printed: &[
        Printed {
            what: "ffwd / pthread mutex, each at its best number of threads",
            there: "up to 2.5 (applications)",
            here: |m| against_mutex(m, PEAK),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "ffwd / pthread mutex at the most threads",
            there: "10 and more (applications)",
            here: |m| against_mutex(m, LAST),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "remote core locking is right",
            there: "“RCL experienced correctness issues” above 82 threads (ray tracer), above 24 \
                    (memcached)",
            here: |m| is_right(m, "rcl"),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "flat combining is right",
            there: "“We did not get Flat Combining to work” (memcached)",
            here: |m| is_right(m, "flat-combining"),
            drawn: Drawn::Nowhere,
        },
    ],
    tables,
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |(key, title), vars| Panel {
        key,
        title,
        axis: Axis::linear("threads"),
        quantities: &[Throughput],
        lines: over_threads(size, vars),
    };
    vec![panel(PANELS[0], 1), panel(PANELS[1], 1024)]
}

/// A function that chooses a point of a line in a panel: the line's peak, or its last point.
type Choice = fn(&Measured<'_>, &str, &str) -> Option<(f64, f64)>;

const PEAK: Choice = |m, panel, line| m.peak(panel, line);
const LAST: Choice = |m, panel, line| m.last(panel, line);

fn against_mutex(m: &Measured<'_>, choice: Choice) -> Option<String> {
    let of = |line| choice(m, PANELS[0].0, line);
    let ratio = of("ffwd")?.1 / of("mutex")?.1;
    Some(format!("{} (fetch-and-add)", times(ratio)))
}

/// Says in how many of its measurements a method counted right, and up to how many threads.
fn is_right(m: &Measured<'_>, line: &str) -> Option<String> {
    let runs: Vec<_> = PANELS
        .iter()
        .flat_map(|(panel, _)| m.runs(panel, line))
        .collect();
    let most = runs.iter().map(|(_, run)| run.params.threads).max()?;
    let wrong = runs.iter().filter(|(_, run)| !run.correct).count();
    let all = count(runs.len() as u64, "measurement", "measurements");
    Some(match wrong {
        0 => format!("right in {all}, with up to {most} threads (fetch-and-add)"),
        wrong => format!("wrong in {wrong} of {all}, with up to {most} threads (fetch-and-add)"),
    })
}

fn tables(m: &Measured<'_>) -> Vec<Grid> {
    vec![
        table(m, "Best over any number of threads", PEAK),
        table(m, "At the most threads", LAST),
    ]
}

/// Makes a table with a row for each method: Mops at how many threads, the ratio to the mutex, and
/// the ratio of one thread without synchronisation to the method.
fn table(m: &Measured<'_>, title: &str, choice: Choice) -> Grid {
    let lines = m.panel(PANELS[0].0).map_or(&[][..], |panel| &panel.lines);
    let mut head = vec!["method".to_owned()];
    for (_, title) in PANELS {
        let columns = [&format!("{title}: Mops"), "threads", "/ mutex", "alone /"];
        head.extend(columns.map(str::to_owned));
    }
    let row = |line: &String| {
        let mut row = vec![line.clone()];
        for (panel, _) in PANELS {
            let mutex = choice(m, panel, "mutex");
            let alone = baseline::mops(m, panel, 1.0);
            row.extend(match choice(m, panel, line) {
                Some((x, mops)) => [
                    significant(mops),
                    x.to_string(),
                    mutex.map_or(String::new(), |(_, mutex)| times(mops / mutex)),
                    alone.map_or(String::new(), |alone| times(alone / mops)),
                ],
                None => ["–".to_owned(), String::new(), String::new(), String::new()],
            });
        }
        row
    };
    Grid {
        title: title.to_owned(),
        head,
        rows: lines.iter().map(row).collect(),
    }
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let of = |(key, title)| Some(format!("{title}: {}.", best(m, key)?));
    PANELS.into_iter().filter_map(of).collect()
}

/// Names the fastest lines of a panel: at any number of threads, and at the most.
pub(super) fn best(m: &Measured<'_>, panel: &str) -> Option<String> {
    let lines = &m.panel(panel)?.lines;
    let best = |choice: Choice| {
        let all = lines
            .iter()
            .filter(|line| *line != baseline::ALONE)
            .filter_map(|line| Some((line, choice(m, panel, line)?)));
        all.max_by(|a, b| a.1.1.total_cmp(&b.1.1))
    };
    let ((any, (x, high)), (most, (_, mops))) = (best(PEAK)?, best(LAST)?);
    Some(format!(
        "the best over any number of threads is {} with {} Mops at {x}; the best at the most \
         threads is {} with {}",
        code(any),
        significant(high),
        code(most),
        significant(mops)
    ))
}
