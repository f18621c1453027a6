//! The course: its steps, its handout, and what is refused.

use crate::page;
use crate::program::{self, corelay, fine, refused, text};
use std::path::Path;

const WAYS: [&str; 6] = ["lost", "mutex", "spin", "cas", "atomic", "delegated"];

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

#[test]
fn a_race_loses_where_it_may_and_nowhere_else() {
    for threads in ["1", "2", "5"] {
        let flags = ["lab", "race", "--updates", "20000", "--json", "--threads"];
        let output = corelay(&[&flags[..], &[threads]].concat());
        let shown: serde_json::Value = serde_json::from_str(&fine(&output)).unwrap();
        assert_eq!(shown["step"], "race");
        assert_eq!(shown["wrong"].as_array().unwrap().len(), 0);
        let expected = shown["figures"]["expected"].as_u64().unwrap();
        assert_eq!(expected, threads.parse::<u64>().unwrap() * 20_000);
        let runs = shown["runs"].as_array().unwrap();
        let names: Vec<_> = runs
            .iter()
            .map(|run| run["method"].as_str().unwrap())
            .collect();
        assert_eq!(names, WAYS);
        for (run, name) in runs.iter().zip(WAYS) {
            assert_eq!(run["workload"], "course-race");
            let found = shown["figures"]["found"][name].as_array().unwrap();
            assert_eq!(found.len(), run["samples"].as_array().unwrap().len());
            let lost: u64 = found.iter().map(|n| expected - n.as_u64().unwrap()).sum();
            assert_eq!(run["correct"], lost == 0);
            if name != "lost" || threads == "1" {
                assert_eq!(lost, 0, "{run}");
            } else {
                let percent = lost as f64 / (expected * found.len() as u64) as f64 * 100.0;
                let told = shown["guess"]["measured"].as_f64().unwrap();
                assert!((told - percent).abs() < 1e-9, "{told} and {percent}");
            }
        }
    }
}

