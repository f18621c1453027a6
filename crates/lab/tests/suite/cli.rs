//! The program as its users meet it: exit codes, one clear sentence, whole files.

use crate::program::{corelay, fine, refused, text};
use corelay_lab_measure::method::METHODS;
use corelay_lab_measure::schema::{Limit, Mode, Results, SCHEMA};
use std::path::Path;

#[test]
fn bad_input_gets_one_sentence_that_names_the_flag() {
    let bench = |flags: &[&'static str], words: &[&str]| {
        let args: Vec<&str> = ["bench", "fetch-add"]
            .iter()
            .chain(flags)
            .copied()
            .collect();
        refused(&args, words);
    };
    bench(&["--threads", "0"], &["--threads", "1..=1024"]);
    bench(&["--threads", "2000"], &["--threads", "1..=1024"]);
    bench(&["--threads", ""], &["--threads", "empty"]);
    bench(&["--threads", "4..1"], &["--threads", "reversed"]);
    bench(&["--threads", "1,two"], &["--threads", "`two`"]);
    bench(
        &["--method", "channel", "--threads", "1"],
        &["--threads 1", "channel", "actor"],
    );
    bench(&["--servers", "0"], &["--servers"]);
    bench(
        &["--servers", "2", "--threads", "2"],
        &["--threads 2", "--servers 2", "trust"],
    );
    bench(
        &[
            "--servers",
            "4",
            "--threads",
            "8,3",
            "--method",
            "mutex,trust-post",
        ],
        &["--threads 3", "--servers 4", "trust-post"],
    );
    bench(&["--vars", "0"], &["--vars"]);
    bench(&["--vars", "2^40"], &["--vars"]);
    bench(&["--vars", "2^5..2^2"], &["--vars", "reversed"]);
    bench(
        &["--method", "magic"],
        &["--method", "`magic`", "atomic", "tokio"],
    );
    bench(&["--method", ""], &["--method", "empty"]);
    bench(
        &["--method", "atomic,all"],
        &["--method", "`all` stands alone"],
    );
    bench(
        &["--method", "async-lines:0"],
        &["--method", "`async-lines:0`", "1 to 1024"],
    );
    bench(&["--method", "ffwd:2"], &["--method", "`ffwd:2`"]);
    refused(&["lab", "order", "--lines", "0"], &["--lines", "1..=512"]);
    refused(&["lab", "order", "--requests", "0"], &["--requests"]);
    let lines = |flag: &'static str, value: &'static str, words: &[&str]| {
        let words = [&[flag], words].concat();
        refused(&["model", "lines", flag, value], &words);
    };
    lines("--machine", "4x16", &["sockets x cores"]);
    lines("--machine", "4x0x2", &["1 to 512"]);
    lines("--machine", "4x-1x2", &["sockets x cores"]);
    lines("--machine", "0x1x1", &["1 to 512"]);
    lines("--machine", "64x64x64", &["1 to 512"]);
    lines("--clients", "0", &["1..=256"]);
    lines("--clients", "257", &["1..=256"]);
    lines("--clients", "4,300", &["1..=256"]);
    lines(
        "--workload",
        "tree",
        &["`tree`", "list, queue, stack, hash"],
    );
    lines("--workload", "list,queue", &["`list,queue`"]);
    lines("--size", "0", &["1..=16384"]);
    lines("--size", "16385", &["1..=16384"]);
    lines("--size", "-1", &["`-1`"]);
    lines("--size", "64", &["--size 64", "--workload fetch-add"]);
    let unserved = ["model", "lines", "--workload", "list", "--method", "atomic"];
    refused(&unserved, &["--method atomic", "--workload list"]);
    lines("--method", "magic", &["`magic`", "trust-then"]);
    lines(
        "--method",
        "mutex",
        &["`mutex`", "not corelay's own source"],
    );
    lines("--method", "mcs,all", &["`all` stands alone"]);
    lines("--ops", "0", &["1..=100000"]);
    lines("--work", "-1", &["`-1`"]);
    lines("--pin", "none", &["a hardware thread of its own"]);
    lines("--pin", "1,1", &["a hardware thread of its own"]);
    lines("--pin", "500", &["500"]);
    lines("--svg", "/no/such/folder/a.svg", &["cannot be written"]);
    refused(&["model", "cows"], &["cows"]);
    bench(&["--method", "mutex,"], &["--method", "missing"]);
    bench(&["--secs", "0"], &["--secs"]);
    bench(&["--secs", "-1"], &["--secs"]);
    bench(&["--secs", "NaN"], &["--secs"]);
    bench(&["--samples", "0"], &["--samples"]);
    bench(&["--samples", "few"], &["--samples", "`few`"]);
    bench(&["--window", "0"], &["--window", "1..=65536"]);
    bench(&["--window", "-1"], &["--window", "`-1`"]);
    bench(&["--window", "65537"], &["--window", "1..=65536"]);
    bench(
        &["--pin", "sideways"],
        &["--pin", "sideways", "cores-first"],
    );
    bench(&["--pin", "60000"], &["--pin", "60000"]);
    bench(&["--dist", "normal"], &["--dist", "uniform"]);
    bench(&["--dist", "zipf:0"], &["--dist", "θ"]);
    bench(&["--seed", "x"], &["--seed", "`x`"]);
    bench(&["--seed", "2^64"], &["--seed", "`2^64`"]);
    refused(&["reach", "delegate", "--blocks", "-5"], &["--blocks"]);
    refused(&["reach", "flat", "--minutes", "9"], &["--minutes"]);
    refused(&["reach", "flat", "--out", "x"], &["--out"]);
    refused(&["reach", "--limit", "9"], &["AREA"]);
    refused(&["reach", "--minutes", "4"], &["--minutes", "5"]);
    refused(&["reach", "--out", "/dev/null/x"], &["--out"]);
    refused(
        &["reach", "everything"],
        &["everything", "delegate", "flat"],
    );
    bench(&["--no-such-flag"], &["--no-such-flag"]);
    refused(&["bench"], &["fetch-add", "latency"]);
    refused(&["bench", "quicksort"], &["quicksort", "fetch-add"]);
    refused(&["juggle"], &["juggle"]);
    refused(&["compare", "--no-such-flag"], &["--no-such-flag"]);
}

