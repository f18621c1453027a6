//! The ladder, why it does not scale, and its timeline, as users run them.

use crate::program::{self, corelay, fine, refused, text};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) const RUNGS: &[&str] = &[
    "biglock",
    "partitioned",
    "preallocated",
    "balanced",
    "padded",
    "percpu",
    "system",
    "mimalloc",
    #[cfg(all(feature = "jemalloc", unix))]
    "jemalloc",
    "pool",
    "delegated",
];

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&fine(&corelay(args))).unwrap()
}

/// Runs the program until its output has a sample that counts, which `has` finds: on a busy machine
/// all samples of a run may be discarded.
fn until<T>(args: &[&str], read: impl Fn(&str) -> T, has: impl Fn(&T) -> bool) -> T {
    let mut runs = (0..10).map(|_| read(&fine(&corelay(args))));
    runs.find(has)
        .expect("a run in ten has a sample that counts")
}

/// Returns text without its line breaks, by which a sentence may be cut.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_rung_is_right_on_any_number_of_threads() {
    for pages in ["touched", "untouched", "recycled"] {
        let told = json(&[
            "lab",
            "list",
            "--iterations",
            "5000",
            "--threads",
            "1,2,5",
            "--parts",
            "5,64",
            "--padding",
            "0,64",
            // The name that `--samples` had before.
            "--rounds",
            "1",
            "--pages",
            pages,
            "--json",
        ]);
        assert_eq!(told["wrong"], serde_json::json!([]), "{pages}");
        let mut seen: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for run in told["runs"].as_array().unwrap() {
            assert_eq!(run["correct"], true, "{run}");
            for sample in run["samples"].as_array().unwrap() {
                let each = sample["per_thread"].as_array().unwrap();
                let keys: u64 = each.iter().map(|n| n.as_u64().unwrap()).sum();
                assert_eq!(keys, 5000 * run["params"]["threads"].as_u64().unwrap());
            }
            if run["workload"] == "course-list" {
                let threads = run["params"]["threads"].as_u64().unwrap();
                seen.entry(run["method"].as_str().unwrap())
                    .or_default()
                    .push(threads);
            }
        }
        let all = RUNGS.iter().map(|&rung| (rung, vec![1, 2, 5]));
        assert_eq!(seen, all.collect());
    }
}

#[test]
fn the_text_has_a_row_for_each_rung_and_the_guess() {
    let all = [
        "lab",
        "list",
        "--iterations",
        "2000",
        "--samples",
        "3",
        "--yes",
    ];
    let said = until(&all, str::to_owned, |said| {
        said.contains("the source, 20 cores")
    });
    for rung in RUNGS {
        assert!(
            said.contains(&format!(" {rung}: ")),
            "{rung} is missing in {said}"
        );
    }
    assert!(said.contains("What to look at"));
    for printed in [
        "the source, 20 cores",
        "8.63 Mops",
        "271 → 360 ms",
        "4 to 5 ×",
    ] {
        assert!(said.contains(printed), "{printed} is missing in {said}");
    }
}

#[test]
fn runs_last_as_many_seconds_as_asked() {
    let text = "lab list --secs 0.03 --variants biglock,padded --threads 1,2 --samples 2 --parts 2 \
                --padding 128 --yes";
    let args: Vec<&str> = text.split_whitespace().collect();
    let said = fine(&corelay(&args));
    for word in ["about 0.0300 s", "Runs of about", "fit into the memory"] {
        assert!(said.contains(word), "{word} is missing in {said}");
    }
    let told = json(&[&args[..], &["--json"]].concat());
    assert_eq!(told["wrong"], serde_json::json!([]));
    for run in told["runs"].as_array().unwrap() {
        let once =
            run["params"]["keys"].as_u64().unwrap() * run["params"]["threads"].as_u64().unwrap();
        for sample in run["samples"].as_array().unwrap() {
            let each = sample["per_thread"].as_array().unwrap();
            let keys: u64 = each.iter().map(|n| n.as_u64().unwrap()).sum();
            // A run fills its lists once, or some more times.
            assert!(keys >= once && keys.is_multiple_of(once), "{run}");
        }
    }
}

