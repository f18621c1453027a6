//! The output of the ladder: tables, pictures, and sentences about the figures.

use super::ballpark::{self, Estimate};
use super::climb::Climbed;
use super::ladder::Ladder;
use super::rungs::RUNGS;
use super::{size, words};
use crate::guess::Question;
use crate::printed::{self, Printed};
use crate::shown::{Guess, Part, Picture, Shown};
use corelay_lab_measure::schema::Mode;
use corelay_lab_report::plot::{
    Bar, BarPlot, Halo, LinePlot, Point, Scale, Series, Style, bytes, grouped, percent, significant,
};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{count, mode, times};
use serde_json::json;

/// The question that is asked before the step.
pub const QUESTION: Question = Question {
    text: "Many threads insert into one list under one lock: how many times as fast \
           are they as one thread?",
    unit: "×",
};

const WIDTH: f64 = 760.0;

impl Ladder {
    /// Writes the figures up as a step of the course. `ballpark` is the guess of
    /// [`ballpark::QUESTION`], if it was asked.
    pub fn shown(self, mut ballpark: Option<Guess>, mut guess: Guess) -> Shown {
        let most = self.most();
        guess.measured = self.speed_up("biglock", most).filter(|_| most > 1);
        let mut shown = Shown::new(
            "list",
            "The ladder: insertion into lists, and what keeps it from scaling",
        );
        let first = self.rungs.first();
        shown
            .parts
            .push(Part::Words(size::what(first, self.seconds, self.mode)));
        let estimates = self.estimates();
        if let Some(table) = ballpark::table(&estimates) {
            shown.parts.push(Part::Words(self.costs.words()));
            shown.parts.push(Part::Table(table));
        }
        shown.parts.push(Part::Table(self.table()));
        let runs = self.rungs.iter().map(|c| (c.point.rung.name.to_owned(), c));
        shown
            .parts
            .extend(size::lengths(self.seconds, runs).map(Part::Table));
        shown.parts.extend(self.over_threads().map(Part::Picture));
        shown.parts.extend(self.padding_parts());
        shown.parts.extend(self.parts_parts());
        let printed = self.printed();
        shown
            .parts
            .extend(printed::table(&printed).map(Part::Table));
        if let Some(ballpark) = &mut ballpark {
            ballpark.measured = self.rung("biglock", 1).and_then(|c| c.mops(self.mode));
        }
        shown.look_at = ballpark::sentences(ballpark.as_ref(), &estimates);
        shown.look_at.extend(self.look_at());
        shown
            .look_at
            .extend(printed.iter().map(|printed| printed.sentence.clone()));
        let wrong = |c: &Climbed| format!("`{}`: {}", c.point.rung.name, c.run.notes.join("; "));
        shown.wrong = self.all().filter(|c| !c.run.correct).map(wrong).collect();
        shown.figures = json!({
            "mode": self.mode,
            "speed_ups": self.speed_ups(),
            "ballpark": { "ns": self.costs, "estimates": estimates },
            "printed": printed,
        });
        shown.ballpark = ballpark;
        shown.guess = Some(guess);
        shown.runs = self.all().map(|climbed| climbed.run.clone()).collect();
        shown
    }

    fn most(&self) -> usize {
        let threads = self.rungs.iter().map(|climbed| climbed.point.threads);
        threads.max().unwrap_or(1)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        let is_there = |name: &&str| self.rungs.iter().any(|c| c.point.rung.name == *name);
        RUNGS.iter().map(|rung| rung.name).filter(is_there)
    }

