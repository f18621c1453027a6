//! The thesis's request lines, in every shape.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod support;

use corelay_literature::{Asked, AsyncLines, Busy, Client, PairLines, Server, Shape, ShapeError};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use support::{Stop, stressed};

fn shapes() -> Vec<Shape> {
    let queues = [(1, 1), (1, 2), (4, 2), (4, 8), (16, 32), (5, 7)];
    let queues = queues.map(|(lines, queue)| Shape::queue(lines, queue).unwrap());
    let direct = [1, 3, 16].map(|lines| Shape::direct(lines).unwrap());
    queues.into_iter().chain(direct).collect()
}

/// A callback that any thread can make.
type Then = Box<dyn FnOnce(u64)>;

/// Runs `clients` while servers serve.
fn served<T: Send, C: FnOnce(u64)>(
    servers: Vec<Server<PairLines<C>, T>>,
    clients: impl FnOnce(),
) -> u64 {
    let stop = AtomicBool::new(false);
    thread::scope(|s| {
        let run = |mut server: Server<PairLines<C>, T>| {
            let stop = &stop;
            s.spawn(move || {
                server.run(stop);
                server.served().requests
            })
        };
        let servers: Vec<_> = servers.into_iter().map(run).collect();
        let stopping = Stop(&stop);
        clients();
        drop(stopping);
        servers.into_iter().map(|s| s.join().unwrap()).sum()
    })
}

/// Each of `clients` threads adds one `times` times to objects in turn, in each of some rounds.
/// Every callback runs once, and every answer of an object is given once.
fn count(shape: Shape, servers: usize, clients: usize, times: usize) {
    const ROUNDS: usize = 3;
    let objects = servers + 1;
    let (counts, halves) = AsyncLines::<u64, Then>::shaped(shape, servers, clients, objects, |_| 0);
    let mut seen = vec![Vec::new(); objects];
    let requests = served(halves, || {
        for _ in 0..ROUNDS {
            let work = |index| {
                let seen = Rc::new(RefCell::new(Vec::new()));
                let mut client = counts.client(index).unwrap();
                for i in 0..times {
                    let (object, seen) = (i % objects, Rc::clone(&seen));
                    let then = move |before| seen.borrow_mut().push((object, before));
                    let add = |count: &mut u64| {
                        *count += 1;
                        *count - 1
                    };
                    client.issue(object, add, Box::new(then));
                }
                // Dropping the client implies the barrier.
                drop(client);
                seen.take()
            };
            let answers = thread::scope(|s| {
                let clients: Vec<_> = (0..clients).map(|i| s.spawn(move || work(i))).collect();
                let answers = clients.into_iter().map(|c| c.join().unwrap());
                answers.collect::<Vec<_>>()
            });
            for (object, before) in answers.into_iter().flatten() {
                seen[object].push(before);
            }
        }
    });
    assert_eq!(requests, (ROUNDS * clients * times) as u64);
    let mut totals = Vec::new();
    counts.inspect(|count| totals.push(*count)).unwrap();
    for (mut seen, total) in seen.into_iter().zip(totals) {
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..total), "{shape:?}");
    }
}

#[test]
fn every_operation_counts_and_every_callback_runs_once() {
    for shape in shapes() {
        count(shape, 1, 1, 501);
        for clients in 1..=4 {
            count(shape, 2, clients, 61);
        }
    }
    count(Shape::default(), 2, 17, 41);
}

