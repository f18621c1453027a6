//! Parts of work on a timeline, thread by thread (L4): first as many parts as threads, then more.
//!
//! The tracer records a span for each part that a thread inserts. One CPU has a neighbour that
//! takes half of its time, so that one thread is certainly slow. Each thread also counts its
//! parts itself: the spans that the tracer kept and those that it reports lost must add up to
//! that count.

use super::guess::Question;
use super::list::climb::Point;
use super::list::job::{Ended, Job, PART, Pages};
use super::list::ladder::{PADDING, PARTS_OF_A_THREAD};
use super::list::rungs;
use super::printed;
use super::shown::{Guess, Part, Picture, Shown};
use corelay_lab_report::plot::{Medium, duration, grouped, percent};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::timeline;
use corelay_lab_report::words::count;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::trace::{Event, Limits, Recording, Trace};
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;

/// The question that is asked before the step.
pub const QUESTION: Question = Question {
    text: "Each thread has the same number of keys, and a neighbour takes the first CPU half of the \
           time: for how much of the run does the quickest thread wait for the slowest?",
    unit: "%",
};

/// The two runs to trace.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Threads that insert.
    pub threads: usize,
    /// Keys of each thread.
    pub share: usize,
    /// Parts of the second run. The first has as many as threads.
    pub parts: usize,
    /// Events that the tracer keeps of a thread.
    pub events: usize,
    /// Whether the first CPU has a neighbour.
    pub neighbour: bool,
}

/// A run and its trace.
#[derive(Debug)]
pub struct Traced {
    /// Parts that the keys were cut into.
    pub(crate) parts: usize,
    /// The record of the threads.
    pub(crate) ended: Ended,
    /// The trace, from the first part on.
    pub(crate) trace: Trace,
}

/// A row of the table: one thread's own record, and the tracer's counts of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ThreadRow {
    thread: usize,
    parts: u64,
    keys: u64,
    busy_ns: u64,
    /// Time from the end of this thread to the end of the last one.
    idle_ns: u64,
    /// Spans that the thread recorded, and how many of them later ones have overwritten.
    recorded: u64,
    lost: u64,
}

impl Plan {
    /// Traces both runs; `None` if interrupted.
    ///
    /// # Errors
    /// If a recording is under way already.
    pub fn trace(
        &self,
        cpus: &[Option<usize>],
        interrupted: &AtomicBool,
    ) -> Result<Option<[Traced; 2]>, String> {
        let keys = Job::table(self.threads * self.share);
        let run = |parts| self.run(parts, cpus, &keys);
        // This run warms up.
        run(self.threads)?;
        let (few, many) = (run(self.threads)?, run(self.parts)?);
        // Relaxed: the flag carries no data.
        Ok((!interrupted.load(Ordering::Relaxed)).then_some([few, many]))
    }

    fn run(
        &self,
        parts: usize,
        cpus: &[Option<usize>],
        keys: &Arc<[u64]>,
    ) -> Result<Traced, String> {
        let point = Point {
            rung: rungs::named("padded").expect("it is a rung"),
            threads: self.threads,
            share: self.share,
            parts,
            equal_shares: false,
            padding: PADDING,
            pages: Pages::Touched,
            neighbour: self.neighbour,
            watched: false,
        };
        let limits = Limits::in_memory(self.events, 64 << 20);
        let recording = Recording::start(limits).map_err(|error| format!("timeline: {error}"))?;
        let cpus: Vec<_> = cpus.iter().copied().take(self.threads).collect();
        let ended = point.run(&cpus, keys);
        let trace = from_first_part(recording.stop());
        Ok(Traced {
            parts,
            ended,
            trace,
        })
    }
}

/// Keeps only the inserted parts. Time then starts with the first part.
fn from_first_part(mut trace: Trace) -> Trace {
    let is_part = |event: &&Event| std::ptr::eq(event.mark, &raw const PART);
    trace
        .threads
        .retain(|thread| thread.events.iter().any(|event| is_part(&event)));
    let parts = || trace.threads.iter().flat_map(|t| &t.events).filter(is_part);
    let begin = parts().map(|event| event.begin_ns).min().unwrap_or(0);
    let end = parts()
        .map(|event| event.begin_ns + event.duration_ns.unwrap_or(0))
        .max();
    trace.length_ns = end.unwrap_or(begin) - begin;
    for thread in &mut trace.threads {
        // A thread's ready mark was no part.
        let before = thread.events.len();
        thread.events.retain(|event| is_part(&event));
        thread.recorded -= (before - thread.events.len()) as u64;
        thread.since_ns = thread.since_ns.saturating_sub(begin);
        thread
            .events
            .iter_mut()
            .for_each(|event| event.begin_ns -= begin);
    }
    trace
}

impl Traced {
    fn lines(&self) -> Vec<ThreadRow> {
        let last = self.ended.laps.iter().map(|lap| lap.end).max();
        let line = |(thread, lap): (usize, &super::list::job::Lap)| {
            let name = format!("inserter-{thread}");
            let traced = self.trace.threads.iter().find(|traced| traced.name == name);
            let ns = |time: std::time::Duration| time.as_nanos() as u64;
            ThreadRow {
                thread,
                parts: lap.parts,
                keys: lap.keys,
                busy_ns: ns(lap.end - lap.begin),
                idle_ns: last.map_or(0, |last| ns(last - lap.end)),
                recorded: traced.map_or(0, |traced| traced.recorded),
                lost: traced.map_or(0, corelay_sync::trace::ThreadTrace::overwritten),
            }
        };
        self.ended.laps.iter().enumerate().map(line).collect()
    }

