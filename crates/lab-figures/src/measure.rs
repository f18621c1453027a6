//! The measurement of a figure: all contenders interleaved, as everywhere in the lab.

use super::calibrations;
use super::crowd;
use super::declare::{Cell, Figure, Panel, Printed, Work};
use super::fibre_runs;
use super::ordered_runs;
use super::size::Size;
use super::structure_runs;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::memory::available_bytes;
use corelay_lab_measure::measure::plan::{self, Item};
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{Session, Timing};
use corelay_lab_measure::schema::{Results, Run};
use corelay_lab_measure::workload::fetch_add::FetchAdd;
use corelay_lab_measure::workload::operation::Workload;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::offsets::Offsets;
use corelay_lab_report::figure::outcome::{About, Drawing, Outcome, PrintedValue, place};
use std::time::Duration;

/// The number and length of a figure's samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Length of a sample in seconds.
    pub secs: f64,
    /// Samples of each contender.
    pub samples: u64,
}

impl Pace {
    /// The source's pace: ten samples of three seconds (D16).
    pub const SOURCE: Self = Self {
        secs: 3.0,
        samples: 10,
    };
    /// The pace of a smoke pass.
    pub const SHORT: Self = Self {
        secs: 0.05,
        samples: 5,
    };

    pub(super) fn timing(self) -> Timing {
        Timing::of(Duration::from_secs_f64(self.secs))
    }

    pub(super) fn warm_up(self) -> Duration {
        self.timing().sample.min(Duration::from_millis(100))
    }
}

/// A contender of a figure, and its position: panel, line and place on the axis.
pub(super) struct FigureEntry<'a, T> {
    panel: &'a str,
    line: &'a str,
    cell: &'a Cell,
    pub(super) item: &'a T,
}

