//! The answers that the check is checked with: wrong ones, each of which must be caught, and
//! correct ones, none of which may be refused.
//!
//! They are built together, which takes much less time than one after the other.

use super::fault::{Fault, Kind};
use super::files::{CHECK, CRATES};
use super::project::{Library, put, write};
use super::run::{AnswerResult, Checked, LENGTH, Limited, new_seed};
use corelay_lab_bench::peer::child::End;
use corelay_sync::facade::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A wrong answer.
struct Wrong {
    name: &'static str,
    source: &'static str,
    /// The kinds of fault that it may be caught for. Which of several a race shows first is open.
    kinds: &'static [Kind],
    /// Whether its fault shows only at rare moments, sizes, keys or values.
    is_rare: bool,
}

/// The kinds of fault of a table whose threads disturb each other.
const RACE: &[Kind] = &[
    Kind::Order,
    Kind::Lost,
    Kind::Value,
    Kind::Answer,
    Kind::Surplus,
    Kind::Duplicates,
];

/// The kinds of fault of a table that a single thread finds to be wrong.
const CONTENT: &[Kind] = &[
    Kind::Answer,
    Kind::Lost,
    Kind::Surplus,
    Kind::Value,
    Kind::Duplicates,
    Kind::Length,
];

macro_rules! wrong {
    ($($is_rare:literal $kinds:expr => $($name:literal)*;)*) => {
        &[$($(Wrong {
            name: $name,
            source: include_str!(concat!("mutants/", $name, ".rs")),
            kinds: $kinds,
            is_rare: $is_rare,
        },)*)*]
    };
}

/// The wrong answers that build. The test suite of the program has those that do not.
const WRONG: &[Wrong] = wrong! {
    false RACE => "check_then_insert" "copy_on_write" "gives_up" "overwrite_in_two_steps"
        "racy_resize" "stale_get" "removed_twice" "old_value_of_another_moment"
        "default_if_gone" "inserted_beside_the_old";
    false CONTENT => "forgetful_remove" "half_a_key" "no_old_value";
    false &[Kind::Length] => "racy_count";
    false &[Kind::Hang] => "two_locks";
    false &[Kind::Output] => "prints";
    false &[Kind::Ended] => "leaves_early";
    false &[Kind::Panic] => "fixed_size";

    true RACE => "key_before_its_value" "last_pair_beside_the_map" "late_version"
        "late_version_of_a_stripe" "lost_in_one_stripe" "moment_every_200th_growth"
        "moment_every_64th_growth" "moved_back_past_the_reader" "moved_past_the_reader"
        "narrow_version" "place_from_before" "reads_twice" "removed_comes_back" "stale_place"
        "to_the_front" "tries_twice" "two_grow_at_once" "written_later";
    true CONTENT => "counts_to_16_bits" "frees_a_place_in_a_chain" "full_at_4096"
        "largest_value_is_none" "removes_a_namesake" "reuses_a_mark_too_early"
        "shrinks_too_far" "snapshot_now_and_then" "zero_is_free";
    true &[Kind::Length] => "count_of_a_growth" "count_of_a_new_key";
    true &[Kind::Hang] => "locks_itself" "other_order";
    true &[Kind::Panic] => "panics_at_the_last_place";
};

macro_rules! correct {
    ($($name:literal)*) => {
        &[
            ("start", include_str!("start/lib.rs")),
            ("reference", include_str!("reference.rs")),
            $(($name, include_str!(concat!("designs/", $name, ".rs"))),)*
        ]
    };
}

/// Correct answers: a name and a source.
const CORRECT: &[(&str, &str)] = correct! {
    "a_thread_of_its_own" "cells_with_versions" "chains" "copy_of_all" "lists_of_before"
    "made_when_needed" "much_of_std" "open_addressing" "own_lock" "spinning" "step_by_step"
    "stripes_of_readers" "version_in_time"
};

/// Time for a check. A machine may be busy; a table that hangs is noticed by the check itself.
const LIMIT: Duration = Duration::from_secs(300);

static NOT_INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn limited(limit: Duration) -> Limited<'static> {
    Limited {
        limit,
        interrupted: &NOT_INTERRUPTED,
    }
}

