//! Which pictures a results file deserves.
//!
//! Over variables where they were swept: a row per mode and thread count, what waits on
//! the left, what answers later on the right, both with the same vertical axis. Over
//! threads where only they were swept. Bars for a single point.

use crate::data::{self, Line, Measure, Subject};
use crate::method::{self, Form, Styles};
use crate::model::{contention, residency};
use crate::plot::{
    Bar, BarPlot, Halo, LinePlot, Mark, Place, Point, Scale, Series, Shade, bytes, grouped,
    percent, significant,
};
use crate::words::{self, count};
use corelay_lab_measure::schema::{Machine, Mode, ModeSummary, Results, Run};

/// Width of a picture in units: two stand side by side on a wide page, one fills a phone.
pub(crate) const WIDTH: f64 = 520.0;
/// Width of the picture that stands alone.
const ALONE: f64 = 860.0;

/// The horizontal axis of a subject's pictures.
#[derive(Clone, Copy, PartialEq)]
enum Axis {
    Vars,
    Threads,
    /// A single point: bars.
    None,
}

impl Axis {
    fn of(subject: &Subject<'_>) -> Self {
        match (subject.vars().len(), subject.threads().len()) {
            (2.., _) => Axis::Vars,
            (_, 2..) => Axis::Threads,
            _ => Axis::None,
        }
    }
}

/// Pictures that belong side by side, with what they have in common.
pub(super) struct Row {
    pub(super) heading: String,
    pub(super) figures: Vec<Figure>,
}

pub(super) struct Figure {
    pub(super) caption: String,
    pub(super) svg: String,
}

/// What all pictures of a subject share.
struct Studio<'a> {
    subject: &'a Subject<'a>,
    machine: &'a Machine,
    styles: &'a Styles,
    axis: Axis,
    id: String,
}

/// One picture to be drawn.
struct Shot<'a> {
    runs: &'a [&'a Run],
    mode: Mode,
    measure: Measure,
    threads: Option<usize>,
    scale: Scale,
    /// Labels, and letters of the longest, of the picture and its neighbour.
    room: (usize, usize),
}

/// The pictures of a subject, most threads first.
pub(super) fn rows(
    subject: &Subject<'_>,
    number: usize,
    machine: &Machine,
    styles: &Styles,
) -> Vec<Row> {
    let axis = Axis::of(subject);
    let studio = Studio {
        subject,
        machine,
        styles,
        axis,
        id: format!("s{number}"),
    };
    if axis == Axis::Threads {
        return studio.rows(&subject.runs, None);
    }
    let main = subject.main_threads(machine.cpus);
    let mut threads: Vec<usize> = subject.threads().into_iter().rev().collect();
    threads.sort_by_key(|t| Some(*t) != main);
    threads
        .into_iter()
        .flat_map(|t| studio.rows(&subject.at(t), Some(t)))
        .collect()
}

/// The main picture, alone: every method at the main thread count.
pub(crate) fn picture(results: &Results) -> String {
    let styles = Styles::of(results.runs.iter().map(|r| r.method.as_str()));
    main(results, &styles, Place::Alone).map_or_else(nothing, |figure| figure.svg)
}

