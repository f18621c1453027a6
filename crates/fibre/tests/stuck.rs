//! Where every fibre waits, and nobody is left to wake one, that is said.

mod promise;

use corelay_fibre::Semaphore;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const CHILD: &str = "CORELAY_FIBRE_STUCK";

#[test]
#[cfg_attr(
    corelay_emulated,
    ignore = "an emulator keeps memory and processes otherwise"
)]
fn a_cluster_that_cannot_end_names_its_fibres() {
    if let Ok(processors) = std::env::var(CHILD) {
        let cluster = promise::cluster(processors.parse().unwrap());
        let bread = Arc::new(Semaphore::new(0));
        for name in ["Hansel", "Gretel"] {
            let bread = Arc::clone(&bread);
            let fibre = cluster.fibre().name(name);
            let waits = move || {
                // Behind the drop.
                std::thread::sleep(Duration::from_millis(100));
                bread.acquire();
            };
            drop(fibre.spawn(waits).unwrap());
        }
        // Waits for ever; whoever has started this process ends it.
        drop(cluster);
        return;
    }
    for processors in ["1", "2"] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "a_cluster_that_cannot_end_names_its_fibres",
                "--exact",
                "--nocapture",
            ])
            .env(CHILD, processors)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let told: Vec<String> = lines.map(Result::unwrap).take(3).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            told[0].contains("2 fibres, and each of them waits"),
            "{told:?}"
        );
        for name in ["Hansel", "Gretel"] {
            let named =
                format!("{name} waits in Semaphore::acquire at crates/fibre/tests/stuck.rs:");
            assert!(told.iter().any(|line| line.contains(&named)), "{told:?}");
        }
    }
}
