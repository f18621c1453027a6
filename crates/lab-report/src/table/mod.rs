//! Results as tables for the terminal: fetch-add here, the others in a file each.
//!
//! | module | idea |
//! |---|---|
//! | [`cache`] | the load on cache servers |
//! | `columns` | figures in columns |
//! | [`grid`] | a table of words, for pages too |
//! | [`latency`] | latency under load |
//! | [`fibres`] | the benchmarks of fibres |
//! | [`ordered`] | workloads ordered by a clock |
//! | [`raytrace`] | time to picture |
//! | [`structure`] | the best of delegation and its best rival on structures |

pub mod cache;
pub mod columns;
pub mod fibres;
pub mod grid;
pub mod latency;
pub mod ordered;
pub mod raytrace;
pub mod structure;

use crate::mean::{Outside, SIGN};
use crate::table::columns::columns;
use corelay_lab_measure::schema::{Mode, Results, Run, Size};
use std::fmt::Write;

/// Makes a table of all runs, and notes for the reader.
pub fn of(results: &Results) -> String {
    // Structures have sizes and updates; other workloads have neither.
    let has_sizes = results
        .runs
        .iter()
        .any(|run| run.params.extra.size.is_some());
    let mut head = vec!["method", "threads", "servers", "vars"];
    if has_sizes {
        head.extend(["size", "updates"]);
    }
    head.extend([
        "near Mops",
        "n",
        "far Mops",
        "n",
        "all Mops",
        "harmonic",
        "Mops/CPU",
        "result",
    ]);
    let rows = results.runs.iter().map(|run| {
        let mut row = row(run);
        if has_sizes {
            row.splice(4..4, form(run));
        }
        row
    });
    let table = columns(head, rows, 1);
    let mut text = format!("{table}\n");
    footnotes(&mut text, results);
    let outside = results.runs.iter().filter_map(Outside::of_run);
    if let Some(sentence) = Outside::footnote(outside) {
        let _ = writeln!(text, "{sentence}");
    }
    if let Some(rtt) = results.machine.rtt_min_ns {
        let _ = writeln!(
            text,
            "Medians and quartiles; near: round trip at most {:.0} ns, twice the smallest ever seen here.",
            2.0 * rtt
        );
    }
    text
}

/// Adds the placements and the notes of the runs, each once.
pub(super) fn footnotes(text: &mut String, results: &Results) {
    // D19: the placement is part of the result.
    for cpus in placements(results) {
        let _ = writeln!(
            text,
            "{} on CPUs (servers first): {}",
            if cpus.len() == 1 {
                "1 thread".to_owned()
            } else {
                format!("{} threads", cpus.len())
            },
            cpus.join(", ")
        );
    }
    notes(text, results);
}

/// Returns the placements of all runs, each once.
pub(super) fn placements(results: &Results) -> Vec<Vec<String>> {
    let mut placements: Vec<&Vec<Option<usize>>> = Vec::new();
    for run in &results.runs {
        if !placements.contains(&&run.params.placement) {
            placements.push(&run.params.placement);
        }
    }
    let cpu = |cpu: &Option<usize>| cpu.map_or("not pinned".to_owned(), |cpu| cpu.to_string());
    let cpus = |placement: &Vec<Option<usize>>| placement.iter().map(cpu).collect();
    placements.into_iter().map(cpus).collect()
}

/// Adds the notes of the runs, each once.
pub(super) fn notes(text: &mut String, results: &Results) {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in &results.runs {
        for note in &run.notes {
            match notes.iter_mut().find(|(n, _)| n == note) {
                Some((_, methods)) if methods.contains(&run.method.as_str()) => {}
                Some((_, methods)) => methods.push(&run.method),
                None => notes.push((note, vec![&run.method])),
            }
        }
    }
    for (note, methods) in notes {
        let _ = writeln!(text, "{}: {note}", methods.join(", "));
    }
}

fn row(run: &Run) -> Vec<String> {
    let params = &run.params;
    let mode = |mode| match run.by_mode.get(&mode) {
        Some(s) => {
            let spread = format!(
                "{} [{}–{}]",
                mops(s.median_mops),
                mops(s.q1_mops),
                mops(s.q3_mops)
            );
            [spread, s.n.to_string()]
        }
        None => ["not seen".to_owned(), String::new()],
    };
    let figure = |value: f64| {
        if value > 0.0 {
            mops(value)
        } else {
            "–".to_owned()
        }
    };
    let servers = if params.servers > 0 {
        params.servers.to_string()
    } else {
        String::new()
    };
    let [near, near_n] = mode(Mode::Near);
    let [far, far_n] = mode(Mode::Far);
    vec![
        run.method.clone(),
        params.threads.to_string(),
        servers,
        params.vars.to_string(),
        near,
        near_n,
        far,
        far_n,
        figure(run.median_mops),
        figure(run.harmonic_mean_mops) + Outside::of_run(run).map_or("", |_| SIGN),
        figure(mops_per_cpu(run)),
        if run.correct { "right" } else { "WRONG" }.to_owned(),
    ]
}

/// Returns the size of each structure, and the share of the updates.
fn form(run: &Run) -> [String; 2] {
    let extra = &run.params.extra;
    let size = match extra.size {
        Some(Size::Keys(size)) => size.to_string(),
        _ => String::new(),
    };
    [
        size,
        extra.updates.map_or(String::new(), |n| format!("{n} %")),
    ]
}

/// Returns Mops per CPU used, servers counted: operations per microsecond of CPU time.
fn mops_per_cpu(run: &Run) -> f64 {
    let kept = || {
        run.samples
            .iter()
            .filter(|s| s.mode != Mode::Discarded && run.correct)
    };
    let ops: u64 = kept().flat_map(|s| &s.per_thread).sum();
    let cpu_s: f64 = kept().map(|s| s.cpu_s).sum();
    if cpu_s > 0.0 {
        ops as f64 / cpu_s / 1e6
    } else {
        0.0
    }
}

/// Formats Mops with three significant digits, as many as the spread allows.
fn mops(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}