/// Answers that were built, each as a program that checks it.
struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    /// Builds answers by name and source.
    fn all<'a>(answers: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(CRATES, root).unwrap();
        put(&root.join("check.rs"), CHECK).unwrap();
        let mut members = Vec::new();
        for (name, source) in answers {
            let library = Library {
                source: root.join(format!("set/{name}/table.rs")),
                edition: "2024".to_owned(),
                features: BTreeMap::new(),
            };
            put(&library.source, source).unwrap();
            let checked = library.checked(&format!("checked-{name}"), "../../..", true);
            put(
                &root.join(format!("set/{name}/checked/Cargo.toml")),
                &checked,
            )
            .unwrap();
            put(&root.join(format!("set/{name}/Cargo.toml")), &program(name)).unwrap();
            members.push(format!("\"set/{name}\""));
        }
        let members = members.join(", ");
        let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = [{members}]\n");
        put(&root.join("Cargo.toml"), &manifest).unwrap();
        let mut cargo = limited(4 * LIMIT).cargo().unwrap();
        cargo
            .args([
                "build",
                "--quiet",
                "--release",
                "--offline",
                "--target-dir",
                "target",
            ])
            .env("RUSTFLAGS", "-F unsafe_code --cap-lints allow")
            .current_dir(root);
        let built = limited(4 * LIMIT).watch(&mut cargo).unwrap();
        let is_built = matches!(built.end, End::Ended(status) if status.success());
        assert!(is_built, "{}", built.stderr);
        Self { folder }
    }

    /// Checks an answer once. The long stages take `length` together.
    fn check(&self, name: &str, length: Duration) -> AnswerResult<Checked> {
        static LEFT: AtomicUsize = AtomicUsize::new(0);
        let nth = LEFT.fetch_add(1, Ordering::SeqCst);
        let left = self.folder.path().join(format!("left-{nth}"));
        std::fs::create_dir(&left).unwrap();
        let program = self.program(name);
        let checked = limited(LIMIT).check_by(&program, &left, length, new_seed());
        std::fs::remove_dir_all(&left).unwrap();
        checked
    }

    fn program(&self, name: &str) -> PathBuf {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        self.folder.path().join("target/release").join(name)
    }
}

/// Returns the manifest of the program that checks an answer.
fn program(name: &str) -> String {
    format!(
        "[package]\nname = \"check-{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\n\
         check = {{ package = \"corelay-hash-check\", path = \"../../check\" }}\n\
         checked = {{ package = \"checked-{name}\", path = \"checked\" }}\n\
         [[bin]]\nname = \"{name}\"\npath = \"../../check.rs\"\n"
    )
}

/// Says what was missed about a wrong answer, if it was not caught for its fault.
fn missed(wrong: &Wrong, checked: Result<Checked, Fault>) -> Option<String> {
    match checked {
        Err(fault) if wrong.kinds.contains(&fault.kind) => None,
        Err(fault) => Some(format!(
            "{}: {:?}, and it was {fault}",
            wrong.name, wrong.kinds
        )),
        Ok(_) => Some(format!("{}: no fault was found", wrong.name)),
    }
}

/// Runs `work` for each of these, as many at a time as there are CPUs.
fn each<T: Sync>(all: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::SeqCst)) {
                    work(one);
                }
            });
        }
    });
}

#[test]
fn the_set_is_whole() {
    let folder = |name: &str| {
        let folder = format!("{}/src/hash/{name}", env!("CARGO_MANIFEST_DIR"));
        let entries = std::fs::read_dir(folder).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        entries.map(name).collect::<BTreeSet<String>>()
    };
    let file = |name: &str| format!("{name}.rs");
    let mut wrong: BTreeSet<String> = WRONG.iter().map(|wrong| file(wrong.name)).collect();
    let unbuilt = [
        "does_not_build",
        "unsafe_shortcut",
        "not_sync",
        "other_calls",
    ];
    wrong.extend(unbuilt.map(file));
    assert_eq!(folder("mutants"), wrong);
    let correct: BTreeSet<String> = CORRECT[2..].iter().map(|one| file(one.0)).collect();
    assert_eq!(folder("designs"), correct);
    let rare = WRONG.iter().filter(|wrong| wrong.is_rare).count();
    assert!(WRONG.len() >= 40 && 2 * rare >= WRONG.len(), "{rare}");
}

