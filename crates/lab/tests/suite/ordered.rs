//! What a clock orders, as the users of `corelay bench` meet it: at smoke size, with results checked.

use crate::program::{command, corelay, fine, refused, text};
use corelay_history::transactions::{History, Level, check};
use corelay_lab_bench::ordered::spec::Bench;
use corelay_lab_measure::schema::{ConflictCounts, Mode, Percentiles, Results, Run, Sample};
use serde_json::Value;
use std::path::PathBuf;

/// Runs a benchmark; every figure has been checked by the program.
#[track_caller]
fn bench(line: &str) -> Vec<Run> {
    let line = format!("bench {line} --secs 0.02 --samples 2 --json -");
    let output = corelay(&line.split_whitespace().collect::<Vec<_>>());
    let results: Results = serde_json::from_str(&fine(&output)).unwrap();
    for run in &results.runs {
        assert!(run.correct && run.samples.len() == 2, "{run:?}");
        for sample in &run.samples {
            assert!(sample.mops > 0.0 && sample.counts.is_some(), "{run:?}");
        }
    }
    results.runs
}

fn number(run: &Run, key: &str) -> u64 {
    let params = serde_json::to_value(&run.params).unwrap();
    params[key].as_u64().unwrap()
}

/// The methods of the table.
fn names(bench: Bench) -> Vec<&'static str> {
    let entries = corelay_lab_bench::ordered::method::methods(bench);
    entries.iter().map(|entry| entry.name()).collect()
}

fn methods(runs: &[Run]) -> Vec<&str> {
    runs.iter().map(|run| run.method.as_str()).collect()
}

#[test]
fn every_workload_is_measured_and_says_its_parameters() {
    let runs = bench("rlu-list --threads 2 --updates 20 --size 16");
    let list = Bench::List {
        size: 16,
        updates: 20,
    };
    assert_eq!(methods(&runs), names(list));
    assert!(runs.iter().all(|run| run.workload == "rlu-list"));
    assert!(runs.iter().all(|run| number(run, "size") == 16));

    let line =
        "rlu-hash --threads 1,2 --updates 0,40 --buckets 8 --size 2 --method rcu,rlu-logical";
    let runs = bench(line);
    let points: Vec<_> = runs
        .iter()
        .step_by(2)
        .map(|run| (run.params.threads, number(run, "updates")))
        .collect();
    assert_eq!(points, [(1, 0), (1, 40), (2, 0), (2, 40)]);

    // The name that the option had before is read, too.
    let runs = bench("stm-transfer --threads 2 --variables 2,64 --method stm,tl2-logical");
    let variables: Vec<u64> = runs.iter().map(|run| number(run, "variables")).collect();
    assert_eq!(variables, [2, 2, 64, 64]);

    let line = "stm-read --threads 2 --vars 8 --reads 4 --updates 0,50 --method \
                mutex-ordered,fast-stm,tl2-ordo";
    assert_eq!(bench(line).len(), 6);

    let runs = bench("oplog-rmap --threads 2 --reads-every 10,1000 --pages 16");
    assert_eq!(number(&runs[0], "reads_every"), 10);
    let rmap = Bench::Rmap {
        pages: 16,
        reads_every: 10,
    };
    let of_one = names(rmap);
    assert_eq!(methods(&runs)[..of_one.len()], of_one);
}

#[test]
fn databases_are_measured_and_checked_with_every_mix() {
    let runs = bench("ycsb --threads 2 --rows 512 --requests 4 --mix a,B,C,E,F --theta 0.5");
    let params = |run: &Run, key: &str| serde_json::to_value(&run.params).unwrap()[key].clone();
    let mixes: Vec<_> = runs
        .iter()
        .step_by(8)
        .map(|run| params(run, "mix"))
        .collect();
    assert_eq!(mixes, ["A", "B", "C", "E", "F"]);
    assert!(
        runs.iter()
            .all(|run| run.method != "dashmap" && number(run, "rows") == 512)
    );
    assert!(runs.iter().all(has_latencies));
    let singles = bench("ycsb --threads 2 --rows 64 --requests 1 --method dashmap,silo");
    assert_eq!(methods(&singles), ["dashmap", "silo"]);
    for level in ["snapshot", "serializable", "strict"] {
        let line = format!(
            "tpcc --threads 2 --shrink 100 --method mvcc-logical,mvcc-ordo --isolation {level}"
        );
        let runs = bench(&line);
        assert!(runs.iter().all(|run| params(run, "isolation") == level));
    }
    let runs = bench("tpcc --threads 3 --shrink 100 --warehouses 2 --mix payment-neworder");
    assert!(runs.iter().all(|run| number(run, "warehouses") == 2));
    assert!(runs.iter().all(has_latencies));
}

