//! The test bodies, each for all protocols whose clients wait for each answer.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod common;
mod support;

use common::{add, for_all_protocols};
use corelay_literature::{Blocking, Busy, Delegation, Served, Server};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use support::{Stop, stressed};

for_all_protocols!({
    every_operation_counts,
    more_clients_than_a_group,
    clients_come_and_go,
    toggles_wrap_in_every_state,
    a_seat_has_one_client,
    a_server_that_is_stopped_serves_what_was_asked,
    captures_and_borrows_travel,
    objects_are_dropped_once,
    operations_are_dropped_once,
    each_side_makes_its_own,
    a_server_begins_again_after_a_panic,
});

/// Runs `clients` while servers serve. Returns the servers' counts.
fn served<P, T>(servers: Vec<Server<P, T>>, clients: impl FnOnce()) -> Vec<Served>
where
    P: Blocking,
    T: Send,
{
    let stop = AtomicBool::new(false);
    thread::scope(|s| {
        let run = |mut server: Server<P, T>| {
            let stop = &stop;
            s.spawn(move || {
                server.run(stop);
                server.served()
            })
        };
        let servers: Vec<_> = servers.into_iter().map(run).collect();
        let stopping = Stop(&stop);
        clients();
        drop(stopping);
        servers.into_iter().map(|s| s.join().unwrap()).collect()
    })
}

/// Each of `clients` threads adds one `times` times to each of `objects` objects in turn; every
/// answer of an object is given once.
fn count<P: Blocking>(servers: usize, clients: usize, objects: usize, times: usize) {
    let (counts, halves) = Delegation::<P, u64>::new(servers, clients, objects, |_| 0);
    let served = served(halves, || {
        let mut seen = vec![Vec::new(); objects];
        thread::scope(|s| {
            let work = |index| {
                let counts = &counts;
                s.spawn(move || {
                    let mut client = counts.client(index).unwrap();
                    let add = |i| (i % objects, add(&mut client, i % objects));
                    (0..times).map(add).collect::<Vec<_>>()
                })
            };
            let clients: Vec<_> = (0..clients).map(work).collect();
            for client in clients {
                for (object, answer) in client.join().unwrap() {
                    seen[object].push(answer);
                }
            }
        });
        for seen in &mut seen {
            let len = seen.len() as u64;
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..len));
        }
        let mut totals = Vec::new();
        counts.inspect(|count| totals.push(*count)).unwrap();
        assert!(totals.into_iter().eq(seen.iter().map(|s| s.len() as u64)));
    });
    let requests: u64 = served.iter().map(|served| served.requests).sum();
    assert_eq!(requests, (clients * times) as u64);
    for Served {
        requests,
        batches,
        passes,
        passes_with_work,
    } in served
    {
        assert!(passes_with_work <= batches && batches <= requests);
        assert!(passes_with_work < passes);
    }
}

fn every_operation_counts<P: Blocking>() {
    for clients in 1..=4 {
        count::<P>(2, clients, 3, 501);
    }
    count::<P>(1, 1, 1, 10_001);
    count::<P>(3, 2, 1, 100);
}

fn more_clients_than_a_group<P: Blocking>() {
    count::<P>(2, 17, 2, 21);
    count::<P>(1, 31, 1, 11);
}

/// Clients end after an odd number of requests, and others begin where they have ended.
fn clients_come_and_go<P: Blocking>() {
    let (counts, servers) = Delegation::<P, u64>::new(2, 3, 2, |_| 0);
    served(servers, || {
        for round in 1..=20 {
            thread::scope(|s| {
                for index in 0..3 {
                    let counts = &counts;
                    s.spawn(move || {
                        let mut client = counts.client(index).unwrap();
                        (0..3).for_each(|_| _ = add(&mut client, 0));
                        add(&mut client, 1);
                    });
                }
            });
            let mut totals = Vec::new();
            counts.inspect(|count| totals.push(*count)).unwrap();
            assert_eq!(totals, [9 * round, 3 * round]);
        }
    });
}

/// A toggle has two states and wraps with every second request. Clients come with either state,
/// beside others in either, in a group that is full and in one that is not.
fn toggles_wrap_in_every_state<P: Blocking>() {
    const CLIENTS: usize = 17;
    let (counts, servers) = Delegation::<P, u64>::new(1, CLIENTS, 1, |_| 0);
    let served = served(servers, || {
        let (mut random, mut total) = (1_u64, 0);
        for _ in 0..stressed(200) {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Each client asks an odd or even number of times, by its own bit; some rest.
            let requests = |index: usize| (random >> (2 * index + 20)) as usize % 4;
            thread::scope(|s| {
                for index in (0..CLIENTS).filter(|&index| requests(index) > 0) {
                    let counts = &counts;
                    s.spawn(move || {
                        let mut client = counts.client(index).unwrap();
                        let mut last = None;
                        for _ in 0..requests(index) {
                            let before = Some(add(&mut client, 0));
                            assert!(last < before, "an answer twice, or an older one");
                            last = before;
                        }
                    });
                }
            });
            total += (0..CLIENTS).map(requests).sum::<usize>() as u64;
            counts.inspect(|count| assert_eq!(*count, total)).unwrap();
        }
    });
    assert_eq!(served[0].requests, {
        let mut total = 0;
        counts.inspect(|count| total = *count).unwrap();
        total
    });
}

