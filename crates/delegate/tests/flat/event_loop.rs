//! Members that sleep in event loops of their own.

use crate::watch::watchdog;
use corelay_delegate::{Dozing, Member, Team, Trust, Trustees, barrier, poll};
use std::cell::Cell;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn team(members: usize) -> Team {
    Trustees::flat(members).start().expect("threads")
}

/// Waits as `poll` does, for as long as it takes if `timeout` is negative. Returns whether the file
/// descriptor is readable.
fn is_readable(fd: BorrowedFd<'_>, timeout: i32) -> bool {
    let mut fds = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the entry outlives the call.
    unsafe { libc::poll(&raw mut fds, 1, timeout) > 0 }
}

/// Has the member doze, once there is nothing to do.
fn doze(me: &Member) -> Dozing<'_> {
    loop {
        if let Some(dozing) = me.doze().unwrap() {
            return dozing;
        }
    }
}

/// Runs the member's event loop until `is_done`. Returns the number of turns.
fn event_loop(me: &Member, mut is_done: impl FnMut() -> bool) -> u64 {
    let fd = me.wake_fd().expect("a file descriptor");
    let mut turns = 0;
    while !is_done() {
        turns += 1;
        let dozing = me.doze().expect("a file descriptor");
        is_readable(fd, if dozing.is_some() { -1 } else { 0 });
    }
    turns
}

/// Runs member 0's event loop on a thread of its own, and `outside` on this one with an object of
/// the member's. Ends the loop then, and returns the number of its turns.
fn beside_an_event_loop(outside: impl FnOnce(&Team, &Trust<u64>)) -> u64 {
    let team = team(1);
    let object = team.entrust(0u64);
    let (done, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|s| {
        s.spawn(|| {
            team.run(|me| {
                turns.store(
                    event_loop(me, || done.load(Ordering::Acquire)),
                    Ordering::Relaxed,
                );
            });
        });
        outside(&team, &object);
        done.store(true, Ordering::Release);
        object.post(|_| ()); // wakes the loop
    });
    turns.load(Ordering::Relaxed)
}

#[test]
fn each_kind_of_request_wakes_the_loop() {
    let _watch = watchdog();
    beside_an_event_loop(|_, object| {
        for pause in [0, 0, 2000] {
            let pause = || thread::sleep(Duration::from_micros(pause));
            object.post(|n| *n += 1);
            barrier().unwrap();
            pause();
            assert!(object.apply(|n| *n) > 0);
            pause();
            let heard = Rc::new(Cell::new(false));
            let note = Rc::clone(&heard);
            object.apply_then(|n| *n, move |_| note.set(true));
            while !heard.get() {
                poll();
            }
            pause();
            object.clone().apply(|_| ());
        }
        assert_eq!(object.apply(|n| *n), 3);
    });
}

#[test]
fn an_answer_wakes_the_loop() {
    let _watch = watchdog();
    let (team, dedicated) = (team(1), Trustees::dedicated(1).start().unwrap());
    let slow = dedicated.entrust(5u64);
    let heard = team.run(|me| {
        let heard = Rc::new(Cell::new(0));
        for _ in 0..20 {
            heard.set(0);
            let note = Rc::clone(&heard);
            let answer = |n: &mut u64| {
                thread::sleep(Duration::from_micros(500));
                *n
            };
            slow.apply_then(answer, move |n| note.set(n));
            event_loop(me, || heard.get() > 0);
        }
        heard.get()
    });
    assert_eq!(heard, [5]);
}

/// A client of a member that is awake rings nobody.
#[test]
fn requests_to_an_awake_member_do_not_ring() {
    let _watch = watchdog();
    let team = team(1);
    let object = team.entrust(0u64);
    let has_dozed = AtomicBool::new(false);
    thread::scope(|s| {
        s.spawn(|| {
            while !has_dozed.load(Ordering::Acquire) {
                thread::yield_now();
            }
            (0..1000).for_each(|_| object.apply(|n| *n += 1));
        });
        let rung = team.run(|me| {
            let fd = me.wake_fd().unwrap();
            drop(doze(me)); // so that a ring would be possible at all
            has_dozed.store(true, Ordering::Release);
            let mut rung = 0;
            while object.apply(|n| *n) < 1000 {
                me.serve();
                rung += u64::from(is_readable(fd, 0));
            }
            rung
        });
        assert_eq!(rung, [0]);
    });
}

/// An idle loop sleeps: it comes round for what wakes it, and for nothing else.
#[test]
fn an_idle_loop_does_not_turn() {
    let _watch = watchdog();
    let turns = beside_an_event_loop(|team, object| {
        object.apply(|_| ());
        while team.report().trustees[0].metrics.sleeps == 0 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(100));
    });
    assert!(turns < 100, "{turns} turns for three things to do");
}

