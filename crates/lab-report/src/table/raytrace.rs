//! Time to picture as a table for the terminal.

use super::footnotes;
use crate::plot::{grouped, percent, significant};
use crate::table::columns::columns;
use corelay_lab_measure::measure::stats;
use corelay_lab_measure::schema::{Mode, PictureResult, Results, Run, Size};
use std::fmt::Write;

/// Makes a table of all runs, and notes for the reader.
pub fn of(results: &Results) -> String {
    let head = [
        "method",
        "threads",
        "servers",
        "near ms",
        "n",
        "far ms",
        "n",
        "all ms",
        "tracing",
        "slowest tile µs",
        "result",
    ];
    let table = columns(head, results.runs.iter().map(row), 1);
    let mut text = format!("{table}\n");
    footnotes(&mut text, results);
    if let Some(run) = results.runs.first() {
        describe(&mut text, run);
    }
    let _ = writeln!(
        text,
        "Time to picture: medians and quartiles. tracing: the share of the threads' time, servers \
         included, in which\ntiles were traced; the rest went to the queue, to the statistics and to \
         waiting."
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

/// Adds the parameters that all runs have, and the counts that all pictures have.
fn describe(text: &mut String, run: &Run) {
    let extra = &run.params.extra;
    if let (Some(Size::Asked(size)), Some(tile), Some(depth)) =
        (&extra.size, extra.tile, extra.depth)
    {
        let _ = write!(
            text,
            "picture of {size} pixels, tiles of {tile}, depth {depth}"
        );
    }
    if let Some(picture) = run.samples.iter().find_map(|s| s.picture.as_ref()) {
        let [tiles, rays, reflections] =
            [picture.tiles, picture.rays, picture.reflections].map(grouped);
        let _ = write!(
            text,
            ": {tiles} tiles, {rays} rays, {reflections} reflections; hash {}",
            picture.hash
        );
    }
    if let Some(alone) = extra.alone_s {
        let alone = significant(alone * 1e3);
        let _ = write!(text, "\none thread without a queue: {alone} ms");
    }
    text.push('\n');
}

fn row(run: &Run) -> Vec<String> {
    let pictures = |is_wanted: &dyn Fn(Mode) -> bool| {
        let wanted = run
            .samples
            .iter()
            .filter(|s| run.correct && is_wanted(s.mode));
        wanted
            .filter_map(|s| s.picture.as_ref())
            .collect::<Vec<_>>()
    };
    let mode = |wanted| {
        let ms = pictures(&|mode| mode == wanted)
            .into_iter()
            .map(milliseconds);
        let ms: Vec<f64> = ms.collect();
        let quantile = |at| stats::quantile(&ms, at).map(significant);
        match (quantile(0.5), quantile(0.25), quantile(0.75)) {
            (Some(middle), Some(low), Some(high)) => {
                [format!("{middle} [{low}–{high}]"), ms.len().to_string()]
            }
            _ => ["not seen".to_owned(), String::new()],
        }
    };
    let kept = pictures(&|mode| mode != Mode::Discarded);
    let median = |figure: &dyn Fn(&PictureResult) -> f64| {
        let all: Vec<f64> = kept.iter().map(|picture| figure(picture)).collect();
        stats::median(&all)
    };
    let shown = |figure: Option<f64>, show: fn(f64) -> String| figure.map_or("–".to_owned(), show);
    let threads = run.params.threads as f64;
    let traced = |p: &PictureResult| p.tiles_ns as f64 * 1e-9 / (p.seconds * threads);
    let slowest = |p: &PictureResult| p.slowest_tile_ns as f64 * 1e-3;
    let servers = match run.params.servers {
        0 => String::new(),
        n => n.to_string(),
    };
    let [near, near_n] = mode(Mode::Near);
    let [far, far_n] = mode(Mode::Far);
    vec![
        run.method.clone(),
        run.params.threads.to_string(),
        servers,
        near,
        near_n,
        far,
        far_n,
        shown(median(&milliseconds), significant),
        shown(median(&traced), percent),
        shown(median(&slowest), significant),
        if run.correct { "right" } else { "WRONG" }.to_owned(),
    ]
}

fn milliseconds(picture: &PictureResult) -> f64 {
    picture.seconds * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::schema::{Extra, Machine, Params, SCHEMA, Sample};
    use std::collections::BTreeMap;

    fn sample(mode: Mode, seconds: f64) -> Sample {
        Sample {
            mops: 1.0,
            mode,
            rtt_ns: None,
            per_thread: vec![10, 10],
            cpu_s: 0.0,
            latency_ns: None,
            arrivals: None,
            fibres: None,
            counts: None,
            picture: Some(PictureResult {
                seconds,
                hash: "0123".to_owned(),
                tiles: 1_200,
                rays: 5_000,
                reflections: 700,
                tiles_ns: 10_000_000,
                slowest_tile_ns: 2_500,
            }),
            cache: None,
        }
    }

    fn run(correct: bool) -> Run {
        Run {
            workload: "raytrace".to_owned(),
            method: "mutex".to_owned(),
            params: Params {
                threads: 2,
                extra: Extra {
                    size: Some(Size::Asked("40x30".to_owned())),
                    tile: Some(1),
                    depth: Some(5),
                    alone_s: Some(0.012),
                    ..Extra::default()
                },
                ..Params::default()
            },
            correct,
            median_mops: 1.0,
            harmonic_mean_mops: 1.0,
            by_mode: BTreeMap::new(),
            samples: vec![
                sample(Mode::Near, 0.010),
                sample(Mode::Near, 0.012),
                sample(Mode::Near, 0.011),
                sample(Mode::Discarded, 9.0),
                sample(Mode::Far, 0.050),
            ],
            trustees: vec![],
            latency_ns: None,
            load: None,
            loads: None,
            not_installed: None,
            cache: None,
            notes: vec![],
        }
    }

    fn table(run: Run) -> String {
        of(&Results {
            schema: SCHEMA,
            machine: Machine::default(),
            commit: "unknown".to_owned(),
            command: "corelay bench raytrace".to_owned(),
            runs: vec![run],
        })
    }

    #[test]
    fn a_row_has_the_medians_of_each_mode_without_discarded_pictures() {
        let table = table(run(true));
        let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        let expected = "mutex 2 11.0 [10.5–11.5] 3 50.0 [50.0–50.0] 1 11.5 44\u{a0}% 2.50 right";
        assert_eq!(row.join(" "), expected.replace('\u{a0}', " "));
        for words in [
            "40x30 pixels, tiles of 1, depth 5: 1,200 tiles, 5,000 rays, 700 reflections; hash 0123",
            "one thread without a queue: 12.0 ms",
        ] {
            assert!(table.contains(words), "{table}");
        }
    }

    #[test]
    fn wrong_run_has_no_figure() {
        let table = table(run(false));
        let row = table.lines().nth(1).unwrap();
        assert!(
            row.contains("WRONG") && row.contains("not seen") && !row.contains("11"),
            "{row}"
        );
    }
}