#[test]
fn parts_of_the_ladder_are_combined_and_compared() {
    let list = "lab list --iterations 2000 --threads 1,2 --samples 1 --json --flags";
    let list: Vec<&str> = list.split_whitespace().collect();
    let told = json(&list);
    assert_eq!(told["wrong"], serde_json::json!([]));
    let gains = |told: &Value| -> Vec<[String; 3]> {
        let gains = told["figures"]["gains"].as_array().unwrap().iter();
        let gain = |gain: &Value| {
            ["part", "without", "with"].map(|name| gain[name].as_str().unwrap().to_owned())
        };
        gains.map(gain).collect()
    };
    // Each of m, l and a is added to four combinations, and p to none. A sample that does not count
    // may leave one out.
    assert!(gains(&told).len() <= 3 * 4 + 1, "{told}");
    for [part, without, with] in gains(&told) {
        let mut all: Vec<char> = without.replace("none", "").chars().collect();
        all.extend(part.chars());
        let order = |letter: &char| "pmla".find(*letter);
        all.sort_by_key(order);
        assert_eq!(all, with.chars().collect::<Vec<_>>());
    }
    let told = json(&[&list[..], &["lp,pm,pml, pm"]].concat());
    let methods = told["runs"].as_array().unwrap().iter();
    let methods: Vec<_> = methods.map(|run| run["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["pl", "pl", "pm", "pm", "pml", "pml"]);
    for [part, without, with] in gains(&told) {
        let pair = [&*part, &*without, &*with];
        assert!(
            pair == ["m", "pl", "pml"] || pair == ["l", "pm", "pml"],
            "{pair:?}"
        );
    }
}

#[test]
fn the_ballpark_stands_beside_the_figure() {
    let list = "lab list --iterations 2000 --samples 3 --threads 1,2 --variants biglock,padded --parts 2 \
                --padding 128 --yes";
    let list: Vec<&str> = list.split_whitespace().collect();
    let guess = [&list[..], &["--guess", "0.001"]].concat();
    let said = until(&guess, flowing, |said| said.contains("too low"));
    for words in [
        "You guessed 0.00100 Mops",
        "too low",
        "by a sum of costs",
        "node + lock + link",
    ] {
        assert!(said.contains(words), "{words} is missing in {said}");
    }
    let told = until(
        &[&list[..], &["--json"]].concat(),
        |said| serde_json::from_str::<Value>(said).unwrap(),
        |told| told["ballpark"]["measured"].is_number(),
    );
    assert!(told["ballpark"]["measured"].as_f64().unwrap() > 0.0);
    let ns = &told["figures"]["ballpark"]["ns"];
    for cost in ["lock", "node", "insert"] {
        assert!(ns[cost].as_f64().unwrap() > 0.0, "{ns}");
    }
    assert!(
        !told["figures"]["ballpark"]["estimates"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn without_perf_a_profile_says_so_and_exits_with_1() {
    let output = program::alone(&["lab", "profile", "--secs", "0.1"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(text(&output.stdout).is_empty());
    assert!(
        said.starts_with("error: nothing could be measured: "),
        "{said}"
    );
    assert!(said.contains("perf is not installed"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// perf may be missing here or not permitted: then a sentence says so.
#[test]
fn a_profile_names_functions_or_says_why_not() {
    let profile = "lab profile --secs 0.3 --iterations 20000 --threads 2 --json";
    let profile: Vec<&str> = profile.split_whitespace().collect();
    let output = corelay(&profile);
    if output.status.code() == Some(1) {
        let said = text(&output.stderr);
        assert!(said.contains("nothing could be measured: "), "{said}");
        return;
    }
    let told: Value = serde_json::from_str(&fine(&output)).unwrap();
    let profile = &told["figures"]["profile"];
    assert!(profile["samples"].as_u64().unwrap() > 0);
    let functions = profile["functions"].as_array().unwrap();
    let sum: u64 = functions
        .iter()
        .map(|f| f["samples"].as_u64().unwrap())
        .sum();
    assert_eq!(sum, profile["samples"].as_u64().unwrap());
}

/// The process that perf looks at inserts, checks and says nothing.
#[test]
fn the_profiled_process_is_right_with_every_rung() {
    for rung in RUNGS {
        let args = "lab profile --unprofiled --secs 0.01 --iterations 1000 --threads 2 --rung";
        let args: Vec<&str> = args.split_whitespace().chain([*rung]).collect();
        assert_eq!(fine(&corelay(&args)), "", "{rung}");
    }
}

#[test]
fn sources_are_shown_as_they_are_compiled() {
    for rung in RUNGS {
        let said = fine(&corelay(&["lab", "list", "--source", rung]));
        assert!(
            said.contains("pub(super) fn run(job: &Job) -> Ended"),
            "{rung}: {said}"
        );
    }
    let all = fine(&corelay(&["lab", "list", "--source"]));
    assert_eq!(all.matches("pub(super) fn run").count(), RUNGS.len());
}

#[test]
fn lost_time_is_split_into_parts() {
    let why = [
        "lab",
        "why",
        "--iterations",
        "5000",
        "--threads",
        "2",
        "--samples",
        "1",
        "--json",
    ];
    let told = until(
        &why,
        |said| serde_json::from_str::<Value>(said).unwrap(),
        |told| told["figures"]["printed"][0].is_object(),
    );
    assert_eq!(told["wrong"], serde_json::json!([]));
    let splits = told["figures"]["ns_of_a_thread_per_key"]
        .as_object()
        .unwrap();
    for (rung, split) in splits {
        let of = |part: &str| split[part].as_f64().unwrap();
        let all = [
            of("work"),
            of("locks"),
            of("nodes"),
            of("stragglers"),
            of("lines"),
        ];
        assert!(all.iter().all(|&ns| ns >= 0.0), "{rung}: {split}");
        assert!(all.iter().sum::<f64>() > 0.0, "{rung}: {split}");
        // Two have locks, and four have their nodes from before.
        let has_lock = ["biglock", "percpu"].contains(&&**rung);
        assert!(of("locks") == 0.0 || has_lock, "{rung}: {split}");
        let before = ["preallocated", "balanced", "padded", "percpu"].contains(&&**rung);
        assert!(!before || of("nodes") == 0.0, "{rung}: {split}");
    }
    assert!(!splits.is_empty());
    let printed = &told["figures"]["printed"][0]["source"];
    assert_eq!(printed, "malloc: more than 50 % of the CPU time");
}

#[test]
fn the_timeline_counts_what_the_tracer_loses() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (parts, events) in [(16, 1000), (4000, 16)] {
        let (parts_text, events_text) = (parts.to_string(), events.to_string());
        let told = json(&[
            "lab",
            "timeline",
            "--iterations",
            "4000",
            "--threads",
            "2",
            "--parts",
            &parts_text,
            "--events",
            &events_text,
            "--out",
            out,
            "--json",
        ]);
        assert_eq!(told["wrong"], serde_json::json!([]));
        let run = &told["figures"][1];
        let (mut all, mut lost) = (0, 0);
        for thread in run["threads"].as_array().unwrap() {
            all += thread["parts"].as_u64().unwrap();
            lost += thread["lost"].as_u64().unwrap();
        }
        assert_eq!((all, run["parts"].as_u64().unwrap()), (parts, parts));
        assert_eq!(lost > 0, parts > events, "{run}");
        for name in ["timeline-1.svg", "timeline-2.svg"] {
            let svg = std::fs::read_to_string(folder.path().join(name)).unwrap();
            roxmltree::Document::parse(&svg).expect("well-formed");
            assert_eq!(svg.contains("overwritten"), name.contains('2') && lost > 0);
        }
        for name in ["timeline-1.json", "timeline-2.json"] {
            let events = std::fs::read(folder.path().join(name)).unwrap();
            serde_json::from_slice::<Value>(&events).expect("well-formed");
        }
    }
}

#[test]
fn bad_input_is_refused_in_one_sentence() {
    for (args, words) in [
        (
            &["list", "--iterations", "0"] as &[_],
            &["--iterations", "0"] as &[_],
        ),
        (&["list", "--iterations", "many"], &["--iterations", "many"]),
        (&["list", "--iterations", "3"], &["--iterations 3", "4"]),
        (&["list", "--threads", "0"], &["--threads", "0"]),
        (&["list", "--threads", "-1"], &["--threads", "-1"]),
        (&["list", "--threads", "two"], &["--threads", "two"]),
        (
            &["list", "--threads", "4", "--parts", "3"],
            &["--parts 3", "--threads 4"],
        ),
        (
            &[
                "list",
                "--threads",
                "1",
                "--iterations",
                "10",
                "--parts",
                "11",
            ],
            &["--parts 11", "10 keys"],
        ),
        (
            &["list", "--padding", "100"],
            &["--padding", "100", "power of two"],
        ),
        (&["list", "--padding", "16"], &["--padding", "16", "32"]),
        (
            &["list", "--variants", "bigloc"],
            &["--variants", "bigloc", "biglock"],
        ),
        (
            &["list", "--source", "lock"],
            &["--source", "lock", "biglock"],
        ),
        (&["list", "--samples", "0"], &["--samples"]),
        (&["list", "--flags", "px"], &["--flags", "`x`", "pml"]),
        (&["list", "--flags", "pm,ma"], &["--flags", "`ma`", "add p"]),
        (&["list", "--flags", "pm,"], &["--flags", "missing"]),
        (&["list", "--flags", "pmm"], &["--flags", "twice"]),
        (
            &["list", "--flags", "pm", "--variants", "pool"],
            &["--flags", "--variants"],
        ),
        (
            &["list", "--flags", "pm", "--padding", "64"],
            &["--flags", "--padding"],
        ),
        (&["list", "--guess", "0"], &["--guess", "more than 0"]),
        (&["list", "--guess", "many"], &["--guess", "million keys"]),
        (
            &["list", "--guess", "5", "--threads", "2", "--yes"],
            &["--guess", "one thread"],
        ),
        (
            &["list", "--guess", "5", "--flags"],
            &["--guess", "--flags"],
        ),
        (&["list", "--secs", "0"], &["--secs", "more than 0"]),
        (&["list", "--secs", "-1"], &["--secs", "more than 0"]),
        (&["list", "--secs", "nan"], &["--secs", "more than 0"]),
        (&["list", "--secs", "soon"], &["--secs", "more than 0"]),
        (&["list", "--secs", "9999"], &["--secs", "3600"]),
        (
            &["list", "--secs", "1", "--iterations", "100"],
            &["--secs", "--iterations"],
        ),
        (&["profile", "--rung", "top"], &["--rung", "top", "biglock"]),
        (&["profile", "--secs", "0"], &["--secs", "more than 0"]),
        (&["profile", "--top", "0"], &["--top", "1..=10000"]),
        (&["why", "--threads", "0"], &["--threads"]),
        (&["why", "--iterations", "1e6"], &["--iterations", "1e6"]),
        (
            &["timeline", "--threads", "4", "--parts", "3"],
            &["--parts 3", "--threads 4"],
        ),
        (&["timeline", "--events", "1"], &["--events"]),
        (&["timeline", "--out", "/dev/null"], &["--out", "/dev/null"]),
    ] {
        refused(&[&["lab"], args].concat(), words);
    }
}

/// Nobody is there to answer: the step goes on without a guess.
#[test]
fn without_input_there_is_no_guess() {
    let quick = ["lab", "list", "--iterations", "100", "--samples", "1"];
    let state = tempfile::tempdir().unwrap();
    let output = program::command(state.path())
        .args(quick)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(fine(&output).contains("It was"));
    assert!(text(&output.stderr).contains("Your guess"));
}
