//! `corelay model`, as its users meet it.

use crate::program::{corelay, fine, refused};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn words(args: &str) -> Vec<&str> {
    ["model"]
        .into_iter()
        .chain(args.split_whitespace())
        .collect()
}

fn model(args: &str) -> Output {
    corelay(&words(args))
}

fn json(args: &str) -> Value {
    serde_json::from_str(&text(&format!("{args} --json"))).unwrap()
}

fn text(args: &str) -> String {
    fine(&model(args))
}

#[test]
fn contention_is_what_the_thesis_says_in_prose() {
    let said = json("contention --threads 56 --vars 2^14,2^19,16");
    let chance = |row: usize| said[row]["probability"].as_f64().unwrap();
    assert!((chance(0) - 0.0898).abs() < 5e-5 && (chance(1) - 0.0029).abs() < 5e-5);
    assert_eq!(chance(2), 1.0);
    assert_eq!(said[2]["fewest_contending"], 41);
    let table = text("contention --vars 2^14");
    assert!(
        table.contains("8.98 %") && table.contains("of 56 threads"),
        "{table}"
    );
    let others = text("contention --threads 2,8 --vars 2^14");
    assert!(!others.contains("56"), "{others}");
}

#[test]
fn residency_is_the_thesis_sums() {
    let of = |footprint: &str, l2: &str| {
        let machine = "--servers 16 --l1 32768 --l3 40370176";
        json(&format!(
            "residency {machine} --l2 {l2} --footprint {footprint} --vars 2^17,2^20,2^18"
        ))
    };
    for footprint in ["93000", "95232"] {
        let said = of(footprint, "1048576");
        assert_eq!(said["l2"]["knee"], 1 << 18);
        assert_eq!(said["all"]["knee"], 1 << 20);
        let share = |row: usize, of: &str| said["shares"][row][of].as_f64().unwrap();
        assert_eq!((share(0, "in_l2"), share(0, "from_memory")), (1.0, 0.0));
        assert!(share(1, "from_memory") > 0.15 && share(1, "from_memory") < 0.17);
        assert!(share(2, "in_l2") < 1.0 && share(2, "from_memory") == 0.0);
        let both = share(1, "in_l2") + share(1, "in_l3") + share(1, "from_memory");
        assert!((both - 1.0).abs() < 1e-12);
    }
    // As the thesis rounds them.
    assert_eq!(
        json("residency --servers 16 --l2 983040")["l2"]["capacity"],
        245_760
    );
    // A larger L2 leaves less to memory.
    let from_memory = |l2| {
        of("95232", l2)["shares"][1]["from_memory"]
            .as_f64()
            .unwrap()
    };
    assert!(from_memory("2097152") < from_memory("1048576"));
}

#[test]
fn residency_marks_are_this_machines() {
    let machine = corelay_lab_measure::machine::describe(
        &corelay_topology::Topology::current(),
        &corelay_topology::Facts::current(),
    );
    let said = json("residency");
    for (level, name) in [(2, "l2"), (3, "l3")] {
        let found = machine.caches.iter().find(|cache| cache.level == level);
        let marked = said[name]["bytes"].as_u64();
        let expected = found.map(|cache| match level {
            2 => cache.bytes,
            _ => cache.bytes * cache.instances as u64,
        });
        assert_eq!(marked, expected, "{name}");
    }
}

#[test]
fn footprints_are_those_of_the_types() {
    let said = json("footprint");
    let channel = |name: &str| {
        let channels = said["channels"].as_array().unwrap();
        let found = channels.iter().find(|channel| channel["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {said}"))["pair"].clone()
    };
    assert_eq!(said["source_bytes"], serde_json::json!([93_000, 95_232]));
    assert_eq!(channel("rcl")["both"], 64.0);
    assert_eq!(channel("async-lines:16x32")["both"], 1280.0);
    // 40 lines at a server; at a client 16, and its number for each, in two lines of its own.
    let rcl = &said["channels"][1];
    let sums = [&rcl["server"], &rcl["client"], &rcl["core"]].map(|sum| sum.as_f64().unwrap());
    assert_eq!(
        sums,
        [40.0 * 64.0, 16.0 * 192.0, 40.0 * 64.0 + 16.0 * 192.0]
    );
    let first = corelay::report::Footprint::first();
    let ours = channel("corelay, a request");
    let total: f64 = ["both", "server", "client"]
        .iter()
        .map(|part| ours[part].as_f64().unwrap())
        .sum();
    assert_eq!(total, first.total() as f64);
    assert!(text("footprint").contains("about 93 KB"));
    let direct = json("footprint --lines 4-direct --clients 15");
    assert_eq!(direct["channels"][2]["name"], "async-lines:4-direct");
    assert_eq!(direct["channels"][0]["pair"]["both"], 64.0 + 128.0 / 15.0);
}

