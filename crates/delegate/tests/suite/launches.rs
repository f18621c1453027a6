//! Closures that wait on their trustee: on a toy scheduler of coroutines.

use crate::promise_03_futures::block_on;
use crate::support::{Tally, panic_of, start, text_of, until, watchdog};
use crate::toy;
use corelay_delegate::{
    AsyncError, Builder, CircularWait, ClientGuard, Poisoned, Trust, Trustees, TryApplyAsyncError,
    TryApplyError, TryLaunchError, barrier, poll,
};
use corelay_sync::{Issue, Session, Shared};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

fn hosted(n: usize) -> Builder {
    Trustees::dedicated(n).host(toy::host())
}

/// A launched closure waits until it is opened, others run meanwhile.
#[derive(Clone)]
struct Door(Trust<bool>);

impl Door {
    fn new(trustees: &Trustees) -> Self {
        Self(trustees.entrust_on(trustees.len() - 1, false))
    }

    fn open(&self) {
        self.0.apply(|open| *open = true);
    }

    /// Waits in a launched closure.
    fn wait(&self) {
        while !self.0.apply(|open| *open) {}
    }
}

/// A closure that was not launched may not wait, and its requests are sent when it has ended.
#[test]
fn a_plain_closure_of_a_hosted_trustee_sends_after_its_end() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let (here, there) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let (tell, told) = mpsc::channel();
    let asked = there.clone();
    here.apply(move |_| {
        let posted = tell.clone();
        asked.post(move |n| {
            *n += 1;
            posted.send(*n).unwrap();
        });
        asked.apply_then(|n| *n + 1, move |n| tell.send(n).unwrap());
    });
    assert_eq!(told.iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_closure_waits_and_others_are_served() {
    let _watch = watchdog();
    for n in [1, 2] {
        let trustees = start(hosted(n));
        let (a, b) = (trustees.entrust_on(0, 1u64), trustees.entrust_on(0, 10u64));
        let door = Door::new(&trustees);
        let theirs = door.clone();
        let launch = a.launch(move |a| {
            theirs.wait();
            *a += 1;
            *a
        });
        for i in 0..100 {
            assert_eq!(
                b.apply(|b| {
                    *b += 1;
                    *b
                }),
                11 + i
            );
        }
        door.open();
        assert_eq!(launch.join().unwrap(), 2);
        assert_eq!(a.apply(|a| *a), 2);
        barrier().unwrap();
    }
}

fn texts(ring: &CircularWait) -> Vec<&str> {
    ring.objects().collect()
}

/// All kinds of requests wait at a held object and keep their order; other objects are served.
#[test]
fn promise_04_requests_keep_their_order_at_a_held_object() {
    let _watch = watchdog();
    for (window, n) in [(256, 1), (256, 2), (16, 1), (16, 2)] {
        for origin in [0u32, u32::MAX - 40] {
            let builder = hosted(n).window(window).origin(origin, origin);
            let trustees = start(builder);
            let held: Trust<Vec<u32>> = trustees.entrust_on(0, Vec::new());
            let free: Trust<Vec<u32>> = trustees.entrust_on(0, Vec::new());
            let door = Door::new(&trustees);
            let theirs = door.clone();
            let first = held.launch(move |log| {
                theirs.wait();
                log.push(0);
            });
            let said = Rc::new(RefCell::new(Vec::new()));
            for i in 1..5 {
                held.post(move |log| log.push(i));
                let (note, note2) = (Rc::clone(&said), Rc::clone(&said));
                free.apply_then(move |log| log.push(i), move |()| note.borrow_mut().push(i));
                held.apply_then(
                    move |log| log.push(10 + i),
                    move |()| note2.borrow_mut().push(10 + i),
                );
            }
            // A launch among them.
            let theirs = door.clone();
            let second = held.launch(move |log| {
                theirs.wait();
                log.push(20);
                log.clone()
            });
            let asked = held.apply_async(|log| {
                log.push(21);
                log.len()
            });
            // Not in the ring.
            assert_eq!(free.apply(|log| log.clone()), [1, 2, 3, 4]);
            poll();
            assert_eq!(*said.borrow(), Vec::<u32>::new(), "behind a held one");
            let caller = {
                let held = held.clone();
                std::thread::spawn(move || held.apply(|log| log.len()))
            };
            until(|| trustees.report().trustees[0].clients.len() >= 2);
            door.open();
            first.join().unwrap();
            let expected = [0, 1, 11, 2, 12, 3, 13, 4, 14, 20];
            let of_thread: Vec<_> = second.join().unwrap();
            assert_eq!(of_thread, expected);
            barrier().unwrap();
            assert_eq!(*said.borrow(), [1, 11, 2, 12, 3, 13, 4, 14]);
            assert_eq!(block_on(asked).unwrap(), 11);
            assert!(caller.join().unwrap() >= 1);
            assert_eq!(held.apply(|log| log.len()), 11);
        }
    }
}

/// Several clients at once, one object among three held now and then; each sees its own order.
#[test]
fn promise_04_many_clients_and_launches() {
    let _watch = watchdog();
    for n in [1, 2] {
        let trustees = start(hosted(n).window(32));
        let objects: Vec<Trust<Vec<u64>>> = (0..3)
            .map(|i| trustees.entrust_on(i % n, vec![0; 4]))
            .collect();
        let pause = trustees.entrust_on(n - 1, 0u64);
        std::thread::scope(|s| {
            for client in 0..4usize {
                let (objects, pause) = (objects.clone(), pause.clone());
                s.spawn(move || {
                    let _client = ClientGuard::new();
                    let mut sent = [0u64; 3];
                    for i in 0..600usize {
                        let at = (i * 7 + client) % 3;
                        let object = &objects[at];
                        let n = sent[at];
                        sent[at] += 1;
                        let step = move |seen: &mut Vec<u64>| {
                            assert_eq!(seen[client], n, "out of order");
                            seen[client] += 1;
                        };
                        match (i + client) % 6 {
                            0 => {
                                let pause = pause.clone();
                                drop(object.launch(move |seen| {
                                    for _ in 0..i % 4 {
                                        pause.apply(|n| *n += 1);
                                    }
                                    step(seen);
                                }));
                            }
                            1 => object.post(step),
                            2 => object.apply_then(step, |()| ()),
                            3 => match object.try_apply_async(step) {
                                Ok(future) => drop(future),
                                Err(TryApplyAsyncError::Full(step)) => object.post(step),
                                Err(other) => panic!("{other}"),
                            },
                            _ => object.apply(step),
                        }
                    }
                    barrier().unwrap();
                    for (object, sent) in objects.iter().zip(sent) {
                        assert_eq!(object.apply(|seen| seen[client]), sent);
                    }
                });
            }
        });
    }
}

#[test]
fn rings_of_one_two_and_three_are_named() {
    let _watch = watchdog();
    for n in [1, 3] {
        let trustees = start(hosted(n));
        // One.
        let alone = trustees.entrust_on(0, 7u8).named("alone");
        let own = alone.clone();
        let text = alone.launch(move |_| panic_of(|| own.apply(|n| *n))).join();
        let text = text.unwrap();
        assert!(text.contains("\"alone\" (u8) -> \"alone\" (u8)"), "{text}");
        let own = alone.clone();
        let refused = alone.launch(move |n| match own.try_apply(|n| *n) {
            Err(TryApplyError::Circular(ring)) => {
                *n += 1;
                assert!(ring.to_string().starts_with("corelay: "));
                texts(&ring).len()
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(refused.join().unwrap(), 1);
        assert_eq!(alone.apply(|n| *n), 8, "neither poisoned nor held");
        // More: each holds its own, and makes a request to the next one's.
        for length in [2usize, 3] {
            let objects: Vec<_> = (0..length)
                .map(|i| trustees.entrust_on(i % n, i as u64).named(&format!("o{i}")))
                .collect();
            let begun = Arc::new(AtomicU64::new(0));
            let meet = trustees.entrust_on(n - 1, ());
            let launches: Vec<_> = (0..length)
                .map(|i| {
                    let next = objects[(i + 1) % length].clone();
                    let (begun, meet) = (Arc::clone(&begun), meet.clone());
                    objects[i].launch(move |_| {
                        begun.fetch_add(1, Ordering::Relaxed);
                        while begun.load(Ordering::Relaxed) < length as u64 {
                            meet.apply(|()| ());
                        }
                        match next.try_apply(|n| *n) {
                            Ok(_) => None,
                            Err(TryApplyError::Circular(ring)) => Some(ring),
                            Err(other) => panic!("{other:?}"),
                        }
                    })
                })
                .collect();
            let rings: Vec<_> = launches.into_iter().map(|l| l.join().unwrap()).collect();
            let refused: Vec<_> = rings
                .iter()
                .enumerate()
                .filter(|(_, r)| r.is_some())
                .collect();
            assert_eq!(refused.len(), 1, "{rings:?}");
            let (who, ring) = (refused[0].0, refused[0].1.as_ref().unwrap());
            let named: Vec<_> = (0..length)
                .map(|k| format!("\"o{}\" (u64)", (who + k) % length))
                .collect();
            assert_eq!(texts(ring), named);
        }
    }
}

/// A closure that joins a launch that waits for the object that it holds itself.
#[test]
fn rings_through_joins_are_named() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let a = trustees.entrust_on(0, 0u64).named("a");
    let own = a.clone();
    let error = a.launch(move |_| own.launch(|n| *n).join()).join().unwrap();
    match error {
        Err(AsyncError::Circular(ring)) => assert_eq!(texts(&ring), ["\"a\" (u64)"]),
        other => panic!("{other:?}"),
    }
    // The launch whose join was refused has run nevertheless, or has been refused itself.
    barrier().unwrap();
    assert_eq!(a.apply(|n| *n), 0);
    // Nested, and well.
    let b = trustees.entrust_on(1, 5u64);
    let other = b.clone();
    let sum = a.launch(move |a| {
        let inner = other.launch(|b| {
            *b += 1;
            *b
        });
        *a = inner.join().unwrap();
        *a
    });
    assert_eq!(sum.join().unwrap(), 6);
}

#[test]
fn promise_06_a_panic_poisons_and_reaches_the_handle() {
    let _watch = watchdog();
    let trustees = start(hosted(1));
    let (t, tally) = (trustees.entrust(0u64), Tally::new());
    let door = Door::new(&trustees);
    let (token, theirs) = (tally.token(), door.clone());
    let launch = t.launch(move |_| {
        let _token = token;
        theirs.wait();
        panic!("inside")
    });
    let token = tally.token();
    let behind = t.launch(move |_| drop(token));
    let token = tally.token();
    let asked = t.apply_async(move |_| drop(token));
    door.open();
    match launch.join() {
        Err(AsyncError::Panicked(payload)) => assert_eq!(text_of(&*payload), "inside"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(behind.join(), Err(AsyncError::Poisoned)));
    assert!(matches!(block_on(asked), Err(AsyncError::Poisoned)));
    assert!(t.is_poisoned());
    assert!(panic_of(|| t.apply(|_| ())).contains(&Poisoned.to_string()));
    barrier().expect("the handles have told");
    t.clear_poison();
    assert_eq!(t.launch(|n| *n).join().unwrap(), 0);
    tally.assert_all_dropped(3);
}

#[test]
fn promise_07_launches_are_refused_where_nothing_waits() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1));
    let t = trustees.entrust(0u64);
    let text = panic_of(|| t.launch(|n| *n));
    assert!(
        text.contains("has no host") && text.contains("launches.rs"),
        "{text}"
    );
    match t.try_launch(|n| *n + 1) {
        Err(TryLaunchError::Unhosted(f)) => assert_eq!(f(&mut 1), 2),
        other => panic!("{other:?}"),
    }
    let team = Trustees::flat(1).start().unwrap();
    let t = team.entrust(0u64);
    assert!(matches!(
        t.try_launch(|_| ()),
        Err(TryLaunchError::Unhosted(_))
    ));
    let trustees = start(hosted(1));
    let (t, u) = (trustees.entrust(0u64), trustees.entrust(0u64));
    let inner = u.clone();
    let text = t.apply(move |_| {
        assert!(matches!(
            inner.try_launch(|_| ()),
            Err(TryLaunchError::Nested(_))
        ));
        panic_of(|| inner.launch(|_| ()))
    });
    assert!(
        text.contains("Trust::launch at") && text.contains("a leaf"),
        "{text}"
    );
    // A handle is not joined there either.
    let (handle, own) = (u.launch(|n| *n), Mutex::new(None));
    *own.lock().unwrap() = Some(handle);
    let text = t.apply(|_| panic_of(|| own.lock().unwrap().take().unwrap().join()));
    assert!(text.contains("LaunchHandle::join"), "{text}");
    trustees.shutdown();
    assert!(matches!(
        t.try_launch(|_| ()),
        Err(TryLaunchError::Closed(_))
    ));
    assert!(panic_of(|| t.launch(|_| ())).contains("shut down"));
}

/// In a launched closure everything of a client works: calls, callbacks, barriers, sessions,
/// futures, entrusting, posts to its own trustee and to held objects.
#[test]
fn a_launched_closure_is_a_client() {
    let _watch = watchdog();
    for n in [1, 2] {
        let trustees = Arc::new(start(hosted(n).window(4)));
        let (t, other) = (
            trustees.entrust_on(0, 0u64),
            trustees.entrust_on(n - 1, 0u64),
        );
        let (theirs, all) = (other.clone(), Arc::clone(&trustees));
        let launch = t.launch(move |mine| {
            let borrowed = 1;
            assert_eq!(
                theirs.apply(|n| {
                    *n += borrowed;
                    *n
                }),
                1
            );
            let seen = Rc::new(Cell::new(0));
            for i in 0..20 {
                let (seen, inner) = (Rc::clone(&seen), theirs.clone());
                theirs.apply_then(
                    |n| {
                        *n += 1;
                        *n
                    },
                    move |n| {
                        assert_eq!(n, 2 + i);
                        // A callback that waits.
                        inner.apply(|_| ());
                        seen.set(seen.get() + 1);
                    },
                );
                theirs.post(|_| ());
            }
            barrier().unwrap();
            assert_eq!(seen.get(), 20);
            let mut session = theirs.session();
            assert_eq!(session.apply(|n| *n), 21);
            let note = Rc::clone(&seen);
            session.issue(|n| *n, move |n| note.set(n));
            session.barrier();
            assert_eq!(seen.get(), 21);
            drop(session);
            let mut future = pin!(theirs.apply_async(|n| *n));
            let mut context = Context::from_waker(Waker::noop());
            let answer = loop {
                match future.as_mut().poll(&mut context) {
                    Poll::Ready(answer) => break answer,
                    Poll::Pending => theirs.apply(|_| ()),
                }
            };
            assert_eq!(answer.unwrap(), 21);
            let new = all.entrust(3u64);
            assert_eq!(new.apply(|n| *n), 3);
            let text = panic_of(|| theirs.apply(|_| panic!("theirs")));
            assert_eq!(text, "theirs");
            theirs.clear_poison();
            *mine = theirs.apply(|n| *n);
            // Left to be answered after its end.
            let after = theirs.clone();
            theirs.apply_then(|n| *n += 1, move |()| after.post(|n| *n += 1));
        });
        launch.join().unwrap();
        barrier().unwrap();
        assert_eq!(t.apply(|n| *n), 21);
        until(|| other.apply(|n| *n) == 23);
    }
}

#[test]
fn closures_of_its_trustee_post_to_a_held_object() {
    let _watch = watchdog();
    let trustees = start(hosted(1));
    let (held, t) = (trustees.entrust(Vec::new()), trustees.entrust(0u64));
    let door = Door::new(&trustees);
    let theirs = door.clone();
    let launch = held.launch(move |log: &mut Vec<u32>| {
        theirs.wait();
        log.push(0);
    });
    let ran = Arc::new(AtomicU64::new(0));
    for i in 1..4u32 {
        let (held, ran) = (held.clone(), Arc::clone(&ran));
        t.apply(move |_| {
            held.post(move |log| log.push(i));
            held.apply_then(
                move |log| log.push(10 + i),
                move |()| {
                    ran.fetch_add(1, Ordering::Relaxed);
                },
            );
        });
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    door.open();
    launch.join().unwrap();
    assert_eq!(held.apply(|log| log.clone()), [0, 1, 11, 2, 12, 3, 13]);
    assert_eq!(ran.load(Ordering::Relaxed), 3);
}

#[test]
fn promise_08_a_last_handle_goes_while_its_object_is_held() {
    let _watch = watchdog();
    let trustees = start(hosted(1));
    let (tally, door) = (Tally::new(), Door::new(&trustees));
    let t = trustees.entrust(tally.token());
    let (theirs, gone) = (door.clone(), Arc::new(AtomicBool::new(false)));
    let launch = t.launch(move |_token| theirs.wait());
    let (token, was) = (tally.token(), Arc::clone(&gone));
    t.post(move |_| {
        was.store(true, Ordering::Relaxed);
        drop(token);
    });
    drop(t);
    let other = trustees.entrust(0u64);
    for _ in 0..100 {
        other.apply(|n| *n += 1);
    }
    assert_eq!(tally.dropped(), 0);
    door.open();
    launch.join().unwrap();
    barrier().unwrap();
    assert!(gone.load(Ordering::Relaxed));
    other.apply(|_| ());
    until(|| tally.dropped() == 2);
    tally.assert_all_dropped(2);
}

#[test]
fn promise_09_a_barrier_waits_for_launches() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let t = trustees.entrust_on(0, 0u64);
    let (door, ended) = (Door::new(&trustees), Arc::new(AtomicU64::new(0)));
    let opener = door.clone();
    let (theirs, count) = (door, Arc::clone(&ended));
    drop(t.launch(move |_| {
        theirs.wait();
        count.fetch_add(1, Ordering::Relaxed);
    }));
    let opens = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        opener.open();
    });
    barrier().unwrap();
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    opens.join().unwrap();
    // A thread's end does too.
    let count = Arc::clone(&ended);
    std::thread::spawn(move || {
        drop(t.launch(move |_| count.fetch_add(1, Ordering::Relaxed)));
    })
    .join()
    .unwrap();
    assert_eq!(ended.load(Ordering::Relaxed), 2);
}