#[test]
fn a_part_of_the_ways_is_told_in_words() {
    let flags = "lab race --yes --updates 1000 --variants cas,lost";
    let said = fine(&corelay(&flags.split(' ').collect::<Vec<_>>()));
    for word in [
        "What to look at",
        "cas: store if",
        "lost: load",
        "from 7 to 8",
    ] {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
    assert!(!said.contains("mutex: one"), "{said}");
    // Nothing is asked where nothing can be lost.
    let flags = "lab race --updates 1000 --variants atomic";
    let output = corelay(&flags.split(' ').collect::<Vec<_>>());
    assert!(!fine(&output).contains("How many of their"));
    assert!(text(&output.stderr).is_empty());
}

/// The end of the input is no answer, and no hang either.
#[test]
fn a_guess_is_asked_for_on_standard_error() {
    use std::io::Write;
    use std::process::Stdio;
    let state = tempfile::tempdir().unwrap();
    for (answer, told) in [("12\n", "You guessed 12.0 %"), ("", "It was ")] {
        let mut child = program::command(state.path())
            .args(["lab", "race", "--updates", "1000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(answer.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(fine(&output).contains(told), "{}", text(&output.stdout));
        let asked = text(&output.stderr);
        assert!(asked.contains("Your guess, in %"), "{asked}");
    }
}

#[test]
fn sources_are_those_that_run() {
    let all = fine(&corelay(&["lab", "race", "--source"]));
    for name in WAYS {
        assert!(all.contains(&format!("/race/{name}.rs\n//! ")), "{name}");
    }
    let one = fine(&corelay(&["lab", "race", "--source", "cas"]));
    assert!(one.contains("compare_exchange_weak") && !one.contains("fetch_add"));
}

#[test]
fn the_course_names_its_steps() {
    let said = fine(&corelay(&["lab"]));
    for word in [
        "1  race",
        "2  list",
        "3  why",
        "4  timeline",
        "5  hash",
        "profile",
        "check",
        "greedy",
        "order",
        "--report",
    ] {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&fine(&corelay(&["lab", "--json"]))).unwrap();
    assert_eq!(
        (&json[0]["number"], &json[0]["name"]),
        (&1.into(), &"race".into())
    );
    assert!(json[0]["seconds"].as_u64().unwrap() > 0);
}

#[test]
fn a_handout_is_a_page_and_results_that_can_be_laid_over_others() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/handout");
    let output = corelay(&["lab", "--report", path(&out), "--small", "--json"]);
    let said = fine(&output);
    let page = page::with_pictures(&out.join("index.html"));
    let ids = page::ids(&page);
    let handout: serde_json::Value = serde_json::from_str(&said).unwrap();
    for step in ["race", "list", "why", "timeline", "hash"] {
        assert!(ids.contains(&format!("step-{step}")), "{step}: {ids:?}");
        let mut told = handout["course"].as_array().unwrap().iter();
        let told = told.find(|told| told["step"] == step).expect(step);
        assert_eq!(told["wrong"], serde_json::json!([]), "{step}");
    }
    assert!(ids.contains(&"race-throughput".to_owned()));
    // Every way and every rung is there, and right; but for the one that loses updates.
    let ways = WAYS.iter().map(|way| ("course-race", way));
    let rungs = crate::ladder::RUNGS
        .iter()
        .map(|rung| ("course-list", rung));
    for (workload, method) in ways.chain(rungs) {
        let is_it =
            |run: &&serde_json::Value| run["workload"] == workload && run["method"] == **method;
        let runs: Vec<_> = handout["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter(is_it)
            .collect();
        assert!(!runs.is_empty(), "{workload}: no run of {method}");
        let is_right = |run: &&serde_json::Value| run["correct"] == true;
        assert!(
            *method == "lost" || runs.iter().all(is_right),
            "{workload}: {method}"
        );
    }
    let results = out.join("results.json");
    assert_eq!(said, std::fs::read_to_string(&results).unwrap());
    let plot = folder.path().join("plot");
    let told = fine(&corelay(&[
        "plot",
        path(&results),
        path(&results),
        "--out",
        path(&plot),
    ]));
    for workload in ["course-race · ", "course-list · "] {
        assert!(told.contains(workload), "{workload} is missing in {told}");
    }
}

#[test]
fn bad_input_gets_one_sentence() {
    let race = |args: &[&str], words: &[&str]| {
        refused(&[&["lab", "race", "--yes"], args].concat(), words);
    };
    race(&["--threads", "0"], &["--threads", "1..=256"]);
    race(&["--threads", "-1"], &["--threads", "`-1`"]);
    race(&["--threads", "two"], &["--threads", "`two`"]);
    race(&["--threads", "257"], &["--threads", "1..=256"]);
    race(&["--updates", "0"], &["--updates", "1..=1000000000"]);
    race(&["--updates", "1.5"], &["--updates", "`1.5`"]);
    race(&["--updates", ""], &["--updates", "missing"]);
    race(&["--variants", "luck"], &["--variants", "`luck`", "mutex"]);
    race(&["--variants", ""], &["--variants", "empty"]);
    race(&["--variants", "cas,"], &["--variants", "missing"]);
    race(&["--variants", "all,cas"], &["--variants", "`all`"]);
    race(&["--source", "luck"], &["--source", "`luck`"]);
    race(&["--source", "--json"], &["--source", "--json"]);
    race(&["--source", "--threads", "2"], &["--source", "--threads"]);
    race(&["--report", "x"], &["--report"]);
    refused(&["lab", "--small"], &["--report"]);
    refused(&["lab", "sprint"], &["sprint"]);
    refused(&["lab", "--yes", "race"], &["--yes", "after the step"]);
    refused(&["lab", "--json", "order"], &["--json", "after the step"]);
}

#[test]
fn a_place_that_cannot_be_written_is_known_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    let below = file.join("folder");
    let report = |folder: &Path, words: &[&str]| {
        refused(&["lab", "--yes", "--report", path(folder)], words);
    };
    report(&file, &["--report", "is a file"]);
    report(&below, &["--report", "cannot be written"]);
    // A folder stands where the page should.
    std::fs::create_dir(folder.path().join("index.html")).unwrap();
    report(folder.path(), &["--report", "cannot be written"]);
    assert!(!folder.path().join("results.json").exists());
    refused(
        &["lab", "--report", path(folder.path()), "race"],
        &["--report", "no step"],
    );
    refused(&["lab", "--report"], &["--report"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
}