#[test]
fn bad_input_under_load_gets_one_sentence_that_names_the_flag() {
    let bench = |flags: &[&'static str], words: &[&str]| {
        let args: Vec<&str> = ["bench", "latency"].iter().chain(flags).copied().collect();
        refused(&args, words);
    };
    bench(&["--load", "0"], &["--load", "1..=1000000000"]);
    bench(&["--load", "10^10"], &["--load", "1..=1000000000"]);
    bench(&["--load", "-5"], &["--load", "`-5`"]);
    bench(&["--load", "1e6"], &["--load", "`1e6`"]);
    bench(&["--load", "100.5"], &["--load", "`100.5`"]);
    bench(&["--load", ""], &["--load", "empty"]);
    bench(&["--load", "1000,,2000"], &["--load", "missing"]);
    bench(&["--load", "10^6..10^4"], &["--load", "reversed"]);
    bench(&["--load", "sweep,100"], &["--load", "`sweep`"]);
    bench(&["--method", "magic"], &["--method", "`magic`", "mutex"]);
    bench(&["--method", ""], &["--method", "empty"]);
    bench(
        &["--method", "all,mutex"],
        &["--method", "`all` stands alone"],
    );
    bench(&["--method", "trust-post"], &["--method", "no answer"]);
    bench(&["--method", "channel-pipelined"], &["--method", "batches"]);
    bench(&["--threads", "0"], &["--threads", "1..=1024"]);
    bench(
        &["--servers", "2", "--threads", "2"],
        &["--threads 2", "--servers 2", "trust"],
    );
    bench(
        &["--method", "channel", "--threads", "1"],
        &["--threads 1", "actor"],
    );
    bench(&["--window", "0"], &["--window", "1..=65536"]);
    bench(&["--samples", "0"], &["--samples"]);
    bench(&["--secs", "NaN"], &["--secs"]);
    bench(&["--vars", "2^40"], &["--vars"]);
    bench(&["--json", "no/such/folder.json"], &["--json"]);
}

