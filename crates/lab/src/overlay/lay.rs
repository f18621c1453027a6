//! Which charts all files have, and their lines beside each other.

use super::chart::{self, Chart, Key, Point};
use super::read::Input;
use crate::figure::grid::Grid;
use crate::plot::{short_count, significant};
use crate::report::words;
use crate::schema::Mode;
use serde::Serialize;

/// Files that can be told apart by colour and by letter.
pub const MOST: usize = 8;

/// One picture's worth: the same chart of every file, in one mode.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// Workload, axis and quantity.
    pub key: Key,
    /// The mode, where it is the same for all; else each file's own is in [`Told::mode`].
    pub mode: Option<Mode>,
    /// By method or line, in the order in which they first occur.
    pub lines: Vec<Together>,
}

/// One method's points in each file.
#[derive(Clone, Debug, Serialize)]
pub struct Together {
    /// Its name.
    pub label: String,
    /// The files' points in their order; empty where a file does not have it.
    pub files: Vec<Vec<Point>>,
}

/// Everything that files have in common.
#[derive(Clone, Debug)]
pub struct Laid {
    /// The files' names, in their order.
    pub files: Vec<Told>,
    /// The pictures.
    pub overlays: Vec<Overlay>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// How a file is named in legends.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// A letter for the pictures.
    pub letter: char,
    /// The file.
    pub file: String,
    /// Its machine.
    pub machine: String,
    /// The commit that measured.
    pub commit: String,
    /// The command that measured.
    pub command: String,
}

impl Told {
    fn of(number: usize, input: &Input) -> Self {
        let machine = &input.results.machine;
        let model = match &*machine.model {
            "" => "unknown processor",
            model => model,
        };
        let cpus = words::count(machine.cpus as u64, "CPU", "CPUs");
        Self {
            letter: char::from(b'A' + number as u8),
            file: input.path.display().to_string(),
            machine: format!("{model}, {cpus}"),
            commit: input.results.commit.clone(),
            command: input.results.command.clone(),
        }
    }
}

/// Lays files over each other.
///
/// # Errors
/// A sentence that names two files that have nothing in common.
pub fn lay(inputs: &[Input]) -> Result<Laid, String> {
    let charts: Vec<Vec<Chart>> = inputs.iter().map(chart::of).collect();
    let find = |charts: &'_ [Chart], key: &Key| charts.iter().find(|c| c.key == *key).cloned();
    for (input, own) in inputs.iter().zip(&charts) {
        if own.is_empty() {
            let path = input.path.display();
            return Err(format!(
                "{path}: nothing in it can be drawn: no run has a figure"
            ));
        }
        if !own
            .iter()
            .any(|chart| find(&charts[0], &chart.key).is_some())
        {
            return Err(format!(
                "{} ({}) and {} ({}) are incomparable: they have no workload over the same axis",
                inputs[0].path.display(),
                told(&charts[0]),
                input.path.display(),
                told(own)
            ));
        }
    }
    let mut notes = Vec::new();
    let mut overlays = Vec::new();
    for key in charts[0].iter().map(|chart| &chart.key) {
        let all: Vec<Chart> = charts.iter().filter_map(|own| find(own, key)).collect();
        if all.len() == inputs.len() {
            overlays.extend(overlays_of(key, &all, &mut notes));
        }
    }
    if overlays.is_empty() {
        return Err(
            "the files are incomparable: any two have something in common, but there is \
                    no workload and axis that all of them have"
                .to_owned(),
        );
    }
    notes.extend(different(inputs, "threads", |input| {
        let runs = input.results.runs.iter();
        runs.map(|run| run.params.threads)
            .max()
            .unwrap_or(0)
            .to_string()
    }));
    notes.extend(different(inputs, "seconds of a sample", |input| {
        let first = input.results.runs.first();
        first.map_or(String::new(), |run| run.params.secs.to_string())
    }));
    notes.sort();
    notes.dedup();
    let files = inputs
        .iter()
        .enumerate()
        .map(|(n, input)| Told::of(n, input));
    Ok(Laid {
        files: files.collect(),
        overlays,
        notes,
    })
}

