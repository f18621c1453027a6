//! The exercise of the hash table (L8): correct answers pass, and wrong ones are caught for what is
//! wrong with them. No speed is asserted.

use crate::program::{self, alone, corelay, fine, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

macro_rules! source {
    ($path:literal) => {
        include_str!(concat!("../../../lab-course/src/hash/", $path, ".rs"))
    };
}

/// A wrong answer: name, source, and the kinds of fault that it may be caught for.
type Mutant = (&'static str, &'static str, &'static [&'static str]);

/// Some wrong answers, and the kinds of fault that each may be caught for: which of several a race
/// shows first is open. `corelay-lab-course` has the whole set in a test of its own.
const MUTANTS: &[Mutant] = &[
    (
        "check_then_insert",
        source!("mutants/check_then_insert"),
        &["answer", "duplicates", "order", "lost", "surplus"],
    ),
    ("leaves_early", source!("mutants/leaves_early"), &["ended"]),
    (
        "does_not_build",
        source!("mutants/does_not_build"),
        &["build"],
    ),
    (
        "unsafe_shortcut",
        source!("mutants/unsafe_shortcut"),
        &["build"],
    ),
    ("not_sync", source!("mutants/not_sync"), &["unfit"]),
    ("other_calls", source!("mutants/other_calls"), &["unfit"]),
];

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

/// A project with this answer.
fn project(folder: &Path, answer: &str) {
    fine(&corelay(&["lab", "hash", "--init", path(folder)]));
    fs::write(folder.join("src/lib.rs"), answer).unwrap();
}

fn check(folder: &Path, more: &[&str]) -> Output {
    let args = ["lab", "hash", "--no-measure", "--check", path(folder)];
    corelay(&[&args, more].concat())
}

/// What `--json` has printed.
fn json(output: &Output) -> Value {
    let said = serde_json::from_slice(&output.stdout);
    said.unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// Demands that each of these is caught. A build is made for it.
fn caught<'a>(mutants: impl Iterator<Item = &'a Mutant>) {
    let folder = tempfile::tempdir().unwrap();
    let mut missed = Vec::new();
    for (name, answer, kinds) in mutants {
        let folder = folder.path().join(name);
        project(&folder, answer);
        let output = check(&folder, &["--json"]);
        let shown = json(&output);
        let fault = &shown["figures"]["fault"];
        let kind = fault["kind"].as_str().unwrap_or("none");
        let is_caught = kinds.contains(&kind) && output.status.code() == Some(1);
        if !is_caught {
            missed.push(format!("{name}: {kinds:?}, and it was {fault}"));
            continue;
        }
        assert_eq!(shown["figures"]["mark"]["points"], 0, "{name}");
        let sentence = shown["wrong"][0].as_str().unwrap();
        assert!(sentence.contains(fault["what"].as_str().unwrap()), "{name}");
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The wrong answers that the gate builds: one wrong order, one wrong end.
const OFTEN: &[&str] = &["check_then_insert", "leaves_early"];

fn is_often((name, ..): &&Mutant) -> bool {
    OFTEN.contains(name)
}

#[test]
fn wrong_answers_are_caught_for_what_is_wrong() {
    assert_eq!(MUTANTS.iter().filter(is_often).count(), OFTEN.len());
    caught(MUTANTS.iter().filter(is_often));
}

#[test]
#[ignore = "each takes a build; the gate has two of them"]
fn answers_that_do_not_build_are_caught() {
    caught(MUTANTS.iter().filter(|mutant| !is_often(mutant)));
}

/// The start as it is written, and the reference in its place.
#[test]
fn correct_answers_pass() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("new/table");
    let said = fine(&corelay(&["lab", "hash", "--init", path(&project)]));
    assert!(said.contains("README.md") && said.contains("--check"));
    let said = fine(&check(&project, &[]));
    assert!(said.contains("Mark: 3 of 3 points."), "{said}");
    assert!(said.contains("3 of 3: no fault was found.") && said.contains("--no-measure"));
    assert!(
        !said.contains("is right") && !said.contains("is correct"),
        "{said}"
    );
    assert!(!said.contains("WRONG"));

    fs::write(project.join("src/lib.rs"), source!("reference")).unwrap();
    let before = files(&project);
    let shown = json(&check(&project, &["--json"]));
    assert_eq!(shown["figures"]["fault"], Value::Null);
    assert_eq!(shown["figures"]["mark"]["points"], 3);
    assert_eq!(files(&project), before, "nothing is written there");
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// What `--init` writes is whole: its own tests and its example pass.
#[test]
fn the_start_passes_its_own_tests() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("table");
    fine(&corelay(&["lab", "hash", "--init", path(&project)]));
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["test", "--offline"]).current_dir(&project);
    cargo.env("CARGO_TARGET_DIR", folder.path().join("target"));
    // Those of this workspace are not meant for it.
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(name);
    }
    let said = fine(&cargo.output().unwrap());
    for passed in ["3 passed", "1 passed"] {
        assert!(said.contains(passed), "{said}");
    }
}

