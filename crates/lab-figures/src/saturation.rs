//! Counters over the length of the pending queue (D8), for 16, 8 and 4 request lines: latency,
//! saturation of the servers, response-ready rate, failed pops, and throughput. The thesis finds
//! that all gains cease at a queue twice as long as the number of lines.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::queue_length::LENGTHS;
use super::size::Size;
use corelay_lab_measure::method::literature::lines;
use corelay_lab_report::figure::measured::{KNEE, Measured};
use corelay_lab_report::figure::outcome::{Axis, Curve};
use corelay_lab_report::figure::quantity::Quantity::{
    self, FailedPops, FailedPushes, Latency, Ready, Saturation, Throughput,
};
use corelay_lab_report::model::queues::{Filled, Queues};
use corelay_lab_report::plot::{percent, significant};
use corelay_lab_report::words::times;

pub(super) const SIXTEEN: Figure = Figure {
    name: "saturation-16",
    title: "What do longer queues do to servers and latency, with 16 request lines?",
    panels: |size| panels(size, 16),
    printed: &printed::<16>("32: saturation rises and failed pops fall up to there"),
    words: words::<16>,
    ..COMMON
};

pub(super) const EIGHT: Figure = Figure {
    name: "saturation-8",
    title: "What do longer queues do to servers and latency, with 8 request lines?",
    panels: |size| panels(size, 8),
    printed: &printed::<8>("16"),
    words: words::<8>,
    ..COMMON
};

pub(super) const FOUR: Figure = Figure {
    name: "saturation-4",
    title: "What do longer queues do to servers and latency, with 4 request lines?",
    panels: |size| panels(size, 4),
    printed: &printed::<4>("8"),
    words: words::<4>,
    ..COMMON
};

const COMMON: Figure = Figure {
    source: Source::Thesis("Hurry Up and Wait: The Pending Request Queue"),
    whole: 4,
    curves,
    fewer: "the source has 16 servers and 40 clients; one server with one client looks at the \
            lines of one pair only, so a line is answered and free again sooner.",
    ..Figure::PLAIN
};

const PANEL: &str = "length";

const QUANTITIES: &[Quantity] = &[
    Throughput,
    Saturation,
    Latency,
    Ready,
    FailedPops,
    FailedPushes,
];

const fn printed<const N: usize>(gains_cease: &'static str) -> [Printed; 3] {
    [
        Printed {
            what: "model: all queues of 2 N can fill all lines, with the probability",
            there: "approaches 1",
            here: |m| {
                let filled = queues(m, N, 2 * N)?.filled();
                let there = Queues {
                    servers: 16,
                    lines: N,
                    length: 2 * N,
                };
                let there = there.filled();
                let of = |filled: Filled| {
                    format!(
                        "{}, and {} of the lines find a request",
                        percent(filled.all),
                        percent(filled.lines)
                    )
                };
                Some(format!(
                    "{}; with the source's 16 servers {}",
                    of(filled),
                    of(there)
                ))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "length after which gains cease",
            there: gains_cease,
            here: |m| {
                let (x, _) = m.knee(PANEL, label(N))?;
                Some(format!("{x}, {} the request lines", times(x / N as f64)))
            },
            drawn: Drawn::At {
                panel: PANEL,
                x: 2.0 * N as f64,
                label: "thesis: 2 N",
            },
        },
        Printed {
            what: "throughput and saturation over lengths",
            there: "correlated: the peak of one is the peak of the other",
            here: |m| {
                let r = correlation(m, label(N), Saturation)?;
                Some(format!("correlation {r:+.2}"))
            },
            drawn: Drawn::Nowhere,
        },
    ]
}

fn panels(size: &Size, lines: usize) -> Vec<Panel> {
    let servers = size.usual_servers();
    let cell =
        |&length: &usize| size.cell_per_server(length as f64, lines::queue(lines, length), servers);
    vec![Panel {
        key: PANEL,
        title: "Counters over the length of the queue",
        axis: Axis::log("length of the pending queue"),
        quantities: QUANTITIES,
        lines: vec![FigureLine::new(label(lines), LENGTHS.iter().map(cell))],
    }]
}

/// Returns the queues of one client of this run, in the model.
fn queues(m: &Measured<'_>, lines: usize, length: usize) -> Option<Queues> {
    let servers = m.outcome().results.runs.first()?.params.servers;
    Some(Queues {
        servers: servers.max(1),
        lines,
        length,
    })
}

/// Computes, beside the saturation, the probability that all queues can fill their lines, and beside
/// the failed pops the share of lines that find no request.
fn curves(m: &Measured<'_>) -> Vec<Curve> {
    let all = [16, 8, 4];
    let Some(lines) = all
        .into_iter()
        .find(|&n| !m.throughput(PANEL, label(n)).is_empty())
    else {
        return Vec::new();
    };
    let curve = |quantity, label: &str, of: fn(Filled) -> f64| {
        let point = |&length: &usize| {
            let filled = queues(m, lines, length)?.filled();
            Some((length as f64, of(filled)))
        };
        Curve {
            panel: PANEL.to_owned(),
            quantity,
            label: label.to_owned(),
            points: LENGTHS.iter().filter_map(point).collect(),
        }
    };
    vec![
        curve(Saturation, "all filled", |filled| filled.all),
        curve(FailedPops, "failed pops", Filled::failed_pops),
    ]
}

const fn label(lines: usize) -> &'static str {
    match lines {
        16 => "16 lines",
        8 => "8 lines",
        _ => "4 lines",
    }
}

