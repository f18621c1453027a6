//! Every workload with each of its methods, once: every run is right, and the results are whole for
//! a reader that knows only the schema. The program's own list says what there is, and its help
//! which flags make a run short, so that a workload or a method that is added is run, too.

use crate::page;
use crate::program::{corelay, fine, text};
use corelay_lab_bench::fibres::method::METHODS as RUNTIMES;
use serde_json::{Value, json};

/// Flags that make a run short. A workload gets those that its help has.
const SHORT: &[(&str, &str)] = &[
    ("--threads", "2"),
    ("--samples", "2"),
    ("--secs", "0.01"),
    ("--vars", "64"),
    // One load that every method bears, and one that none does.
    ("--load", "20000,10^9"),
    ("--fibres", "12"),
    ("--words", "64"),
    ("--iterations", "20"),
    ("--size", "16"),
    ("--tile", "4"),
    ("--buckets", "8"),
    ("--pages", "64"),
    ("--rows", "256"),
    // Which is on a disk, where that of temporary files may be in memory.
    ("--dir", env!("CARGO_TARGET_TMPDIR")),
    ("--requests", "1"),
    ("--shrink", "100"),
    ("--log", "1"),
    ("--boundary-scale", "1/8,1"),
];

/// Why a machine has no clock of its own for each core.
const NO_CLOCK: &str = "Ordo cannot be had here";

/// The keys of the results and of their parts.
const TOP: &[&str] = &["schema", "machine", "commit", "command", "runs"];
const RUN: &[&str] = &[
    "workload",
    "method",
    "params",
    "correct",
    "median_mops",
    "harmonic_mean_mops",
    "by_mode",
    "samples",
];
const PARAMS: &[&str] = &["threads", "servers", "vars", "window"];
const SAMPLE: &[&str] = &["mops", "mode", "rtt_ns", "per_thread", "cpu_s"];
const MODE: &[&str] = &["median_mops", "n"];
const LOAD: &[&str] = &["offered", "achieved", "generator", "limit", "late", "cpus"];
const PERCENTILES: &[&str] = &["p50", "p99", "p999", "max"];
const COUNTS: &[&str] = &["aborts", "uncertain"];
const ABORTS: &[&str] = &[
    "lock",
    "validation",
    "version",
    "phantom",
    "uncertain",
    "unknown",
];

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn name(value: &Value) -> &str {
    value["name"].as_str().unwrap()
}

/// The program's list: workloads, each with its methods.
fn catalogue() -> Vec<(String, Vec<Value>)> {
    let said = fine(&corelay(&["bench", "--list", "--json"]));
    let said: Value = serde_json::from_str(&said).unwrap();
    let entry = |entry: &Value| {
        let workload = entry["workload"].as_str().unwrap().to_owned();
        (workload, list(&entry["methods"]).to_vec())
    };
    let all: Vec<_> = list(&said).iter().map(entry).collect();
    assert!(!all.is_empty() && all.iter().all(|(_, methods)| !methods.is_empty()));
    all
}

/// A short run of all `methods`: its results, in which nothing is wrong. None if the machine lacks
/// the clock that they need.
///
/// # Errors
/// A short text that says what is wrong. The results as a whole are printed.
fn short(workload: &str, methods: &[Value]) -> Result<Option<Value>, String> {
    let names: Vec<&str> = methods.iter().map(name).collect();
    let listed = names.join(",");
    let help = fine(&corelay(&["bench", workload, "--help"]));
    let has = |flag: &str| help.contains(&format!("{flag} <"));
    let flags = SHORT.iter().filter(|(flag, _)| has(flag));
    let mut args = vec!["bench", workload, "--method", &listed, "--json", "-"];
    args.extend(flags.flat_map(|(flag, value)| [flag, value]));
    let output = corelay(&args);
    let refused = text(&output.stderr);
    if refused.contains(NO_CLOCK) {
        return Ok(None);
    }
    let said = text(&output.stdout);
    let wrong = |what: String| {
        println!("{workload}: {refused}{said}");
        Err(format!("{workload}: {what}"))
    };
    let Ok(results) = serde_json::from_str::<Value>(&said) else {
        let last = refused.lines().next_back();
        return wrong(format!("no results: {}", last.unwrap_or_default()));
    };
    let found = complaints(&results, &names);
    if !found.is_empty() {
        return wrong(found.join("; "));
    }
    // Not all runtimes complete `transfer`; then the program has no figure of them.
    let runs = list(&results["runs"]).iter();
    let is_whole = runs.flat_map(|run| list(&run["samples"])).all(is_complete);
    let code = if is_whole { 0 } else { 1 };
    if output.status.code() != Some(code) {
        return wrong(format!("{}, not {code}", output.status));
    }
    Ok(Some(results))
}