#[test]
fn ceilings_are_the_slides() {
    let said = json("ceilings --rtt 400 --clients 120 --ghz 2.2 --mops 300");
    let out = &said["ceilings"];
    assert_eq!(out["per_client_mops"], 2.5);
    assert_eq!(out["clients_mops"], 300.0);
    assert_eq!(out["links_mops"], 300.0);
    assert_eq!(out["in_flight"], 120.0);
    assert_eq!(out["processing_mops"], 55.0);
    assert_eq!(said["inputs"]["link_mlines"]["from"], "source");
    let lock = json("ceilings --rtt 140");
    let limit = lock["ceilings"]["lock_limit_mops"].as_f64().unwrap();
    assert!((limit - 14.3).abs() < 0.1);
    // Without a value it is measured, where there are two CPUs.
    let here = json("ceilings");
    if std::thread::available_parallelism().unwrap().get() > 1 {
        assert_eq!(here["inputs"]["rtt_ns"]["from"], "measured");
        assert!(here["ceilings"]["lock_limit_mops"].as_f64().unwrap() > 0.0);
    } else {
        assert!(here["unavailable"].as_str().unwrap().contains("--rtt"));
    }
}

#[test]
fn throughput_by_hand_is_the_curve() {
    let said = json("throughput --ts 40 --tc 20 --threads 56");
    let model = &said["model"];
    assert_eq!(
        (&model["law_from"], &model["measured_threads"]),
        (&"given".into(), &0.into())
    );
    assert_eq!(model["best"]["servers"], 19);
    let points = model["points"].as_array().unwrap();
    assert_eq!(points.len(), 55);
    assert_eq!(
        (&points[0]["model"], &points[0]["bound"]),
        (&40.0.into(), &"servers".into())
    );
    assert_eq!(
        (&points[54]["model"], &points[54]["bound"]),
        (&20.0.into(), &"clients".into())
    );
    assert!(points.iter().all(|point| point["measured"].is_null()));
}

/// The curve with its peak, measured earlier: both sides are found and nothing is left over.
#[test]
fn throughput_is_fitted_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("earlier.json");
    let run = |servers: u64, mops: f64, method: &str| {
        serde_json::json!({
            "workload": "fetch-add", "method": method, "correct": true,
            "params": {"threads": 8, "servers": servers, "vars": 64, "secs": 0.1},
            "median_mops": mops, "harmonic_mean_mops": mops,
            "by_mode": {"far": {"median_mops": mops, "n": 3, "q1_mops": mops, "q3_mops": mops}},
            "samples": [{"mops": mops, "mode": "far", "rtt_ns": null, "per_thread": [], "cpu_s": 0.4}],
        })
    };
    let mops = |servers: u64| (30.0 * servers as f64).min(10.0 * (8 - servers) as f64);
    let mut runs: Vec<_> = (1..8).map(|s| run(s, mops(s), "trust-then")).collect();
    runs.push(run(1, 1e3, "ffwd"));
    let machine = serde_json::json!({"cpus": 8, "model": "another"});
    let results = serde_json::json!({
        "schema": 1, "machine": machine, "commit": "c", "command": "x", "runs": runs,
    });
    std::fs::write(&file, results.to_string()).unwrap();
    let svg = folder.path().join("curve.svg");
    let args = format!(
        "throughput --from {} --svg {}",
        file.display(),
        svg.display()
    );
    let said = json(&args);
    let model = &said["model"];
    assert_eq!(model["law"], serde_json::json!({"ts": 30.0, "tc": 10.0}));
    assert_eq!(
        (&model["law_from"], &model["mode"]),
        (&"fitted".into(), &"far".into())
    );
    assert_eq!(said["machine"]["model"], "another");
    for point in model["points"].as_array().unwrap() {
        assert_eq!(point["residual"], 0.0, "{point}");
    }
    let picture = std::fs::read_to_string(&svg).unwrap();
    let drawn = roxmltree::Document::parse(&picture).unwrap();
    assert_eq!(drawn.root_element().tag_name().name(), "svg");
    assert!(picture.contains("measured") && picture.contains("model"));
    // Eight threads for a tenth of a second could have used twice as much.
    assert_eq!(model["cpu_share"], 0.5);
    let table = text(&args);
    assert!(
        table.contains("Other programs") && table.contains("50 %"),
        "{table}"
    );
    // Of the other method there is one run, which proves nothing.
    let alone = json(&format!("{args} --method ffwd"));
    assert!(alone["model"]["law"].is_null());
}

