//! Workloads ordered by a clock, as a table for the terminal.

use super::footnotes;
use crate::plot::{grouped, percent, significant};
use crate::table::columns::columns;
use corelay_lab_measure::schema::{ConflictCounts, Mode, Results, Run, Size};
use std::fmt::Write;

/// The unit of throughput.
struct Unit {
    per_mops: f64,
    name: &'static str,
}

/// The column before which the times of operations stand, if they were timed.
const TIMES: usize = 9;

/// Says what the latencies of a workload are.
fn timed(workload: &str) -> &'static str {
    match workload {
        "recover" => {
            "Latency is the time of an opening, and the rate that of the files that it read."
        }
        "kept" => {
            "Latency of each transaction, until it is on disk, in both modes together. Clients do not \
             pause, so a\nstall is one slow transaction for each that waits in it."
        }
        _ => {
            "Latency of one transaction in 32, from its first attempt to its answer, in both modes \
             together. Clients\ndo not pause, so a stall is one slow transaction for each that waits in it."
        }
    }
}

/// Makes a table of all runs, and notes for the reader.
pub fn of(results: &Results) -> String {
    // Transactions that are kept on disk take far longer than others.
    let workload = results.runs.first().map_or("", |run| &run.workload);
    let unit = match workload {
        "recover" => Unit {
            per_mops: 1e3,
            name: "MB/s",
        },
        "kept" => Unit {
            per_mops: 1e6,
            name: "/s",
        },
        _ => Unit {
            per_mops: 1.0,
            name: "Mops",
        },
    };
    // Only transactions on a database are timed.
    let is_timed = results.runs.iter().any(|run| run.latency_ns.is_some());
    let [near, far, all] = ["near", "far", "all"].map(|mode| format!("{mode} {}", unit.name));
    let mut head = vec![
        "method",
        "threads",
        "form",
        "boundary",
        &near,
        "n",
        &far,
        "n",
        &all,
        "aborts",
        "uncertain",
        "result",
    ];
    if is_timed {
        head.splice(TIMES..TIMES, ["p50 ns", "p99 ns", "p99.9 ns", "max ns"]);
    }
    let rows = results.runs.iter().map(|run| {
        let mut row = row(run, unit.per_mops);
        if is_timed {
            row.splice(TIMES..TIMES, times(run));
        }
        row
    });
    let table = columns(head, rows, 1);
    let mut text = format!("{table}\n");
    footnotes(&mut text, results);
    if is_timed {
        let _ = writeln!(text, "{}", timed(workload));
    }
    for run in &results.runs {
        text.extend(parts(run).map(|said| format!("{said}\n")));
    }
    let _ = writeln!(
        text,
        "Medians and quartiles. Aborts by reason (a lock, a value that was read, a newer version, a \
         row\ninserted where none was seen, the clock, unknown), and comparisons that the clock left\nopen: per 1,000 operations."
    );
    if let Some(rtt) = results.machine.rtt_min_ns {
        let _ = writeln!(
            text,
            "near: round trip at most {:.0} ns, twice the smallest ever seen here.",
            2.0 * rtt
        );
    }
    text
}

fn row(run: &Run, per_mops: f64) -> Vec<String> {
    let rate = |mops: f64| significant(mops * per_mops);
    let mode = |mode| match run.by_mode.get(&mode) {
        Some(s) => {
            let [middle, low, high] = [s.median_mops, s.q1_mops, s.q3_mops].map(rate);
            [format!("{middle} [{low}–{high}]"), s.n.to_string()]
        }
        None => ["not seen".to_owned(), String::new()],
    };
    let [near, near_n] = mode(Mode::Near);
    let [far, far_n] = mode(Mode::Far);
    let counts: ConflictCounts = run.samples.iter().filter_map(|s| s.counts).sum();
    let operations: u64 = run.samples.iter().flat_map(|s| &s.per_thread).sum();
    let per_thousand = |count: u64| match (count, operations) {
        (0, _) | (_, 0) => "0".to_owned(),
        (count, all) => significant(count as f64 * 1e3 / all as f64),
    };
    let all = match run.median_mops > 0.0 {
        true => rate(run.median_mops),
        false => "–".to_owned(),
    };
    vec![
        run.method.clone(),
        run.params.threads.to_string(),
        form(run),
        boundary(run),
        near,
        near_n,
        far,
        far_n,
        all,
        aborts(counts, per_thousand),
        per_thousand(counts.uncertain),
        result(run).to_owned(),
    ]
}

