//! Latency under load, in words.

use super::findings::{Comparison, Outcome};
use super::judge::{FEWEST, Judge};
use crate::measure::limit;
use crate::report::latency::{self, Group, Quantity, micros};
use crate::report::words::{self, code};
use crate::schema::{Limit, Mode, Run};
use std::collections::BTreeMap;

/// The verdict on latency at one number of threads and variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// For instance `1 variable, 2 threads`.
    pub subject: String,
    /// What holds, a sentence each: delegation against its rivals first.
    pub told: Vec<String>,
}

/// Delegation's p99 latency against the best rival's at one load.
struct Met<'a> {
    load: u64,
    rival: &'a str,
    ratio: f64,
    outcome: Outcome,
}

/// The comparisons that are told, with how they begin.
const TOLD: [(Comparison, &str); 3] = [
    (Comparison::Waiting, "Waiting"),
    (Comparison::Later, "Later"),
    (Comparison::LaterAgainstWaiting, "Not like with like"),
];

/// The verdict on a group; nothing where too little was measured.
pub(super) fn latency(group: &Group<'_>) -> Option<Latency> {
    let judge = judge(group);
    let modes = group.modes();
    let several = modes.len() > 1;
    let of_mode = |mode| match mode {
        Mode::Unknown => String::new(),
        _ if !several => format!(" ({})", words::mode(mode)),
        mode => format!(", {}", words::mode(mode)),
    };
    let mut told = Vec::new();
    for (comparison, lead) in TOLD {
        for &mode in &modes {
            let met = met(&judge, comparison, mode);
            if let Some(sentence) = compared(comparison, &met) {
                told.push(format!("{lead}{}: {sentence}", of_mode(mode)));
            }
        }
    }
    for &mode in &modes {
        told.extend(light(group, mode).map(|s| format!("Light load{}: {s}", of_mode(mode))));
        told.extend(borne(group, mode).map(|s| format!("Borne{}: {s}", of_mode(mode))));
    }
    told.extend(modes.first().and_then(|&mode| cpus(group, mode)));
    told.extend(crowded(group));
    (!told.is_empty()).then(|| Latency {
        subject: group.name(),
        told,
    })
}

/// The same in a clause for the headline: where delegation's p99 latency stands against
/// what waits, in the mode with the most samples.
pub(super) fn headline(group: &Group<'_>) -> Option<String> {
    let judge = judge(group);
    let mode = group.main_mode()?;
    let side = |comparison: Comparison| {
        let met = met(&judge, comparison, mode);
        let (ours, at) = (code(comparison.ours()), |outcome| loads(&met, outcome));
        let stands = |outcome, words: &str| {
            let all = met.iter().all(|m| m.outcome == outcome);
            match at(outcome) {
                None => None,
                Some(_) if all => Some(format!("{words} at every load that both bear")),
                Some(at) => Some(format!("{words} at {at}")),
            }
        };
        let told: Vec<String> = [
            stands(Outcome::Loses, "loses"),
            stands(Outcome::Wins, "wins"),
            stands(Outcome::TooClose, "is too close to call"),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!told.is_empty()).then(|| format!("{ours} {}", words::and(&told)))
    };
    let told: Vec<String> = [Comparison::Waiting, Comparison::LaterAgainstWaiting]
        .into_iter()
        .filter_map(side)
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "In p99 latency on {}, against the best lock or channel, {}.",
            words::count(group.vars, "variable", "variables"),
            told.join("; ")
        )
    })
}

/// p99 latencies of the loads that were borne: others say nothing about a method.
fn judge<'a>(group: &Group<'a>) -> Judge<'a> {
    let mut cells = BTreeMap::new();
    for &run in group.runs.iter().filter(|run| run.correct) {
        let modes = run.by_mode.keys().copied();
        for mode in modes.filter(|&mode| latency::limit(run, mode) == Limit::None) {
            let samples = Quantity::P99.samples(run, mode);
            if !samples.is_empty() {
                cells.insert((latency::load(run), mode, run.method.as_str()), samples);
            }
        }
    }
    Judge::of(cells)
}

/// The comparison at each load, against the rival whose p99 is the shortest there.
fn met<'a>(judge: &Judge<'a>, comparison: Comparison, mode: Mode) -> Vec<Met<'a>> {
    let ours = comparison.ours();
    let at = |load: u64| {
        let middle = |rival| Some((judge.middle(&[load], mode, ours, rival)?, rival));
        let rivals = comparison.rivals().into_iter().filter_map(middle);
        let (_, rival) = rivals.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let ratio = judge.ratio(&[load], mode, ours, rival)?;
        Some(Met {
            load,
            rival,
            ratio: ratio.ratio,
            // Less is better here.
            outcome: match ratio {
                r if r.low > 1.0 => Outcome::Loses,
                r if r.high < 1.0 => Outcome::Wins,
                _ => Outcome::TooClose,
            },
        })
    };
    judge.vars().into_iter().filter_map(at).collect()
}