/// What is measured is read back as it was said.
#[test]
fn throughput_measures_what_it_fits() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    let flags = "throughput --threads 2 --samples 2 --secs 0.1";
    let said = json(flags);
    let model = &said["model"];
    assert_eq!(model["measured_threads"], 2);
    let runs = said["runs"].as_array().unwrap();
    let work = |run: &Value| {
        let params = &run["params"];
        (
            params["server_work"].as_u64(),
            params["client_work"].as_u64(),
        )
    };
    let works: Vec<_> = runs.iter().map(work).collect();
    for both in [(512, 512), (512, 0), (0, 512), (0, 0)] {
        assert!(works.contains(&(Some(both.0), Some(both.1))), "{works:?}");
    }
    assert!(runs.len() == 4 && runs.iter().all(|run| run["correct"] == true));
    for key in ["schema", "machine", "commit", "command"] {
        assert!(said.get(key).is_some(), "{key}");
    }
    // If the machine left a run without a figure, there is nothing to fit; if it left the threads
    // without CPUs, figures may prove nothing.
    let is_kept = |run: &Value| {
        let mut samples = run["samples"].as_array().unwrap().iter();
        samples.any(|sample| sample["mode"] != "discarded")
    };
    let had_cpus = model["cpu_share"].as_f64() > Some(0.25);
    if had_cpus && runs.iter().all(is_kept) {
        assert_eq!(model["law_from"], "fitted", "{model}");
        assert!(model["points"][0]["residual"].is_number(), "{model}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.json");
    std::fs::write(&file, said.to_string()).unwrap();
    let again = json(&format!("throughput --from {}", file.display()));
    for figure in ["law/ts", "law/tc", "points/0/measured", "points/0/residual"] {
        let read = |said: &Value| said.pointer(&format!("/model/{figure}")).cloned();
        let [first, second] = [&said, &again].map(|s| read(s).and_then(|f| f.as_f64()));
        // But for the last digit of what was written.
        let apart = first.zip(second).map_or(0.0, |(a, b)| (a - b).abs());
        assert!(
            first.is_some() == second.is_some() && apart < 1e-9,
            "{figure}"
        );
    }
    // Beyond what was measured the model stands alone, and says so.
    let more = format!("throughput --threads 4 --from {}", file.display());
    let points = json(&more)["model"]["points"].as_array().unwrap().clone();
    assert_eq!(points.len(), 1 + 3);
    assert!(points[1..].iter().all(|point| point["measured"].is_null()));
    assert!(text(&more).contains("Beyond 2 threads nothing was measured"));
}

#[test]
fn bad_input_gets_one_sentence_that_names_the_flag() {
    let refused = |args: &str, names: &[&str]| refused(&words(args), names);
    refused("magic", &["magic"]);
    refused("contention --vars 0", &["--vars", "not within"]);
    refused("contention --threads 0", &["--threads"]);
    refused("contention --threads 2^21", &["--threads"]);
    refused("residency --l2 0", &["--l2"]);
    refused("residency --servers 0", &["--servers"]);
    refused("footprint --lines 0", &["--lines", "1 to 1024"]);
    refused("footprint --lines 4x", &["--lines"]);
    refused("footprint --clients 0", &["--clients"]);
    refused("ceilings --rtt 0", &["--rtt", "above 0"]);
    refused("ceilings --rtt -5", &["--rtt"]);
    refused("ceilings --ghz fast", &["--ghz"]);
    refused("ceilings --clients 0", &["--clients"]);
    refused(
        "throughput --method mutex",
        &["--method", "`mutex`", "trust-then"],
    );
    refused("throughput --method async-lines:0", &["--method"]);
    refused("throughput --threads 1", &["--threads"]);
    refused("throughput --ts 1", &["--tc"]);
    refused("throughput --ts 1 --tc 0", &["--tc"]);
    refused("throughput --ts 1 --tc 1 --from x.json", &["--from"]);
    refused(
        "throughput --from no-such-file",
        &["--from", "no-such-file"],
    );
    refused(
        "throughput --svg /no/such/folder/x.svg --ts 1 --tc 1",
        &["--svg"],
    );
    refused("throughput --svg - --ts 1 --tc 1", &["--svg -"]);
    refused("lines --svg -", &["--svg -"]);
    refused(
        "lines --machine 1x2x1 --clients 4 --method mcs,trust",
        &["--clients", "4 hardware threads", "2 places"],
    );
    refused(
        "lines --machine 1x1x1 --clients 1 --method trust",
        &["--clients", "2 hardware threads", "1 place"],
    );
    refused("throughput --server-work 2^30", &["--server-work"]);
    refused("throughput --secs 0", &["--secs"]);
    let foreign = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(foreign.path(), "{}").unwrap();
    let path = Path::display(foreign.path());
    refused(
        &format!("throughput --from {path}"),
        &["--from", "no results"],
    );
}