impl<'a, T> FigureEntry<'a, T> {
    /// Returns the entry with another part of its contender.
    pub(super) fn with<U>(&self, item: &'a U) -> FigureEntry<'a, U> {
        FigureEntry {
            panel: self.panel,
            line: self.line,
            cell: self.cell,
            item,
        }
    }

    /// Labels the contender's run with its position.
    pub(super) fn label(&self, mut run: Run) -> Run {
        place(&mut run, self.panel, self.line, self.cell.x);
        run.workload = self.cell.workload.to_owned();
        run
    }

    /// Says why the contender has no run.
    pub(super) fn missing(&self, why: &str) -> String {
        format!("`{}` at {}: {why}.", self.line, self.cell.x)
    }
}

/// Time to give a variable to a trustee. Used for the estimate only.
const SET_UP_PER_VAR: Duration = Duration::from_nanos(150);

/// Returns the slices that measuring `figure` takes, for a progress bar, and the expected time.
pub fn expected(figure: &Figure, size: &Size, pace: Pace) -> (u64, Duration) {
    if obstacle(figure, size).is_some() {
        return (0, Duration::ZERO);
    }
    let panels = (figure.panels)(size);
    let (sharing, fibres) = (
        entries(&panels, Work::sharing),
        entries(&panels, Work::fibres),
    );
    let cells = || {
        panels
            .iter()
            .flat_map(|panel| &panel.lines)
            .flat_map(|line| &line.cells)
    };
    let structures = cells().filter(|cell| cell.work.is_structure()).count() as u64;
    let ordered = entries(&panels, Work::ordered).len() as u64;
    let vars: u64 = sharing.iter().map(|entry| entry.item.point.vars).sum();
    let samples = pace.timing().whole().mul_f64(pace.samples as f64);
    let of_sharing = samples + pace.warm_up();
    let setting_up = SET_UP_PER_VAR.mul_f64(vars as f64);
    let warmed = sharing.len() as u64 + ordered + structures;
    let slices = warmed * (pace.samples + 1) + fibres.len() as u64 * pace.samples;
    let time = of_sharing.mul_f64(warmed as f64) + samples.mul_f64(fibres.len() as f64);
    if figure.offsets {
        let of_offsets = calibrations::expected(size.cpus, size.short, pace);
        return (slices + pace.samples, time + setting_up + of_offsets);
    }
    (slices, time + setting_up)
}

/// Returns the reason that nothing of the figure can be measured here, if there is one.
pub fn obstacle(figure: &Figure, size: &Size) -> Option<String> {
    if size.cpus < figure.least {
        return Some(format!(
            "it needs {} CPUs, and {}",
            figure.least,
            there_are(size.cpus)
        ));
    }
    (figure.unavailable)()
}

fn there_are(cpus: usize) -> String {
    match cpus {
        1 => "there is 1".to_owned(),
        n => format!("there are {n}"),
    }
}

/// Measures a figure. `tick` is called after each slice.
///
/// Contenders that cannot be set up (for want of memory or threads) are left out, with a
/// sentence. Ctrl-C ends measuring early and keeps the figures so far.
pub fn measure(
    figure: &Figure,
    size: &Size,
    pace: Pace,
    host: &Host,
    rig: &mut Rig,
    tick: &dyn Fn(),
) -> Outcome {
    let panels = (figure.panels)(size);
    let mut missing = Vec::new();
    let (mut runs, mut offsets) = (Vec::new(), None);
    match obstacle(figure, size) {
        Some(why) => missing.push(format!(
            "Nothing of this figure can be measured here: {why}."
        )),
        None => {
            runs = all(&panels, pace, rig, tick, &mut missing);
            if figure.offsets && !rig.is_interrupted() {
                let cpus = host.topology.usable();
                offsets = calibrations::measure(cpus, size.short, pace, rig, tick, &mut missing);
            }
            if size.cpus < figure.whole {
                missing.push(format!(
                    "The figure needs {} CPUs to be whole, and {}: {}",
                    figure.whole,
                    there_are(size.cpus),
                    figure.fewer
                ));
            }
        }
    }
    let results = host.results(rig, runs);
    annotated(figure, &panels, pace, missing, results, offsets)
}

/// Adds the source's printed values, the models and the figure's words to the results.
pub(super) fn annotated(
    figure: &Figure,
    panels: &[Panel],
    pace: Pace,
    mut missing: Vec<String>,
    results: Results,
    offsets: Option<Offsets>,
) -> Outcome {
    missing.extend(crowd::note(&results.runs, results.machine.cpus));
    let signs = figure.printed.iter().filter_map(|p| p.drawn.sign());
    let mut outcome = Outcome {
        figure: About {
            name: figure.name.to_owned(),
            title: figure.title.to_owned(),
            source: figure.source.name(),
            there: figure.source.machine().to_owned(),
            secs: pace.secs,
            samples: pace.samples,
            panels: panels.iter().map(drawing).collect(),
            drawn: signs.collect(),
            missing,
            offsets,
            ..About::default()
        },
        results,
    };
    let measured = Measured::of(&outcome);
    let is_there = !outcome.is_empty();
    let beside = |printed: &Printed| PrintedValue {
        what: printed.what.to_owned(),
        there: printed.there.to_owned(),
        here: is_there.then(|| (printed.here)(&measured)).flatten(),
    };
    let beside = figure.printed.iter().map(beside).collect();
    let (tables, stacks, curves, said) = if is_there {
        (
            (figure.tables)(&measured),
            (figure.stacks)(&measured),
            (figure.curves)(&measured),
            (figure.words)(&measured),
        )
    } else {
        Default::default()
    };
    outcome.figure = About {
        beside,
        tables,
        stacks,
        curves,
        said,
        ..outcome.figure
    };
    outcome
}

fn drawing(panel: &Panel) -> Drawing {
    Drawing {
        key: panel.key.to_owned(),
        title: panel.title.to_owned(),
        axis: panel.axis.clone(),
        quantities: panel.quantities.to_vec(),
        lines: panel.lines.iter().map(|line| line.label.clone()).collect(),
    }
}

/// Returns the contenders of a kind, in their figure's order.
pub(super) fn entries<'a, T>(
    panels: &'a [Panel],
    of: fn(&Work) -> Option<&T>,
) -> Vec<FigureEntry<'a, T>> {
    let mut entries = Vec::new();
    for panel in panels {
        for line in &panel.lines {
            entries.extend(line.cells.iter().filter_map(|cell| {
                Some(FigureEntry {
                    panel: panel.key,
                    line: &line.label,
                    cell,
                    item: of(&cell.work)?,
                })
            }));
        }
    }
    entries
}

