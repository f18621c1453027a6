//! A process for each test.

use std::process::Command;

/// Set in the process that runs a test's body.
const INSIDE: &str = "CORELAY_HOSTILE_TEST";

/// Runs the body of the test `name` in a process of its own, whose freed memory is overwritten.
#[track_caller]
pub(crate) fn in_own_process(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let (code, output) = run(name);
    assert!(code == Some(0), "{name} ended with {code:?}:\n{output}");
}

fn run(name: &str) -> (Option<i32>, String) {
    let test = std::env::current_exe().expect("this is a program");
    let ran = Command::new(test)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        // glibc fills what is freed with the complement.
        .env("MALLOC_PERTURB_", "90")
        // The panics that hostile code catches are many.
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("a test can be run again");
    let mut output = String::from_utf8_lossy(&ran.stdout).into_owned();
    output += &String::from_utf8_lossy(&ran.stderr);
    (ran.status.code(), output)
}