#[test]
fn rows_are_kept_on_disk_by_every_method() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let dir = folder.path().to_str().unwrap();
    let line = "kept --threads 1,2 --rows 64 --bytes 16 --requests 3 --dir";
    let runs = bench(&format!("{line} {dir}"));
    assert_eq!(runs.len() % 2, 0);
    assert!(runs.iter().all(has_latencies));
    for (run, name) in runs.iter().zip(listed("kept").iter().cycle()) {
        assert_eq!(&run.method, name);
        assert_eq!((number(run, "rows"), number(run, "bytes")), (64, 16));
        assert_eq!(run.params.window, 1);
    }
    // Only corelay's store goes on before a commit is on disk.
    let runs = bench(&format!("{line} {dir} --window 1,8 --method heed,silo"));
    let windows: Vec<_> = runs
        .iter()
        .map(|run| (&*run.method, run.params.window))
        .collect();
    let expected = [("heed", 1), ("silo", 1), ("silo", 8)];
    assert_eq!(windows, [expected, expected].concat());

    for cold in ["", " --cold"] {
        let line = format!("recover --rows 2000 --bytes 64 --log 1 --dir {dir}{cold}");
        let run = &bench(&line)[0];
        assert_eq!(
            (run.method.as_str(), number(run, "log_bytes")),
            ("silo", 1_000_000)
        );
        // More than a megabyte in each opening.
        let read: u64 = run.samples.iter().flat_map(|s| &s.per_thread).sum();
        assert!(read >= 2_000, "{run:?}");
        if !cfg!(target_os = "linux") {
            break;
        }
    }
    let left = std::fs::read_dir(dir).unwrap();
    assert_eq!(left.count(), 0, "stores are left in {dir}");

    let args = format!("bench kept --method redb --secs 0.02 --samples 1 --rows 64 --dir {dir}");
    let table = fine(&corelay(&args.split(' ').collect::<Vec<_>>()));
    assert!(
        table.contains("all /s") && table.contains("2 of 64 rows of 100 bytes"),
        "{table}"
    );
}

