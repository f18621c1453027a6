//! Scopes.

use crate::promise;
use corelay_fibre::{
    Cancelled, Cluster, DumpedFibre, Semaphore, State, is_cancelled, scope, yield_now,
};
use corelay_sync::wait::{CodeName, NoSwitch};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A value that counts its drop.
struct Bell<'a>(&'a AtomicUsize);

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn text(payload: &(dyn std::any::Any + Send)) -> &str {
    payload.downcast_ref::<&str>().copied().unwrap_or("no text")
}

#[test]
fn borrows_from_a_thread_and_from_a_fibre() {
    for processors in [1, 2] {
        let cluster = promise::cluster(processors);
        let mut parts = vec![0; 20];
        cluster.scope(|s| {
            for (i, part) in parts.iter_mut().enumerate() {
                s.spawn(move || {
                    yield_now();
                    *part = i;
                });
            }
        });
        assert!(parts.into_iter().eq(0..20));
        let sum = cluster.spawn(|| {
            let parts: Vec<_> = (0..20).map(AtomicUsize::new).collect();
            scope(|s| {
                for part in &parts {
                    s.spawn(move || {
                        // Spawns from within the scope's fibres, too.
                        s.spawn(|| part.fetch_add(1, Ordering::Relaxed));
                    });
                }
            });
            parts
                .into_iter()
                .map(AtomicUsize::into_inner)
                .sum::<usize>()
        });
        assert_eq!(sum.join().unwrap(), 210);
    }
}

/// Results that borrow are dropped before the scope ends, joined or not.
#[test]
fn results_end_with_the_scope() {
    let cluster = promise::cluster(2);
    for _ in 0..200 {
        let rung = AtomicUsize::new(0);
        cluster.scope(|s| {
            drop(s.spawn(|| Bell(&rung)));
            let _kept = s.spawn(|| {
                yield_now();
                [Bell(&rung), Bell(&rung)]
            });
            drop(s.spawn(|| Bell(&rung)).join().unwrap());
        });
        assert_eq!(rung.into_inner(), 4);
    }
}

/// A scope waits for all its fibres even if it unwinds.
#[test]
fn a_panic_waits() {
    let cluster = promise::cluster(2);
    let ended = AtomicUsize::new(0);
    let payload = catch_unwind(AssertUnwindSafe(|| {
        cluster.scope(|s| {
            for _ in 0..10 {
                s.spawn(|| {
                    for _ in 0..100 {
                        yield_now();
                    }
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }
            std::panic::resume_unwind(Box::new("out"));
        })
    }));
    assert_eq!(text(&*payload.unwrap_err()), "out");
    assert_eq!(ended.into_inner(), 10);
}

/// A fibre's panic becomes the scope's, unless somebody has joined the fibre.
#[test]
fn a_panic_of_a_fibre() {
    let cluster = promise::cluster(2);
    for _ in 0..100 {
        let unheard = catch_unwind(AssertUnwindSafe(|| {
            cluster.scope(|s| drop(s.spawn(|| std::panic::resume_unwind(Box::new("boom")))))
        }));
        assert_eq!(
            text(&*unheard.unwrap_err()),
            "corelay: a fibre of a scope has panicked"
        );
        cluster.scope(|s| {
            let boom = s.spawn(|| std::panic::resume_unwind(Box::new("boom")));
            let end: Result<(), _> = boom.join();
            assert_eq!(text(&*end.unwrap_err()), "boom");
            // A cancellation does not count as a panic.
            s.spawn(|| Semaphore::new(0).acquire()).fibre().cancel();
        });
    }
}

/// A cancellation of the owner is delivered after its fibres have ended.
#[test]
fn cancelled() {
    for processors in [1, 2] {
        let cluster = promise::cluster(processors);
        for _ in 0..100 {
            let (go, ended) = (Semaphore::new(0), AtomicUsize::new(0));
            let after = AtomicUsize::new(0);
            cluster.scope(|s| {
                let (go, ended, after) = (&go, &ended, &after);
                let owner = s.spawn(move || {
                    scope(|s| {
                        for _ in 0..5 {
                            s.spawn(|| {
                                go.acquire();
                                assert!(!is_cancelled());
                                ended.fetch_add(1, Ordering::Relaxed);
                            });
                        }
                    });
                    after.fetch_add(1, Ordering::Relaxed);
                });
                owner.fibre().cancel();
                // An owner whose fibres have ended before it looks does not wait.
                let at_the_end =
                    |f: &DumpedFibre| matches!(f.state, State::Waiting { call: "scope", .. });
                while !cluster.dump().fibres.iter().any(at_the_end) {
                    std::thread::yield_now();
                }
                go.release_many(5);
                assert!(owner.join().unwrap_err().is::<Cancelled>());
                assert_eq!(ended.load(Ordering::Relaxed), 5);
            });
            assert_eq!(after.into_inner(), 0);
        }
    }
}

/// A scope must not be left before its fibres end, not even by a panic: they borrow.
#[test]
#[cfg_attr(
    corelay_emulated,
    ignore = "an emulator keeps memory and processes otherwise"
)]
fn a_scope_that_cannot_wait_for_its_fibres_ends_the_process() {
    const CHILD: &str = "CORELAY_FIBRE_SCOPE";
    let test = "scope::a_scope_that_cannot_wait_for_its_fibres_ends_the_process";
    // The body leaves a guard behind that forbids waits, while a fibre of the scope runs.
    let body = |cluster: &Cluster| {
        let door = Semaphore::new(0);
        let text = String::from("borrowed");
        cluster.scope(|s| {
            s.spawn(|| {
                door.acquire();
                text.len()
            });
            // SAFETY: the guard is dropped at the end of the body, and the name is a constant.
            unsafe { NoSwitch::enter(const { &CodeName::fixed(&"a section") }) }
        });
    };
    match std::env::var(CHILD).as_deref() {
        Ok("thread") => {
            let cluster = promise::cluster(1);
            let _ = catch_unwind(AssertUnwindSafe(|| body(&cluster)));
            std::process::exit(0);
        }
        Ok(_) => {
            let cluster = Arc::new(promise::cluster(1));
            let own = Arc::clone(&cluster);
            let _ = cluster.spawn(move || body(&own)).join();
            std::process::exit(0);
        }
        Err(_) => {
            for place in ["thread", "fibre"] {
                let output = Command::new(std::env::current_exe().unwrap())
                    .args([test, "--exact", "--nocapture"])
                    .env(CHILD, place)
                    .output()
                    .unwrap();
                let text = String::from_utf8_lossy(&output.stderr);
                assert!(!output.status.success(), "{text}");
                assert!(text.contains("inside a section"), "{text}");
                assert!(text.contains("could not wait for its fibres"), "{text}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "use Cluster::scope")]
fn on_a_thread_it_needs_a_cluster() {
    scope(|_| {});
}
