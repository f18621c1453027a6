//! The figures of the sources (papers, a thesis, slides), measured again on the reader's machine.
//!
//! A figure is a small file that only *declares*: its subject, its source, its lines and axes,
//! the source's printed values, and sentences about the result. Everything else is shared. The
//! resulting file, its tables and its page are the module `figure` of `corelay-lab-report`:
//!
//! ```text
//!   request_lines.rs, saturation.rs, … ── Figure ──► measure ──► Outcome
//!          (a file each)                  plan, Session, Rig
//! ```
//!
//! | module | idea |
//! |---|---|
//! | [`declare`] | the declaration of a figure |
//! | [`size`] | the reader's size: threads, servers, variables |
//! | [`measure`] | the measurement of all contenders of a figure, interleaved |
//! | `fibre_runs` | contenders that are benchmarks of fibres |
//! | `ordered_runs` | contenders that are ordered by a clock |
//! | `structure_runs` | contenders that share structures |
//! | `calibrations` | offsets between the CPUs' clocks, which have no contenders |
//!
//! A model's curve over a figure is a `Curve`, computed from the measured figures: see
//! [`Figure::curves`](declare::Figure).

#![forbid(unsafe_code)]

mod calibrations;
mod crowd;
pub mod declare;
mod fibre_runs;
pub mod measure;
mod ordered_runs;
pub mod size;

mod baseline;
mod best;
mod chapter;
mod dram_loads;
mod fast_slow;
mod fetch_add;
mod flat_latency;
mod flat_policies;
mod gepard;
mod hyperthreads;
mod many_variables;
mod one_variable;
mod order;
mod ordo;
mod parallelism;
mod queue_direct;
mod queue_length;
mod request_lines;
mod saturation;
mod structure_runs;
mod structures;
#[cfg(test)]
mod synthetic;
mod vary_servers;

use declare::Figure;

/// All figures, in the order of their sources.
pub static FIGURES: &[Figure] = &[
    queue_direct::FIGURE,
    queue_length::FIGURE,
    saturation::SIXTEEN,
    saturation::EIGHT,
    saturation::FOUR,
    request_lines::FIGURE,
    fast_slow::FIGURE,
    flat_policies::FIGURE,
    flat_latency::FIGURE,
    order::FIGURE,
    fetch_add::FIGURE,
    gepard::FIGURE,
    vary_servers::FIGURE,
    dram_loads::FIGURE,
    hyperthreads::FIGURE,
    one_variable::FIGURE,
    many_variables::FIGURE,
    best::FIGURE,
    parallelism::FIGURE,
    structures::LINKED_LIST,
    structures::QUEUE,
    structures::STACK,
    structures::HASH_TABLE,
    structures::LAZY_LIST,
    structures::SKIP_LIST,
    structures::TREE,
    structures::SHARDED_TREE,
    chapter::cycle::FIGURE,
    chapter::yield_::FIGURE,
    chapter::churn::FIGURE,
    chapter::locality::FIGURE,
    chapter::transfer::FIGURE,
    ordo::offsets::FIGURE,
    ordo::timestamping::FIGURE,
    ordo::rlu::FIGURE,
    ordo::boundary::FIGURE,
    ordo::oplog::FIGURE,
    ordo::database::FIGURE,
];

/// Returns the figure of that name.
///
/// # Errors
/// A sentence that names figures with similar names.
pub fn named(name: &str) -> Result<&'static Figure, String> {
    if let Some(figure) = FIGURES.iter().find(|figure| figure.name == name) {
        return Ok(figure);
    }
    let near: Vec<String> = near(name).map(|name| format!("`{name}`")).collect();
    Err(match &*near {
        [] => format!("there is no figure `{name}`; `--list` names them all"),
        near => format!(
            "there is no figure `{name}`; did you mean {}? `--list` names them all",
            near.join(" or ")
        ),
    })
}

/// Returns the figure names that differ from `name` by two typing mistakes or by a word.
fn near(name: &str) -> impl Iterator<Item = &'static str> {
    let names = FIGURES.iter().map(|figure| figure.name);
    let asked = name.to_lowercase();
    names.filter(move |known| {
        let is_part = asked.len() >= 4 && (known.contains(&*asked) || asked.contains(known));
        is_part || edits(&asked, known) <= 2
    })
}