#[test]
fn promise_11_shutdown_waits_for_launches() {
    let _watch = watchdog();
    for _ in 0..20 {
        let trustees = start(hosted(2));
        let t = trustees.entrust_on(0, 0u64);
        let (door, tally) = (Door::new(&trustees), Tally::new());
        let token = tally.token();
        let (theirs, own) = (door.clone(), trustees.entrust_on(0, 0u64));
        let launch = t.launch(move |n| {
            let _token = token;
            for _ in 0..3 {
                own.apply(|n| *n += 1);
            }
            theirs.wait();
            *n = own.apply(|n| *n);
            *n
        });
        let behind = t.launch(|n| *n + 1);
        let first = std::thread::spawn(move || trustees.shutdown());
        door.0.try_apply(|open| *open = true).ok();
        let shut = door.0.clone();
        match launch.join() {
            Ok(n) => assert_eq!(n, 3),
            // The other trustee may have ended before the door was opened.
            Err(AsyncError::Panicked(payload)) => {
                assert!(
                    text_of(&*payload).contains("shut down"),
                    "{}",
                    text_of(&*payload)
                );
            }
            other => panic!("{other:?}"),
        }
        let _ = behind.join();
        first.join().unwrap();
        drop(shut);
        tally.assert_all_dropped(1);
    }
}

