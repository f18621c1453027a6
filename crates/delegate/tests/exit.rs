//! `exit` ends the process with its code, wherever it is called and whatever is under way.
//!
//! Each scene runs in a process of its own, on its real main thread: so this test has no harness.
//! A scene that hangs is stopped by its watchdog, and fails for its exit code.

#[cfg(not(any(corelay_loom, corelay_shuttle)))]
#[path = "exit/scenes.rs"]
mod scenes;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
#[path = "../../sync/tests/toy/mod.rs"]
#[allow(dead_code)]
mod toy;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
#[path = "watch/mod.rs"]
#[allow(dead_code)]
mod watch;

#[cfg(any(corelay_loom, corelay_shuttle))]
fn main() {}

#[cfg(not(any(corelay_loom, corelay_shuttle)))]
fn main() {
    use std::process::{Command, exit};

    /// Names the scene that this process is to play.
    const SCENE: &str = "CORELAY_EXIT_SCENE";
    if let Ok(name) = std::env::var(SCENE) {
        // Not dropped: the end of `main` is a scene, too.
        std::mem::forget(watch::watchdog());
        let scene = scenes::ALL.iter().find(|(known, ..)| *known == name);
        let (_, play, _) = scene.expect("the parent knows the scenes");
        return play();
    }
    let test = std::env::current_exe().expect("this is a program");
    let (mut passed, mut failed) = (0, 0);
    for (name, _, code) in scenes::ALL {
        let ran = Command::new(&test).env(SCENE, name).output();
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