#[test]
fn places_that_cannot_be_written_are_refused_before_measuring() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // What is refused for another flag leaves no file either; that is counted below.
    for (workload, flag, value) in [
        ("fetch-add", "--threads", "0"),
        ("fetch-add", "--method", "magic"),
        ("fetch-add", "--secs", "0"),
        ("latency", "--load", "0"),
    ] {
        let json = inside("results.json");
        refused(&["bench", workload, flag, value, "--json", &json], &[flag]);
    }
    refused(
        &["bench", "fetch-add", "--json", &inside("no/such/file.json")],
        &["--json", "there is no folder "],
    );
    refused(
        &[
            "bench",
            "fetch-add",
            "--json",
            folder.path().to_str().unwrap(),
        ],
        &["--json"],
    );
    // A file where the folder should be; root may write anywhere else.
    std::fs::write(inside("file"), "mine").unwrap();
    refused(&["compare", "--out", &inside("file")], &["--out", "a file"]);
    #[cfg(unix)]
    refused(&["compare", "--out", "/dev/null"], &["--out", "a file"]);
    refused(&["compare", "--out", &inside("file/deeper")], &["--out"]);
    assert_eq!(std::fs::read_to_string(inside("file")).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn help_shows_every_default_and_the_exit_codes() {
    for (workload, more) in [("fetch-add", None), ("latency", Some("load"))] {
        let help = corelay(&["bench", workload, "--help"]);
        assert!(help.status.success());
        shows_every_default(&text(&help.stdout), more);
    }
    let both = text(&corelay(&["bench", "--help"]).stdout);
    assert!(
        both.contains("fetch-add") && both.contains("latency"),
        "{both}"
    );
    let help = text(&corelay(&["bench", "fetch-add", "--help"]).stdout);
    for method in METHODS.iter() {
        assert!(help.contains(method.name()));
    }
    assert!(text(&corelay(&["--help"]).stdout).contains("130"));
}

#[track_caller]
fn shows_every_default(help: &str, more: Option<&str>) {
    let flags = [
        "method", "threads", "servers", "vars", "window", "secs", "samples", "pin", "dist", "seed",
    ];
    for flag in flags.into_iter().chain(more) {
        let (_, rest) = help
            .split_once(&format!("--{flag} <"))
            .unwrap_or_else(|| panic!("{flag}"));
        // The default stands before the next flag.
        let own = rest.split("\n      --").next().unwrap();
        assert!(own.contains("[default:"), "{flag}: {own}");
    }
}

#[test]
fn loads_are_offered_and_what_became_of_them_is_said() {
    // A load that everybody bears, and one that nobody does.
    let flags = "bench latency --load 2000,10^9 --threads 2 --samples 3 --secs 0.02 --seed 5";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loads.json");
    let mut args: Vec<&str> = flags.split(' ').collect();
    args.extend(["--json", file.to_str().unwrap()]);
    let output = corelay(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let results = results(&file);
    let methods = METHODS.iter().filter(|m| m.is_usual_on_schedule());
    let methods: Vec<&str> = methods.map(|m| m.name()).collect();
    assert_eq!(results.runs.len(), 2 * methods.len());
    for (run, method) in results.runs.iter().zip(methods.iter().flat_map(|m| [m, m])) {
        assert_eq!((run.workload.as_str(), &*run.method), ("latency", *method));
        assert!(run.correct && table.contains(method), "{run:?}");
        let again: corelay_lab_measure::schema::Run =
            serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap();
        assert_eq!(&again, run);
        let load = run.load.unwrap();
        assert!(load.stamp_ns > 0.0);
        // A machine that moved during every sample leaves no figure.
        let Some(latency) = run.latency_ns else {
            assert!(run.samples.iter().all(|s| s.mode == Mode::Discarded));
            continue;
        };
        assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.p999);
        assert!(latency.p999 <= latency.max);
        if load.offered == 1e9 {
            assert_ne!(load.limit, Limit::None, "{run:?}");
            assert!(load.achieved < load.offered / 2.0);
        }
    }
    assert!(
        table.contains("achieved/s") && table.contains("limit"),
        "{table}"
    );
    // The generators are measured, but they are no methods.
    assert!(!table.contains("generator-then"), "{table}");
}

#[test]
fn a_sweep_ends_at_the_first_load_that_is_too_much() {
    let flags = "bench latency --method trust,ttas --samples 1 --secs 0.01 --json -";
    let output = corelay(&flags.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let results: Results = serde_json::from_slice(&output.stdout).unwrap();
    for method in ["trust", "ttas"] {
        let of = results.runs.iter().filter(|run| run.method == method);
        let loads: Vec<f64> = of.map(|run| run.load.unwrap().offered).collect();
        assert!(loads.is_sorted_by(|a, b| a < b), "{loads:?}");
        assert!(
            loads.len() < 16 && loads.first() == Some(&10_000.0),
            "{loads:?}"
        );
    }
}

fn results(path: &Path) -> Results {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_method_is_measured_and_right() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.json");
    let flags = "bench fetch-add --threads 2 --vars 2,70 --samples 2 --secs 0.02 --json";
    let mut args: Vec<&str> = flags.split(' ').collect();
    args.push(file.to_str().unwrap());
    let output = corelay(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let results = results(&file);
    assert_eq!(results.schema, SCHEMA);
    assert!(
        results
            .command
            .starts_with("corelay bench fetch-add --threads 2")
    );
    assert_eq!(results.runs.len(), 2 * METHODS.len());
    let table = text(&output.stdout);
    for run in &results.runs {
        assert!(run.correct, "{run:?}");
        assert_eq!(run.samples.len(), 2);
        assert!(
            run.samples
                .iter()
                .all(|s| s.mops > 0.0 && s.per_thread.iter().all(|&n| n > 0))
        );
        assert_eq!(run.params.secs, 0.02);
        assert!(table.contains(&run.method), "{table}");
        // Reading what was written gives the same again.
        let again: corelay_lab_measure::schema::Run =
            serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap();
        assert_eq!(&again, run);
    }
}

#[test]
fn json_to_standard_output_is_json_alone() {
    let flags = "bench fetch-add --method atomic,clh --threads 1..3 --samples 1 --secs 0.01 --dist zipf:0.9 \
                 --pin none --seed 7 --json -";
    let output = corelay(&flags.split_whitespace().collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let results: Results = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results.runs.len(), 2 * 3 * 3);
    for run in &results.runs {
        assert_eq!((run.params.dist.as_str(), run.params.seed), ("zipf:0.9", 7));
        assert!(run.params.placement.iter().all(Option::is_none));
        assert_eq!(run.samples[0].per_thread.len(), run.params.threads);
    }
}

#[test]
fn more_servers_than_variables_are_reduced_and_said_so() {
    let flags = "bench fetch-add --method trust,ticket --threads 4 --servers 3 --vars 2,3 --samples 1 \
                 --secs 0.01 --json -";
    let output = corelay(&flags.split_whitespace().collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let results: Results = serde_json::from_slice(&output.stdout).unwrap();
    let run = |method: &str, vars| {
        results
            .runs
            .iter()
            .find(|r| r.method == method && r.params.vars == vars)
            .unwrap()
    };
    let (reduced, kept, lock) = (run("trust", 2), run("trust", 3), run("ticket", 2));
    assert_eq!(
        (reduced.params.servers, reduced.samples[0].per_thread.len()),
        (2, 2)
    );
    assert!(
        reduced
            .notes
            .iter()
            .any(|n| n.contains("reduced from 3 to 2")),
        "{:?}",
        reduced.notes
    );
    assert_eq!(
        (kept.params.servers, kept.samples[0].per_thread.len()),
        (3, 1)
    );
    assert!(!kept.notes.iter().any(|n| n.contains("reduced")));
    // Other methods ignore the servers.
    assert_eq!(
        (lock.params.servers, lock.samples[0].per_thread.len()),
        (0, 4)
    );
}

/// One CPU is no error: threads take turns, and every method still counts right.
#[cfg(target_os = "linux")]
#[test]
fn one_cpu_is_enough_to_be_right() {
    // The program inherits the affinity of this test's thread.
    let cpu = corelay_topology::Topology::current().cpus()[0].id;
    corelay_topology::pin_current_thread(cpu).unwrap();
    let flags = "bench fetch-add --vars 3 --samples 1 --secs 0.01 --json -";
    let output = corelay(&flags.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let results: Results = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results.machine.cpus, 1);
    assert_eq!(results.machine.rtt_min_ns, None);
    assert!(
        results
            .machine
            .unavailable
            .iter()
            .any(|s| s.starts_with("round-trip probe"))
    );
    assert_eq!(results.runs.len(), METHODS.len());
    for run in &results.runs {
        assert!(run.correct, "{run:?}");
        assert_eq!(run.samples[0].mode, Mode::Unknown);
        assert!(
            run.notes.iter().any(|n| n.contains("share a CPU")),
            "{:?}",
            run.notes
        );
    }
}

#[test]
fn the_machine_describes_itself() {
    let output = corelay(&["machine", "--json"]);
    assert!(output.status.success());
    let machine: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(machine["cpus"].as_u64().unwrap() >= 1);
    let pairs = machine["cpus"].as_u64().unwrap() > 1;
    assert_eq!(machine["round_trip"].is_object(), pairs);
    let machine: corelay_lab_measure::schema::Machine = serde_json::from_value(machine).unwrap();
    assert_eq!(machine.rtt_min_ns.is_some(), pairs);
}

/// Lines that each method moves for an operation of 4 clients, within this much. An addition
/// takes the word along; the others are worked out in crates/lines/tests/suite/by_hand.rs, but for
/// ffwd, whose groups are not full here.
const MOVED: &[(&str, f64, f64)] = &[
    ("atomic", 1.0, 0.02),
    ("mcs", 6.0, 0.1),
    ("ffwd", 2.5, 0.7),
    ("trust", 3.0, 0.3),
];

#[test]
fn lines_that_are_known_are_counted_twice_the_same() {
    let methods = MOVED.iter().map(|(method, ..)| *method);
    let methods = methods.collect::<Vec<&str>>().join(",");
    let flags = ["--machine", "2x4x1", "--clients", "4,64", "--json"];
    let args = [&["model", "lines", "--method", &methods], &flags[..]].concat();
    let [first, second] = [corelay(&args), corelay(&args)].map(|output| fine(&output));
    assert_eq!(first, second);
    let said: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!(said["what"], "model: lines moved per operation");
    assert_eq!(said["workload"], "fetch-add");
    assert!(said["size"].is_null());
    for key in ["schema", "machine", "pin"] {
        assert!(said.get(key).is_some(), "{key}");
    }
    for &(method, expected, within) in MOVED {
        let row = |clients: u64| {
            let mut rows = said["rows"].as_array().unwrap().iter();
            let found = rows.find(|row| row["method"] == method && row["clients"] == clients);
            found.unwrap_or_else(|| panic!("{method}: {said}"))
        };
        let counted = row(4);
        for key in ["placement", "fewest", "most"] {
            assert!(counted.get(key).is_some(), "{method}: {key}");
        }
        let moved = counted["all"]["moved"].as_object().unwrap().values();
        let moved: u64 = moved.map(|moved| moved.as_u64().unwrap()).sum();
        let per_operation = moved as f64 / counted["operations"].as_f64().unwrap();
        let apart = (per_operation - expected).abs();
        assert!(apart <= within, "{method}: {per_operation}, not {expected}");
        // The machine has 8 hardware threads.
        assert!(row(64)["unavailable"].is_string(), "{method}");
    }
}

/// Without a number to add to, two methods fall out. A trustee keeps the queue, so the calls of
/// three clients move what their additions move: see crates/lines/tests/suite/by_hand.rs.
#[test]
fn lines_of_a_structure_are_counted_at_its_size() {
    let args = "model lines --workload queue --size 16 --machine 1x4x1 --clients 1,3 --ops 16";
    let args: Vec<&str> = args.split(' ').collect();
    let table = fine(&corelay(&args));
    let workload =
        "workload queue: one ring buffer, put and take in turn; 16 entries at the beginning";
    assert_eq!(table.lines().nth(1), Some(workload));
    for absent in ["atomic", "trust-post"] {
        assert!(!table.contains(absent), "{table}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.svg");
    let more = ["--json", "--svg", path.to_str().unwrap()];
    let said: serde_json::Value =
        serde_json::from_str(&fine(&corelay(&[args.as_slice(), &more].concat()))).unwrap();
    assert_eq!(
        (&said["workload"], &said["size"]),
        (&"queue".into(), &16.into())
    );
    let rows = said["rows"].as_array().unwrap();
    let moved = |method: &str, clients: u64| {
        let mut rows = rows.iter();
        let row = rows.find(|row| row["method"] == method && row["clients"] == clients);
        let row = row.unwrap_or_else(|| panic!("{method}: {said}"));
        let moved = row["all"]["moved"].as_object().unwrap().values();
        moved.map(|moved| moved.as_u64().unwrap()).sum::<u64>()
    };
    for method in ["ttas", "flat-combining", "cc-synch", "dsm-synch"] {
        assert_eq!(moved(method, 1), 0, "{method}");
        assert!(moved(method, 3) > 0, "{method}");
    }
    assert_eq!(moved("trust", 3), 3 * 3 * 16);
    let picture = std::fs::read_to_string(path).unwrap();
    for shown in ["workload queue of 16", "dsm-synch, 3 clients"] {
        assert!(picture.contains(shown), "{shown}");
    }
}

#[test]
fn lines_are_counted_and_what_does_not_fit_is_marked() {
    let args = "model lines --method atomic,trust --machine 1x4x1 --clients 3,4,5 --ops 20";
    let args: Vec<&str> = args.split(' ').collect();
    let output = corelay(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(
        table.starts_with("model: lines moved per operation\n"),
        "{table}"
    );
    let row = |method: &str, clients: &str| -> Vec<String> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let rows = table.lines().map(words);
        let mut found =
            rows.filter(|row: &Vec<_>| row.starts_with(&[method.into(), clients.into()]));
        found
            .next()
            .unwrap_or_else(|| panic!("no row of {method}: {table}"))
    };
    assert_eq!(
        row("atomic", "4")[2..],
        ["0.00", "1.00", "0.00", "1.00", "0.00", "0.00"]
    );
    assert_eq!(row("trust", "3")[5], "3.00");
    assert_eq!(row("atomic", "5")[2], "–");
    assert_eq!(row("trust", "4")[2], "–");
    assert!(table.contains("4 clients do not fit (5 threads on 4 hardware threads): trust"));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.svg");
    let more = ["--json", "--svg", path.to_str().unwrap()];
    let output = corelay(&[args.as_slice(), &more].concat());
    let picture = std::fs::read_to_string(path).unwrap();
    assert!(picture.contains("<svg") && picture.contains("model: lines moved per operation"));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[0]["placement"], serde_json::json!([0, 1, 2]));
    assert_eq!(rows[0]["operations"], 60);
    assert!(rows[5]["unavailable"].is_string());
}
