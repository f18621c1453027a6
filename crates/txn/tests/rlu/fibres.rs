//! Sessions of fibres: kept over switches, on one processor and on two, also with fibres that
//! migrate.

use super::{Body, Random, on_every_clock, scaled};
use crate::promise;
use corelay_clock::{Clock, Logical};
use corelay_fibre::{Cluster, StackSize, yield_now};
use corelay_txn::rlu::{Domain, RluList};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn sessions_of_fibres_work_as_those_of_threads() {
    struct Fibres;
    impl Body for Fibres {
        fn run<C: Clock + 'static>(&self, name: &str, make: impl Fn() -> C) {
            for (processors, deferral) in [(1, 1), (1, 4), (2, 1), (2, 4)] {
                let cluster = promise::cluster(processors);
                let domain = Domain::with_deferral(make(), deferral);
                let list: Arc<RluList<C>> = Arc::new(RluList::new_in(&domain));
                let inside = Arc::new(AtomicU64::new(0));
                let fibres: Vec<_> = (0..8)
                    .map(|id| {
                        let (list, inside) = (Arc::clone(&list), Arc::clone(&inside));
                        let work = move || work(&list, id, &inside);
                        // SAFETY: the work keeps nothing of its thread over a switch.
                        unsafe { cluster.fibre().migrating() }.spawn(work).unwrap()
                    })
                    .collect();
                for fibre in fibres {
                    fibre.join().unwrap();
                }
                let left = list.session().to_vec().len() as u64;
                assert_eq!(left, inside.load(Ordering::Relaxed), "{name}");
            }
        }
    }
    on_every_clock(&Fibres);
}

fn work<C: Clock>(list: &RluList<C>, id: u64, inside: &AtomicU64) {
    let mut random = Random::new(id);
    let mut session = list.session();
    for _ in 0..scaled(100) {
        let key = random.below(12);
        match random.below(3) {
            0 => {
                let added = session.insert(key, ());
                inside.fetch_add(u64::from(added), Ordering::Relaxed);
            }
            1 => {
                let removed = session.remove(&key).is_some();
                inside.fetch_sub(u64::from(removed), Ordering::Relaxed);
            }
            _ => assert!(session.to_vec().is_sorted()),
        }
        if random.below(2) == 0 {
            yield_now();
        }
    }
}

/// A wait inside a section would keep every writer waiting: it is refused, by name.
#[test]
fn a_fibre_may_not_be_suspended_in_a_section() {
    // A panic that is built with a sanitizer takes more than the usual.
    let room = StackSize::new(1 << 20).unwrap();
    let cluster = promise::start(Cluster::builder().stack_size(room)).unwrap();
    let fibre = cluster.spawn(|| {
        let domain = Domain::new(Logical::new());
        let gate = corelay_fibre::Semaphore::new(0);
        domain.session().read(|_| gate.acquire());
    });
    let panic = fibre.join().unwrap_err();
    let text = format!("{panic:?}");
    let text = panic_text(panic).unwrap_or(text);
    assert!(text.contains("inside a section of an RLU domain"), "{text}");
}

fn panic_text<E: std::any::Any>(panic: E) -> Option<String> {
    let panic: Box<dyn std::any::Any> = Box::new(panic);
    panic
        .downcast::<Box<dyn std::any::Any + Send>>()
        .ok()?
        .downcast::<String>()
        .ok()
        .map(|text| *text)
}