/// Measures all contenders: ways of sharing, then fibres, then those ordered by a clock, then
/// structures.
fn all(
    panels: &[Panel],
    pace: Pace,
    rig: &mut Rig,
    tick: &dyn Fn(),
    missing: &mut Vec<String>,
) -> Vec<Run> {
    let mut runs = sharing(
        FetchAdd,
        entries(panels, Work::sharing),
        pace,
        rig,
        tick,
        missing,
    );
    let fibres = entries(panels, Work::fibres);
    if !fibres.is_empty() && !rig.is_interrupted() {
        runs.extend(fibre_runs::all(&fibres, pace, rig, tick, missing));
    }
    let ordered = entries(panels, Work::ordered);
    if !ordered.is_empty() && !rig.is_interrupted() {
        runs.extend(ordered_runs::all(&ordered, pace, rig, tick, missing));
    }
    runs.extend(structure_runs::all(panels, pace, rig, tick, missing));
    runs
}

/// Measures ways of sharing the objects of one workload, wave by wave.
pub(super) fn sharing<W: Workload>(
    workload: W,
    mut entries: Vec<FigureEntry<'_, Item<W>>>,
    pace: Pace,
    rig: &mut Rig,
    tick: &dyn Fn(),
    missing: &mut Vec<String>,
) -> Vec<Run> {
    // Puts the contenders of one point next to each other; `plan::waves` keeps them together.
    entries.sort_by_key(|entry| (entry.item.point.vars, entry.item.point.threads));
    let available = available_bytes();
    entries.retain(|entry| match entry.item.check_memory(available) {
        Ok(()) => true,
        Err(why) => {
            missing.push(entry.missing(&why));
            false
        }
    });
    let items: Vec<Item<W>> = entries.iter().map(|entry| entry.item.clone()).collect();
    let mut entries = entries.into_iter();
    let mut runs = Vec::new();
    for wave in plan::waves(items, available) {
        let entries: Vec<FigureEntry<'_, Item<W>>> = entries.by_ref().take(wave.len()).collect();
        let session = Session::of(workload);
        runs.extend(measure_wave(
            session, wave, &entries, pace, rig, tick, missing,
        ));
        if rig.is_interrupted() {
            break;
        }
    }
    runs
}

