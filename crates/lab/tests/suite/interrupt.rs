//! Ctrl-C keeps what was measured, says so by exit code 130, and leaves whole files.

use crate::program;
use corelay_lab_measure::schema::Results;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Waits for `done`, a minute at most.
fn within_a_minute<T>(mut done: impl FnMut() -> Option<T>) -> Option<T> {
    (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        done()
    })
}

/// The program has opened its files in `folder`; it hears Ctrl-C before it does that.
fn has_begun(folder: &Path) -> Option<()> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .any(|name| name.starts_with(".corelay-"))
        .then_some(())
}

/// Starts the program, interrupts it when it has had half a second to measure, and
/// returns its exit code.
fn interrupted(args: &[&str], folder: &Path) -> Option<i32> {
    interrupted_after(args, |_| has_begun(folder))
}

/// Does the same as [`interrupted`]; `has_begun` says when the program hears Ctrl-C.
fn interrupted_after(args: &[&str], has_begun: impl Fn(&Child) -> Option<()>) -> Option<i32> {
    let state = tempfile::tempdir().unwrap();
    let mut command = program::command(state.path());
    command.args(args);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let begun = within_a_minute(|| has_begun(&child));
    std::thread::sleep(Duration::from_millis(500));
    if begun.is_some() {
        let kill = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
    }
    let ended = within_a_minute(|| child.try_wait().unwrap());
    end(&mut child);
    assert!(begun.is_some(), "the program did not begin");
    ended.expect("the program did not end on Ctrl-C").code()
}

/// A program that hangs must not outlive its test.
fn end(child: &mut Child) {
    let _ = child.kill();
    child.wait().unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Whoever reads the results later learns that they are not all.
fn says_so(results: &Results) -> bool {
    let unavailable = &results.machine.unavailable;
    unavailable
        .iter()
        .any(|sentence| sentence.contains("Ctrl-C"))
}

#[test]
fn bench_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.json");
    let flags = "bench fetch-add --method atomic,mutex --threads 1 --vars 1 --samples 100000 \
                 --secs 0.01 --json";
    let mut args: Vec<&str> = flags.split_whitespace().collect();
    args.push(file.to_str().unwrap());
    assert_eq!(interrupted(&args, folder.path()), Some(130));
    let results: Results = serde_json::from_str(&read(&file)).unwrap();
    assert!(results.runs.len() <= 2 && results.runs.iter().all(|run| run.correct));
    assert!(says_so(&results), "{:?}", results.machine.unavailable);
    assert_eq!(has_begun(folder.path()), None, "a temporary file is left");
}

#[test]
fn raytrace_keeps_the_pictures_that_were_done() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.json");
    // So many pictures take hours.
    let flags = "bench raytrace --method mutex --threads 2 --size 64 --samples 100000 --json";
    let mut args: Vec<&str> = flags.split(' ').collect();
    args.push(file.to_str().unwrap());
    assert_eq!(interrupted(&args, folder.path()), Some(130));
    let results: Results = serde_json::from_str(&read(&file)).unwrap();
    assert!(results.runs.iter().all(|run| run.correct));
    assert!(says_so(&results), "{:?}", results.machine.unavailable);
}

#[test]
fn a_play_that_is_not_over_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let flags = "lab greedy --policy adaptive,fast-path --steps 1000000000 --out";
    let mut args: Vec<&str> = flags.split(' ').collect();
    args.push(folder.path().to_str().unwrap());
    assert_eq!(interrupted(&args, folder.path()), Some(130));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn compare_still_writes_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["compare", "--out", folder.path().to_str().unwrap()];
    assert_eq!(interrupted(&args, folder.path()), Some(130));
    let results: Results =
        serde_json::from_str(&read(&folder.path().join("results.json"))).unwrap();
    assert!(results.runs.iter().all(|run| run.correct));
    assert!(says_so(&results), "{:?}", results.machine.unavailable);
    assert!(read(&folder.path().join("index.html")).contains("</html>"));
    assert_eq!(has_begun(folder.path()), None, "a temporary file is left");
}

#[test]
#[cfg(target_os = "linux")]
fn a_check_ends_after_the_history_at_hand() {
    // The threads that record come after the one that hears Ctrl-C.
    let has_threads = |child: &Child| {
        let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).ok()?;
        (threads.count() >= 4).then_some(())
    };
    // So many histories take minutes.
    let flags = "lab check --structure queue --method mutex --threads 2 --histories 1000000";
    let args: Vec<&str> = flags.split(' ').collect();
    assert_eq!(interrupted_after(&args, has_threads), Some(130));
}