/// Each line's toggle has two states. Clients come with every pattern of them, by ending after any
/// number of requests.
#[test]
fn toggles_wrap_in_every_state() {
    for shape in [Shape::direct(3), Shape::queue(3, 5)] {
        let shape = shape.unwrap();
        let (counts, servers) = AsyncLines::<u64, Then>::shaped(shape, 1, 2, 1, |_| 0);
        let mut total = 0;
        let requests = served(servers, || {
            for round in 0..stressed(300) as u64 {
                let seen = thread::scope(|s| {
                    let ask = |index: u64| {
                        let counts = &counts;
                        s.spawn(move || {
                            let seen = Rc::new(RefCell::new(Vec::new()));
                            let mut client = counts.client(index as usize).unwrap();
                            for _ in 0..(round * (2 * index + 3)) % 8 {
                                let seen = Rc::clone(&seen);
                                let then = move |before| seen.borrow_mut().push(before);
                                let add = |count: &mut u64| {
                                    *count += 1;
                                    *count - 1
                                };
                                client.issue(0, add, Box::new(then));
                            }
                            drop(client);
                            seen.take()
                        })
                    };
                    let asking = [0, 1].map(ask);
                    asking.map(|asking| asking.join().unwrap()).concat()
                });
                let mut seen = seen;
                seen.sort_unstable();
                let next = total + seen.len() as u64;
                assert!(seen.into_iter().eq(total..next), "{shape:?}, round {round}");
                total = next;
            }
        });
        assert_eq!(requests, total);
    }
}

/// The order in which a server executes what one client writes directly to this number of lines.
/// The server is stepped by hand as in the thesis's figure: it serves all lines but the last before
/// the client goes on.
fn stepped(lines: u64) -> Vec<u64> {
    let shape = Shape::direct(lines as usize).unwrap();
    let (list, mut servers) = AsyncLines::<Vec<u64>, fn(u64)>::shaped(shape, 1, 1, 1, |_| vec![]);
    servers[0].begin();
    let mut client = list.client(0).unwrap();
    for number in 1..2 * lines {
        let note = move |list: &mut Vec<u64>| {
            list.push(number);
            0
        };
        client.issue(0, note, |_| ());
        if number == lines - 1 {
            servers[0].pass();
        }
    }
    servers[0].pass();
    drop(client);
    let mut order = Vec::new();
    list.inspect(|list| order.clone_from(list)).unwrap();
    order
}

#[test]
fn more_lines_break_the_order() {
    assert_eq!(stepped(2), [1, 3, 2]);
    assert_eq!(stepped(4), [1, 2, 3, 5, 6, 7, 4]);
}

#[test]
fn one_line_keeps_the_order() {
    for shape in [Shape::direct(1), Shape::queue(1, 1), Shape::queue(1, 8)] {
        let shape = shape.unwrap();
        let (list, servers) = AsyncLines::<Vec<u64>, fn(u64)>::shaped(shape, 1, 2, 1, |_| vec![]);
        served(servers, || {
            thread::scope(|s| {
                for index in 0..2 {
                    let list = &list;
                    s.spawn(move || {
                        let mut client = list.client(index).unwrap();
                        for number in 0..500 {
                            let note = move |list: &mut Vec<u64>| {
                                list.push(2 * number + index as u64);
                                0
                            };
                            client.issue(0, note, |_| ());
                        }
                    });
                }
            });
        });
        let in_order = |list: &Vec<u64>| {
            for index in 0..2 {
                let own = list.iter().filter(|number| *number % 2 == index);
                assert!(own.copied().eq((0..500).map(|number| 2 * number + index)));
            }
        };
        list.inspect(in_order).unwrap();
    }
}

#[test]
fn a_client_counts_its_looks() {
    let shape = Shape::queue(2, 3).unwrap();
    let (hits, mut servers) = AsyncLines::<u64, fn(u64)>::shaped(shape, 1, 1, 1, |_| 0);
    servers[0].begin();
    let mut client = hits.client(0).unwrap();
    let add = |hits: &mut u64| {
        *hits += 1;
        *hits
    };
    (0..3).for_each(|_| client.issue(0, add, |_| ()));
    let asked = |client: &mut Client<PairLines<fn(u64)>, u64>| client.asked().next().unwrap();
    assert_eq!(asked(&mut client), Asked::default(), "in the queue");
    // Two lines are free and take two of three requests.
    assert!(client.flush());
    // Both requests are in flight and not answered.
    assert!(!client.flush());
    servers[0].pass();
    // Both are answered; one line takes the last request, and the other finds the queue empty.
    assert!(client.flush());
    let Asked { timed, latency, .. } = asked(&mut client);
    assert!(timed == 1 && latency.as_nanos() > 0, "the first");
    let expected = Asked {
        polls: 4,
        ready: 2,
        pops: 4,
        failed_pops: 1,
        failed_pushes: 0,
        flushes: 3,
        depths: 3 + 1 + 1,
        timed,
        latency,
    };
    assert_eq!(asked(&mut client), expected);
    servers[0].pass();
    client.barrier();
    assert_eq!(servers[0].served().requests, 3);
}

