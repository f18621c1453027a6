//! Combining locks on fibres and on trustees: a waiter is suspended, and a combiner never is.

use crate::fibres::{InDrop, spawn};
use crate::launch::hosted;
use crate::leaves::while_held;
use crate::promise;
use corelay::fibre::{State, is_cancelled, sleep, yield_now};
use corelay::locks::{CcSynchWord, Combiner, Combining, DsmSynchWord, FlatCombiningWord};
use corelay::{Session, Shared};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Makes a test of each body `fn body<C: Combiner>()`, for all combining locks.
macro_rules! for_combining_locks {
    ($($body:ident;)*) => {$(
        mod $body {
            #[test]
            fn cc_synch() {
                super::$body::<super::CcSynchWord>();
            }

            #[test]
            fn dsm_synch() {
                super::$body::<super::DsmSynchWord>();
            }

            #[test]
            fn flat_combining() {
                super::$body::<super::FlatCombiningWord>();
            }
        }
    )*};
}

for_combining_locks! {
    fibres_and_threads_apply;
    others_run_while_a_fibre_waits;
    others_run_while_a_destructor_waits;
    a_cancelled_fibre_stays_in_its_call;
    a_closure_does_not_suspend_its_combiner;
    a_launched_closure_waits_and_others_are_served;
}

type Lock<C> = Arc<Combining<C, u64>>;

fn lock<C: Combiner>() -> Lock<C> {
    Arc::new(Combining::new(0))
}

fn add<C: Combiner>(lock: &Lock<C>) -> u64 {
    lock.session().apply(|n| {
        *n += 1;
        *n
    })
}

fn fibres_and_threads_apply<C: Combiner + 'static>() {
    const FIBRES: u64 = 32;
    const TIMES: u64 = 200;
    for (is_migrating, processors) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        let lock = lock::<C>();
        let cluster = promise::cluster(processors);
        let work = |lock: Lock<C>| {
            move || {
                for n in 0..TIMES {
                    add(&lock);
                    if n % 8 == 0 {
                        yield_now();
                    }
                }
            }
        };
        let fibres: Vec<_> = (0..FIBRES)
            .map(|_| spawn(&cluster, is_migrating, work(Arc::clone(&lock))))
            .collect();
        work(Arc::clone(&lock))();
        fibres.into_iter().for_each(|fibre| fibre.join().unwrap());
        assert_eq!(lock.session().apply(|n| *n), (FIBRES + 1) * TIMES);
    }
}

/// There is one processor, so the second fibre runs only if the first has been suspended. A dump
/// names the lock that the first waits for.
fn others_run_while_a_fibre_waits<C: Combiner + 'static>() {
    for is_migrating in [false, true] {
        let lock = lock::<C>();
        let cluster = promise::cluster(1);
        let theirs = Arc::clone(&lock);
        let waits = while_held(&*lock, || {
            let waits = spawn(&cluster, is_migrating, move || add(&theirs));
            let (call, at) = loop {
                cluster.spawn(|| ()).join().unwrap();
                let seat = cluster.dump().fibres.first().map(|seat| seat.state);
                if let Some(State::Waiting { call, at, .. }) = seat {
                    break (call, at.file());
                }
            };
            assert!(call.starts_with("waiting for a `"), "{call}");
            assert!(std::any::type_name::<C>().contains(name(call)), "{call}");
            assert_eq!(at, file!());
            waits
        });
        assert_eq!(waits.join().unwrap(), 1);
    }
}

/// The name between the back-quotes of `call`.
fn name(call: &str) -> &str {
    call.split('`').nth(1).expect("it names a lock")
}

fn others_run_while_a_destructor_waits<C: Combiner + 'static>() {
    for is_migrating in [false, true] {
        let lock = lock::<C>();
        let cluster = promise::cluster(1);
        let theirs = Arc::clone(&lock);
        let unwinds = while_held(&*lock, || {
            let unwinds = spawn(&cluster, is_migrating, move || {
                let _in_drop = InDrop(|| {
                    add(&theirs);
                });
                resume_unwind(Box::new(3));
            });
            cluster.spawn(|| ()).join().unwrap();
            unwinds
        });
        let unwound: Result<(), _> = unwinds.join();
        assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&3));
        assert_eq!(lock.session().apply(|n| *n), 1);
    }
}

fn a_cancelled_fibre_stays_in_its_call<C: Combiner + 'static>() {
    let lock = lock::<C>();
    let cluster = promise::cluster(1);
    let theirs = Arc::clone(&lock);
    let fibre = while_held(&*lock, || {
        let fibre = cluster.spawn(move || (add(&theirs), is_cancelled()));
        // The processor has switched away from the fibre when it runs another.
        cluster.spawn(|| ()).join().unwrap();
        fibre.fibre().cancel();
        cluster.spawn(|| ()).join().unwrap();
        assert!(!fibre.is_finished());
        fibre
    });
    assert_eq!(fibre.join().unwrap(), (1, true));
}

/// A wait inside is refused on the fibre that combines, so its processor cannot leave it there.
fn a_closure_does_not_suspend_its_combiner<C: Combiner + 'static>() {
    let lock = lock::<C>();
    let cluster = promise::cluster(1);
    let theirs = Arc::clone(&lock);
    let fibre = cluster.spawn(move || {
        let waits = || theirs.session().apply(|_| sleep(Duration::from_secs(1)));
        let refusal = catch_unwind(AssertUnwindSafe(waits)).unwrap_err();
        *refusal.downcast::<String>().unwrap()
    });
    let text = fibre.join().unwrap();
    assert!(text.contains("a_closure_does_not_suspend"), "{text}");
    assert!(text.ends_with("this code may not wait"), "{text}");
    assert_eq!(add(&lock), 1);
}

fn a_launched_closure_waits_and_others_are_served<C: Combiner + 'static>() {
    let lock = lock::<C>();
    let trustees = hosted(1);
    let (busy, other) = (trustees.entrust(0), trustees.entrust(7));
    let theirs = Arc::clone(&lock);
    let launched = while_held(&*lock, || {
        let launched = busy.launch(move |n| {
            *n = add(&theirs);
            *n
        });
        assert_eq!(other.apply(|n| *n), 7);
        launched
    });
    assert_eq!(launched.join().unwrap(), 1);
    assert_eq!(busy.apply(|n| *n), 1);
}
