//! The load on cache servers as a table for the terminal.

use crate::plot::{grouped, significant};
use crate::table;
use crate::table::columns::columns;
use corelay_lab_measure::schema::cache::{CacheBlock, CacheRun, Latency};
use corelay_lab_measure::schema::{Mode, Results, Run};
use std::fmt::Write;

/// Makes a table with a line for each server and mode of the machine, the ratios between two servers,
/// and notes for the reader.
pub fn of(results: &Results) -> String {
    let head = [
        "server",
        "mode",
        "blocks",
        "ops/s",
        "quartiles",
        "gets/s",
        "sets/s",
        "hits",
        "p50 µs",
        "p90 µs",
        "p99 µs",
        "p99.9 µs",
        "max µs",
        "server CPU",
        "ops/CPU s",
        "load CPU",
    ];
    let table = columns(head, results.runs.iter().flat_map(rows), 2);
    let mut text = format!("{table}\n");
    for run in &results.runs {
        if let Some(cache) = &run.cache {
            whole(&mut text, &run.method, cache);
        }
    }
    ratios(&mut text, results);
    if results
        .runs
        .iter()
        .any(|run| run.params.extra.other.contains_key("load"))
    {
        text += "Latency counts from when a request was due; one that was not sent by the end of its block counts \
                 with the time it had waited.\n";
    }
    if results.runs.iter().any(|run| {
        let mut blocks = run
            .samples
            .iter()
            .filter_map(|sample| sample.cache.as_ref());
        blocks.any(|block| block.server_cpu_s.is_some())
    }) {
        text += "ops/CPU s: operations per second of the server's CPU time, which other programs on its CPU hardly \
                 change.\n";
    }
    placement(&mut text, results);
    table::notes(&mut text, results);
    text
}

/// Adds the ratios between two servers, with their intervals.
fn ratios(text: &mut String, results: &Results) {
    let compared = results.runs.iter();
    let compared = compared.filter_map(|run| Some((run, run.cache.as_ref()?.against.first()?)));
    for (run, first) in compared {
        let _ = writeln!(text, "{} / {}, with 95 % intervals:", run.method, first.of);
        for ratio in run.cache.iter().flat_map(|cache| &cache.against) {
            let _ = writeln!(
                text,
                "  {}, {}: {:.3} [{:.3}–{:.3}] over {} blocks",
                ratio.figure,
                word(ratio.mode),
                ratio.ratio,
                ratio.low,
                ratio.high,
                ratio.blocks
            );
        }
    }
}

/// Says on which CPUs the load threads ran.
fn placement(text: &mut String, results: &Results) {
    if let Some(cpus) = table::placements(results).first() {
        let _ = writeln!(text, "Load threads on CPUs: {}", cpus.join(", "));
    }
}

/// Returns a line for each mode, or one that says that no block counts.
fn rows(run: &Run) -> Vec<Vec<String>> {
    let Some(cache) = &run.cache else {
        return Vec::new();
    };
    let row = |(mode, summary): (&Mode, &corelay_lab_measure::schema::ModeSummary)| {
        let blocks: Vec<&CacheBlock> = run
            .samples
            .iter()
            .filter(|sample| sample.mode == *mode)
            .filter_map(|sample| sample.cache.as_ref())
            .collect();
        let latency = cache
            .by_mode
            .iter()
            .find(|(m, _)| m == mode)
            .map(|(_, l)| *l);
        let mut row = vec![
            run.method.clone(),
            word(*mode).to_owned(),
            summary.n.to_string(),
            per_second(summary.median_mops * 1e6),
            format!(
                "{}–{}",
                per_second(summary.q1_mops * 1e6),
                per_second(summary.q3_mops * 1e6)
            ),
        ];
        row.extend(shares(&blocks));
        row.extend(micros(latency));
        row.extend(cpus(&blocks));
        row
    };
    let rows: Vec<Vec<String>> = run.by_mode.iter().map(row).collect();
    match rows.is_empty() {
        true => vec![vec![run.method.clone(), "no block counts".to_owned()]],
        false => rows,
    }
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Near => "near",
        Mode::Far => "far",
        Mode::Discarded => "discarded",
        Mode::Unknown => "not probed",
    }
}