/// Whether a sample's fibres came to their end within its time limit. True for other samples.
fn is_complete(sample: &Value) -> bool {
    sample["fibres"]["completed"] != json!(false)
}

/// The faults of results in which each of `methods` must have run, one sentence each.
fn complaints(results: &Value, methods: &[&str]) -> Vec<String> {
    let mut found = missing(results, TOP, "results");
    let runs = list(&results["runs"]);
    for method in methods {
        if !runs.iter().any(|run| run["method"] == *method) {
            found.push(format!("no run of {method}"));
        }
    }
    for run in runs {
        let (method, params) = (&run["method"], &run["params"]);
        let name = label(run);
        found.extend(missing(run, RUN, &name));
        found.extend(missing(params, PARAMS, &name));
        // Only the program of somebody else may be absent.
        let is_peer = RUNTIMES.iter().any(|m| *method == *m.name() && !m.is_own());
        if is_peer && run["not_installed"].is_string() {
            continue;
        }
        let is_small = params["boundary_scale"].as_f64().is_some_and(|by| by < 1.0);
        if is_small != (params["no_longer_correct"] == true) {
            found.push(format!("{name}: marked wrongly"));
        }
        if run["correct"] != true && !is_small {
            let last_note = list(&run["notes"]).last().and_then(Value::as_str);
            let why = last_note.unwrap_or_default();
            found.push(format!("{name}: not correct: {why}"));
        }
        found.extend(complaints_about_samples(run, &name));
        found.extend(complaints_about_load(run, &name));
    }
    found
}

/// A run's method, and the parameters in which its runs differ.
fn label(run: &Value) -> String {
    let method = run["method"].as_str().unwrap_or("?");
    let differ = ["load", "boundary_scale"].iter();
    let params = differ.filter_map(|key| Some(format!(" {key} {}", run["params"].get(key)?)));
    method.to_owned() + &params.collect::<String>()
}

/// A figure where samples were kept, and all that a sample has.
fn complaints_about_samples(run: &Value, name: &str) -> Vec<String> {
    let samples = list(&run["samples"]);
    let mut found = Vec::new();
    if samples.is_empty() {
        found.push(format!("{name}: no samples"));
    }
    let is_figure = |key: &str| run[key].as_f64().is_some_and(|mops| mops > 0.0);
    let has_figure = match run.get("load") {
        None => is_figure("median_mops") && is_figure("harmonic_mean_mops"),
        Some(_) => run.get("latency_ns").is_some(),
    };
    if has_kept(run) && run["correct"] == true && !has_figure {
        found.push(format!("{name}: samples were kept, but there is no figure"));
    }
    for sample in samples {
        found.extend(missing(sample, SAMPLE, name));
        if let Some(counts) = sample.get("counts") {
            found.extend(missing(counts, COUNTS, name));
            found.extend(missing(&counts["aborts"], ABORTS, name));
        }
    }
    for summary in run["by_mode"]
        .as_object()
        .into_iter()
        .flat_map(|by| by.values())
    {
        found.extend(missing(summary, MODE, name));
    }
    found
}

/// Whether a sample counts. One in which nothing was done may be too short for its load. A run has no
/// figure if the fibres of any sample were stopped at their time limit.
fn has_kept(run: &Value) -> bool {
    let samples = list(&run["samples"]);
    let is_seen = |sample: &Value| {
        sample["mode"] != "discarded" && (run.get("load").is_none() || sample["mops"] != 0.0)
    };
    samples.iter().all(is_complete) && samples.iter().any(is_seen)
}

