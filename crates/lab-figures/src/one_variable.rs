//! Fetch-and-add on one variable over threads (F2, F3): the slides' "get_seqno", and the limit
//! for a cache line that crosses for every operation (F6).

use super::baseline;
use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::{Size, named};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::{Axis, Curve};
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::model::ceilings::Ceilings;
use corelay_lab_report::plot::significant;
use corelay_lab_report::words::{code, count, times};

/// The methods compared: an atomic, locks, the literature's delegation, corelay's.
pub(super) const METHODS: [&str; 13] = [
    "atomic",
    "mutex",
    "ttas",
    "ticket",
    "mcs",
    "clh",
    "flat-combining",
    "cc-synch",
    "node-replication",
    "rcl",
    "ffwd",
    "trust",
    "trust-then",
];

/// The methods that are locks.
pub(super) const LOCKS: [&str; 7] = [
    "mutex",
    "ttas",
    "ticket",
    "mcs",
    "clh",
    "flat-combining",
    "cc-synch",
];

pub(super) const FIGURE: Figure = Figure {
    name: "one-variable",
    title: "Which method counts fastest on one variable, over threads?",
    source: Source::Ffwd("fetch-and-add, 1 variable"),
    whole: 4,
    fewer: "the axis of threads ends where the CPUs do; one client has no batch of 15 requests, \
            which is what makes ffwd fast.",
    panels,
    printed: &[
        Printed {
            what: "one thread, without synchronisation",
            there: "about 1,000 Mops",
            here: |m| {
                Some(format!(
                    "{} Mops",
                    significant(baseline::mops(m, "threads", 1.0)?)
                ))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "the same / a lock between two threads",
            there: "400 × (600 × between three)",
            here: |m| {
                let (lock, _) = m.best_of("threads", LOCKS, 2.0)?;
                let ratio = baseline::ratio(m, "threads", lock, 2.0)?;
                Some(format!("{} ({lock})", times(ratio)))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "the same / one client of a dedicated server",
            there: "400 ×",
            here: |m| {
                let ratio = baseline::ratio(m, "threads", "ffwd", 2.0)?;
                Some(format!("{} (ffwd)", times(ratio)))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "ffwd, 120 clients",
            there: "55 Mops, 40 cycles per operation",
            here: |m| {
                let (threads, mops) = m.last("threads", "ffwd")?;
                let clients = count(threads as u64 - 1, "client", "clients");
                Some(format!("{} Mops, {clients}", significant(mops)))
            },
            drawn: Drawn::Level {
                panel: "threads",
                mops: 55.0,
                span: (1.0, 128.0),
                label: "slides: ffwd, 120 clients",
            },
        },
        Printed {
            what: "ffwd, for each client",
            there: "2.5 Mops (a latency of 400 ns)",
            here: |m| {
                let (threads, mops) = m.last("threads", "ffwd")?;
                let rtt = significant(m.round_trip_ns()?);
                Some(format!(
                    "{} Mops (a round trip of {rtt} ns)",
                    significant(mops / (threads - 1.0))
                ))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "a lock, contended",
            there: "below 10 Mops",
            here: |m| {
                let (lock, mops) = best_lock(m)?;
                Some(format!("{} Mops ({lock})", significant(mops)))
            },
            drawn: Drawn::Level {
                panel: "threads",
                mops: 10.0,
                span: (1.0, 128.0),
                label: "slides: a lock, at most",
            },
        },
        Printed {
            what: "model: a line that crosses for each operation",
            there: "14 Mops at 70 ns one way",
            here: |m| {
                let rtt_ns = m.round_trip_ns()?;
                let limit = Ceilings { rtt_ns, clients: 1 }.lock_handover();
                Some(format!(
                    "{} Mops at {} ns one way",
                    significant(limit),
                    significant(rtt_ns / 2.0)
                ))
            },
            drawn: Drawn::Nowhere,
        },
    ],
    curves,
    tables: |m| baseline::table(m, "threads").into_iter().collect(),
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    vec![Panel {
        key: "threads",
        title: "Over threads, one variable",
        axis: Axis::linear("threads"),
        quantities: &[Throughput],
        lines: over_threads(size, 1),
    }]
}

/// Makes the lines of the baseline and of every method over threads, on so many variables.
pub(super) fn over_threads(size: &Size, vars: u64) -> Vec<FigureLine> {
    let line = |name| {
        let way = named(name);
        let threads = size.threads_from(way.least_threads(1)).into_iter();
        FigureLine::new(
            name,
            threads.map(|n| size.cell_of(n, n as f64, way, 1, vars)),
        )
    };
    let alone = size.cell_of(1, 1.0, named(baseline::ALONE), 1, vars);
    let mut lines = vec![baseline::line([alone])];
    lines.extend(METHODS.map(line));
    lines
}

/// Returns the fastest lock at the most threads.
fn best_lock(m: &Measured<'_>) -> Option<(&'static str, f64)> {
    let (x, _) = m.last("threads", "ffwd")?;
    m.best_of("threads", LOCKS, x)
}

fn curves(m: &Measured<'_>) -> Vec<Curve> {
    let Some((rtt_ns, (most, _))) = m.round_trip_ns().zip(m.last("threads", "ffwd")) else {
        return Vec::new();
    };
    let clients = |n: f64| Ceilings {
        rtt_ns,
        clients: n as usize - 1,
    };
    let xs = || (2..=most as usize).map(|n| n as f64);
    let curve = |label: &str, points| Curve {
        panel: "threads".to_owned(),
        quantity: Throughput,
        label: label.to_owned(),
        points,
    };
    vec![
        curve(
            "lock handed over",
            xs().map(|x| (x, clients(x).lock_handover())).collect(),
        ),
        curve(
            "clients / round trip",
            xs().map(|x| (x, clients(x).one_in_flight())).collect(),
        ),
    ]
}

/// The fastest lock by one thread and by so many.
fn contended(lock: &str, threads: u64, alone: f64, mops: f64) -> String {
    let (lock, ratio) = (code(lock), times(mops / alone));
    let alone_mops = significant(alone);
    match mops < alone {
        true => format!(
            "{lock} alone does {alone_mops} Mops: contention by {threads} threads leaves it {ratio} of that."
        ),
        false => format!(
            "{lock} alone does {alone_mops} Mops, and by {threads} threads {ratio} of that: contention does \
             not slow it down."
        ),
    }
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some((threads, ffwd)), Some((lock, mops))) = (m.last("threads", "ffwd"), best_lock(m)) {
        said.push(format!(
            "With {threads} threads ffwd does {} Mops and the fastest lock, {}, {}: {}.",
            significant(ffwd),
            code(lock),
            significant(mops),
            if ffwd > mops {
                format!("ffwd is ahead {}, as in the source", times(ffwd / mops))
            } else {
                format!(
                    "the lock does {} as much, unlike in the source. A lock between {threads} \
                     threads stays with one of them for many operations in a row, while every \
                     ffwd request makes a round trip, which pays only if many clients share it",
                    times(mops / ffwd)
                )
            }
        ));
        let alone = m.mops("threads", lock, 1.0);
        if let Some(alone) = alone {
            said.push(contended(lock, threads as u64, alone, mops));
        }
    }
    said.extend(baseline::words(m, "threads"));
    said.push("`trust-then` does not wait for its answers, the others do.".to_owned());
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contention_is_blamed_only_for_a_loss() {
        assert!(contended("mcs", 2, 100.0, 20.0).contains("leaves it 0.20"));
        let faster = contended("mcs", 2, 100.0, 150.0);
        assert!(faster.contains("does not slow it down"), "{faster}");
    }
}
