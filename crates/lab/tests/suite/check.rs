//! `corelay lab check` as its users run it: its table, its JSON, bad input, and the long run.

use crate::program::{corelay, fine, refused};
use serde_json::Value;

fn check(flags: &str) -> String {
    let args = ["lab", "check"].into_iter();
    fine(&corelay(
        &args.chain(flags.split_whitespace()).collect::<Vec<_>>(),
    ))
}

#[test]
fn a_table_says_what_is_linearizable() {
    let said = check(
        "--structure queue,lru,lazy-list --method mutex,trust-then,flat-adaptive,direct \
         --threads 3 --histories 4",
    );
    let lines: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for wanted in [
        &["method", "queue", "lru"][..],
        &["mutex", "ok", "ok"],
        &["trust-then", "ok", "ok"],
        &["flat-adaptive", "ok", "ok"],
        &["lazy-list", "ok"],
    ] {
        assert!(
            lines.iter().any(|line| line == wanted),
            "{wanted:?}: {said}"
        );
    }
    assert!(
        said.contains("Linearizable: 28 histories of 7 pairs"),
        "{said}"
    );
}

#[test]
fn json_has_each_pair_with_its_counts() {
    let said = check("--structure stack,ms-queue --operations 5 --histories 2 --threads 2 --json");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["threads"], &said["operations"]),
        (&2.into(), &5.into())
    );
    let pairs = said["pairs"].as_array().unwrap();
    let of = |name: &str| {
        pairs
            .iter()
            .filter(|pair| pair["structure"] == name)
            .count()
    };
    // All methods share the plain one.
    assert!(of("stack") > 20 && of("ms-queue") == 1, "{pairs:?}");
    for pair in pairs {
        let clients = if pair["calls"].as_u64() < Some(20) {
            1
        } else {
            2
        };
        assert!(pair["calls"].as_u64().unwrap() >= 2 * 5 * clients, "{pair}");
        assert_eq!((&pair["histories"], &pair["wrong"]), (&2.into(), &0.into()));
    }
}

#[test]
fn bad_input_gets_one_sentence_that_names_the_flag() {
    let bad = |flags: &str, words: &[&str]| {
        let args: Vec<&str> = ["lab", "check"]
            .into_iter()
            .chain(flags.split(' '))
            .collect();
        refused(&args, words);
    };
    bad("--structure rope", &["--structure", "`rope`", "lazy-list"]);
    bad(
        "--structure queue,all",
        &["--structure", "`all` stands alone"],
    );
    bad("--method magic", &["--method", "`magic`", "trust-async"]);
    bad("--method trust-post", &["--method", "`trust-post`"]);
    bad("--method trust-fibre:0", &["--method", "`trust-fibre:0`"]);
    bad("--threads 0", &["--threads", "1..=64"]);
    bad("--threads 65", &["--threads", "1..=64"]);
    bad("--threads 1", &["--threads 1", "give at least 2"]);
    bad("--operations 0", &["--operations", "1..=10000"]);
    bad("--histories 0", &["--histories", "1..=1000000"]);
    bad("--histories 10^9", &["--histories", "1..=1000000"]);
    bad("--seed -1", &["--seed", "`-1`"]);
    bad(
        "--structure lazy-list --method mutex",
        &["--structure lazy-list", "`direct`"],
    );
    bad(
        "--structure list --method direct",
        &["--structure list", "needs a method"],
    );
    bad(
        "--structure list --method mutex,direct",
        &["--method direct", "concurrent structures"],
    );
    refused(&["lab", "--json", "check"], &["--json", "after the step"]);
}

/// The long run of `cargo xtask deep smoke`.
#[test]
#[ignore = "thousands of histories of each pair, in the shipped build"]
fn thousands_of_histories_are_linearizable() {
    for (threads, operations, seed) in [(2, 20, 1), (3, 12, 2), (4, 12, 3), (8, 6, 4)] {
        let said = check(&format!(
            "--threads {threads} --operations {operations} --histories 1000 --seed {seed} --json"
        ));
        let said: Value = serde_json::from_str(&said).unwrap();
        let pairs = said["pairs"].as_array().unwrap();
        let sum = |of: &str| {
            pairs
                .iter()
                .map(|pair| pair[of].as_u64().unwrap())
                .sum::<u64>()
        };
        let (histories, undecided) = (sum("histories"), sum("undecided"));
        let (calls, overlapping) = (sum("calls"), sum("overlapping"));
        println!("{threads} threads: {overlapping} of {calls} calls overlapped another one");
        assert!(histories >= 1000 * 200 && overlapping > 0);
        // Now and then a history of stacks or queues is too hard for the checker.
        assert!(
            undecided <= histories / 10_000,
            "{undecided} of {histories}"
        );
    }
}
