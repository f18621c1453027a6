//! Finds the charts that all files have, and merges their lines.

use super::chart::{self, Chart, Key, Point};
use super::read::Input;
use crate::plot::{short_count, significant};
use crate::table::grid::Grid;
use crate::words;
use corelay_lab_measure::schema::Mode;
use serde::Serialize;

/// The most files in one overlay, so that colours and letters tell them apart.
pub const MAX_FILES: usize = 8;

/// One picture: the same chart of every file.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// Workload, axis and quantity.
    pub key: Key,
    /// The mode of each file's points: the same for all, unless the files have none in common.
    pub(crate) modes: Vec<Mode>,
    /// The lines by method, in the order in which they first occur.
    pub lines: Vec<MergedLine>,
}

/// One method's points in each file.
#[derive(Clone, Debug, Serialize)]
pub struct MergedLine {
    /// The line's name: a method, or a variant of it.
    pub(crate) label: String,
    /// Each file's points; empty if the file lacks the line.
    pub files: Vec<Vec<Point>>,
}

/// The pictures that files have in common.
#[derive(Clone, Debug)]
pub struct Overlays {
    /// The labels of the files, in their order.
    pub files: Vec<FileLabel>,
    /// The pictures, one for each chart that all files have and each mode.
    pub overlays: Vec<Overlay>,
    /// Sentences on differences between the files that a reader should know.
    pub notes: Vec<String>,
}

/// The label of a file in legends.
#[derive(Clone, Debug, Serialize)]
pub struct FileLabel {
    /// The file's letter in the pictures.
    pub letter: char,
    /// The file's path.
    pub file: String,
    /// The machine that measured, in a few words.
    pub machine: String,
    /// The commit that measured.
    pub commit: String,
    /// The command that measured.
    pub(crate) command: String,
}

impl FileLabel {
    fn of(number: usize, input: &Input) -> Self {
        let first = input.first();
        let machine = &first.machine;
        let model = match &*machine.model {
            "" => "unknown processor",
            model => model,
        };
        let cpus = words::count(machine.cpus as u64, "CPU", "CPUs");
        Self {
            letter: char::from(b'A' + number as u8),
            file: input.path.display().to_string(),
            machine: format!("{model}, {cpus}"),
            commit: first.commit.clone(),
            command: first.command.clone(),
        }
    }
}