#[test]
fn a_callback_that_panics_has_had_its_turn() {
    for shape in [Shape::queue(2, 4).unwrap(), Shape::direct(4).unwrap()] {
        let (hits, mut servers) = AsyncLines::<u64, Then>::shaped(shape, 1, 1, 1, |_| 0);
        servers[0].begin();
        let mut client = hits.client(0).unwrap();
        let ran = Rc::new(Cell::new(0));
        for number in 0..4 {
            let ran = Rc::clone(&ran);
            let then = move |_| {
                ran.set(ran.get() + 1);
                if number == 1 {
                    std::panic::resume_unwind(Box::new("by design"));
                }
            };
            let add = |hits: &mut u64| {
                *hits += 1;
                0
            };
            client.issue(0, add, Box::new(then));
        }
        client.flush();
        servers[0].pass();
        let caught = catch_unwind(AssertUnwindSafe(|| client.flush()));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"by design"));
        assert_eq!(ran.get(), 2, "the line's before it, and its own");
        // The other requests are served as if nothing had happened.
        client.flush();
        servers[0].pass();
        client.barrier();
        assert_eq!((ran.get(), servers[0].served().requests), (4, 4));
    }
}

/// Issues an operation that holds `held`, with a callback that unwinds if `unwinds` says so.
fn issue_unwinding(client: &mut Client<PairLines<Then>, u64>, held: &Arc<()>, unwinds: bool) {
    let held = Arc::clone(held);
    let add = move |hits: &mut u64| {
        *hits += 1;
        drop(held);
        0
    };
    let then = move |_| {
        if unwinds {
            std::panic::resume_unwind(Box::new("by design"));
        }
    };
    client.issue(0, add, Box::new(then));
}

#[test]
fn an_operation_is_dropped_when_another_callback_unwinds_out_of_its_issue() {
    for shape in [Shape::queue(1, 1).unwrap(), Shape::direct(1).unwrap()] {
        let (hits, mut servers) = AsyncLines::<u64, Then>::shaped(shape, 1, 1, 1, |_| 0);
        servers[0].begin();
        let mut client = hits.client(0).unwrap();
        let held = Arc::new(());
        issue_unwinding(&mut client, &held, true);
        if shape.pending().is_some() {
            // This call sends the first request, and fills the queue.
            issue_unwinding(&mut client, &held, false);
        }
        servers[0].pass();
        let waiting = Arc::strong_count(&held);
        let issue = AssertUnwindSafe(|| issue_unwinding(&mut client, &held, false));
        let caught = catch_unwind(issue);
        let after = Arc::strong_count(&held);
        // Before anything is asserted, for a client that goes waits for its server.
        client.flush();
        servers[0].pass();
        drop(client);
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"by design"));
        assert_eq!(after, waiting, "{shape:?}");
        assert_eq!(Arc::strong_count(&held), 1, "{shape:?}");
        let asked = 1 + shape.pending().map_or(0, |_| 1);
        hits.inspect(|hits| assert_eq!(*hits, asked)).unwrap();
    }
}

/// Queued requests are not executed, because nobody puts them on a line any more.
#[test]
fn operations_in_the_queue_are_dropped_with_a_client_whose_callback_unwinds() {
    let shape = Shape::queue(1, 4).unwrap();
    let (hits, mut servers) = AsyncLines::<u64, Then>::shaped(shape, 1, 1, 1, |_| 0);
    servers[0].begin();
    let mut client = hits.client(0).unwrap();
    let held = Arc::new(());
    for number in 0..4 {
        issue_unwinding(&mut client, &held, number == 0);
    }
    client.flush();
    servers[0].pass();
    assert_eq!(Arc::strong_count(&held), 4);
    catch_unwind(AssertUnwindSafe(|| drop(client))).unwrap_err();
    assert_eq!(Arc::strong_count(&held), 1);
    hits.inspect(|hits| assert_eq!(*hits, 1)).unwrap();
}