/// Returns the edit distance of two names: the fewest letters to insert, delete or replace to turn
/// one into the other (Levenshtein, 1966).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declare::Work;
    use corelay_lab_measure::measure::plan::Item;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_found() {
        let names: HashSet<_> = FIGURES.iter().map(|figure| figure.name).collect();
        assert_eq!(names.len(), FIGURES.len());
        for figure in FIGURES {
            assert_eq!(named(figure.name).unwrap().name, figure.name);
            assert!(figure.least <= figure.whole, "{}", figure.name);
            assert_eq!(figure.whole > figure.least, !figure.fewer.is_empty());
        }
    }

    /// Checked for machines of any size: lines have different names, points ascend, threads have
    /// places.
    #[test]
    fn figures_fit_any_machine() {
        for cpus in [1, 2, 3, 4, 6, 8, 12, 56, 64, 200] {
            for short in [false, true] {
                let mut size = size::Size::test(cpus);
                size.short = short;
                for figure in FIGURES.iter().filter(|figure| figure.least <= cpus) {
                    check(figure, &size);
                }
            }
        }
    }

    fn check(figure: &Figure, size: &size::Size) {
        let panels = (figure.panels)(size);
        let keys: HashSet<_> = panels.iter().map(|panel| panel.key).collect();
        assert_eq!(keys.len(), panels.len(), "{}", figure.name);
        for panel in &panels {
            let labels: HashSet<_> = panel.lines.iter().map(|line| &line.label).collect();
            assert_eq!(labels.len(), panel.lines.len(), "{}", figure.name);
            for line in &panel.lines {
                let name = format!("{} of {} at {size:?}", line.label, figure.name);
                let xs: Vec<f64> = line.cells.iter().map(|cell| cell.x).collect();
                assert!(!xs.is_empty() && xs.is_sorted_by(|a, b| a < b), "{name}");
                assert!(xs[0] > 0.0 || !panel.axis.log, "{name}");
                for cell in &line.cells {
                    check_cell(&cell.work, size, &name);
                }
            }
        }
        for printed in figure.printed {
            let sign = printed.drawn.sign();
            assert!(
                sign.is_none_or(|sign| keys.contains(&*sign.panel)),
                "{}",
                figure.name
            );
        }
    }

    fn check_cell(work: &Work, size: &size::Size, name: &str) {
        match work {
            Work::Sharing(Item { method, point, .. }) => {
                assert!(point.threads <= size.threads, "{name}");
                assert!(
                    point.threads >= method.least_threads(point.servers),
                    "{name}"
                );
                assert!(point.placement.len() >= point.threads, "{name}");
            }
            Work::Fibres(item) => {
                assert_eq!(item.spec.check(), Ok(()), "{name}");
                assert!(item.spec.processors <= size.cpus, "{name}");
                assert_eq!(item.placement.len(), item.spec.processors, "{name}");
            }
            Work::Ordered(entrant) => {
                let (spec, point) = (entrant.spec, &entrant.point);
                assert_eq!(spec.bench.check(), Ok(()), "{name}");
                assert!(point.threads <= size.threads, "{name}");
                assert!(point.threads >= entrant.method.least_threads(1), "{name}");
                assert_eq!(point.placement.len(), point.threads, "{name}");
            }
            Work::Structure(of) => {
                let (point, _, least) = of.point();
                assert!((least..=size.threads).contains(&point.threads), "{name}");
                assert!(point.placement.len() >= point.threads, "{name}");
                assert!(point.servers as u64 <= point.vars, "{name}");
            }
        }
    }

    #[test]
    fn a_mistyped_name_gets_a_suggestion() {
        let said = |name| named(name).err().unwrap();
        assert!(said("satuation-16").contains("did you mean `saturation-16`?"));
        assert!(said("saturation").contains("`saturation-16` or `saturation-8` or `saturation-4`"));
        assert!(said("Order").contains("`order`"));
        assert!(!said("juggling").contains("mean"));
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
    }
}