/// Overlays the charts of files.
///
/// # Errors
/// A sentence that names two files that have nothing in common.
pub fn lay(inputs: &[Input]) -> Result<Overlays, String> {
    let charts: Vec<Vec<Chart>> = inputs.iter().map(chart::of).collect();
    let find = |charts: &'_ [Chart], key: &Key| charts.iter().find(|c| c.key == *key).cloned();
    for (input, own) in inputs.iter().zip(&charts) {
        if own.is_empty() {
            let path = input.path.display();
            return Err(format!(
                "{path}: there is nothing to draw, because no run has a figure"
            ));
        }
        if !own
            .iter()
            .any(|chart| find(&charts[0], &chart.key).is_some())
        {
            return Err(format!(
                "{} ({}) and {} ({}) are incomparable: they have no workload over the same axis",
                inputs[0].path.display(),
                listed(&charts[0]),
                input.path.display(),
                listed(own)
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
        let runs = input.runs();
        runs.map(|run| run.params.threads)
            .max()
            .unwrap_or(0)
            .to_string()
    }));
    notes.extend(sample_lengths(inputs));
    notes.sort();
    notes.dedup();
    let files = inputs
        .iter()
        .enumerate()
        .map(|(n, input)| FileLabel::of(n, input));
    Ok(Overlays {
        files: files.collect(),
        overlays,
        notes,
    })
}

/// Makes a picture for each mode that all files have. If there is none, takes each file in its
/// own mode.
fn overlays_of(key: &Key, all: &[Chart], notes: &mut Vec<String>) -> Vec<Overlay> {
    let modes = all[0].lines.keys().copied();
    let common: Vec<Mode> = modes
        .filter(|mode| all.iter().all(|chart| chart.lines.contains_key(mode)))
        .collect();
    let overlay = |modes: Vec<Mode>| {
        let mut lines: Vec<MergedLine> = Vec::new();
        for (file, (chart, mode)) in all.iter().zip(&modes).enumerate() {
            for line in chart.lines.get(mode).into_iter().flatten() {
                let known = lines.iter().position(|known| known.label == line.label);
                let at = known.unwrap_or_else(|| {
                    lines.push(MergedLine {
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
            modes,
            lines,
        }
    };
    if common.is_empty() {
        notes.push(
            "The files have no mode in common: near figures of one lie over far figures of another, \
             which may explain much of the difference."
                .to_owned(),
        );
        let own = all.iter().filter_map(|chart| chart.lines.keys().next());
        return vec![overlay(own.copied().collect())];
    }
    let of = |mode| overlay(vec![mode; all.len()]);
    common.into_iter().map(of).collect()
}

/// Lists a file's charts for a sentence.
fn listed(charts: &[Chart]) -> String {
    let mut all: Vec<String> = charts
        .iter()
        .map(|chart| format!("{} over {}", chart.key.what, chart.key.axis.label))
        .collect();
    all.dedup();
    words::and(&all)
}

/// Makes a note if files differ in a parameter that should be equal for a comparison of machines.
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

/// Makes a note if the files' samples differ in length by more than a tenth. `compare` chooses the
/// length by the time that is left, so it is never quite the same.
fn sample_lengths(inputs: &[Input]) -> Option<String> {
    let secs = |input: &Input| input.runs().next().map_or(0.0, |run| run.params.secs);
    let all = || inputs.iter().map(secs);
    let longest = all().fold(0.0, f64::max);
    let shortest = all().fold(f64::INFINITY, f64::min);
    if longest <= 1.1 * shortest {
        return None;
    }
    different(inputs, "seconds of a sample", |input| {
        significant(secs(input))
    })
}

impl Overlay {
    /// Returns the picture's subject, in a line.
    pub(crate) fn title(&self) -> String {
        let first = self.modes.first().copied().unwrap_or(Mode::Unknown);
        let mode = if self.modes.iter().any(|mode| *mode != first) {
            let letters = self.modes.iter().zip('A'..);
            let each = letters.map(|(mode, letter)| format!("{letter} {}", words::mode(*mode)));
            format!(" · {}", words::and(&each.collect::<Vec<_>>()))
        } else if first == Mode::Unknown {
            String::new()
        } else {
            format!(" · {}", words::mode(first))
        };
        format!("{} · {}{mode}", self.key.what, self.key.quantity)
    }

    /// Makes a table: a row for each line and place, a column for each file. For two files,
    /// another column has the ratio of the second to the first.
    pub fn grid(&self, files: &[FileLabel]) -> Grid {
        let mut head = vec!["line".to_owned(), self.key.axis.label.clone()];
        head.extend(files.iter().map(|label| label.letter.to_string()));
        if let [a, b] = files {
            head.push(format!("{} / {}", b.letter, a.letter));
        }
        let mut rows = Vec::new();
        for line in &self.lines {
            let mut xs: Vec<f64> = line.files.iter().flatten().map(|p| p.x).collect();
            xs.sort_by(f64::total_cmp);
            xs.dedup();
            rows.extend(xs.into_iter().map(|x| line.row(x)));
        }
        Grid {
            title: self.title(),
            head,
            rows,
        }
    }
}

impl MergedLine {
    fn row(&self, x: f64) -> Vec<String> {
        let at = |points: &Vec<Point>| points.iter().find(|p| p.x == x).map(|p| p.y);
        let values: Vec<Option<f64>> = self.files.iter().map(at).collect();
        let mut row = vec![self.label.clone(), short_count(x)];
        let word = |value: &Option<f64>| value.map_or(String::new(), significant);
        row.extend(values.iter().map(word));
        match &*values {
            [Some(a), Some(b)] if *a > 0.0 => row.push(words::times(b / a)),
            [_, _] => row.push(String::new()),
            _ => {}
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlay::read::Part;
    use corelay_lab_measure::schema::{Machine, ModeSummary, Params, Results, Run, SCHEMA, Sample};
    use std::collections::BTreeMap;

    /// A file of the mutex over 1 and 8 variables in `mode`, at `mops`.
    fn input(name: &str, workload: &str, mode: Mode, mops: f64) -> Input {
        let run = |vars| Run {
            workload: workload.to_owned(),
            method: "mutex".to_owned(),
            params: Params {
                threads: 2,
                vars,
                dist: "uniform".to_owned(),
                ..Params::default()
            },
            correct: true,
            median_mops: mops,
            harmonic_mean_mops: mops,
            by_mode: BTreeMap::from([(
                mode,
                ModeSummary {
                    median_mops: mops,
                    n: 1,
                    q1_mops: mops,
                    q3_mops: mops,
                    latency_ns: None,
                    limit: None,
                },
            )]),
            samples: vec![Sample {
                mops,
                mode,
                rtt_ns: None,
                per_thread: vec![1],
                cpu_s: 0.0,
                latency_ns: None,
                arrivals: None,
                fibres: None,
                counts: None,
                picture: None,
                cache: None,
            }],
            trustees: vec![],
            latency_ns: None,
            load: None,
            loads: None,
            not_installed: None,
            cache: None,
            notes: vec![],
        };
        Input {
            path: name.into(),
            parts: vec![Part {
                results: Results {
                    schema: SCHEMA,
                    machine: Machine {
                        cpus: 2,
                        ..Machine::default()
                    },
                    commit: "c".to_owned(),
                    command: "x".to_owned(),
                    runs: vec![run(1), run(8)],
                },
                figure: None,
            }],
        }
    }

    #[test]
    fn charts_that_all_files_have_are_overlaid() {
        let files = [
            input("a", "fetch-add", Mode::Near, 10.0),
            input("b", "fetch-add", Mode::Near, 20.0),
        ];
        let laid = lay(&files).unwrap();
        let [overlay] = &*laid.overlays else {
            panic!("{laid:?}")
        };
        assert_eq!(overlay.modes, [Mode::Near; 2]);
        assert!(overlay.title().ends_with("· near") && laid.notes.is_empty());
        let grid = overlay.grid(&laid.files);
        assert_eq!(grid.head[2..], ["A", "B", "B / A"]);
        assert_eq!(grid.rows[1][..4], ["mutex", "8", "10.0", "20.0"]);
        assert!(grid.rows[1][4].starts_with("2.0"));
    }

    #[test]
    fn a_note_says_that_near_lies_over_far() {
        let files = [
            input("a", "fetch-add", Mode::Near, 10.0),
            input("b", "fetch-add", Mode::Far, 2.0),
        ];
        let laid = lay(&files).unwrap();
        assert!(laid.overlays[0].title().ends_with("· A near and B far"));
        assert!(
            laid.notes[0].contains("near figures of one"),
            "{:?}",
            laid.notes
        );
    }

    #[test]
    fn other_workloads_are_incomparable() {
        let files = [
            input("a.json", "fetch-add", Mode::Near, 10.0),
            input("b.json", "word count", Mode::Near, 10.0),
        ];
        let said = lay(&files).unwrap_err();
        for word in [
            "a.json",
            "b.json",
            "fetch-add",
            "word count",
            "incomparable",
        ] {
            assert!(said.contains(word), "{said}");
        }
        let mut wrong = input("w.json", "fetch-add", Mode::Near, 1.0);
        let runs = &mut wrong.parts[0].results.runs;
        runs.iter_mut().for_each(|run| run.correct = false);
        assert!(lay(&[wrong]).unwrap_err().contains("w.json"));
    }

    #[test]
    fn a_note_names_parameters_that_differ() {
        let mut files = [
            input("a", "fetch-add", Mode::Near, 10.0),
            input("b", "fetch-add", Mode::Near, 20.0),
        ];
        for run in &mut files[1].parts[0].results.runs {
            run.params.threads = 64;
        }
        let laid = lay(&files).unwrap();
        assert_eq!(laid.notes, ["The files differ in threads: A 2, B 64."]);
    }

    #[test]
    fn lengths_of_samples_that_hardly_differ_are_no_note() {
        for (secs, note) in [
            (1.05, &[][..]),
            (
                2.0,
                &["The files differ in seconds of a sample: A 1.00, B 2.00."],
            ),
        ] {
            let files = [1.0, secs].map(|secs| {
                let mut file = input("a", "fetch-add", Mode::Near, 10.0);
                let runs = &mut file.parts[0].results.runs;
                runs.iter_mut().for_each(|run| run.params.secs = secs);
                file
            });
            assert_eq!(lay(&files).unwrap().notes, note);
        }
    }
}
