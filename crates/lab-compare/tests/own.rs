//! A user's own structure goes through every method that fits it, and its report uses its words.

use corelay_lab_compare::schema::{Results, Run};
use corelay_lab_compare::{Comparison, html, verdict};
use corelay_lab_measure::method::{METHODS, any};
use corelay_lab_measure::workload::fetch_add::FetchAdd;
use std::process::Command;
use std::time::Duration;

/// The methods that `corelay compare` tells of, as far as they take any workload.
fn methods() -> impl Iterator<Item = &'static str> {
    let compared = any::<FetchAdd>().into_iter();
    let compared = compared.filter(|entry| entry.compared.is_some());
    compared.map(|entry| entry.name())
}

/// Long enough to set up and sample all methods unless the machine is too busy.
const MOMENT: Duration = Duration::from_secs(5);

/// A limit that is never reached: wrong methods are not sampled.
const LONG: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Tape {
    written: u64,
    last: [u64; 3],
}

impl Tape {
    fn write(&mut self, mark: u64) -> u64 {
        self.last.rotate_right(1);
        self.written += 1;
        std::mem::replace(&mut self.last[0], mark)
    }
}

fn of(results: &Results, method: &str) -> Vec<Run> {
    let runs = results.runs.iter().filter(|run| run.method == method);
    runs.cloned().collect()
}

#[test]
fn every_method_that_fits_is_measured_and_right() {
    let results = Comparison::of("tape <3>", Tape::default)
        .operation(|tape, random| tape.write(random.below(10)))
        .counted(|tape| tape.written)
        .check(|tape| match tape.last.iter().max() {
            Some(0..10) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .vars([2, 1, 2])
        .measure(MOMENT)
        .unwrap();
    for method in methods() {
        let runs = of(&results, method);
        let left_out = |why: &String| why.starts_with(method);
        let why = results.machine.unavailable.iter().any(left_out);
        assert!(
            !runs.is_empty() || why,
            "{method} did not run, for no reason"
        );
        for run in runs {
            assert!(run.correct, "{run:?}");
            assert_eq!(run.workload, "tape <3>");
            assert!([1, 2].contains(&run.params.vars));
        }
    }
    assert!(of(&results, "atomic").is_empty());

    let page = html(&results);
    assert!(page.contains("<h1>Which way of sharing wins for tape &lt;3&gt;?</h1>"));
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(&page, options).unwrap();
    let text = verdict(&results).to_string();
    assert!(text.starts_with("tape <3>: "), "{text}");
    assert!(text.contains("TAPE <3>, UNIFORM"), "{text}");
    // The page explains `atomic` where one points at its name.
    let explained = format!(" title=\"{}\"", METHODS[0].what.replace('\'', "&#39;"));
    let page = page
        .replace(&explained, "")
        .replace(&explained.replace("&#39;", "'"), "");
    for told in [&page, &text] {
        // The reason for the absence of `atomic` stands in one place, and nothing else mentions
        // it.
        let about: Vec<_> = told.match_indices("atomic").collect();
        assert_eq!(about.len(), 1, "{about:?}\n{text}");
        assert!(told.contains("does not fit"));
        for foreign in ["fetch", "one instruction", "64 bytes", "shading"] {
            assert!(!told.contains(foreign), "{foreign}: {text}");
        }
    }
}

#[test]
fn a_wrong_result_is_reported_without_a_figure() {
    // `counted` returns half of the operations that the object has seen.
    let results = Comparison::of("liar", || 0u64)
        .operation(|n, _| *n += 1)
        .counted(|n| n / 2)
        .vars([1])
        .measure(LONG)
        .unwrap();
    let wrong = |results: &Results, what: &str| {
        for method in methods() {
            for run in of(results, method) {
                assert!(!run.correct && run.by_mode.is_empty() && run.median_mops == 0.0);
                assert!(run.latency_ns.is_none());
                let said = |n: &String| n.starts_with("wrong result: ") && n.contains(what);
                assert!(run.notes.iter().any(said), "{:?}", run.notes);
            }
            assert!(!of(results, method).is_empty(), "{method} did not run");
        }
        let page = html(results);
        assert!(page.contains("wrong result: no figure") && page.contains(what));
        assert!(verdict(results).to_string().contains(what));
    };
    wrong(&results, "but the variables sum up to");

    let results = Comparison::of("grows", Vec::new)
        .operation(|list, random| list.push(random.next()))
        .check(|list| match list.len() {
            0 => Ok(()),
            _ => Err("there is something in it".to_owned()),
        })
        .vars([1])
        .measure(LONG)
        .unwrap();
    wrong(&results, "there is something in it");
}

#[test]
fn without_a_check_the_report_says_so() {
    let results = Comparison::of("unchecked", || 0u64)
        .operation(|n, random| *n ^= random.next())
        .vars([1])
        .measure(Duration::from_millis(500))
        .unwrap();
    assert!(results.runs.iter().all(|run| run.correct));
    assert!(html(&results).contains("would not be noticed"));
}

#[test]
#[should_panic(expected = "a comparison needs a name of its own, not `fetch-add`")]
fn a_name_of_the_labs_own_workloads_panics() {
    let _ = Comparison::of("fetch-add", || ());
}

/// The example, a program like `corelay compare`. `cargo test -p corelay-lab-compare` has built it. Here cargo would build
/// all dependencies again, with the features that this package alone asks for.
fn example() -> Command {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let program = profile.join("examples/compare_your_own");
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    let how = "`cargo build -p corelay-lab-compare --example compare_your_own` makes it";
    assert!(program.exists(), "{}: {how}", program.display());
    Command::new(program)
}

#[test]
fn the_example_reads_flags() {
    let refused = example().arg("--quik").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--quik"));
}

#[test]
#[ignore = "it takes a quarter of a minute"]
fn the_example_leaves_page_and_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = example();
    command.args(["--quick", "--out"]).arg(folder.path());
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).starts_with("lru cache: "));
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(page.contains("wins for lru cache?"));
    let data = std::fs::read_to_string(folder.path().join("results.json")).unwrap();
    let results: Results = serde_json::from_str(&data).unwrap();
    for method in methods() {
        let runs = of(&results, method);
        assert!(!runs.is_empty() && runs.iter().all(|run| run.correct));
    }
    let command = &results.command;
    assert!(command.starts_with("compare_your_own --quick"), "{command}");
}