fn measure_wave<W: Workload>(
    mut session: Session<W>,
    wave: Vec<Item<W>>,
    entries: &[FigureEntry<'_, Item<W>>],
    pace: Pace,
    rig: &mut Rig,
    tick: &dyn Fn(),
    missing: &mut Vec<String>,
) -> Vec<Run> {
    let (timing, mut kept) = (pace.timing(), Vec::new());
    for (item, entry) in wave.into_iter().zip(entries) {
        match session.add(item, &rig.setup_limit(None)) {
            Ok(()) => kept.push(entry),
            Err(_) if rig.is_interrupted() => break,
            Err(why) => missing.push(entry.missing(&why)),
        }
    }
    session.warm_up(rig, pace.warm_up(), tick);
    for _ in 0..pace.samples {
        if !session.round(rig, timing, None, tick) {
            break;
        }
    }
    let runs = session.finish(rig, timing).into_iter().zip(kept);
    runs.map(|(run, entry)| entry.label(run)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declare::FigureLine;
    use crate::size::named;
    use corelay_lab_measure::method::literature::lines;
    use corelay_lab_measure::method::{Contender, Kind, METHODS, Method};
    use corelay_lab_measure::schema::Mode;
    use corelay_lab_measure::workload::random::Client;
    use corelay_lab_report::figure::outcome::Axis;
    use corelay_lab_report::figure::outcome::place_of;
    use corelay_lab_report::figure::quantity::Quantity::Throughput;
    use std::ops::Range;
    use std::sync::Arc;

    /// A contender that reports operations it never does, so its result is wrong.
    struct Idle(usize);

    impl Contender for Idle {
        fn clients(&self) -> Range<usize> {
            0..self.0
        }

        fn client(&self, client: Client) -> u64 {
            client.drive(|choice| choice as u64)
        }

        fn total(&self) -> Result<u64, String> {
            Ok(0)
        }
    }

    fn wrong() -> Method {
        Method::new("wrong", Kind::Direct, |_, point, _| {
            Ok(Box::new(Idle(point.threads)))
        })
    }

    /// A method that can never be set up.
    fn refused() -> Method {
        METHODS[1]
            .method
            .built_by(|_, _, _| Err("no such luck".to_owned()))
    }

    fn panels(size: &Size) -> Vec<Panel> {
        let line = |label, way: Method| {
            // Not in the order in which they are measured.
            let vars = [64u64, 8, 1];
            let cell = |&vars: &u64| size.cell(vars as f64, way, 1, vars);
            FigureLine::new(label, vars.iter().map(cell))
        };
        vec![Panel {
            key: "vars",
            title: "Over variables",
            axis: Axis::vars(),
            quantities: &[Throughput],
            lines: vec![
                line("mutex", named("mutex")),
                line("refused", refused()),
                line("wrong", wrong()),
                line("async-lines:2x4", lines::queue(2, 4)),
                line("atomic", named("atomic")),
            ],
        }]
    }

    /// Runs stay with their contenders whatever is refused in between.
    #[test]
    fn runs_get_the_positions_of_their_contenders() {
        let size = Size::test(2);
        let mut rig = Rig::new(&[None; 2], &[], "test", Arc::default()).unwrap();
        let pace = Pace {
            secs: 0.002,
            samples: 2,
        };
        let panels = panels(&size);
        let (mut missing, slices) = (Vec::new(), std::cell::Cell::new(0));
        let tick = || slices.set(slices.get() + 1);
        let runs = all(&panels, pace, &mut rig, &tick, &mut missing);
        assert_eq!((runs.len(), missing.len()), (12, 3), "{missing:?}");
        assert_eq!(slices.get(), 12 * 3);
        assert!(missing[0].contains("`refused` at 1: no such luck"));
        for run in &runs {
            let label = &run.method;
            let x = place_of(run, "vars", label).expect("the line is named as the method");
            assert_eq!(x, run.params.vars as f64);
            assert_eq!(run.correct, label != "wrong");
            assert_eq!(Throughput.of(run, Mode::Unknown).is_some(), run.correct);
        }
    }

    #[test]
    fn an_unavailable_figure_takes_no_time() {
        let figure = Figure {
            panels,
            unavailable: || Some("the moon is full".to_owned()),
            ..Figure::PLAIN
        };
        let slices = |size: &Size, figure: &Figure| expected(figure, size, Pace::SOURCE);
        assert_eq!(slices(&Size::test(2), &figure), (0, Duration::ZERO));
        let figure = Figure {
            panels,
            ..Figure::PLAIN
        };
        assert_eq!(slices(&Size::test(1), &figure), (0, Duration::ZERO));
        let (slices, time) = slices(&Size::test(2), &figure);
        assert_eq!(slices, 15 * 11);
        // Ten samples of three seconds each, and a little more.
        assert!((450.0..470.0).contains(&time.as_secs_f64()), "{time:?}");
    }
}