/// The main picture for a file of its own, or smaller for a page.
pub(super) fn main(results: &Results, styles: &Styles, place: Place) -> Option<Figure> {
    let subjects = Subject::all(results);
    let subject = subjects.first()?;
    let axis = Axis::of(subject);
    let threads = subject
        .main_threads(results.machine.cpus)
        .filter(|_| axis != Axis::Threads);
    let runs = threads.map_or_else(|| subject.runs.clone(), |t| subject.at(t));
    let samples = |m: Mode| {
        runs.iter()
            .map(|r| data::samples(r, m).len())
            .sum::<usize>()
    };
    let modes = data::modes(runs.iter().copied()).into_iter();
    let mode = modes.max_by_key(|&m| samples(m))?;
    let studio = Studio {
        subject,
        machine: &results.machine,
        styles,
        axis,
        id: "picture".to_owned(),
    };
    let shot = Shot {
        runs: &runs,
        mode,
        measure: Measure::Throughput,
        threads,
        scale: scale(&runs, Measure::Throughput),
        room: (0, 0),
    };
    let lines = studio.lines(&runs);
    let lines: Vec<(&Line<'_>, bool)> = lines.iter().map(|l| (l, false)).collect();
    let width = if place == Place::Alone { ALONE } else { WIDTH };
    Some(Figure {
        caption: format!("{}: {}", subject.name(), studio.heading(&shot)),
        svg: studio.draw(&shot, &lines, "all methods", width, place),
    })
}

fn nothing() -> String {
    let empty = BarPlot {
        id: "picture".to_owned(),
        title: "Nothing was measured".to_owned(),
        description: "There are no figures in these results.".to_owned(),
        label: "",
        scale: Scale::Linear {
            low: 0.0,
            high: 1.0,
        },
        bars: Vec::new(),
        width: ALONE,
    };
    empty.svg(Place::Alone)
}

/// One vertical axis for all modes of `runs`, so that pictures compare by eye.
fn scale(runs: &[&Run], measure: Measure) -> Scale {
    let modes = data::drawn_modes(runs);
    let of = |r: &&Run| modes.iter().map(|&m| measure.of(r, m)).collect::<Vec<_>>();
    let spread = |s: ModeSummary| [s.q1_mops, s.median_mops, s.q3_mops];
    Scale::for_values(runs.iter().flat_map(of).flatten().flat_map(spread))
}

impl Studio<'_> {
    fn rows(&self, runs: &[&Run], threads: Option<usize>) -> Vec<Row> {
        let mut rows = Vec::new();
        for measure in [Measure::Throughput, Measure::PerCpu] {
            // Per CPU used only for the main thread count: the rest is in the table.
            let main = self.subject.main_threads(self.machine.cpus);
            if measure == Measure::PerCpu && threads.is_some() && threads != main {
                continue;
            }
            let scale = scale(runs, measure);
            for mode in data::drawn_modes(runs) {
                let shot = Shot {
                    runs,
                    mode,
                    measure,
                    threads,
                    scale,
                    room: (0, 0),
                };
                let figures = self.figures(&shot);
                if !figures.is_empty() {
                    rows.push(Row {
                        heading: self.heading(&shot),
                        figures,
                    });
                }
            }
        }
        rows
    }

    fn heading(&self, shot: &Shot<'_>) -> String {
        let measure = match shot.measure {
            Measure::Throughput => "Throughput",
            Measure::PerCpu => "Per CPU used, trustees counted",
        };
        let mut parts = vec![measure.to_owned()];
        parts.extend(shot.threads.map(|t| self.threads_in_words(t, shot.runs)));
        if shot.mode != Mode::Unknown {
            let rtt = data::round_trip(shot.runs, shot.mode).map_or(String::new(), |ns| {
                format!(" (round trip {} ns)", significant(ns))
            });
            parts.push(format!("{}{rtt}", words::mode(shot.mode)));
        }
        parts.join(" · ")
    }

    fn threads_in_words(&self, threads: usize, runs: &[&Run]) -> String {
        let servers = runs.iter().map(|r| r.params.servers).max().unwrap_or(0);
        let all = count(threads as u64, "thread", "threads");
        match servers {
            0 => all,
            s => format!(
                "{all}, of them {} where delegated",
                count(s as u64, "trustee", "trustees")
            ),
        }
    }

    fn lines<'a>(&self, runs: &[&'a Run]) -> Vec<Line<'a>> {
        match self.axis {
            Axis::Threads => data::lines(runs, |r| r.params.threads as u64),
            _ => data::lines(runs, |r| r.params.vars),
        }
    }

    /// What waits and what does not, each with its own picture.
    fn figures(&self, shot: &Shot<'_>) -> Vec<Figure> {
        let lines = self.lines(shot.runs);
        let later = |l: &&Line<'_>| matches!(method::form(l.method), Form::Later | Form::OneWay);
        let reference = |l: &&Line<'_>| matches!(l.method, "atomic" | "mutex");
        let waiting: Vec<(&Line<'_>, bool)> = lines
            .iter()
            .filter(|l| !later(l))
            .map(|l| (l, false))
            .collect();
        let mut other: Vec<(&Line<'_>, bool)> = Vec::new();
        if lines.iter().any(|l| later(&l)) {
            other.extend(lines.iter().filter(reference).map(|l| (l, true)));
            other.extend(lines.iter().filter(later).map(|l| (l, false)));
        }
        let captions = [
            ("Waits for each answer", waiting),
            ("Answers later, or never", other),
        ];
        let letters =
            |lines: &[(&Line<'_>, bool)]| lines.iter().map(|(l, _)| l.label.chars().count()).max();
        let room = (
            captions
                .iter()
                .map(|(_, lines)| lines.len())
                .max()
                .unwrap_or(0),
            captions
                .iter()
                .filter_map(|(_, lines)| letters(lines))
                .max()
                .unwrap_or(0),
        );
        let shot = &Shot { room, ..*shot };
        let drawn = captions.into_iter().enumerate().filter(|(_, (_, lines))| {
            lines.iter().any(|(l, pale)| {
                !pale
                    && l.points
                        .iter()
                        .any(|p| shot.measure.of(p.1, shot.mode).is_some())
            })
        });
        drawn
            .map(|(side, (caption, lines))| {
                let studio = Studio {
                    id: self.shot_id(shot, side),
                    ..*self
                };
                Figure {
                    caption: caption.to_owned(),
                    svg: studio.draw(shot, &lines, caption, WIDTH, Place::Page),
                }
            })
            .collect()
    }

    fn shot_id(&self, shot: &Shot<'_>, side: usize) -> String {
        let threads = shot.threads.map_or("all".to_owned(), |t| t.to_string());
        let mode = words::mode(shot.mode).replace(' ', "-");
        let measure = if shot.measure == Measure::PerCpu {
            "cpu"
        } else {
            "mops"
        };
        format!("{}-{threads}-{mode}-{measure}-{side}", self.id)
    }

    fn draw(
        &self,
        shot: &Shot<'_>,
        lines: &[(&Line<'_>, bool)],
        caption: &str,
        width: f64,
        place: Place,
    ) -> String {
        let log = matches!(shot.scale, Scale::Log { .. });
        let y_label = match (shot.measure, log) {
            (Measure::Throughput, false) => "million operations per second",
            (Measure::Throughput, true) => "million operations per second, logarithmic",
            (Measure::PerCpu, false) => "million operations per CPU second",
            (Measure::PerCpu, true) => "million operations per CPU second, logarithmic",
        };
        let title = match place {
            Place::Page => format!("{}: {caption}", self.heading(shot)),
            Place::Alone => format!("{}, {}", self.subject.name(), self.alone_title(shot)),
        };
        if self.axis == Axis::None {
            return self.bars(shot, lines, title, y_label, width).svg(place);
        }
        let series: Vec<Series> = lines
            .iter()
            .map(|(l, faint)| self.series(shot, l, *faint))
            .collect();
        let series: Vec<Series> = series
            .into_iter()
            .filter(|s| !s.points.is_empty())
            .collect();
        let xs = self.subject.vars().into_iter().map(|v| v as f64);
        let threads = shot.threads.unwrap_or(1);
        let chance = |vars: f64| between_integers(vars, |v| contention::probability(threads, v));
        let models = self.axis == Axis::Vars && self.subject.has_models();
        let (x, x_ticks) = match self.axis {
            Axis::Threads => threads_axis(self.subject),
            _ => (Scale::powers_of_two(xs), Vec::new()),
        };
        let plot = LinePlot {
            id: self.id.clone(),
            description: Series::left_to_right(&series),
            title,
            x_label: match self.axis {
                Axis::Threads => "threads",
                _ if models => "shared variables of 64 bytes",
                _ => "shared variables",
            },
            y_label,
            x,
            x_ticks,
            y: shot.scale,
            series,
            marks: if models {
                cache_marks(self.machine)
            } else {
                Vec::new()
            },
            shade: (models && threads > 1 && self.machine.cpus != 1).then_some(Shade {
                label: "chance that two threads meet (shaded)",
                probability: &chance,
            }),
            width,
            room: shot.room,
        };
        plot.svg(place)
    }

    fn alone_title(&self, shot: &Shot<'_>) -> String {
        let mut parts: Vec<String> = shot
            .threads
            .map(|t| count(t as u64, "thread", "threads"))
            .into_iter()
            .collect();
        if shot.mode != Mode::Unknown {
            parts.push(words::mode(shot.mode).to_owned());
        }
        if !self.machine.model.is_empty() {
            parts.push(self.machine.model.clone());
        }
        parts.join(", ")
    }

    fn series(&self, shot: &Shot<'_>, line: &Line<'_>, faint: bool) -> Series {
        let point = |(x, run): &(u64, &Run)| {
            let s = shot.measure.of(run, shot.mode)?;
            let mut place = match self.axis {
                Axis::Threads => count(*x, "thread", "threads"),
                _ => count(*x, "variable", "variables"),
            };
            if let (Some(threads), true) = (shot.threads, self.subject.has_models()) {
                place.push_str(&format!(
                    ", contention {}",
                    percent(contention::probability(threads, *x))
                ));
            }
            Some(Point {
                x: *x as f64,
                y: s.median_mops,
                spread: (s.q1_mops, s.q3_mops),
                tip: tip(&line.label, &place, &s),
                halo: Halo::None,
            })
        };
        Series {
            label: line.label.clone(),
            style: self.styles.style(line.method, line.variant),
            points: line.points.iter().filter_map(point).collect(),
            faint,
        }
    }

    fn bars<'a>(
        &self,
        shot: &Shot<'_>,
        lines: &[(&Line<'_>, bool)],
        title: String,
        label: &'a str,
        width: f64,
    ) -> BarPlot<'a> {
        let bar = |line: &Line<'_>| {
            let (vars, run) = line.points.first()?;
            let s = shot.measure.of(run, shot.mode)?;
            Some(Bar {
                label: line.label.clone(),
                style: self.styles.style(line.method, line.variant),
                value: s.median_mops,
                spread: (s.q1_mops, s.q3_mops),
                tip: tip(&line.label, &count(*vars, "variable", "variables"), &s),
            })
        };
        let mut bars: Vec<Bar> = lines.iter().filter_map(|(l, _)| bar(l)).collect();
        bars.sort_by(|a, b| b.value.total_cmp(&a.value));
        let told: Vec<String> = bars
            .iter()
            .map(|b| format!("{} {}", b.label, significant(b.value)))
            .collect();
        BarPlot {
            id: self.id.clone(),
            title,
            description: format!("{}.", told.join(", ")),
            label,
            scale: shot.scale,
            bars,
            width,
        }
    }
}

/// How many variables each cache of a core holds.
pub(crate) fn cache_marks(machine: &Machine) -> Vec<Mark> {
    let mut caches: Vec<_> = machine.caches.iter().filter(|c| c.bytes > 0).collect();
    caches.sort_by_key(|c| c.level);
    caches.dedup_by_key(|c| c.level);
    caches
        .into_iter()
        .map(|c| Mark {
            x: residency::capacity(c.bytes) as f64,
            label: format!("L{} {}", c.level, bytes(c.bytes)),
        })
        .collect()
}

/// `f` of a number that need not be an integer, by a straight line between its neighbours.
pub(crate) fn between_integers(x: f64, f: impl Fn(u64) -> f64) -> f64 {
    let below = x.max(1.0).floor();
    let (low, high) = (f(below as u64), f(below as u64 + 1));
    low + (high - low) * (x.max(1.0) - below)
}

fn threads_axis(subject: &Subject<'_>) -> (Scale, Vec<f64>) {
    let ticks: Vec<f64> = subject.threads().into_iter().map(|t| t as f64).collect();
    let low = ticks.first().copied().unwrap_or(1.0);
    let high = ticks.last().copied().unwrap_or(low).max(low + 1.0);
    (Scale::Linear { low, high }, ticks)
}

fn tip(label: &str, place: &str, s: &ModeSummary) -> String {
    format!(
        "{label}\n{place}\nmedian {} Mops\nquartiles {} to {}, n = {}",
        significant(s.median_mops),
        significant(s.q1_mops),
        significant(s.q3_mops),
        grouped(s.n as u64)
    )
}
