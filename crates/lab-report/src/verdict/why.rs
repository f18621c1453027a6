//! Explanations of the figures: the models' values beside the measured ones.

use super::findings::{Comparison, Finding, Standing};
use super::judge::Judge;
use super::level::Kind;
use crate::data::{self, Subject};
use crate::method::{self, Form};
use crate::model::ceilings::Ceilings;
use crate::model::{contention, residency};
use crate::plot::{bytes, grouped, percent, significant};
use crate::words::{self, count};
use corelay_lab_measure::schema::{Machine, Mode, Run};

/// The data that explanations draw on.
pub(super) struct Evidence<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) threads: usize,
    pub(super) runs: &'a [&'a Run],
    pub(super) judge: &'a Judge<'a>,
    pub(super) findings: &'a [Finding],
    pub(super) machine: &'a Machine,
}

/// Returns the explanations, each a sentence or two.
pub(super) fn why(evidence: &Evidence<'_>) -> Vec<String> {
    [
        contended(evidence),
        resident(evidence),
        round_trip(evidence),
        lone_client(evidence),
        pipelined(evidence),
        unfair(evidence),
        uncontended(evidence),
        modes(evidence),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn contended(e: &Evidence<'_>) -> Option<String> {
    let vars = e.judge.vars();
    if !e.subject.has_models() || e.threads < 2 || vars.is_empty() {
        return None;
    }
    let t = e.threads;
    let told = vars
        .iter()
        .filter(|&&v| v == vars[0] || contention::probability(t, v) < 0.9995);
    let chances: Vec<String> = told
        .take(4)
        .map(|&v| {
            format!(
                "{} on {}",
                percent(contention::probability(t, v)),
                count(v, "variable", "variables")
            )
        })
        .collect();
    let fewest = contention::fewest_contending(t, vars[0]);
    let at_least = if t > 2 && fewest > 0 {
        format!(
            " On {} at least {fewest} of the {t} contend, whatever they choose.",
            count(vars[0], "variable", "variables")
        )
    } else {
        String::new()
    };
    Some(format!(
        "Contention: when {t} threads choose at random, two of them choose the same variable with probability {}.{at_least} A lock or an atomic pays then for a line that moves between cores; a trustee's variables stay where they are.",
        words::and(&chances)
    ))
}

fn resident(e: &Evidence<'_>) -> Option<String> {
    let most = *e.judge.vars().last()?;
    if !e.subject.has_models() {
        return None;
    }
    let mut caches: Vec<_> = e.machine.caches.iter().filter(|c| c.level > 1).collect();
    caches.sort_by_key(|c| c.level);
    caches.dedup_by_key(|c| c.level);
    let smallest = caches.first()?;
    if residency::resident(smallest.bytes, most) >= 1.0 {
        return None;
    }
    let shares: Vec<String> = caches
        .iter()
        .map(|c| {
            format!(
                "an L{} holds {} of them",
                c.level,
                percent(residency::resident(c.bytes, most))
            )
        })
        .collect();
    let all = residency::last_caches(&e.machine.caches);
    let memory = residency::from_memory(all, most);
    let rest = if memory > 0.0 {
        format!(
            ", all together leave about {} of the accesses to memory",
            percent(memory)
        )
    } else {
        String::new()
    };
    Some(format!(
        "Caches: {} fill {}; {}{rest}.",
        count(most, "variable", "variables"),
        bytes(most.saturating_mul(residency::VAR_BYTES)),
        words::and(&shares)
    ))
}

/// Returns the clients of a method: all threads but the dedicated trustees.
fn clients(e: &Evidence<'_>, method: &str) -> Option<usize> {
    let run = e.runs.iter().find(|r| r.method == method)?;
    Some(run.params.threads.saturating_sub(run.params.servers)).filter(|&c| c > 0)
}

fn ceilings(e: &Evidence<'_>, mode: Mode, method: &str) -> Option<Ceilings> {
    let rtt_ns = data::round_trip(e.runs, mode)?;
    Some(Ceilings {
        rtt_ns,
        clients: clients(e, method)?,
    })
}

/// Round trips in the time of a call above which most of it is something else.
const MOSTLY_OTHER: f64 = 4.0;

fn round_trip(e: &Evidence<'_>) -> Option<String> {
    let vars = *e.judge.vars().first()?;
    let in_mode = |mode: Mode| {
        let here = ceilings(e, mode, "trust")?;
        let mops = e.judge.median(vars, mode, "trust")?;
        let call_ns = here.clients as f64 * 1000.0 / mops;
        let ratio = call_ns / here.rtt_ns;
        let told = format!(
            "{} ns {} ({} of a round trip of {} ns)",
            significant(call_ns),
            words::mode(mode),
            words::ratio_digits(ratio),
            significant(here.rtt_ns)
        );
        Some((told, ratio))
    };
    let told = e.judge.modes().into_iter().filter_map(in_mode);
    let (told, ratios): (Vec<String>, Vec<f64>) = told.unzip();
    let waits = if ratios.iter().any(|ratio| *ratio > MOSTLY_OTHER) {
        "A cache line there and one back are the smaller part of it: calls also wait for other \
         clients' sections, or threads wait for a CPU"
    // A section other than an addition is not known to be short.
    } else if e.subject.is_own() {
        "It waits for a cache line there, for the section, and for a cache line back"
    } else {
        "It waits for a cache line there and one back, however short the section is"
    };
    (!told.is_empty()).then(|| {
        format!(
            "Round trip: one call of `trust` takes {} on {}. {waits}.",
            words::and(&told),
            count(vars, "variable", "variables")
        )
    })
}

fn lone_client(e: &Evidence<'_>) -> Option<String> {
    let loses = e
        .findings
        .iter()
        .any(|f| f.comparison == Comparison::Waiting && f.standing() == Standing::Loses);
    (loses && e.subject.workload == "fetch-add" && clients(e, "trust") == Some(1)).then(|| {
        "One client: with a single client and a section as short as an addition, synchronous delegation loses to a lock. No other client shares the trustee's round trips, and a lock's cache line often stays with the thread that used it last.".to_owned()
    })
}

fn pipelined(e: &Evidence<'_>) -> Option<String> {
    let vars = *e.judge.vars().first()?;
    let in_mode = |mode: Mode| {
        let here = ceilings(e, mode, "trust-then")?;
        let mops = e.judge.median(vars, mode, "trust-then")?;
        let shared_by = here.in_flight_for(mops);
        (shared_by >= 2.0).then(|| {
            format!(
                "{} ns {} ({} to a round trip)",
                significant(1000.0 / mops),
                words::mode(mode),
                grouped(shared_by.round() as u64)
            )
        })
    };
    let told: Vec<String> = e.judge.modes().into_iter().filter_map(in_mode).collect();
    (!told.is_empty()).then(|| {
        format!(
            "In flight: `trust-then` completes an operation every {} on {}, because many requests share one round trip.",
            words::and(&told),
            count(vars, "variable", "variables")
        )
    })
}

/// Ratio of a client's work to its even share above which the method is called unfair.
const UNFAIR_RATIO: f64 = 1.3;

/// Explains locks and atomics whose cache line stays with one thread.
fn unfair(e: &Evidence<'_>) -> Option<String> {
    let vars = *e.judge.vars().first()?;
    let mut told: Vec<(f64, &str)> = Vec::new();
    for run in e
        .runs
        .iter()
        .filter(|r| r.params.vars == vars && r.correct && r.params.servers == 0)
    {
        let moves_lines = matches!(
            method::form(&run.method),
            Some(Form::Waits | Form::Instruction)
        );
        let shares = data::shares(run, |mode| mode != Mode::Discarded);
        let busiest = shares.last().copied().unwrap_or(0.0);
        if moves_lines && shares.len() == e.threads && busiest * e.threads as f64 > UNFAIR_RATIO {
            told.push((busiest, &run.method));
        }
    }
    told.sort_by(|a, b| b.0.total_cmp(&a.0));
    let told: Vec<String> = told
        .into_iter()
        .take(3)
        .map(|(share, name)| format!("{} with {}", percent(share), words::code(name)))
        .collect();
    (!told.is_empty() && e.threads > 1).then(|| {
        format!(
            "Fairness: on {} the busiest of {} threads did {} of the operations (even: {}). The line then stays with one thread for long while the others wait.",
            count(vars, "variable", "variables"),
            e.threads,
            words::and(&told),
            percent(1.0 / e.threads as f64)
        )
    })
}

fn uncontended(e: &Evidence<'_>) -> Option<String> {
    let lost: Vec<&Finding> = e
        .findings
        .iter()
        .filter(|f| f.level.kind == Kind::Many && f.standing() == Standing::Loses)
        .filter(|f| {
            matches!(
                f.comparison,
                Comparison::Waiting | Comparison::LaterAgainstWaiting
            )
        })
        .collect();
    let level = &lost.first()?.level;
    let waits = lost
        .iter()
        .any(|f| f.comparison == Comparison::LaterAgainstWaiting && f.level == *level);
    let which = if waits {
        "synchronous and asynchronous delegation"
    } else {
        "synchronous delegation"
    };
    let of_level = lost.iter().filter(|f| f.level == *level);
    let mut rivals: Vec<String> = of_level.map(|f| words::code(&f.rival)).collect();
    rivals.dedup();
    Some(format!(
        "No contention: {which} lost to {} on {} variables, on which threads rarely meet: without contention a trustee saves nothing.",
        words::or(&rivals),
        words::range(&level.vars)
    ))
}

fn modes(e: &Evidence<'_>) -> Option<String> {
    let vars = *e.judge.vars().first()?;
    let mut change: Vec<(f64, &str)> = e
        .runs
        .iter()
        .filter(|r| r.params.vars == vars)
        .filter_map(|r| {
            let near = e.judge.median(vars, Mode::Near, &r.method)?;
            Some((
                near / e.judge.median(vars, Mode::Far, &r.method)?,
                r.method.as_str(),
            ))
        })
        .collect();
    change.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (change.first()?, change.last()?);
    let (near, far) = (
        data::round_trip(e.runs, Mode::Near)?,
        data::round_trip(e.runs, Mode::Far)?,
    );
    (most.0 > 1.2).then(|| {
        let steady = if least.1 == most.1 {
            String::new()
        } else if (least.0 - 1.0).abs() < 0.05 {
            format!(", of {} hardly", words::code(least.1))
        } else {
            format!(", of {} by {}", words::code(least.1), words::times(least.0))
        };
        format!(
            "Near and far: the round trip between two CPUs of this machine moved between about {} and {} ns while we measured, and the throughput of {} changed by {}{steady}. Figures are compared within a mode only.",
            significant(near), significant(far), words::code(most.1), words::times(most.0)
        )
    })
}
