//! The structures as their users measure them: sizes, updates and shards, and bad input.

use crate::program::{corelay, fine, refused};
use corelay_lab_measure::schema::{Results, Size};

const STRUCTURES: [&str; 9] = [
    "list",
    "lazy-list",
    "queue",
    "stack",
    "hash",
    "skip-list",
    "tree",
    "heap",
    "lru",
];

#[test]
fn each_size_share_of_updates_and_number_of_shards_is_a_run() {
    let flags = "bench tree --method mutex,trust-then,flat-adaptive --threads 2 --size 8,100 \
                 --updates 0,50 --vars 1,4 --dist zipf:0.99 --samples 1 --secs 0.005 --json -";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let results: Results = serde_json::from_str(&fine(&corelay(&args))).unwrap();
    let mut runs = results.runs.iter();
    for size in [8, 100] {
        for updates in [0, 50] {
            for vars in [1, 4] {
                for method in ["mutex", "trust-then", "flat-adaptive"] {
                    let run = runs.next().unwrap();
                    assert!(run.correct && run.workload == "tree", "{run:?}");
                    assert_eq!((&*run.method, run.params.vars), (method, vars));
                    assert_eq!(run.params.dist, "zipf:0.99");
                    let extra = &run.params.extra;
                    assert_eq!(extra.size, Some(Size::Keys(size)));
                    assert_eq!(extra.updates, Some(updates));
                }
            }
        }
    }
    assert!(runs.next().is_none());
}

#[test]
fn best_of_delegation_and_best_rival_stand_below_the_table() {
    let flags = "bench lazy-list --method mutex,lazy-list,trust --threads 2,3 --size 16 --samples 1 \
                 --secs 0.005";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let table = fine(&corelay(&args));
    assert!(table.contains(" 5 %"), "{table}");
    // A machine that moved during every sample of a method leaves no figure.
    let has_figures = !table.contains('–');
    for word in [
        "any number of threads",
        "with 3 threads",
        "delegation ÷ rival",
    ] {
        assert!(
            table.contains(word) || !has_figures,
            "`{word}` is missing in: {table}"
        );
    }
}

#[test]
fn the_table_has_sizes_and_updates() {
    let flags =
        "bench heap --method mutex --threads 2 --size 37 --updates 61 --samples 1 --secs 0.005";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let table = fine(&corelay(&args));
    for word in ["size", "updates", " 37 ", " 61 %"] {
        assert!(table.contains(word), "`{word}` is missing in: {table}");
    }
}

#[test]
fn bad_input_gets_one_sentence_that_names_the_flag() {
    for structure in STRUCTURES {
        let bench = |line: &str, words: &[&str]| {
            let args: Vec<&str> = ["bench", structure]
                .into_iter()
                .chain(line.split(' '))
                .collect();
            refused(&args, words);
        };
        bench("--updates 101", &["--updates", "0..=100"]);
        bench("--updates -1", &["--updates", "`-1`"]);
        bench("--vars 0", &["--vars", "1..="]);
        bench("--size 0", &["--size", "1..="]);
        bench("--size 2^40", &["--size", "1..="]);
        bench("--method atomic", &["--method", "`atomic`", "mutex"]);
    }
    for keyless in ["queue", "stack", "heap", "lru", "fetch-add"] {
        let bench =
            |method, words: &[&str]| refused(&["bench", keyless, "--method", method], words);
        bench(
            "sharded-mutex",
            &[
                "`sharded-mutex` does not fit",
                "key",
                "list, lazy-list, hash",
            ],
        );
        bench("dashmap", &["`dashmap` does not fit", "for hash"]);
    }
    // As many keys as the flags take are more than the memory of any machine.
    refused(
        &["bench", "list", "--size", "8,2^30", "--vars", "2^32"],
        &["--size 8 --vars 4294967296", "MiB are available"],
    );
    refused(&["bench", "deque"], &["`deque`", "queue", "skip-list"]);
    let compare = |workload, words: &[&str]| refused(&["compare", "--workload", workload], words);
    compare(
        "deque",
        &["--workload", "`deque`", "fetch-add, list, lazy-list"],
    );
    compare("raytrace", &["`corelay bench raytrace`", "skip-list"]);
    for structure in STRUCTURES {
        let compare = |flag, value, words: &[&str]| {
            refused(&["compare", "--workload", structure, flag, value], words);
        };
        compare("--updates", "101", &["--updates", "0..=100"]);
        compare("--size", "0", &["--size", "1..="]);
        compare("--shards", "0", &["--vars", "1..="]);
        compare("--dist", "zipf", &["--dist", "zipf:0.99"]);
    }
    refused(
        &[
            "compare",
            "--workload",
            "tree",
            "--size",
            "2^30",
            "--shards",
            "2^32",
        ],
        &["--size 1073741824 --vars 4294967296", "MiB are available"],
    );
    refused(
        &["compare", "--size", "8"],
        &["--size", "fetch-add", "--workload"],
    );
    refused(
        &["compare", "--updates", "8"],
        &["--updates", "fetch-add", "--workload"],
    );
}

#[test]
#[ignore = "it takes as long as it says, and its figures need the shipped build"]
fn compare_takes_size_updates_shards_and_keys() {
    let folder = tempfile::tempdir().unwrap();
    let flags = "compare --quick --workload lazy-list --size 16 --updates 0 --shards 2,3 --dist zipf:0.5 --verbose";
    let mut args: Vec<&str> = flags.split(' ').collect();
    args.extend(["--out", folder.path().to_str().unwrap()]);
    let verdict = fine(&corelay(&args));
    let text = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let results: Results = serde_json::from_str(&text("results.json")).unwrap();
    for run in &results.runs {
        let extra = &run.params.extra;
        assert_eq!(run.workload, "lazy-list");
        assert_eq!(extra.size, Some(Size::Keys(16)));
        assert_eq!(extra.updates, Some(0));
        assert_eq!(run.params.dist, "zipf:0.5");
        assert!([2, 3].contains(&run.params.vars), "{run:?}");
    }
    let page = text("index.html");
    let has_both = verdict.contains("delegation ÷ rival");
    assert_eq!(has_both, page.contains("The best of delegation"));
    for said in [&verdict.to_lowercase(), &page] {
        assert!(
            said.contains("16 keys, 0\u{a0}% updates, zipf:0.5"),
            "{said}"
        );
    }
}