/// The names in the program's list.
fn listed(workload: &str) -> Vec<String> {
    let said = fine(&corelay(&["bench", "--list", "--json"]));
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let mut all = said.as_array().unwrap().iter();
    let of = all.find(|entry| entry["workload"] == workload).unwrap();
    let methods = of["methods"].as_array().unwrap().iter();
    methods
        .map(|m| m["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Whether transactions were timed: some, in each sample and all together.
fn has_latencies(run: &Run) -> bool {
    let ascend = |latency: Percentiles| {
        0 < latency.p50
            && latency.p50 <= latency.p99
            && latency.p99 <= latency.p999
            && latency.p999 <= latency.max
    };
    let is_kept = |sample: &Sample| sample.mode != Mode::Discarded;
    run.samples.iter().all(|s| s.latency_ns.is_some_and(ascend))
        && run.latency_ns.is_some() == run.samples.iter().any(is_kept)
        && run.samples.iter().all(|s| s.arrivals.is_none())
}

#[test]
fn histories_are_written_in_both_forms_and_judged() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let run = |name: &str, more: &str| {
        let file = file(name);
        let line = format!("ycsb --threads 2 --rows 8 --requests 3 --history {file} {more}");
        let [run] = &bench(&line)[..] else {
            panic!("one contender");
        };
        (std::fs::read_to_string(file).unwrap(), run.notes.join("\n"))
    };

    let (json, said) = run("h.json", "--method tictoc --mix F --history-limit 200");
    let read: History = History::read(json.as_bytes()).unwrap();
    // Each client runs at least 32 transactions in a slice, and has more than three. Its last one may
    // have many attempts.
    assert!((200..400).contains(&read.len()), "{}", read.len());
    assert!(
        said.contains("the limit") && said.contains(": serializable, by "),
        "{said}"
    );
    let found = check(&read, Level::Serializable).unwrap();
    assert!(found.ww > 50 && found.wr > 50 && found.rw > 0, "{found:?}");

    let (edn, said) = run("h.edn", "--method mutex --history-limit 100");
    let read: History = History::read_edn(&edn).unwrap();
    assert!(check(&read, Level::StrictSerializable).is_ok() && read.len() >= 100);
    assert!(said.contains("strictly serializable"), "{said}");

    // A table that prints, and a level that its store promises.
    for (isolation, level) in [
        ("snapshot", "snapshot isolation"),
        ("strict", "strictly serializable"),
    ] {
        let more = format!("--method mvcc-logical --isolation {isolation}");
        assert!(run("i.json", &more).1.contains(&format!(": {level}, by ")));
    }
}

#[test]
fn two_accounts_make_transactions_meet_and_the_aborts_are_told() {
    let runs = bench("stm-transfer --threads 4 --vars 2 --method fast-stm,tl2-logical");
    let aborts = |run: &Run| {
        let counts: ConflictCounts = run.samples.iter().filter_map(|s| s.counts).sum();
        (counts.aborts.unknown, counts.aborts.all())
    };
    // Whose crate does not say why has them under `unknown`.
    let (unknown, all) = aborts(&runs[0]);
    assert_eq!(unknown, all);
    assert_eq!(aborts(&runs[1]).0, 0);
}

/// The history that `corelay clock` keeps raises the boundary of benchmarks, too; a damaged one is
/// refused.
#[test]
fn benchmarks_use_the_stored_history() {
    let state = tempfile::tempdir().unwrap();
    let run = |line: &str| {
        let args: Vec<&str> = line.split(' ').collect();
        command(state.path()).args(args).output().unwrap()
    };
    let clock = run("clock --json");
    if clock.status.code() != Some(0) {
        return;
    }
    let folder = std::fs::read_dir(state.path().join("corelay")).unwrap();
    let mut files = folder.map(|entry| entry.unwrap().path());
    let is_history = |file: &PathBuf| file.to_string_lossy().contains("clock-");
    let file = files.find(is_history).unwrap();
    let kept = std::fs::read_to_string(&file).unwrap();
    let mut wide: Value = serde_json::from_str(&kept).unwrap();
    let record = &mut wide["records"][0];
    // As if the boundary had been 10 µs before.
    let ticks = (8_000.0 * record["ticks_per_ns"].as_f64().unwrap()) as u64;
    record["largest_ticks"] = ticks.into();
    record["step_ticks"] = 1.into();
    record["moved_ticks"] = 0.into();
    record["boundary_ticks"] = (ticks + ticks / 4).into();
    std::fs::write(&file, wide.to_string()).unwrap();
    let bench = "bench timestamp --threads 2 --method ordo --secs 0.01 --samples 1 --json -";
    let report: Value = serde_json::from_str(&fine(&run(bench))).unwrap();
    let ns = report["runs"][0]["params"]["boundary_ns"].as_f64().unwrap();
    assert!((9_900.0..=10_100.0).contains(&ns), "{ns}");

    std::fs::write(&file, &kept[..kept.len() / 2]).unwrap();
    let refused = run(bench);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("--forget"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn a_boundary_that_is_too_small_is_said_wherever_it_is() {
    let line = "timestamp --threads 2 --method fetch-add,ordo --boundary-scale 1/8,1,8";
    let runs = bench(line);
    assert_eq!(methods(&runs), ["fetch-add", "ordo", "ordo", "ordo"]);
    let scales: Vec<_> = runs
        .iter()
        .map(|run| run.params.extra.boundary_scale)
        .collect();
    assert_eq!(scales, [None, Some(0.125), Some(1.0), Some(8.0)]);
    let marked: Vec<bool> = runs.iter().map(Run::is_no_longer_correct).collect();
    assert_eq!(marked, [false, true, false, false]);
    assert!(
        runs[1]
            .notes
            .iter()
            .any(|note| note.contains("no longer correct"))
    );
    let ns = |run: &Run| run.params.extra.boundary_ns.unwrap();
    assert!(ns(&runs[1]) < ns(&runs[2]) && ns(&runs[2]) < ns(&runs[3]));

    let args =
        "bench timestamp --threads 2 --method ordo --boundary-scale 1/4 --secs 0.01 --samples 1";
    let table = fine(&corelay(&args.split(' ').collect::<Vec<_>>()));
    assert!(
        table.contains("(× 1/4") && table.contains("no longer correct"),
        "{table}"
    );
}

#[test]
fn bad_input_gets_one_sentence_that_names_the_flag() {
    let refused = |line: &str, words: &[&str]| {
        let args: Vec<&str> = ["bench"].into_iter().chain(line.split(' ')).collect();
        refused(&args, words);
    };
    refused(
        "rlu-list --method magic",
        &["--method", "`magic`", "rlu-logical"],
    );
    refused("rlu-list --updates 101", &["--updates", "101"]);
    refused("rlu-list --size 0", &["--size"]);
    refused("rlu-list --threads 1", &["--threads 1", "trust"]);
    refused(
        "rlu-hash --buckets 1048576 --size 2",
        &["--buckets", "--size"],
    );
    refused("stm-transfer --vars 1", &["--vars 1", "at least 2"]);
    refused("stm-read --vars 3 --updates 1", &["--vars 3", "even"]);
    refused("stm-read --reads 0", &["--reads"]);
    refused("oplog-rmap --reads-every 0", &["--reads-every"]);
    refused("oplog-rmap --pages 0", &["--pages"]);
    refused("timestamp --boundary-scale 0", &["--boundary-scale"]);
    refused(
        "timestamp --method cas --boundary-scale 2",
        &["--boundary-scale", "cas"],
    );
    refused("timestamp --secs 0", &["--secs"]);
    refused("ycsb --rows 0", &["--rows"]);
    refused("ycsb --rows 8", &["--requests 16", "--rows 8"]);
    refused("ycsb --requests 0", &["--requests"]);
    refused("ycsb --theta 1", &["--theta", "below 1"]);
    refused("ycsb --theta -0.1", &["--theta", "below 1"]);
    refused("ycsb --mix A,D", &["--mix", "`D`", "A, B, C, E, F"]);
    refused("ycsb --method all", &["dashmap", "--requests 1"]);
    refused(
        "ycsb --method dashmap --requests 1 --mix E",
        &["dashmap", "--mix E"],
    );
    let one = "ycsb --method silo --threads 2 --history";
    refused(
        &format!("{one} h.txt"),
        &["--history h.txt", ".json", ".edn"],
    );
    refused(
        &format!("{one} no/such/h.edn"),
        &["--history no/such/h.edn", "no folder"],
    );
    refused(&format!("{one} -"), &["--history -", ".json"]);
    refused(&format!("{one} h.json --mix E"), &["--history", "--mix E"]);
    refused(
        &format!("{one} h.json --mix A,C"),
        &["--history h.json", "one --mix"],
    );
    refused(
        &format!("{one} h.json --json h.json"),
        &["--history", "--json", "same"],
    );
    refused(
        &format!("{one} h.json --history-limit 0"),
        &["--history-limit"],
    );
    refused("ycsb --history-limit 5", &["--history"]);
    refused("tpcc --history h.json", &["--history"]);
    refused(
        "ycsb --method dashmap --requests 1 --mix F",
        &["dashmap", "--mix F"],
    );
    refused("ycsb --isolation chaos", &["--isolation", "`chaos`"]);
    refused(
        "ycsb --method silo --isolation strict",
        &["--isolation strict", "mvcc"],
    );
    refused("ycsb --rows 1073741824", &["--rows", "GiB"]);
    refused("tpcc --warehouses 0", &["--warehouses"]);
    refused("tpcc --warehouses 65535", &["--warehouses", "GiB"]);
    refused("tpcc --mix half", &["--mix", "`half`"]);
    refused("tpcc --shrink 101", &["--shrink"]);
    refused("kept --rows 0", &["--rows"]);
    refused("kept --rows 4 --requests 5", &["--requests 5", "--rows 4"]);
    refused("kept --bytes 7", &["--bytes"]);
    refused("kept --requests 0", &["--requests"]);
    refused("kept --window 0", &["--window"]);
    refused(
        "kept --dir no/such/folder",
        &["--dir no/such/folder", "no such folder"],
    );
    refused(
        "kept --dir Cargo.toml",
        &["--dir Cargo.toml", "no such folder"],
    );
    refused("kept --rows 67108864 --bytes 65536", &["--rows", "GiB"]);
    #[cfg(target_os = "linux")]
    if std::path::Path::new("/proc/self").exists() {
        refused(
            "kept --dir /proc/self",
            &["--dir /proc/self", "cannot be written"],
        );
    }
    refused("recover --log 0", &["--log"]);
    refused("recover --rows 0", &["--rows"]);
    refused("recover --method redb", &["--method", "`redb`", "silo"]);
    refused("recover --dir no/such/folder", &["--dir no/such/folder"]);
    refused("rlu", &["rlu-list", "oplog-rmap"]);
}