    /// Returns how long the first thread that is done waits for the last, as a share of the run.
    fn gap(&self) -> f64 {
        let idle = self
            .lines()
            .iter()
            .map(|line| line.idle_ns)
            .max()
            .unwrap_or(0);
        idle as f64 / (self.ended.wall().as_nanos() as f64).max(1.0)
    }

    /// Checks that the tracer has seen what the threads have done.
    fn check(&self) -> Result<(), String> {
        if let Some(fault) = &self.ended.fault {
            return Err(fault.clone());
        }
        let unseen = |line: &ThreadRow| {
            // A thread's ready mark may be among the lost events.
            (line.recorded < line.parts || line.recorded > line.parts + 1).then_some((
                line.thread,
                line.parts,
                line.recorded,
            ))
        };
        match self.lines().iter().find_map(unseen) {
            Some((thread, parts, recorded)) if self.trace.refused.all() == 0 => Err(format!(
                "thread {thread} has inserted {parts} parts, and the tracer counts {recorded}"
            )),
            _ => Ok(()),
        }
    }

    fn what(&self, neighbour: bool) -> String {
        let beside = if neighbour { ", with a neighbour" } else { "" };
        format!(
            "{} for {}{beside}",
            count(self.parts as u64, "part", "parts"),
            count(self.ended.laps.len() as u64, "thread", "threads")
        )
    }
}

/// Writes both runs up as a step of the course, with their pictures.
pub fn shown(plan: &Plan, traced: [Traced; 2], mut guess: Guess) -> Shown {
    guess.measured = Some(100.0 * traced[0].gap());
    let mut shown = Shown::new(
        "timeline",
        "Stragglers on a timeline: which threads are done, and which are not",
    );
    shown.parts.push(Part::Words(format!(
        "Each of {} inserts {} keys into a list of its own (`padded`){}. First the keys are cut into as \
         many parts as there are threads; then into {}, which threads take one after the other.",
        count(plan.threads as u64, "thread", "threads"),
        grouped(plan.share as u64),
        match plan.neighbour {
            true => ", and a neighbour takes the first CPU half of the time",
            false => "",
        },
        grouped(plan.parts as u64),
    )));
    shown.look_at = look_at(plan, &traced);
    let ratio = traced[0].ended.slowest_over_fastest();
    let rung = match plan.neighbour {
        true => "`padded` and a neighbour",
        false => "`padded`",
    };
    let printed = ratio.and_then(|ratio| printed::stragglers(rung, &[ratio], plan.threads));
    if let Some(printed) = printed {
        shown.look_at.push(printed.sentence.clone());
        shown
            .parts
            .extend(printed::table(&[printed]).map(Part::Table));
    }
    shown.figures = json!(traced.each_ref().map(|run| json!({
        "parts": run.parts,
        "wall_ns": run.ended.wall().as_nanos() as u64,
        "gap": run.gap(),
        "threads": run.lines(),
        "refused": run.trace.refused.all(),
    })));
    for (nth, run) in traced.into_iter().enumerate() {
        if let Err(sentence) = run.check() {
            shown.wrong.push(sentence);
        }
        let what = run.what(plan.neighbour);
        shown.parts.push(Part::Table(table(&run, &what)));
        let trace = run.trace;
        shown.parts.push(Part::Picture(Picture {
            name: format!("timeline-{}", nth + 1),
            caption: what.clone(),
            draw: Box::new(move |medium: Medium| {
                timeline::drawn(&trace, &what, &format!("timeline-{}", nth + 1), medium)
            }),
        }));
    }
    shown.guess = Some(guess);
    shown
}

fn table(run: &Traced, what: &str) -> Grid {
    let row = |line: ThreadRow| {
        vec![
            format!("inserter-{}", line.thread),
            grouped(line.parts),
            grouped(line.keys),
            duration(line.busy_ns),
            duration(line.idle_ns),
            grouped(line.lost),
        ]
    };
    Grid {
        title: what.to_owned(),
        head: [
            "thread",
            "parts",
            "keys",
            "at work",
            "done before the last",
            "spans lost",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: run.lines().into_iter().map(row).collect(),
    }
}

fn look_at(plan: &Plan, [few, many]: &[Traced; 2]) -> Vec<String> {
    let mut sentences = vec![format!(
        "With {} the first thread is done {} of the run before the last one; with {} it is {}.",
        count(few.parts as u64, "part", "parts"),
        percent(few.gap()),
        grouped(many.parts as u64),
        percent(many.gap())
    )];
    let keys = |run: &Traced| {
        let each = run.ended.laps.iter().map(|lap| lap.keys);
        each.clone().min().zip(each.max())
    };
    if let Some((least, most)) = keys(many).filter(|(least, most)| least < most) {
        sentences.push(format!(
            "No plan says which thread is slow: a thread that is done sooner takes the next part. One thread \
             took {} keys, another {}.",
            grouped(most),
            grouped(least)
        ));
    }
    if plan.parts < PARTS_OF_A_THREAD * plan.threads {
        sentences.push(format!(
            "Try more parts (--parts {}): the others wait only for the slowest thread's last part.",
            PARTS_OF_A_THREAD * plan.threads
        ));
    }
    let lost: u64 = [few, many]
        .iter()
        .flat_map(|run| run.lines())
        .map(|line| line.lost)
        .sum();
    if lost > 0 {
        sentences.push(format!(
            "The tracer keeps the last {} spans of a thread (--events) and has lost {} older ones: the \
             shaded stretches are unknown.",
            grouped(plan.events as u64),
            grouped(lost)
        ));
    }
    sentences
}

impl Traced {
    /// Writes the trace as a file for the Perfetto UI.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_json(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        self.trace.write_json(out)
    }
}