/// Returns Pearson's coefficient of throughput and another quantity, over the lengths.
fn correlation(m: &Measured<'_>, line: &str, other: Quantity) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = m
        .throughput(PANEL, line)
        .into_iter()
        .filter_map(|(x, mops)| Some((mops, m.at(PANEL, line, x, other)?)))
        .collect();
    pearson(&pairs)
}

/// Returns Pearson's coefficient; `None` for fewer than three pairs, or if one side does not
/// vary.
fn pearson(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let n = pairs.len() as f64;
    let mean = |side: fn(&(f64, f64)) -> f64| pairs.iter().map(side).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sum =
        |f: &dyn Fn(f64, f64) -> f64| -> f64 { pairs.iter().map(|(x, y)| f(x - mx, y - my)).sum() };
    let (xy, xx, yy) = (sum(&|x, y| x * y), sum(&|x, _| x * x), sum(&|_, y| y * y));
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

/// The latency of a request with the shortest and with the longest queue.
fn waiting(shortest: f64, longest: f64) -> String {
    let both = format!(
        "A request takes {} ns with the shortest queue and {} with the longest",
        significant(shortest),
        significant(longest)
    );
    match longest > 1.1 * shortest {
        true => {
            format!("{both}: a longer queue has more requests under way, but no request is faster.")
        }
        false => format!("{both}: requests did not wait longer in the longer queue."),
    }
}

fn words<const N: usize>(m: &Measured<'_>) -> Vec<String> {
    let (line, double) = (label(N), 2.0 * N as f64);
    let mut said = Vec::new();
    let at = |x, quantity| m.at(PANEL, line, x, quantity);
    let share = |x, quantity| at(x, quantity).map(percent);
    let points = m.throughput(PANEL, line);
    if let (Some((least, few)), Some((most, many)), Some(mops)) = (
        points.first().copied(),
        points.last().copied(),
        m.mops(PANEL, line, double),
    ) {
        said.push(format!(
            "From {least} over {double} to {most} requests in the queue: {} → {} → {} Mops.",
            significant(few),
            significant(mops),
            significant(many)
        ));
        if let (Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)) = (
            share(least, Saturation),
            share(double, Saturation),
            share(most, Saturation),
            share(least, FailedPops),
            share(double, FailedPops),
            share(most, FailedPops),
        ) {
            said.push(format!(
                "Saturation {a} → {b} → {c}; failed pops {d} → {e} → {f}."
            ));
        }
        if let Some((_, top)) = m.peak(PANEL, line) {
            said.push(format!(
                "Twice the lines ({double}) have {} of the best: the rule of 2 N {} here.",
                percent(mops / top),
                if mops >= KNEE * top {
                    "holds"
                } else {
                    "does not hold"
                }
            ));
        }
        if let (Some(a), Some(b)) = (at(least, Latency), at(most, Latency)) {
            said.push(waiting(a, b));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_queue_is_blamed_only_if_requests_wait_in_it() {
        assert!(waiting(300.0, 900.0).contains("no request is faster"));
        assert!(waiting(300.0, 290.0).contains("did not wait longer"));
    }

    #[test]
    fn correlations() {
        let line = |a: f64| [0.0, 1.0, 2.0, 5.0].map(|x| (x, a * x + 1.0));
        assert!((pearson(&line(2.0)).unwrap() - 1.0).abs() < 1e-12);
        assert!((pearson(&line(-0.1)).unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(pearson(&line(0.0)), None);
        assert_eq!(pearson(&line(1.0)[..2]), None);
        let none = [(0.0, 1.0), (1.0, 0.0), (2.0, 1.0), (1.0, 2.0)];
        assert!(pearson(&none).unwrap().abs() < 1e-12);
    }
}