fn a_seat_has_one_client<P: Blocking>() {
    let (counts, mut servers) = Delegation::<P, u64>::new(1, 2, 1, |_| 7);
    servers[0].begin();
    let client = counts.client(1).unwrap();
    assert!(counts.client(1).is_none());
    assert_eq!(counts.inspect(|_| unreachable!()), Err(Busy));
    drop(client);
    // A look that was refused has taken no seat.
    drop(counts.client(0).unwrap());
    assert!(counts.inspect(|count| assert_eq!(*count, 7)).is_ok());
    assert!(counts.client(1).is_some());
}

fn a_server_that_is_stopped_serves_what_was_asked<P: Blocking>() {
    let (counts, mut servers) = Delegation::<P, u64>::new(1, 1, 1, |_| 5);
    servers[0].begin();
    let stop = AtomicBool::new(true);
    thread::scope(|s| {
        let asking = s.spawn(|| add(&mut counts.client(0).unwrap(), 0));
        while servers[0].served().requests == 0 {
            servers[0].run(&stop);
        }
        assert_eq!(asking.join().unwrap(), 5);
    });
}

fn captures_and_borrows_travel<P: Blocking>() {
    let (lists, servers) = Delegation::<P, Vec<u64>>::new(1, 1, 1, |_| vec![1]);
    served(servers, || {
        let (words, mut copy) = ([2_u64, 3], Vec::new());
        let mut client = lists.client(0).unwrap();
        let len = client.apply(0, |list| {
            list.extend(words);
            copy.clone_from(list);
            list.len() as u64
        });
        assert_eq!((len, copy), (3, vec![1, 2, 3]));
    });
}

/// A value that counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn objects_are_dropped_once<P: Blocking>() {
    let drops = Arc::new(AtomicUsize::new(0));
    let dropped = || drops.load(Ordering::Relaxed);
    let counter = Arc::clone(&drops);
    let make = move |_| Counted(Arc::clone(&counter));
    let (delegation, servers) = Delegation::<P, Counted>::new(2, 1, 5, make);
    let capture = Counted(drops.clone());
    let mut client = delegation.client(0).unwrap();
    served(servers, || {
        client.apply(3, |_| {
            drop(capture);
            0
        });
        assert_eq!(dropped(), 1, "a capture, where the operation runs");
    });
    drop(delegation);
    assert_eq!(dropped(), 1, "a client keeps the objects");
    drop(client);
    assert_eq!(dropped(), 6);
}

/// No code of a user runs while a client waits, so nothing unwinds there. A number without an
/// object is refused before.
fn operations_are_dropped_once<P: Blocking>() {
    let (hits, servers) = Delegation::<P, u64>::new(1, 1, 1, |_| 0);
    let held = Arc::new(());
    served(servers, || {
        let mut client = hits.client(0).unwrap();
        for var in [0, 1, 0] {
            let held = Arc::clone(&held);
            let add = move |hits: &mut u64| {
                *hits += Arc::strong_count(&held) as u64;
                0
            };
            let applied = catch_unwind(AssertUnwindSafe(|| client.apply(var, add)));
            assert_eq!(applied.is_ok(), var == 0);
        }
        assert_eq!(Arc::strong_count(&held), 1);
    });
    hits.inspect(|hits| assert_eq!(*hits, 2 * 2)).unwrap();
}

/// A client waits for a server that has not begun; objects are made where they are served.
fn each_side_makes_its_own<P: Blocking>() {
    let made = |_| format!("{:?}", thread::current().id());
    let (names, mut servers) = Delegation::<P, String>::new(2, 1, 3, made);
    assert_eq!(names.inspect(|_| ()), Err(Busy), "nothing is made yet");
    thread::scope(|s| {
        let asking = s.spawn(|| {
            let mut client = names.client(0).unwrap();
            client.apply(1, |name| u64::from(*name == made(0)))
        });
        // The other server makes its objects, and the client still waits.
        servers[0].begin();
        assert_eq!(names.inspect(|_| ()), Err(Busy));
        while servers[1].pass() == 0 {}
        assert_eq!(asking.join().unwrap(), 1, "made and served by one thread");
    });
    names.inspect(|name| assert_eq!(*name, made(0))).unwrap();
}

fn a_server_begins_again_after_a_panic<P: Blocking>() {
    let turns = AtomicUsize::new(0);
    let make = move |number| match turns.fetch_add(1, Ordering::Relaxed) {
        2 => std::panic::resume_unwind(Box::new("by design")),
        _ => number,
    };
    let (numbers, mut servers) = Delegation::<P, usize>::new(1, 1, 5, make);
    let begun = catch_unwind(AssertUnwindSafe(|| servers[0].begin()));
    assert_eq!(begun.unwrap_err().downcast_ref(), Some(&"by design"));
    assert_eq!(numbers.inspect(|_| ()), Err(Busy));
    assert_eq!(servers[0].pass(), 0);
    let mut seen = Vec::new();
    numbers.inspect(|number| seen.push(*number)).unwrap();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
}