/// Latencies that ascend, and the load that none bears is not said to be borne.
fn complaints_about_load(run: &Value, name: &str) -> Vec<String> {
    let Some(load) = run.get("load") else {
        return Vec::new();
    };
    let mut found = missing(load, LOAD, name);
    if !has_kept(run) {
        return found;
    }
    let latency = &run["latency_ns"];
    found.extend(missing(latency, PERCENTILES, name));
    let ascending = PERCENTILES.iter().map(|key| latency[key].as_u64());
    if !ascending.is_sorted() {
        found.push(format!("{name}: latencies do not ascend"));
    }
    if load["offered"].as_f64() >= Some(1e9) && load["limit"] == "none" {
        found.push(format!(
            "{name}: a load that none bears is said to be borne"
        ));
    }
    found
}

fn missing(value: &Value, keys: &[&str], what: &str) -> Vec<String> {
    let lacks = keys.iter().filter(|key| value.get(key).is_none());
    lacks.map(|key| format!("{what}: no `{key}`")).collect()
}

/// Returns what is wrong instead of panicking, so that no backtrace follows it.
#[test]
fn the_methods_of_one_workload_are_listed() {
    let said = fine(&corelay(&["bench", "hash", "--list"]));
    assert!(
        said.starts_with("hash\n") && said.contains("\n  dashmap "),
        "{said}"
    );
    assert!(
        !said.contains("fetch-add") && !said.contains("lazy-list\n"),
        "{said}"
    );
}

