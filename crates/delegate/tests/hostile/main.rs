//! User code that re-enters corelay wherever corelay runs it.
//!
//! Destructors, panic payloads, callbacks and wakers [misbehave](stage::Stage::misbehave) on each
//! way of a request, on each kind of trustee. Afterwards every token has been dropped exactly once
//! and the trustees still answer. Each test runs in a process of its own, where the allocator fills
//! freed memory with rubbish, so that a client used after its end does not look alive.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod acts;
mod own_process;
mod stage;
#[path = "../../../sync/tests/toy/mod.rs"]
#[allow(dead_code, reason = "each test file uses a part")]
mod toy;
#[path = "../watch/mod.rs"]
#[allow(dead_code, reason = "each test file uses a part")]
mod watch;

use acts::{ACTS, LAUNCHES};
use corelay_delegate::{ClientGuard, Policy, Trustees, barrier};
use own_process::in_own_process;
use stage::{Stage, Tokens};
use watch::watchdog;

/// Checks that the trustees still answer, and that every token has been dropped once.
fn close(act: &str, trustees: Trustees, tokens: &Tokens) {
    for i in 0..trustees.len() {
        let alive = trustees.entrust_on(i, 1);
        assert_eq!(alive.apply(|one| *one), 1, "{act}");
    }
    while barrier().is_err() {}
    drop(ClientGuard::new());
    trustees.shutdown();
    tokens.assert_balanced(act);
}

#[test]
fn hostile_code_on_dedicated_trustees() {
    in_own_process("hostile_code_on_dedicated_trustees", || {
        let _watch = watchdog();
        for window in [4, 256] {
            for &(name, act) in ACTS {
                let trustees = Trustees::dedicated(2).window(window).start();
                let trustees = trustees.expect("the settings are in order");
                let tokens = Tokens::default();
                let stage = Stage::new(&trustees, &tokens);
                let played = std::thread::spawn(move || act(&stage)).join();
                assert!(played.is_ok(), "{name} has panicked");
                close(name, trustees, &tokens);
            }
        }
    });
}

#[test]
fn hostile_code_on_members_of_a_flat_team() {
    in_own_process("hostile_code_on_members_of_a_flat_team", || {
        let _watch = watchdog();
        let policies = [
            Policy::Queue,
            Policy::Blocked,
            Policy::FastPath,
            Policy::Bound(2),
            Policy::Doorbell,
            Policy::Adaptive,
        ];
        for policy in policies {
            for &(name, act) in ACTS {
                let team = Trustees::flat(2).policy(policy).window(8).start();
                let team = team.expect("the settings are in order");
                let tokens = Tokens::default();
                let stage = Stage::new(&team, &tokens);
                team.run(|_| act(&stage));
                drop(stage);
                let alive = team.entrust(1);
                assert_eq!(alive.apply(|one| *one), 1, "{name}");
                while barrier().is_err() {}
                drop((alive, ClientGuard::new()));
                team.shutdown();
                tokens.assert_balanced(name);
            }
        }
    });
}

#[test]
fn hostile_code_on_hosted_trustees() {
    in_own_process("hostile_code_on_hosted_trustees", || {
        let _watch = watchdog();
        for &(name, act) in ACTS.iter().chain(LAUNCHES) {
            let trustees = Trustees::dedicated(2).host(toy::host()).window(8).start();
            let trustees = trustees.expect("the settings are in order");
            let tokens = Tokens::default();
            let stage = Stage::new(&trustees, &tokens);
            let played = std::thread::spawn(move || act(&stage)).join();
            assert!(played.is_ok(), "{name} has panicked");
            close(name, trustees, &tokens);
        }
    });
}

#[test]
fn hostile_code_in_launched_closures() {
    in_own_process("hostile_code_in_launched_closures", || {
        let _watch = watchdog();
        for &(name, act) in ACTS {
            let trustees = Trustees::dedicated(2).host(toy::host()).window(8).start();
            let trustees = trustees.expect("the settings are in order");
            let others = Trustees::dedicated(2).start().expect("threads");
            let tokens = Tokens::default();
            // Launched closures would wait for each other's objects: the stage is others'.
            let stage = Stage::new(&others, &tokens);
            let at = trustees.entrust(());
            let played = at.launch(move |()| act(&stage)).join();
            assert!(played.is_ok(), "{name} has panicked");
            drop(at);
            // The trustees of the stage keep the first payload of what their closures have asked for.
            others.shutdown();
            close(name, trustees, &tokens);
        }
    });
}