/// With the measuring, of which nothing is asserted but that it is there.
#[test]
fn the_step_checks_and_measures_both() {
    let output = corelay(&["lab", "hash", "--json"]);
    let shown: Value = serde_json::from_str(&fine(&output)).unwrap();
    assert_eq!(shown["wrong"], Value::Array(vec![]));
    assert_eq!(shown["guess"]["guessed"], Value::Null);
    let runs = shown["runs"].as_array().unwrap();
    for method in ["start", "reference"] {
        let own = || runs.iter().filter(|run| run["method"] == method);
        assert!(own().any(|run| run["params"]["threads"] == 1));
        assert!(own().all(|run| run["workload"] == "course-hash"));
        assert!(own().all(|run| run["median_mops"].as_f64().unwrap() > 0.0));
    }
}

#[test]
fn what_is_wrong_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let answer = source!("mutants/does_not_build");
    project(folder.path(), answer);
    let output = check(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    for words in [
        "WRONG: The project does not build",
        "src/lib.rs:",
        "valeu",
        "Mark: 0 of 10",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    program::refused(&[&["lab", "hash"], args].concat(), words);
}

#[test]
fn bad_input_gets_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let file = at("file");
    fs::write(&file, "kept").unwrap();
    let full = folder.path();
    refused(&["--init", path(full)], &["--init", "not empty"]);
    refused(&["--init", path(&file)], &["--init", "is a file"]);
    refused(
        &["--init", path(&file.join("x"))],
        &["--init", "cannot be written"],
    );
    assert_eq!(files(full), ["file"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");

    refused(
        &["--check", path(&at("none"))],
        &["--check", "no such folder"],
    );
    refused(&["--check", path(&file)], &["--check", "is a file"]);
    refused(
        &["--check", path(full)],
        &["--check", "no Cargo.toml", "--init"],
    );
    for (name, manifest, word) in [
        ("broken", "[package", "cargo refuses its Cargo.toml"),
        ("empty", "[workspace]\n", "names no package"),
        (
            "binary",
            "[package]\nname = \"b\"\n[workspace]\n[[bin]]\nname = \"b\"\npath = \"m.rs\"\n",
            "no library",
        ),
        (
            "dependent",
            "[package]\nname = \"d\"\n[workspace]\n[lib]\npath = \"m.rs\"\n\
             [dependencies]\ndashmap = \"6\"\n",
            "`dashmap`",
        ),
    ] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("Cargo.toml"), manifest).unwrap();
        fs::write(at(name).join("m.rs"), "fn main() {}\n").unwrap();
        refused(&["--check", path(&at(name))], &["--check", word]);
    }
    let new = at("new");
    refused(
        &["--init", path(&new), "--check", path(full)],
        &["--init", "--check"],
    );
    refused(
        &["--init", path(&new), "--no-measure"],
        &["--init", "--no-measure"],
    );
    assert!(!new.exists());
    refused(&["--check"], &["--check"]);
    refused(&["--limit", "0"], &["--limit", "1..=3600"]);
    refused(&["--limit", "long"], &["--limit", "`long`"]);
}

/// Without cargo there is a sentence.
#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path(), source!("reference"));
    let args = ["lab", "hash", "--check", path(folder.path())];
    program::is_refusal(&alone(&args), &args, &["cargo", "not installed"]);
}