/// Trustees that a closure launched on one of them drops.
#[test]
fn promise_11_a_launched_closure_drops_its_trustees() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let t = trustees.entrust_on(0, 0u64);
    let launch = t.launch(move |_| drop(trustees));
    launch.join().unwrap();
    until(|| matches!(t.try_apply(|n| *n), Err(TryApplyError::Closed(_))));
    let trustees = start(hosted(1));
    let t = trustees.entrust(0u64);
    let text = t
        .launch(move |_| panic_of(|| trustees.shutdown()))
        .join()
        .unwrap();
    assert!(text.contains("for whose end it would wait"), "{text}");
}

#[test]
fn handles_are_awaited_and_dropped() {
    let _watch = watchdog();
    let trustees = start(hosted(1));
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    let token = tally.token();
    drop(t.launch(move |n| {
        *n += 1;
        token
    }));
    let n = block_on(async {
        t.launch(|n| {
            *n += 1;
            *n
        })
        .await
        .unwrap()
    });
    assert_eq!(n, 2);
    until(|| tally.dropped() == 1);
    // Large ones.
    let large = [7u64; 100];
    assert_eq!(t.launch(move |_| large).join().unwrap(), large);
    let (tell, told) = mpsc::channel();
    drop(t.launch(move |_| tell.send(()).unwrap()));
    told.recv().unwrap();
    // From a callback, in the ring and, where that is full, not.
    for window in [1, 2, 64] {
        let trustees = start(hosted(1).window(window));
        let t = trustees.entrust(0u64);
        let handles = Rc::new(RefCell::new(Vec::new()));
        for _ in 0..8 {
            let (inner, handles) = (t.clone(), Rc::clone(&handles));
            t.apply_then(
                |_| (),
                move |()| {
                    if let Ok(handle) = inner.try_launch(|n| {
                        *n += 1;
                        *n
                    }) {
                        handles.borrow_mut().push(handle);
                    }
                    let handle = catch_unwind(AssertUnwindSafe(|| {
                        inner.launch(|n| {
                            *n += 1;
                            *n
                        })
                    }));
                    handles.borrow_mut().extend(handle);
                },
            );
        }
        barrier().unwrap();
        let ended = handles.take().into_iter().map(|h| h.join().unwrap());
        let mut all: Vec<_> = ended.collect();
        all.sort_unstable();
        let n = t.apply(|n| *n);
        assert!(n >= 8 && all.into_iter().eq(1..=n));
    }
}