/// Formats a rate as a whole number.
fn per_second(rate: f64) -> String {
    grouped(rate.round() as u64)
}

/// Gets and sets per second, and the share of gets that hit.
fn shares(blocks: &[&CacheBlock]) -> [String; 3] {
    let secs: f64 = blocks.iter().map(|block| block.secs).sum();
    let counts: corelay_lab_measure::schema::cache::Counts =
        blocks.iter().map(|block| block.counts).sum();
    let rate = |n: u64| match secs > 0.0 {
        true => per_second(n as f64 / secs),
        false => "–".to_owned(),
    };
    [
        rate(counts.gets + counts.scans),
        rate(counts.sets + counts.refills),
        counts
            .hit_ratio()
            .map_or_else(|| "–".to_owned(), |ratio| format!("{:.2} %", ratio * 100.0)),
    ]
}

/// The percentiles in microseconds.
fn micros(latency: Option<Latency>) -> [String; 5] {
    let micros = |ns: u64| significant(ns as f64 * 1e-3);
    match latency {
        Some(l) => [l.p50, l.p90, l.p99, l.p999, l.max].map(micros),
        None => [(); 5].map(|()| "–".to_owned()),
    }
}

/// The CPUs that the server used, in percent of one, its operations per second of CPU time, and the CPUs of
/// the load threads.
fn cpus(blocks: &[&CacheBlock]) -> [String; 3] {
    let secs: f64 = blocks.iter().map(|block| block.secs).sum();
    let operations: u64 = blocks.iter().map(|block| block.counts.operations()).sum();
    let percent = |cpu_s: Option<f64>| match cpu_s {
        Some(cpu_s) if secs > 0.0 => format!("{:.0} %", cpu_s / secs * 100.0),
        _ => "–".to_owned(),
    };
    let server: Option<f64> = blocks.iter().map(|block| block.server_cpu_s).sum();
    let load = blocks.iter().map(|block| block.load_cpu_s).sum();
    let efficiency = match server {
        Some(cpu_s) if cpu_s > 0.0 => per_second(operations as f64 / cpu_s),
        _ => "–".to_owned(),
    };
    [percent(server), efficiency, percent(load)]
}

/// Adds the facts of a server that concern all its blocks.
fn whole(text: &mut String, name: &str, cache: &CacheRun) {
    let counts = &cache.counts;
    let _ = writeln!(
        text,
        "{name}: version {} at {}",
        cache.version, cache.server
    );
    if let Some(filled) = cache.filled {
        let _ = writeln!(
            text,
            "  filled first: {} keys in {} s, {} sets/s, {} refused",
            grouped(filled.stored),
            significant(filled.secs),
            per_second((filled.stored + filled.refused) as f64 / filled.secs),
            grouped(filled.refused)
        );
    }
    let mut parts = vec![
        format!("{} gets", grouped(counts.gets)),
        format!("{} hits", grouped(counts.hits)),
        format!("{} misses", grouped(counts.misses)),
        format!("{} sets", grouped(counts.sets)),
    ];
    let rare = [
        (counts.refills, "sets after a miss"),
        (counts.scans, "gets of scans"),
        (counts.unserved, "due but not sent"),
        (counts.wrong, "WRONG values"),
    ];
    let seen = rare.iter().filter(|(n, _)| *n > 0);
    parts.extend(seen.map(|(n, what)| format!("{} {what}", grouped(*n))));
    parts.push(format!("{} errors", grouped(counts.refused)));
    let _ = writeln!(text, "  {}", parts.join(", "));
    let _ = write!(
        text,
        "  {} MB sent, {} MB received",
        significant(counts.sent as f64 * 1e-6),
        significant(counts.received as f64 * 1e-6)
    );
    match cache.resident_bytes.zip(cache.peak_bytes) {
        Some((now, peak)) => {
            let _ = writeln!(
                text,
                "; server's resident memory {} MB, at most {} MB",
                significant(now as f64 * 1e-6),
                significant(peak as f64 * 1e-6)
            );
        }
        None => text.push('\n'),
    }
}
