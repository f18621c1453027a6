//! Tests of the page and the verdict on made-up results.

mod figure;
mod judgement;
mod latency;
mod page;

use super::synthetic::{Recipe, judged, small_loads, small_machine, summed_up, under_load};
use super::verdict::{Comparison, Kind, Need, Standing};
use super::{html, picture, verdict};
use corelay_lab_measure::schema::{Mode, Results, Size};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Parses a page, which is XML too.
fn parsed(page: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(page, options).expect("well-formed")
}

/// Made-up results of one kind, with their page and verdict; made once for all tests.
struct Case {
    name: &'static str,
    results: Results,
    page: String,
    verdict: super::Verdict,
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let case = |(name, results): (&'static str, Results)| {
        let (page, verdict) = (html(&results), verdict(&results));
        Case {
            name,
            results,
            page,
            verdict,
        }
    };
    cases().into_iter().map(case).collect()
});

/// Makes results of every kind that a page must handle.
fn cases() -> Vec<(&'static str, Results)> {
    let mut cases = vec![
        ("small", Recipe::default().make()),
        (
            "no-far",
            Recipe {
                modes: vec![Mode::Near],
                ..Recipe::default()
            }
            .make(),
        ),
        ("one-cpu", one_cpu()),
        (
            "empty",
            Results {
                runs: Vec::new(),
                ..Recipe::default().make()
            },
        ),
        (
            "few-samples",
            Recipe {
                samples: 2,
                ..Recipe::default()
            }
            .make(),
        ),
        (
            "single-point",
            Recipe {
                vars: vec![64],
                ..Recipe::default()
            }
            .make(),
        ),
        ("partial", partial()),
        ("unknown_methods", unknown_methods()),
        ("hostile", hostile()),
        ("big", big()),
    ];
    let scaling = Recipe {
        vars: vec![64],
        threads: vec![2, 4, 8, 16],
        cpus: 16,
        ..Recipe::default()
    };
    cases.push(("over-threads", scaling.make()));
    cases.push(("under-load", loaded(&[Mode::Near, Mode::Far])));
    let mut loads_only = loaded(&[Mode::Unknown]);
    loads_only.runs.retain(|run| run.load.is_some());
    cases.push(("loads-only", loads_only));
    cases
}

/// Makes throughput and latency results, like those of `compare`.
fn loaded(modes: &[Mode]) -> Results {
    let mut results = Recipe::default().make();
    results.runs.extend(under_load(modes, small_loads));
    results
}

fn one_cpu() -> Results {
    let mut results = Recipe {
        cpus: 1,
        modes: vec![Mode::Unknown],
        ..Recipe::default()
    }
    .make();
    results.machine.rtt_min_ns = None;
    results
}

/// Makes interrupted results: the last third was never run, and one method has only discarded
/// samples.
fn partial() -> Results {
    let mut results = Recipe::default().make();
    results.runs.truncate(results.runs.len() * 2 / 3);
    let last = results.runs.last_mut().unwrap();
    last.samples
        .iter_mut()
        .for_each(|s| s.mode = Mode::Discarded);
    *last = summed_up(last.clone());
    results
}

/// Makes results of methods and a workload that no report knows.
fn unknown_methods() -> Results {
    let mut methods = judged();
    methods.extend(["rcl", "h-synch"]);
    let mut results = Recipe {
        methods,
        ..Recipe::default()
    }
    .make();
    let mut others = Recipe {
        methods: vec!["psim", "mutex", "trust"],
        ..Recipe::default()
    }
    .make()
    .runs;
    others.iter_mut().for_each(|r| {
        r.workload = "queue".into();
        r.params.dist = String::new();
    });
    results.runs.extend(others);
    // The same method at the same point with another window is a line of its own.
    let mut narrow = results
        .runs
        .iter()
        .find(|r| r.method == "trust-then")
        .unwrap()
        .clone();
    narrow.params.window = 4;
    results.runs.push(narrow);
    results
}

/// Makes results whose text tries to be markup, and whose numbers are no numbers.
fn hostile() -> Results {
    let mut results = Recipe {
        methods: vec!["<b>`x`&\"'</script>", "trust"],
        ..Recipe::default()
    }
    .make();
    results.machine.model = "</title><script>alert(1)</script>".into();
    results.machine.unavailable = vec!["<img src=x>".into(), "]]>".into()];
    results.command = "corelay \u{1b}[31m <!-- ]]> -->".into();
    results.runs[0].notes = vec!["<i>note</i>".into()];
    results.runs[0].workload = "a\0b".into();
    results.runs[1].params.secs = 0.0;
    results.runs[2].correct = false;
    results.runs[3]
        .by_mode
        .get_mut(&Mode::Near)
        .unwrap()
        .median_mops = f64::NAN;
    results.runs[4].samples[0].mops = f64::INFINITY;
    results.runs[5].params.vars = 0;
    results.runs[6].samples.clear();
    results.runs[7].samples[0].per_thread.clear();
    results
}

fn big() -> Results {
    Recipe {
        cpus: 56,
        threads: vec![8, 56],
        vars: (0..=21).step_by(3).map(|p| 1 << p).collect(),
        samples: 6,
        ..Recipe::default()
    }
    .make()
}

#[test]
fn the_same_results_give_the_same_page() {
    let results = Recipe::default().make();
    assert_eq!(html(&results), html(&results));
    assert_eq!(verdict(&results), verdict(&results));
}

#[test]
fn the_terminal_gets_lines_that_fit() {
    for Case { name, verdict, .. } in CASES.iter() {
        let text = verdict.to_string();
        assert!(!text.contains('`'), "{name}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}

/// Run `cargo test -p corelay-lab-report --lib -- --ignored pages_to_look_at`, then open the
/// files.
#[test]
#[ignore = "writes pages for a person to look at"]
fn pages_to_look_at() {
    let folder = std::env::temp_dir().join("corelay-pages");
    std::fs::create_dir_all(&folder).unwrap();
    for Case {
        name,
        results,
        page,
        verdict,
    } in CASES.iter()
    {
        std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
        std::fs::write(folder.join(format!("{name}.svg")), picture(results)).unwrap();
        std::fs::write(folder.join(format!("{name}.txt")), verdict.to_string()).unwrap();
    }
    println!("{}", folder.display());
}
