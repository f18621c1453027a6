//! The page and the verdict on made-up results.

mod judgement;
mod latency;
mod page;

use super::synthetic::{ALL, Recipe, small_loads, small_machine, summed_up, under_load};
use super::verdict::{Comparison, Kind, Need, Outcome};
use super::{html, picture, verdict};
use corelay_lab_measure::schema::{Mode, Results};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What all tests read: results of every kind, their pages and verdicts, made once.
struct Dish {
    name: &'static str,
    results: Results,
    page: String,
    verdict: super::Verdict,
}

static MENU: LazyLock<Vec<Dish>> = LazyLock::new(|| {
    let dish = |(name, results): (&'static str, Results)| {
        let (page, verdict) = (html(&results), verdict(&results));
        Dish {
            name,
            results,
            page,
            verdict,
        }
    };
    menu().into_iter().map(dish).collect()
});

/// Results of every kind that a page must survive.
fn menu() -> Vec<(&'static str, Results)> {
    let mut menu = vec![
        ("small", Recipe::default().cook()),
        (
            "no-far",
            Recipe {
                modes: vec![Mode::Near],
                ..Recipe::default()
            }
            .cook(),
        ),
        ("one-cpu", one_cpu()),
        (
            "empty",
            Results {
                runs: Vec::new(),
                ..Recipe::default().cook()
            },
        ),
        (
            "few-samples",
            Recipe {
                samples: 2,
                ..Recipe::default()
            }
            .cook(),
        ),
        (
            "single-point",
            Recipe {
                vars: vec![64],
                ..Recipe::default()
            }
            .cook(),
        ),
        ("partial", partial()),
        ("strangers", strangers()),
        ("hostile", hostile()),
        ("big", big()),
    ];
    let scaling = Recipe {
        vars: vec![64],
        threads: vec![2, 4, 8, 16],
        cpus: 16,
        ..Recipe::default()
    };
    menu.push(("over-threads", scaling.cook()));
    menu.push(("under-load", loaded(&[Mode::Near, Mode::Far])));
    let mut loads_only = loaded(&[Mode::Unknown]);
    loads_only.runs.retain(|run| run.load.is_some());
    menu.push(("loads-only", loads_only));
    menu
}

/// Throughput and latency, as `compare` leaves them.
fn loaded(modes: &[Mode]) -> Results {
    let mut results = Recipe::default().cook();
    results.runs.extend(under_load(modes, small_loads));
    results
}

fn one_cpu() -> Results {
    let mut results = Recipe {
        cpus: 1,
        modes: vec![Mode::Unknown],
        ..Recipe::default()
    }
    .cook();
    results.machine.rtt_min_ns = None;
    results
}

/// Interrupted: the last third was never run, and one method has only discarded samples.
fn partial() -> Results {
    let mut results = Recipe::default().cook();
    results.runs.truncate(results.runs.len() * 2 / 3);
    let last = results.runs.last_mut().unwrap();
    last.samples
        .iter_mut()
        .for_each(|s| s.mode = Mode::Discarded);
    *last = summed_up(last.clone());
    results
}

/// Methods and a workload that no report knows.
fn strangers() -> Results {
    let mut methods = ALL.to_vec();
    methods.extend(["rcl", "flat-combining"]);
    let mut results = Recipe {
        methods,
        ..Recipe::default()
    }
    .cook();
    let mut others = Recipe {
        methods: vec!["cc-synch", "mutex", "trust"],
        ..Recipe::default()
    }
    .cook()
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

/// Text that tries to be markup, and numbers that are none.
fn hostile() -> Results {
    let mut results = Recipe {
        methods: vec!["<b>`x`&\"'</script>", "trust"],
        ..Recipe::default()
    }
    .cook();
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
    .cook()
}

#[test]
fn the_same_results_give_the_same_page() {
    let results = Recipe::default().cook();
    assert_eq!(html(&results), html(&results));
    assert_eq!(verdict(&results), verdict(&results));
}

#[test]
fn the_terminal_gets_lines_that_fit() {
    for Dish { name, verdict, .. } in MENU.iter() {
        let text = verdict.to_string();
        assert!(!text.contains('`'), "{name}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}

/// `cargo test -p corelay-lab --lib -- --ignored pages_to_look_at`, then open the files.
#[test]
#[ignore = "writes pages for a person to look at"]
fn pages_to_look_at() {
    let folder = std::env::temp_dir().join("corelay-pages");
    std::fs::create_dir_all(&folder).unwrap();
    for Dish {
        name,
        results,
        page,
        verdict,
    } in MENU.iter()
    {
        std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
        std::fs::write(folder.join(format!("{name}.svg")), picture(results)).unwrap();
        std::fs::write(folder.join(format!("{name}.txt")), verdict.to_string()).unwrap();
    }
    println!("{}", folder.display());
}