fn compared(comparison: Comparison, met: &[Met<'_>]) -> Option<String> {
    let told: Vec<String> = [
        (Outcome::Loses, "takes"),
        (Outcome::Wins, "takes only"),
        (Outcome::TooClose, "is too close to call against"),
    ]
    .into_iter()
    .filter_map(|(outcome, verb)| {
        let here: Vec<&Met<'_>> = met.iter().filter(|m| m.outcome == outcome).collect();
        let mut rivals: Vec<String> = here.iter().map(|m| code(m.rival)).collect();
        rivals.dedup();
        let at = loads(met, outcome)?;
        let rivals = words::or(&rivals);
        if outcome == Outcome::TooClose {
            return Some(format!("{verb} {rivals} at {at}"));
        }
        let least = here.iter().map(|m| m.ratio).fold(f64::INFINITY, f64::min);
        let most = here.iter().map(|m| m.ratio).fold(0.0, f64::max);
        let factor = match (words::ratio_digits(least), words::times(most)) {
            (a, b) if b.starts_with(&format!("{a}\u{a0}")) => b,
            (a, b) => format!("{a}–{b}"),
        };
        Some(format!(
            "{verb} {factor} the p99 latency of {rivals} at {at}"
        ))
    })
    .collect();
    let ours = code(comparison.ours());
    (!told.is_empty()).then(|| format!("{ours} {} operations per second.", words::and(&told)))
}

/// The loads of an outcome, neighbours as ranges: `10 k–1 M and 5 M`.
fn loads(met: &[Met<'_>], outcome: Outcome) -> Option<String> {
    let runs = met.chunk_by(|a, b| a.outcome == b.outcome);
    let ranges: Vec<String> = runs
        .filter(|run| run[0].outcome == outcome)
        .map(|run| match run {
            [one] => words::rate(one.load as f64),
            [first, .., last] => format!(
                "{}–{}",
                words::rate(first.load as f64),
                words::rate(last.load as f64)
            ),
            [] => String::new(),
        })
        .collect();
    (!ranges.is_empty()).then(|| words::and(&ranges))
}

/// A run with enough samples in a mode to be spoken of.
fn well_seen(run: &Run, mode: Mode) -> bool {
    Quantity::P99.samples(run, mode).len() >= FEWEST
}

/// How much of it other programs had a hand in.
fn crowded(group: &Group<'_>) -> Option<String> {
    let crowded = |run: &&&Run| run.load.as_ref().is_some_and(limit::crowded);
    let (crowded, all) = (group.runs.iter().filter(crowded).count(), group.runs.len());
    (crowded > 0).then(|| {
        format!(
            "Other programs: they had the CPUs for part of the time in {crowded} of {}, whose latencies are theirs as much as the methods'.",
            words::count(all as u64, "run", "runs")
        )
    })
}

/// How long an answer takes at the smallest load.
fn light(group: &Group<'_>, mode: Mode) -> Option<String> {
    let least = group.runs.iter().map(|run| latency::load(run)).min()?;
    let told: Vec<String> = group
        .methods()
        .into_iter()
        .filter_map(|method| {
            let runs = group.of_method(method);
            let run = runs.first().filter(|r| {
                latency::load(r) == least
                    && latency::limit(r, mode) == Limit::None
                    && well_seen(r, mode)
            })?;
            let (p50, p99) = (Quantity::P50.of(run, mode)?, Quantity::P99.of(run, mode)?);
            Some(format!(
                "{} {} ({})",
                code(method),
                micros(p50.median),
                micros(p99.median)
            ))
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "at {} operations per second the median latency, and in brackets the 99th percentile, is {}.",
            words::rate(least as f64),
            words::and(&told)
        )
    })
}

/// The largest load that each method bore.
fn borne(group: &Group<'_>, mode: Mode) -> Option<String> {
    let told: Vec<String> = group
        .methods()
        .into_iter()
        .filter_map(|method| {
            let runs = group.of_method(method);
            let seen: Vec<&&Run> = runs.iter().filter(|run| well_seen(run, mode)).collect();
            let reached = |run: &Run| latency::limit(run, mode);
            let most = seen.iter().rev().find(|run| reached(run) == Limit::None);
            let name = code(method);
            let Some(most) = most else {
                return (!seen.is_empty()).then(|| format!("{name} none"));
            };
            let above = seen
                .iter()
                .find(|run| latency::load(run) > latency::load(most));
            let more = match above.map(|run| reached(run)) {
                None => " (no more was offered)",
                Some(Limit::Generator) => " (then the load's generator was in the way)",
                Some(_) => "",
            };
            Some(format!(
                "{name} {}{more}",
                words::rate(latency::load(most) as f64)
            ))
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "the largest of the loads that were tried, in operations per second, is {}.",
            words::and(&told)
        )
    })
}

/// What each method costs while it has little to do.
fn cpus(group: &Group<'_>, mode: Mode) -> Option<String> {
    let least = group.runs.iter().map(|run| latency::load(run)).min()?;
    let told: Vec<String> = group
        .methods()
        .into_iter()
        .filter_map(|method| {
            let runs = group.of_method(method);
            let run = runs
                .first()
                .filter(|r| latency::load(r) == least && well_seen(r, mode))?;
            let cpus = Quantity::Cpus.of(run, mode)?;
            Some(format!("{} {:.2}", code(method), cpus.median))
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "CPU used: at {} operations per second, without the clients' waiting for the next arrival: {} CPUs.",
            words::rate(least as f64),
            words::and(&told)
        )
    })
}
