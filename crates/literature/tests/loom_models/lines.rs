//! The thesis's request lines under loom: every interleaving of the shipped source (up to the
//! preemption bound) with every permitted stale read.
//!
//! `RUSTFLAGS="--cfg corelay_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p corelay-literature
//! --release --test loom_lines`

use corelay_literature::{AsyncLines, Client, PairLines, Shape};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::cell::Cell;
use std::rc::Rc;

type Then = Box<dyn FnOnce(u64)>;
type Asking = Client<PairLines<Then>, u64>;

/// A request that adds one; its callback adds up the answers.
fn add(client: &mut Asking, sum: &Rc<Cell<u64>>) {
    let sum = Rc::clone(sum);
    let add = |count: &mut u64| {
        *count += 1;
        *count
    };
    client.issue(0, add, Box::new(move |answer| sum.set(sum.get() + answer)));
}

/// One client issues this number of requests while a server runs.
fn model(shape: Shape, requests: u64) {
    loom::model(move || {
        let (counts, servers) = AsyncLines::<u64, Then>::shaped(shape, 1, 1, 1, |_| 0);
        let stop = Arc::new(AtomicBool::new(false));
        let serving: Vec<_> = servers
            .into_iter()
            .map(|mut server| {
                server.begin();
                let stop = Arc::clone(&stop);
                thread::spawn(move || server.run(&stop))
            })
            .collect();
        let sum = Rc::new(Cell::new(0));
        let mut client = counts.client(0).unwrap();
        (0..requests).for_each(|_| add(&mut client, &sum));
        drop(client);
        assert_eq!(sum.get(), (1..=requests).sum());
        stop.store(true, Ordering::Release);
        serving.into_iter().for_each(|s| s.join().unwrap());
        counts
            .inspect(|count| assert_eq!(*count, requests))
            .unwrap();
    });
}

#[test]
fn one_line_written_directly() {
    model(Shape::direct(1).unwrap(), 2);
}

#[test]
fn two_lines_written_directly() {
    model(Shape::direct(2).unwrap(), 3);
}

#[test]
fn two_lines_behind_a_queue() {
    model(Shape::queue(2, 1).unwrap(), 2);
}

/// The server is stopped while a request is on its way, and serves it.
#[test]
fn a_server_that_is_stopped_serves_what_was_asked() {
    loom::model(|| {
        let shape = Shape::direct(1).unwrap();
        let (counts, servers) = AsyncLines::<u64, Then>::shaped(shape, 1, 1, 1, |_| 0);
        let stop = Arc::new(AtomicBool::new(false));
        let mut servers = servers.into_iter();
        let serving = thread::spawn({
            let (stop, mut server) = (Arc::clone(&stop), servers.next().unwrap());
            server.begin();
            move || {
                server.run(&stop);
                server.served().requests
            }
        });
        let sum = Rc::new(Cell::new(0));
        let mut client = counts.client(0).unwrap();
        add(&mut client, &sum);
        stop.store(true, Ordering::Release);
        if serving.join().unwrap() == 0 {
            // A client would wait for its answer.
            std::mem::forget(client);
            panic!("stopped without serving what was asked for before");
        }
        client.barrier();
        assert_eq!(sum.get(), 1);
    });
}

/// Server and client make their lines at the same time.
#[test]
fn a_client_waits_for_a_server_that_begins() {
    for shape in [Shape::direct(1), Shape::queue(1, 1)] {
        loom::model(move || {
            let (counts, mut servers) =
                AsyncLines::<u64, Then>::shaped(shape.unwrap(), 1, 1, 1, |_| 5);
            let asking = thread::spawn(move || {
                let sum = Rc::new(Cell::new(0));
                let mut client = counts.client(0).unwrap();
                add(&mut client, &sum);
                drop(client);
                sum.get()
            });
            while servers[0].pass() == 0 {
                thread::yield_now();
            }
            assert_eq!(asking.join().unwrap(), 6);
        });
    }
}