/// The ring is taken when the doze ends, so that a level-triggered loop does not turn for ever.
#[test]
fn the_end_of_a_doze_takes_the_ring() {
    let _watch = watchdog();
    let team = team(1);
    let object = team.entrust(0u64);
    let sleeps = AtomicBool::new(false);
    thread::scope(|s| {
        s.spawn(|| {
            while !sleeps.load(Ordering::Acquire) {
                thread::yield_now();
            }
            object.apply(|n| *n += 1);
        });
        team.run(|me| {
            let fd = me.wake_fd().unwrap();
            while object.apply(|n| *n) == 0 {
                let Some(dozing) = me.doze().unwrap() else {
                    continue;
                };
                sleeps.store(true, Ordering::Release);
                assert!(is_readable(fd, -1));
                drop(dozing);
                assert!(!is_readable(fd, 0));
            }
        });
    });
}

/// A call that sleeps while the member dozes: whoever wakes the member from that does not ring, so
/// the loop must not sleep after it.
#[test]
fn a_call_that_sleeps_during_a_doze_ends_it() {
    let _watch = watchdog();
    let (team, dedicated) = (team(1), Trustees::dedicated(1).start().unwrap());
    let slow = dedicated.entrust(0u64);
    team.run(|me| {
        let fd = me.wake_fd().unwrap();
        let dozing = doze(me);
        slow.apply(|_| thread::sleep(Duration::from_millis(20)));
        is_readable(fd, -1); // for ever, if nobody rings
        drop(dozing);
        assert!(!is_readable(fd, 0));
    });
}

#[test]
fn a_doze_that_is_forgotten_harms_nobody() {
    let _watch = watchdog();
    let team = team(1);
    let object = team.entrust(0u64);
    team.run(|me| {
        std::mem::forget(doze(me));
        let again = catch_unwind(AssertUnwindSafe(|| drop(me.doze())));
        let message = *again.unwrap_err().downcast::<&str>().unwrap();
        assert!(message.contains("drop the last Dozing first"), "{message}");
    });
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(2)); // longer than a trustee polls
        object.apply(|n| *n += 1);
    }
    assert_eq!(object.apply(|n| *n), 3);
    // And the next function can doze again.
    team.run(|me| drop(me.doze().unwrap()));
}

#[test]
fn doze_is_refused_inside_closures_and_callbacks() {
    static ME: OnceLock<usize> = OnceLock::new();
    let _watch = watchdog();
    let team = team(1);
    let object = team.entrust(0u64);
    team.run(|me| {
        // The address of the member, for a closure on its own thread.
        let me = ME.get_or_init(|| std::ptr::from_ref(me).expose_provenance());
        let doze = || {
            // SAFETY: the member lives as long as its function, which waits for the closure.
            let me = unsafe { &*std::ptr::with_exposed_provenance::<Member>(*me) };
            catch_unwind(AssertUnwindSafe(|| drop(me.doze()))).is_err()
        };
        assert!(object.apply(move |_| doze()));
        object.apply_then(|_| (), move |()| assert!(doze()));
        barrier().unwrap();
    });
}

/// Members with event loops and threads outside send each other all kinds of requests.
#[test]
fn many_requests_between_event_loops_are_all_answered() {
    const REQUESTS: u64 = 2000;
    let _watch = watchdog();
    let team = team(3);
    let objects = team.entrust_all([0u64; 3]);
    let ask = |i: u64, owed: &Rc<Cell<u64>>| {
        for object in &objects {
            match i % 5 {
                0 => object.post(|n| *n += 1),
                1 => object.apply(|n| *n += 1),
                _ => {
                    owed.set(owed.get() + 1);
                    let note = Rc::clone(owed);
                    object.apply_then(|n| *n += 1, move |()| note.set(note.get() - 1));
                }
            }
        }
    };
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let owed = Rc::default();
                for i in 0..REQUESTS {
                    ask(i, &owed);
                    if i % 64 == 0 {
                        thread::sleep(Duration::from_micros(100));
                    }
                }
                barrier().unwrap();
                assert_eq!(owed.get(), 0);
            });
        }
        team.run(|me| {
            let (own, owed) = (Cell::new(0), Rc::default());
            let turns = event_loop(me, || {
                if own.get() < REQUESTS {
                    ask(own.get(), &owed);
                    own.set(own.get() + 1);
                    return false;
                }
                let all = objects[me.number()].apply(|n| *n) == 5 * REQUESTS;
                all && owed.get() == 0
            });
            assert!(turns > 0);
        });
    });
}
