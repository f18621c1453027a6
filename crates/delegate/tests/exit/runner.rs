//! Runs scenes that end their process, each in one of its own, on its real main thread.
//!
//! A scene that hangs is stopped by its watchdog, and fails for its exit code.

use crate::watch;
use std::process::{Command, exit};

/// Name, body and exit code.
pub(crate) type Scene = (&'static str, fn(), i32);

/// Names the scene that this process is to play.
const SCENE: &str = "CORELAY_EXIT_SCENE";

pub(crate) fn run(scenes: &[Scene]) {
    if let Ok(name) = std::env::var(SCENE) {
        // Not dropped: the end of `main` is a scene, too.
        std::mem::forget(watch::watchdog());
        let scene = scenes.iter().find(|(known, ..)| *known == name);
        let (_, play, _) = scene.expect("the parent knows the scenes");
        return play();
    }
    if cfg!(corelay_emulated) {
        println!("no scene is played: without the emulator this program does not run again");
        return;
    }
    let test = std::env::current_exe().expect("this is a program");
    let (mut passed, mut failed) = (0, 0);
    for (name, _, code) in scenes {
        // Requests in flight at an exit are leaked, and a sanitizer of leaks would say so.
        let options = std::env::var("ASAN_OPTIONS").unwrap_or_default();
        let ran = Command::new(&test)
            .env(SCENE, name)
            .env("ASAN_OPTIONS", options + ":detect_leaks=0")
            .output();
        let ran = ran.expect("a test can be run again");
        if ran.status.code() == Some(*code) {
            println!("test {name} ... ok");
            passed += 1;
        } else {
            println!(
                "test {name} ... FAILED: {:?} instead of {code}\n{}",
                ran.status,
                String::from_utf8_lossy(&ran.stderr)
            );
            failed += 1;
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 {
        exit(1);
    }
}