/// Says where a run's clients spent their time, if the method takes the time of its parts.
fn parts(run: &Run) -> Option<String> {
    let counts: ConflictCounts = run.samples.iter().filter_map(|s| s.counts).sum();
    let whole = counts.parts.whole;
    let share = |ticks: u64| percent(ticks as f64 / whole as f64).replace('\u{a0}', " ");
    let [copying, locking, ordering, waiting, rest] = counts.parts.with_rest().map(share);
    (whole > 0).then(|| {
        format!(
            "{}, {} threads, {}: copying {copying}, locking {locking}, ordering {ordering}, waiting \
             {waiting}, the rest {rest} of the clients' time",
            run.method,
            run.params.threads,
            form(run)
        )
    })
}

/// Formats the percentiles of the latencies.
fn times(run: &Run) -> [String; 4] {
    let latency = run.latency_ns.map(|l| [l.p50, l.p99, l.p999, l.max]);
    latency.map_or_else(|| ["–"; 4].map(str::to_owned), |ns| ns.map(grouped))
}

/// Returns the result of a run. One with too small a boundary is called no longer correct,
/// whether or not a check has shown it.
fn result(run: &Run) -> &'static str {
    match (run.is_no_longer_correct(), run.correct) {
        (true, true) => "no longer correct",
        (true, false) => "no longer correct: WRONG",
        (false, true) => "right",
        (false, false) => "WRONG",
    }
}

/// Formats the sum of aborts, and its parts if there is more than one reason.
fn aborts(counts: ConflictCounts, per_thousand: impl Fn(u64) -> String) -> String {
    let aborts = counts.aborts;
    let reasons = [
        ("lock", aborts.lock),
        ("validation", aborts.validation),
        ("version", aborts.version),
        ("phantom", aborts.phantom),
        ("uncertain", aborts.uncertain),
        ("unknown", aborts.unknown),
    ];
    let some = reasons.iter().filter(|(_, count)| *count > 0);
    let some: Vec<String> = some
        .map(|(reason, count)| format!("{reason} {}", per_thousand(*count)))
        .collect();
    match some.is_empty() {
        true => "0".to_owned(),
        false => some.join(", "),
    }
}

/// Returns the parameters that tell runs of one workload apart, besides threads.
fn form(run: &Run) -> String {
    let extra = &run.params.extra;
    let mut form = Vec::new();
    let grouped = crate::plot::grouped;
    form.extend(extra.mix.clone());
    if let (Some(requests), Some(rows)) = (extra.requests, extra.rows) {
        form.push(format!("{requests} of {} rows", grouped(rows)));
    }
    if let (None, Some(rows)) = (extra.requests, extra.rows) {
        form.push(format!("{} rows", grouped(rows)));
    }
    form.extend(extra.bytes.map(|n| format!("of {n} bytes")));
    let megabytes = |n| format!("log of {} MB", grouped(n / 1_000_000));
    form.extend(extra.log_bytes.map(megabytes));
    if run.params.window > 1 {
        form.push(format!("window {}", run.params.window));
    }
    form.extend(extra.theta.map(|theta| format!("θ {theta}")));
    form.extend(extra.warehouses.map(|n| format!("{n} warehouses")));
    form.extend(extra.shrink.map(|n| format!("1/{n}")));
    form.extend(extra.buckets.map(|n| format!("{n} ×")));
    if let Some(Size::Keys(n)) = extra.size {
        form.push(format!("{n} keys"));
    }
    form.extend(extra.variables.map(|n| format!("{n} variables")));
    form.extend(extra.reads.map(|n| format!("{n} read")));
    form.extend(extra.updates.map(|n| format!("{n} % updates")));
    let reads_every = extra.reads_every;
    form.extend(reads_every.map(|n| format!("a read per {}", grouped(n))));
    form.join(" ")
}

fn boundary(run: &Run) -> String {
    let extra = &run.params.extra;
    let Some(ns) = extra.boundary_ns else {
        return String::new();
    };
    let scale = match extra.boundary_scale {
        Some(scale) if scale < 1.0 => format!(" (× 1/{})", significant(1.0 / scale)),
        Some(scale) if scale > 1.0 => format!(" (× {scale})"),
        _ => String::new(),
    };
    format!("{} ns{scale}", significant(ns))
}