#[test]
fn every_method_of_every_workload_is_right() -> Result<(), Vec<String>> {
    let mut wrong = Vec::new();
    let mut catalogue = catalogue();
    // It asks for a server instead of methods: see `cache`.
    catalogue.retain(|(workload, _)| workload != "cache");
    for (workload, methods) in catalogue {
        let results = match short(&workload, &methods) {
            Ok(Some(results)) => results,
            Ok(None) => {
                println!("{workload}: {NO_CLOCK}");
                continue;
            }
            Err(what) => {
                wrong.push(what);
                continue;
            }
        };
        for run in list(&results["runs"]) {
            assert_eq!(run["workload"], workload);
        }
        // Each method at each load, or at none.
        let loads = |run: &&Value| run.get("load").is_some();
        let loaded = list(&results["runs"]).iter().filter(loads).count();
        if loaded != 0 && loaded != 2 * methods.len() {
            wrong.push(format!("{workload}: {loaded} loads"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

#[test]
fn help_names_every_method_of_every_workload() {
    for (workload, methods) in catalogue() {
        let help = fine(&corelay(&["bench", &workload, "--help"]));
        let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == ':';
        let words: Vec<&str> = help.split(|c| !is_part(c)).collect();
        for method in &methods {
            let method = name(method);
            assert!(words.contains(&method), "{workload} {method}: {help}");
        }
    }
}

#[test]
#[ignore = "it takes as long as it says, and its figures need the shipped build"]
fn compare_leaves_a_page_and_results() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    fine(&corelay(&[
        "compare",
        "--quick",
        "--out",
        out.to_str().unwrap(),
    ]));
    page::with_pictures(&out.join("index.html"));
    let results = std::fs::read_to_string(out.join("results.json")).unwrap();
    let results: Value = serde_json::from_str(&results).unwrap();
    let all = catalogue();
    let (_, methods) = all.iter().find(|(name, _)| name == "fetch-add").unwrap();
    let compared = methods.iter().filter(|method| method["compared"] == true);
    let compared: Vec<&str> = compared.map(name).collect();
    assert!(!compared.is_empty());
    // One CPU leaves no place for dedicated trustees.
    let has_place = results["machine"]["cpus"].as_u64() >= Some(2);
    let wanted = if has_place { &compared[..] } else { &[] };
    assert_eq!(complaints(&results, wanted), [""; 0]);
    assert!(!list(&results["runs"]).is_empty());
}

/// Results as the program writes them pass, and spoilt ones do not.
#[test]
fn bad_results_are_found() {
    #[track_caller]
    fn finds(good: &Value, spoil: impl Fn(&mut Value), wanted: &str) {
        assert_eq!(complaints(good, &["mutex", "trust"]), [""; 0]);
        let mut bad = good.clone();
        spoil(&mut bad);
        let found = complaints(&bad, &["mutex", "trust"]);
        assert!(
            found.iter().any(|what| what.contains(wanted)),
            "{wanted}: {found:?}"
        );
    }
    fn gone(value: &mut Value, key: &str) {
        assert!(
            value.as_object_mut().unwrap().remove(key).is_some(),
            "{key}"
        );
    }
    let methods = [json!({"name": "mutex"}), json!({"name": "trust"})];
    let mut good = short("fetch-add", &methods).unwrap().unwrap();
    // Whatever the machine did meanwhile, a sample counts.
    let run = &mut good["runs"][0];
    run["samples"][0]["mode"] = json!("far");
    (run["median_mops"], run["harmonic_mean_mops"]) = (json!(1.0), json!(1.0));
    run["by_mode"]["far"] = json!({"median_mops": 1.0, "n": 1});
    finds(&good, |r| gone(r, "commit"), "commit");
    finds(&good, |r| gone(&mut r["runs"][1], "by_mode"), "by_mode");
    finds(
        &good,
        |r| gone(&mut r["runs"][0]["params"], "window"),
        "window",
    );
    finds(
        &good,
        |r| gone(&mut r["runs"][0]["samples"][0], "rtt_ns"),
        "rtt_ns",
    );
    finds(
        &good,
        |r| gone(&mut r["runs"][0]["by_mode"]["far"], "n"),
        "`n`",
    );
    finds(
        &good,
        |r| r["runs"][1]["correct"] = json!(false),
        "not correct",
    );
    finds(
        &good,
        |r| r["runs"][0]["median_mops"] = json!(0),
        "no figure",
    );
    finds(
        &good,
        |r| r["runs"][0]["method"] = json!("x"),
        "no run of mutex",
    );
    finds(&good, |r| r["runs"][0]["samples"] = json!([]), "no samples");
    let absent = |r: &mut Value| {
        r["runs"][0]["not_installed"] = json!("gone");
        r["runs"][0]["samples"] = json!([]);
    };
    finds(&good, absent, "no samples");
    let scale = |r: &mut Value| r["runs"][0]["params"]["boundary_scale"] = json!(0.5);
    finds(&good, scale, "marked");
    let uncounted = |r: &mut Value| r["runs"][0]["samples"][0]["counts"] = json!({"aborts": {}});
    finds(&good, uncounted, "uncertain");

    let mut good = short("latency", &methods).unwrap().unwrap();
    let run = &mut good["runs"][0];
    run["samples"][0]["mode"] = json!("far");
    run["latency_ns"] = json!({"p50": 1, "p99": 2, "p999": 2, "max": 9});
    finds(
        &good,
        |r| gone(&mut r["runs"][0]["load"], "achieved"),
        "achieved",
    );
    finds(
        &good,
        |r| r["runs"][0]["latency_ns"]["p99"] = json!(10),
        "ascend",
    );
    let borne = |r: &mut Value| {
        r["runs"][0]["load"]["offered"] = json!(1e9);
        r["runs"][0]["load"]["limit"] = json!("none");
    };
    finds(&good, borne, "said to be borne");
}

#[test]
fn run_with_a_stopped_sample_needs_no_figure() {
    let sample = |mops: f64, completed: bool| {
        json!({"mops": mops, "mode": "near", "rtt_ns": 1, "per_thread": [], "cpu_s": 1,
            "fibres": {"completed": completed}})
    };
    let found = |last| {
        let run = json!({
            "correct": true, "median_mops": 0.0, "harmonic_mean_mops": 0.0, "by_mode": {},
            "samples": [sample(0.1, true), last],
        });
        complaints_about_samples(&run, "may")
    };
    assert_eq!(found(sample(0.0, false)), [""; 0]);
    assert_eq!(found(sample(0.1, true)).len(), 1);
}