#[test]
fn a_request_on_its_way_keeps_others_out() {
    let shape = Shape::direct(2).unwrap();
    let (hits, mut servers) = AsyncLines::<u64, fn(u64)>::shaped(shape, 1, 2, 1, |_| 0);
    servers[0].begin();
    let mut client = hits.client(0).unwrap();
    client.issue(0, |hits: &mut u64| *hits, |_| ());
    assert_eq!(hits.inspect(|_| ()), Err(Busy));
    servers[0].pass();
    drop(client);
    assert_eq!(hits.inspect(|_| ()), Ok(()));
}

/// A callback that panics in the barrier of a client that goes leaves requests on their way. The
/// next client of the same index waits for these lines.
#[test]
fn the_next_client_waits_for_its_lines() {
    let shape = Shape::direct(2).unwrap();
    let (hits, mut servers) = AsyncLines::<u64, fn(u64)>::shaped(shape, 1, 1, 1, |_| 0);
    servers[0].begin();
    let add = |hits: &mut u64| {
        *hits += 1;
        0
    };
    let mut client = hits.client(0).unwrap();
    client.issue(0, add, |_| std::panic::resume_unwind(Box::new(())));
    servers[0].pass();
    client.issue(0, add, |_| ());
    let gone = catch_unwind(AssertUnwindSafe(|| drop(client)));
    assert!(gone.is_err());
    assert_eq!(hits.inspect(|_| ()), Err(Busy), "the second is on its way");
    let mut client = hits.client(0).unwrap();
    client.issue(0, add, |_| ());
    servers[0].pass();
    client.issue(0, add, |_| ());
    servers[0].pass();
    drop(client);
    let mut total = 0;
    hits.inspect(|hits| total = *hits).unwrap();
    assert_eq!(total, 4);
}

#[test]
fn shapes_have_bounds() {
    let most = Shape::MAX_LENGTH;
    for (lines, queue) in [(0, 1), (1, 0), (most + 1, 1), (1, most + 1)] {
        assert_eq!(Shape::queue(lines, queue), Err(ShapeError));
    }
    assert_eq!(Shape::direct(0), Err(ShapeError));
    assert_eq!(Shape::direct(most + 1), Err(ShapeError));
    let largest = Shape::queue(most, most).unwrap();
    assert_eq!((largest.lines(), largest.pending()), (most, Some(most)));
    // The thesis's queue: twice as long as there are lines.
    assert_eq!(
        Shape::default().pending(),
        Some(2 * Shape::default().lines())
    );
}

/// Lines that are written one by one, as Gepard's fibres do.
#[test]
fn a_free_line_is_found_or_the_request_given_back() {
    let shape = Shape::direct(2).unwrap();
    let (hits, mut servers) = AsyncLines::<u64, Then>::shaped(shape, 1, 1, 1, |_| 0);
    servers[0].begin();
    let mut client = hits.client(0).unwrap();
    let answers = Rc::new(RefCell::new(Vec::new()));
    let note = || {
        let answers = Rc::clone(&answers);
        Box::new(move |answer| answers.borrow_mut().push(answer))
    };
    let add = |hits: &mut u64| {
        *hits += 1;
        *hits
    };
    let first = client.try_issue(0, add, note()).ok().unwrap();
    let second = client.try_issue(0, add, note()).ok().unwrap();
    let (again, then) = client.try_issue(0, add, note()).err().unwrap();
    client.look(first);
    assert_eq!(*answers.borrow(), []);
    servers[0].pass();
    client.look(second);
    assert_eq!(*answers.borrow(), [2]);
    // The second line is free again, the first one not before somebody has looked.
    client.try_issue(0, again, then).ok().unwrap();
    assert!(client.try_issue(0, add, note()).is_err());
    client.look(first);
    client.look(first);
    assert_eq!(*answers.borrow(), [2, 1]);
    servers[0].pass();
    drop(client);
    assert_eq!(*answers.borrow(), [2, 1, 3]);
}
