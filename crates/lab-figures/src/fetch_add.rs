//! Fetch-and-add over variables (D16, D17): the thesis's main figure.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::{Size, named, usual_servers};
use corelay_lab_measure::method::Method;
use corelay_lab_measure::method::literature::lines;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::{Axis, Curve};
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::model::footprint::SOURCE_BYTES;
use corelay_lab_report::model::residency;
use corelay_lab_report::plot::{grouped, short_count, significant};
use corelay_lab_report::words::{code, count, times};

/// The thesis's atomic and locks (POSIX mutex, plain spin lock), then the standard library's mutex and
/// a better spin lock.
const LOCKS: [&str; 5] = ["atomic", "pthread-mutex", "tas", "mutex", "ttas"];
const DEDICATED: &str = "async-lines:16x32";
const FLAT: &str = "flat-lines:queue";
const GEPARD: &str = "gepard";
/// Fibres that delegate and wait as Gepard's do, over corelay's own channel.
const TRUST_FIBRE: &str = "trust-fibre";

/// The lines of the source's figure besides dedicated delegation.
const RIVALS: [&str; 5] = [LOCKS[0], LOCKS[1], LOCKS[2], FLAT, GEPARD];

pub(super) const FIGURE: Figure = Figure {
    name: "fetch-add",
    title: "Which way of sharing is fastest over so many variables?",
    source: Source::Thesis("Fetch and Add"),
    whole: 4,
    fewer: "of two threads one serves: dedicated delegation has one server and one client, and \
            locks and atomics have two contenders where the source has 56.",
    panels,
    printed: &[
        Printed {
            what: "dedicated, up to the size of the servers' caches",
            there: "over 600 Mops",
            here: |m| {
                let (x, mops) = m.peak("vars", DEDICATED)?;
                Some(at(x, mops))
            },
            drawn: Drawn::Level {
                panel: "vars",
                mops: 600.0,
                span: (1.0, (1u64 << 18) as f64),
                label: "thesis: dedicated > 600",
            },
        },
        Printed {
            what: "flat, at most",
            there: "just under 500 Mops",
            here: |m| {
                let (x, mops) = m.peak("vars", FLAT)?;
                Some(at(x, mops))
            },
            drawn: Drawn::Level {
                panel: "vars",
                mops: 490.0,
                span: (1.0, (1u64 << 20) as f64),
                label: "thesis: flat < 500",
            },
        },
        Printed {
            what: "dedicated is ahead of all others up to",
            there: "2^20 variables (1 Mi)",
            here: |m| {
                Some(match ahead_up_to(m, DEDICATED)? {
                    Some(x) => format!("{} variables", short_count(x)),
                    None => "nowhere: another is ahead at one variable".to_owned(),
                })
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "locks and atomics are fastest at",
            there: "2^19 variables (512 Ki), where contention is practically 0",
            here: |m| {
                let of = |line| Some(format!("{line} {}", short_count(m.peak("vars", line)?.0)));
                let peaks: Option<Vec<String>> = LOCKS.into_iter().map(of).collect();
                Some(peaks?.join(", "))
            },
            drawn: Drawn::Nowhere,
        },
        knee::<0>(
            "dedicated slows down from: the servers' L2s are full",
            "2^18 variables",
            (1 << 18, "thesis: L2s full"),
        ),
        knee::<1>(
            "dedicated slows down further from: the L3s are full, too",
            "about 2^20 variables",
            (1 << 20, "thesis: L3s full"),
        ),
        Printed {
            what: "all slow down from",
            there: "about 2^20 variables, the size of the last caches",
            here: |m| {
                let bytes = residency::last_caches(&m.machine().caches);
                Some(format!(
                    "model: L2s and L3s together hold {} variables",
                    grouped(residency::capacity(bytes))
                ))
            },
            drawn: Drawn::Nowhere,
        },
    ],
    curves,
    words,
    ..Figure::PLAIN
};

/// The printed value and the mark of a knee, beside the model's `N`-th of the [`knees`] here. The model
/// gives the printed ones for the thesis's machine (`corelay model residency --help`).
const fn knee<const N: usize>(
    what: &'static str,
    there: &'static str,
    (vars, label): (u64, &'static str),
) -> Printed {
    Printed {
        what,
        there,
        here: |m| {
            let vars = count(knees(m)?[N], "variable", "variables");
            Some(format!("model: {vars}"))
        },
        drawn: Drawn::At {
            panel: "vars",
            x: vars as f64,
            label,
        },
    }
}

/// The first powers of two of variables that the servers' L2s do not hold, and those with all L3s. Each
/// server shares its core with a client, and both keep what the thesis reckons for them there.
fn knees(m: &Measured<'_>) -> Option<[u64; 2]> {
    let machine = m.machine();
    let level = |level: u32| machine.caches.iter().find(|cache| cache.level == level);
    let (l1, l2) = (level(1)?, level(2)?);
    let servers = usual_servers(machine.cpus.max(2)).min(l2.instances) as u64;
    let footprint = SOURCE_BYTES[1] as u64;
    let l2s = servers * residency::left(l2.bytes, l1.bytes, footprint);
    let l3s = level(3).map_or(0, |l3| l3.bytes * l3.instances as u64);
    Some([l2s, l2s + l3s].map(residency::knee))
}

fn panels(size: &Size) -> Vec<Panel> {
    let line = |(label, way): (&str, Method)| {
        let servers = match label {
            GEPARD => gepard_servers(size.threads),
            _ => size.usual_servers(),
        };
        let cell = |vars: u64| size.cell(vars as f64, way, servers, vars);
        FigureLine::new(label, size.vars().into_iter().map(cell))
    };
    // Not every system has the POSIX mutex.
    let locks = LOCKS.iter().map(|name| Some((*name, Method::named(name)?)));
    let mut ways: Vec<(&str, Method)> = locks.flatten().collect();
    ways.push(("async-lines:1x2", lines::queue(1, 2)));
    ways.push((DEDICATED, lines::queue(16, 32)));
    let others = [
        GEPARD,
        FLAT,
        "flat-queue",
        "trust",
        "trust-then",
        TRUST_FIBRE,
    ];
    ways.extend(others.map(|name| (name, named(name))));
    vec![Panel {
        key: "vars",
        title: "Over variables",
        axis: Axis::vars(),
        quantities: &[Throughput],
        lines: ways.into_iter().map(line).collect(),
    }]
}

/// Formats a throughput and its number of variables.
fn at(x: f64, mops: f64) -> String {
    let variables = count(x as u64, "variable", "variables");
    format!("{} Mops, at {variables}", significant(mops))
}

/// Returns the thesis's share of servers for Gepard, 8 of 56, of so many threads.
fn gepard_servers(threads: usize) -> usize {
    (threads * 8 / 56).max(1)
}

/// Returns the number of variables up to which `line` is ahead of every line of the source, which
/// does not count corelay's own. Returns `Some(None)` if it is behind from the first point on.
fn ahead_up_to(m: &Measured<'_>, line: &str) -> Option<Option<f64>> {
    let points = m.throughput("vars", line);
    let is_ahead = |&&(x, mops): &&(f64, f64)| {
        let best = m.best_of("vars", RIVALS, x);
        best.is_none_or(|(_, best)| best <= mops)
    };
    points.first()?;
    let ahead = points.iter().take_while(is_ahead);
    Some(ahead.last().map(|(x, _)| *x))
}

/// Draws the lock limit (F6): the throughput on one variable if a cache line crosses for each
/// operation.
fn curves(m: &Measured<'_>) -> Vec<Curve> {
    let limit = m.round_trip_ns().map(|rtt_ns| {
        let ceilings = corelay_lab_report::model::ceilings::Ceilings { rtt_ns, clients: 1 };
        Curve {
            panel: "vars".to_owned(),
            quantity: Throughput,
            label: "lock handed over".to_owned(),
            points: [1.0, 16.0].map(|x| (x, ceilings.lock_handover())).into(),
        }
    });
    limit.into_iter().collect()
}

/// Explains why `rival` does well on one variable if fewer threads contend than in the source.
fn fewer_contend(m: &Measured<'_>, rival: &str) -> Option<String> {
    let threads = m.outcome().results.runs.first()?.params.threads;
    (threads < 56 && LOCKS.contains(&rival)).then(|| {
        format!(
            " {} contend here, not 56: the fewer CPUs want a cache line, the more operations \
             the CPU that has it does in a row.",
            count(threads as u64, "thread", "threads")
        )
    })
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(Some(up_to)) = ahead_up_to(m, DEDICATED) {
        said.push(format!(
            "The thesis's dedicated delegation is ahead of its rivals up to {} variables.",
            grouped(up_to as u64)
        ));
    } else if let Some((rival, mops)) = m.best_of("vars", RIVALS, 1.0)
        && let Some(lines) = m.mops("vars", DEDICATED, 1.0)
    {
        said.push(format!(
            "On one variable {} does {} Mops and the thesis's dedicated delegation {}.{}",
            code(rival),
            significant(mops),
            significant(lines),
            fewer_contend(m, rival).unwrap_or_default()
        ));
    }
    if let Some((last, _)) = m.last("vars", "atomic")
        && let Some((winner, _)) = m.winner("vars", last)
    {
        said.push(format!(
            "With {} variables {} is ahead{}.",
            grouped(last as u64),
            code(winner),
            if LOCKS.contains(&winner) {
                ": threads rarely meet, and each works undisturbed while a server does everything \
                 alone"
            } else {
                ""
            }
        ));
    }
    if let (Some(gepard), Some(fibres)) = (m.peak("vars", GEPARD), m.peak("vars", TRUST_FIBRE)) {
        said.push(format!(
            "Of {}, 64 fibres of a client each wait for their own answer, over four request lines for each \
             pair: {} Mops at most. {} does the same over corelay's channel: {}.",
            code(GEPARD),
            significant(gepard.1),
            code(TRUST_FIBRE),
            significant(fibres.1)
        ));
    }
    if let (Some((_, dedicated)), Some((_, gepard))) =
        (m.peak("vars", DEDICATED), m.peak("vars", GEPARD))
    {
        said.push(format!(
            "The thesis's dedicated delegation without fibres reaches {} of Gepard's peak.",
            times(dedicated / gepard)
        ));
    }
    said
}