/// Each wrong answer and each correct one once. The check is shorter than that of a user.
#[test]
fn wrong_answers_are_caught_and_correct_ones_are_not() {
    let wrong = WRONG.iter().map(|wrong| (wrong.name, wrong.source));
    let built = Built::all(wrong.chain(CORRECT.iter().copied()));
    let found = std::sync::Mutex::new(Vec::new());
    each(WRONG, |wrong| {
        let what = missed(wrong, built.check(wrong.name, LENGTH).unwrap());
        found.lock().unwrap().extend(what);
    });
    let short = Duration::from_secs(1);
    each(CORRECT, |(name, _)| {
        if let Err(fault) = built.check(name, short).unwrap() {
            found
                .lock()
                .unwrap()
                .push(format!("{name} was refused: {fault}"));
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{found:#?}");
}

/// Each wrong answer 20 times and the reference 200 times, as a user checks them. Prints a line for
/// each answer.
#[test]
#[ignore = "takes about an hour: `cargo xtask deep hash`"]
fn campaign() {
    let limit = Duration::from_secs(60);
    let wrong = WRONG.iter().map(|wrong| (wrong.name, wrong.source));
    let built = Built::all(wrong.chain(CORRECT.iter().copied()));
    let found = std::sync::Mutex::new(Vec::new());
    let report = |name: &str, count: usize, times: &[Duration], what: &str| {
        let longest = times
            .iter()
            .max()
            .copied()
            .unwrap_or_default()
            .as_secs_f64();
        let mean = times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64;
        let of = times.len();
        println!("{name}: {what} {count} of {of}; {mean:.1} s, at most {longest:.1} s");
    };
    for wrong in WRONG {
        let times = std::sync::Mutex::new(Vec::new());
        let before = found.lock().unwrap().len();
        each(&[(); 20], |()| {
            let began = Instant::now();
            let what = missed(wrong, built.check(wrong.name, LENGTH).unwrap());
            times.lock().unwrap().push(began.elapsed());
            found.lock().unwrap().extend(what);
        });
        let times = times.into_inner().unwrap();
        let caught = times.len() + before - found.lock().unwrap().len();
        report(wrong.name, caught, &times, "caught");
    }
    for (name, _) in CORRECT {
        let times = std::sync::Mutex::new(Vec::new());
        let before = found.lock().unwrap().len();
        let runs = if *name == "reference" { 200 } else { 10 };
        each(&vec![(); runs], |()| {
            let began = Instant::now();
            if let Err(fault) = built.check(name, LENGTH).unwrap() {
                found
                    .lock()
                    .unwrap()
                    .push(format!("{name} was refused: {fault}"));
            }
            times.lock().unwrap().push(began.elapsed());
        });
        let times = times.into_inner().unwrap();
        let refused = found.lock().unwrap().len() - before;
        report(name, refused, &times, "refused");
        let longest = times.iter().max().unwrap();
        if *longest >= limit {
            found
                .lock()
                .unwrap()
                .push(format!("{name} took {longest:?}"));
        }
    }
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{found:#?}");
}

/// An answer that builds only with the real `std` is checked without points.
#[test]
fn an_answer_that_needs_the_real_std_is_checked_without_points() {
    use super::project::{Answer, Workshop};
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("table");
    super::init(&project).unwrap();
    let library = project.join("src/lib.rs");
    let source = std::fs::read_to_string(&library).unwrap()
        + "\nconst _: [(); size_of::<std::sync::atomic::AtomicU64>()] = [(); 8];\n\
           const _: () = assert!(size_of::<std::sync::Condvar>() <= 8);\n\
           const _: () = assert!(size_of::<MutexGuard<'static, u8>>() <= 16);\n";
    std::fs::write(&library, source).unwrap();
    let limited = limited(Duration::from_secs(120));
    let answer = Answer::of(&project, &limited).unwrap();
    let workshop = Workshop::open().unwrap();
    assert_eq!(limited.build(&workshop, &answer, false), Ok(Ok(false)));
    let (program, left) = (workshop.program("check"), workshop.left());
    let short = Duration::from_millis(300);
    let checked = limited.check_by(&program, &left, short, 1).unwrap();
    assert!(checked.unwrap().turn_rounds > 0);
}