    fn threads(&self) -> Vec<usize> {
        let mut threads: Vec<usize> = self.rungs.iter().map(|c| c.point.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    fn speed_ups(&self) -> serde_json::Value {
        let most = self.most();
        let of = |name: &'static str| (name.to_owned(), json!(self.speed_up(name, most)));
        serde_json::Value::Object(self.names().map(of).collect())
    }

    fn table(&self) -> Grid {
        let (threads, most) = (self.threads(), self.most());
        let on = |n: &usize| format!("Mops, {}", count(*n as u64, "thread", "threads"));
        let mut head = vec!["rung".to_owned()];
        head.extend(threads.iter().map(on));
        head.extend(["speed-up", "efficiency", "spread"].map(str::to_owned));
        let row = |name: &'static str| {
            let mops = |&n: &usize| {
                let mops = self.rung(name, n).and_then(|c| c.mops(self.mode));
                mops.map_or("–".to_owned(), significant)
            };
            let idea = RUNGS
                .iter()
                .find(|rung| rung.name == name)
                .map_or("", |rung| rung.idea);
            let mut row = vec![format!("{name}: {idea}")];
            row.extend(threads.iter().map(mops));
            let speed_up = self.speed_up(name, most).filter(|_| most > 1);
            row.push(speed_up.map_or("–".to_owned(), times));
            row.push(speed_up.map_or("–".to_owned(), |s| efficiency(s, most)));
            let spread = self.rung(name, most).and_then(|c| c.best(self.mode));
            let spread = spread.map(|s| (s.q3_mops - s.q1_mops) / s.median_mops);
            row.push(spread.map_or("–".to_owned(), percent));
            row
        };
        Grid {
            title: format!(
                "Keys inserted per microsecond (Mops), {}; spread is the middle half of the runs with \
                 {}",
                mode(self.mode),
                count(most as u64, "thread", "threads")
            ),
            head,
            rows: self.names().map(row).collect(),
        }
    }

    /// Draws throughput over threads; `None` if there is only one number of threads.
    fn over_threads(&self) -> Option<Picture> {
        let threads = self.threads();
        if threads.len() < 2 {
            return None;
        }
        let series: Vec<Series> = self
            .names()
            .enumerate()
            .map(|(nth, name)| Series {
                label: name.to_owned(),
                style: Style::spare(nth),
                points: threads
                    .iter()
                    .filter_map(|&n| point(n as f64, self.rung(name, n)?, self.mode))
                    .collect(),
                faint: false,
            })
            .collect();
        let plot = LinePlot {
            id: "ladder".to_owned(),
            title: "Insertion into lists".to_owned(),
            description: Series::left_to_right(&series),
            x_label: "threads",
            y_label: "keys inserted, Mops",
            x: Scale::Linear {
                low: threads[0] as f64,
                high: self.most() as f64,
            },
            x_ticks: threads.iter().map(|&n| n as f64).collect(),
            y: Scale::for_values(ends(&series)),
            series,
            marks: vec![],
            shade: None,
            width: WIDTH,
            room: (0, 0),
        };
        Some(picture("ladder", "Throughput over threads", plot))
    }

    fn padding_parts(&self) -> Vec<Part> {
        if self.paddings.is_empty() {
            return vec![];
        }
        let least = self.paddings.iter().min_by_key(|c| c.point.padding);
        let bottom = least.and_then(|c| c.mops(self.mode));
        let row = |climbed: &Climbed| {
            let mops = climbed.mops(self.mode);
            let ratio = mops.zip(bottom).map(|(mops, bottom)| mops / bottom);
            vec![
                apart(climbed.point.padding),
                mops.map_or("–".to_owned(), significant),
                ratio.map_or("–".to_owned(), times),
            ]
        };
        let grid = Grid {
            title: format!(
                "`padded` with {}: bytes between two heads",
                count(self.most() as u64, "thread", "threads")
            )
            .replace('`', ""),
            head: ["padding", "Mops", "of the least padding"]
                .map(str::to_owned)
                .to_vec(),
            rows: self.paddings.iter().map(row).collect(),
        };
        let bars: Vec<Bar> = self
            .paddings
            .iter()
            .filter_map(|climbed| {
                let of = climbed.best(self.mode)?;
                Some(Bar {
                    label: apart(climbed.point.padding),
                    style: Style::spare(0),
                    value: of.median_mops,
                    spread: (of.q1_mops, of.q3_mops),
                    tip: format!(
                        "{} between two heads: {} Mops",
                        apart(climbed.point.padding),
                        significant(of.median_mops)
                    ),
                })
            })
            .collect();
        let high = bars.iter().map(|bar| bar.spread.1).fold(1.0, f64::max);
        let draw = move |place| {
            BarPlot {
                id: "padding".to_owned(),
                title: "False sharing".to_owned(),
                description: bars.iter().map(|bar| bar.tip.clone() + ". ").collect(),
                label: "keys inserted, Mops",
                scale: Scale::Linear {
                    low: 0.0,
                    high: high * 1.05,
                },
                bars: bars.clone(),
                width: WIDTH,
            }
            .svg(place)
        };
        let picture = Picture {
            name: "padding".to_owned(),
            caption: "False sharing: bytes between the heads of two threads' lists".to_owned(),
            draw: Box::new(draw),
        };
        vec![Part::Table(grid), Part::Picture(picture)]
    }

    fn parts_parts(&self) -> Vec<Part> {
        if self.parts.is_empty() {
            return vec![];
        }
        let most = self.most();
        let row = |[alone, beside]: &[Climbed; 2]| {
            let mops = |c: &Climbed| c.mops(self.mode).map_or("–".to_owned(), significant);
            let of_one = alone.point.parts as f64 / most as f64;
            vec![
                grouped(alone.point.parts as u64),
                significant(of_one),
                mops(alone),
                mops(beside),
            ]
        };
        let grid = Grid {
            title: format!(
                "padded with {}: parts that the keys are cut into, alone and with a neighbour that \
                 takes the first CPU half of the time",
                count(most as u64, "thread", "threads")
            ),
            head: ["parts", "of a thread", "Mops alone", "Mops, neighbour"]
                .map(str::to_owned)
                .to_vec(),
            rows: self.parts.iter().map(row).collect(),
        };
        let line = |which: usize, label: &str| Series {
            label: label.to_owned(),
            style: Style::spare(which),
            points: self
                .parts
                .iter()
                .filter_map(|both| {
                    let climbed = &both[which];
                    point(climbed.point.parts as f64, climbed, self.mode)
                })
                .collect(),
            faint: false,
        };
        let series = vec![line(0, "alone"), line(1, "with a neighbour")];
        let places: Vec<f64> = self
            .parts
            .iter()
            .map(|both| both[0].point.parts as f64)
            .collect();
        let (low, high) = (places[0], places[places.len() - 1]);
        let top = series.iter().flat_map(|s| &s.points).map(|p| p.spread.1);
        let plot = LinePlot {
            id: "parts".to_owned(),
            title: "Parts against stragglers".to_owned(),
            description: Series::left_to_right(&series),
            x_label: "parts",
            y_label: "keys inserted, Mops",
            x: match low < high {
                true => Scale::Log { low, high },
                false => Scale::Linear {
                    low: low - 1.0,
                    high: high + 1.0,
                },
            },
            x_ticks: places,
            y: Scale::Linear {
                low: 0.0,
                high: top.fold(1.0, f64::max) * 1.05,
            },
            series,
            marks: vec![],
            shade: None,
            width: WIDTH,
            room: (0, 0),
        };
        let caption = "Stragglers: parts that the keys are cut into";
        vec![
            Part::Table(grid),
            Part::Picture(picture("parts", caption, plot)),
        ]
    }

    /// Estimates the first rungs, with one thread and with the most.
    fn estimates(&self) -> Vec<Estimate> {
        let most = self.most();
        let estimate = |&climbed: &&Climbed| {
            let (rung, threads) = (climbed.point.rung.name, climbed.point.threads);
            let is_asked = threads == most || (rung, threads) == ("biglock", 1);
            let mops = climbed.mops(self.mode).filter(|_| is_asked)?;
            self.costs.estimate(rung, threads, mops)
        };
        let rungs = self.rungs.iter();
        rungs.filter_map(|climbed| estimate(&climbed)).collect()
    }

    /// Returns the figures that the source prints and this ladder has, too.
    fn printed(&self) -> Vec<Printed> {
        let most = self.most();
        let mops = |name: &str, threads| self.rung(name, threads)?.mops(self.mode);
        let both = |(name, n), (other, m)| Some((mops(name, n)?, mops(other, m)?));
        let lone = self.rung("biglock", 1).and_then(|lone| {
            let keys = lone.ended.first().map_or(0, |(_, run)| run.keys() as usize);
            Some(printed::lone_biglock(keys, lone.mops(self.mode)?))
        });
        let nodes = both(("preallocated", most), ("partitioned", most));
        let equal = self.rung("preallocated", most).and_then(|climbed| {
            let runs = climbed.ended.iter();
            let ratios: Option<Vec<f64>> =
                runs.map(|(_, run)| run.slowest_over_fastest()).collect();
            printed::stragglers("`preallocated`", &ratios?, most)
        });
        let shared = both(("balanced", 1), ("balanced", 2));
        let all = [
            lone,
            nodes.map(|(after, before)| printed::preallocated(after / before, most)),
            equal,
            shared.map(|(one, two)| printed::false_sharing(one, two)),
        ];
        all.into_iter().flatten().collect()
    }

    fn look_at(&self) -> Vec<String> {
        let most = self.most();
        let mops = |name: &str| self.rung(name, most)?.mops(self.mode);
        let both = |a, b| Some((mops(a)?, mops(b)?));
        let speed_up = self.speed_up("biglock", most).filter(|_| most > 1);
        let paddings = self.paddings.iter();
        let paddings: Vec<(usize, f64)> = paddings
            .filter_map(|c| Some((c.point.padding, c.mops(self.mode)?)))
            .collect();
        let beside = |both: &[Climbed; 2]| Some((both[0].point.parts, both[1].mops(self.mode)?));
        let parts = self.parts.first().zip(self.parts.last());
        let parts = parts.and_then(|(first, last)| Some((beside(first)?, beside(last)?)));
        let pages = self.rungs.first().map(|climbed| climbed.point.pages);
        let sentences = [
            speed_up.map(|speed_up| words::biglock(most, speed_up)),
            both("partitioned", "preallocated").map(|(p, q)| words::preallocated(p, q)),
            words::padding(&paddings, pages, self.mode),
            parts.map(|(few, many)| words::parts(few, many)),
            both("percpu", "balanced")
                .zip(mops("padded"))
                .map(|((percpu, balanced), padded)| words::percpu(percpu, balanced, padded)),
            both("pool", "system").map(|(pool, system)| words::pool(pool, system)),
            both("delegated", "biglock")
                .map(|(delegated, biglock)| words::delegated(delegated, biglock, mops("padded"))),
        ];
        sentences.into_iter().flatten().collect()
    }
}

/// Formats the speed-up per thread. It exceeds 100 % if something slows a lone thread but not
/// several.
pub(crate) fn efficiency(speed_up: f64, threads: usize) -> String {
    format!("{:.0}\u{a0}%", 100.0 * speed_up / threads as f64)
}

pub(super) fn apart(padding: usize) -> String {
    match padding {
        0 => "0 B".to_owned(),
        n => bytes(n as u64),
    }
}

fn point(x: f64, climbed: &Climbed, mode: Mode) -> Option<Point> {
    let of = climbed.best(mode)?;
    Some(Point {
        x,
        y: of.median_mops,
        spread: (of.q1_mops, of.q3_mops),
        tip: format!(
            "{}: {} Mops ({} to {})",
            climbed.point.rung.name,
            significant(of.median_mops),
            significant(of.q1_mops),
            significant(of.q3_mops)
        ),
        halo: Halo::None,
    })
}

fn ends(series: &[Series]) -> impl Iterator<Item = f64> {
    series
        .iter()
        .flat_map(|s| &s.points)
        .flat_map(|p| [p.spread.0, p.spread.1])
}

fn picture(name: &str, caption: &str, plot: LinePlot<'static>) -> Picture {
    Picture {
        name: name.to_owned(),
        caption: caption.to_owned(),
        draw: Box::new(move |place| plot.svg(place)),
    }
}