/// A picture for each mode that all have; where there is none, each in its own.
fn overlays_of(key: &Key, all: &[Chart], notes: &mut Vec<String>) -> Vec<Overlay> {
    let modes = all[0].lines.keys().copied();
    let common: Vec<Mode> = modes
        .filter(|mode| all.iter().all(|chart| chart.lines.contains_key(mode)))
        .collect();
    let overlay = |mode, own: &dyn Fn(&Chart) -> Option<Mode>| {
        let mut lines: Vec<Together> = Vec::new();
        for (file, chart) in all.iter().enumerate() {
            let of_mode = own(chart).and_then(|mode| chart.lines.get(&mode));
            for line in of_mode.into_iter().flatten() {
                let known = lines.iter().position(|known| known.label == line.label);
                let at = known.unwrap_or_else(|| {
                    lines.push(Together {
                        label: line.label.clone(),
                        files: vec![Vec::new(); all.len()],
                    });
                    lines.len() - 1
                });
                lines[at].files[file].clone_from(&line.points);
            }
        }
        Overlay {
            key: key.clone(),
            mode,
            lines,
        }
    };
    if common.is_empty() {
        notes.push(
            "The files have no distance of the CPUs in common: near figures of one lie over far \
             ones of another, and much of what differs may be that."
                .to_owned(),
        );
        return vec![overlay(None, &|chart| chart.lines.keys().next().copied())];
    }
    let of = |mode| overlay(Some(mode), &|_| Some(mode));
    common.into_iter().map(of).collect()
}

/// What a file has, for a sentence.
fn told(charts: &[Chart]) -> String {
    let mut all: Vec<String> = charts
        .iter()
        .map(|chart| format!("{} over {}", chart.key.what, chart.key.axis.label))
        .collect();
    all.dedup();
    words::and(&all)
}

/// A note where files differ in what would have to be the same for machines to be compared.
fn different(inputs: &[Input], what: &str, of: impl Fn(&Input) -> String) -> Option<String> {
    let values: Vec<String> = inputs.iter().map(of).collect();
    let differ = values.iter().any(|value| *value != values[0]);
    differ.then(|| {
        let each = values
            .iter()
            .zip('A'..)
            .map(|(v, letter)| format!("{letter} {v}"));
        format!(
            "The files differ in {what}: {}.",
            each.collect::<Vec<_>>().join(", ")
        )
    })
}

impl Overlay {
    /// What it shows, in a line.
    pub fn title(&self) -> String {
        let mode = match self.mode {
            Some(Mode::Unknown) => String::new(),
            Some(mode) => format!(" · {}", words::mode(mode)),
            None => " · each in its own mode".to_owned(),
        };
        format!("{} · {}{mode}", self.key.what, self.key.quantity)
    }

    /// As a table: a column for each method and file.
    pub fn grid(&self, letters: &[Told]) -> Grid {
        let mut head = vec![self.key.axis.label.clone()];
        let mut columns: Vec<&[Point]> = Vec::new();
        for line in &self.lines {
            for (points, told) in line.files.iter().zip(letters) {
                head.push(format!("{} {}", told.letter, line.label));
                columns.push(points);
            }
        }
        let mut xs: Vec<f64> = columns.iter().flat_map(|c| c.iter().map(|p| p.x)).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let row = |&x: &f64| {
            let cell = |points: &&[Point]| {
                let found = points.iter().find(|p| p.x == x);
                found.map_or(String::new(), |p| significant(p.y))
            };
            std::iter::once(short_count(x))
                .chain(columns.iter().map(cell))
                .collect()
        };
        Grid {
            title: self.title(),
            head,
            rows: xs.iter().map(row).collect(),
        }
    }
}
