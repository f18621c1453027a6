//! A member's requests to objects of its own.

use crate::support::POLICIES;
use crate::watch::watchdog;
use corelay_delegate::{
    AsyncError, Policy, Trust, Trustees, TryApplyError, TryApplyThenError, barrier, poll,
};
use corelay_sync::{Issue, Session, Shared};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

fn block_on<O>(task: impl Future<Output = O>) -> O {
    let mut task = pin!(task);
    loop {
        let polled = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(output) = polled {
            return output;
        }
        poll();
    }
}

#[test]
fn every_call_works_and_keeps_its_order() {
    for policy in POLICIES {
        let run = Trustees::flat(1).policy(policy).window(4).run(|me| {
            let log = me.entrust(Vec::new());
            let heard = Rc::new(RefCell::new(Vec::new()));
            for n in (0..60).step_by(6) {
                log.post(move |log| log.push(n));
                let hear = Rc::clone(&heard);
                let push = move |log: &mut Vec<u32>| {
                    log.push(n + 1);
                    n + 1
                };
                log.apply_then(push, move |n| hear.borrow_mut().push(n));
                assert_eq!(log.apply(|log| log.len()), n as usize + 2);
                let asked = log.apply_async(move |log| log.push(n + 2));
                log.try_post(move |log| log.push(n + 3)).expect("room");
                let mut session = log.session();
                let hear = Rc::clone(&heard);
                session.issue(
                    move |log| log.push(n + 4),
                    move |()| hear.borrow_mut().push(n + 4),
                );
                assert_eq!(session.apply(|log| log.len()), n as usize + 5);
                session.barrier();
                drop(session);
                log.try_apply(|log| log.push(n + 5)).expect("healthy");
                block_on(asked).expect("no panic");
            }
            barrier().expect("no panic");
            let twice: Vec<u32> = (0..60).step_by(6).flat_map(|n| [n + 1, n + 4]).collect();
            assert_eq!(*heard.borrow(), twice);
            log.apply(|log| log.clone())
        });
        let all: Vec<u32> = (0..60).collect();
        assert_eq!(run.expect("a thread"), [all], "{policy}");
    }
}

/// `apply` may borrow, by each way that it may go.
#[test]
fn a_call_borrows() {
    for policy in POLICIES {
        let run = Trustees::flat(2).policy(policy).run(|me| {
            let text = me.entrust(String::new());
            let word = String::from("borrowed");
            text.apply(|text| text.push_str(&word));
            text.apply(|text| text.len())
        });
        assert_eq!(run.expect("threads"), [8, 8]);
    }
}

/// Callbacks that make requests, from themselves, on one stack.
#[test]
fn callbacks_of_own_requests_do_not_recurse() {
    fn again(left: u32, hits: corelay_delegate::Trust<u32>, sum: Rc<Cell<u32>>) {
        let next = hits.clone();
        let then = move |n| {
            sum.set(sum.get() + n);
            if left > 0 {
                again(left - 1, next, sum);
            }
        };
        hits.apply_then(|h| std::mem::replace(h, 1), then);
    }
    for policy in POLICIES {
        let run = Trustees::flat(1).policy(policy).run(|me| {
            let hits = me.entrust(1);
            let sum = Rc::new(Cell::new(0));
            again(200_000, hits, Rc::clone(&sum));
            barrier().expect("no panic");
            sum.get()
        });
        assert_eq!(run.expect("a thread"), [200_001], "{policy}");
    }
}

/// A callback leaves as many callbacks as the window allows, and no more.
#[test]
fn callbacks_left_for_later_are_bounded() {
    for policy in [Policy::FastPath, Policy::Adaptive] {
        let run = Trustees::flat(1).policy(policy).window(3).run(|me| {
            let hits = me.entrust(0u32);
            let (more, seen) = (hits.clone(), Rc::new(Cell::new(0)));
            let see = Rc::clone(&seen);
            let then = move |()| {
                for n in 0..5 {
                    let see = Rc::clone(&see);
                    let then = move |()| see.set(see.get() + 1);
                    match more.try_apply_then(|h| *h += 1, then) {
                        Ok(()) => assert!(n < 3),
                        Err(TryApplyThenError::Full(..)) => assert!(n >= 3),
                        Err(other) => panic!("{other:?}"),
                    }
                }
            };
            hits.apply_then(|h| *h += 1, then);
            barrier().expect("no panic");
            (seen.get(), hits.apply(|h| *h))
        });
        assert_eq!(run.expect("a thread"), [(3, 4)]);
    }
}

#[test]
fn a_panic_poisons_and_is_reported() {
    for policy in POLICIES {
        let run = Trustees::flat(1).policy(policy).run(|me| {
            let bad = me.entrust(0u32);
            let raised = catch_unwind(AssertUnwindSafe(|| bad.apply(|_| panic!("mine"))));
            let payload = raised.expect_err("it has");
            assert_eq!(payload.downcast_ref(), Some(&"mine"));
            assert!(matches!(
                bad.try_apply(|_| ()),
                Err(TryApplyError::Poisoned)
            ));
            bad.post(|_| unreachable!());
            bad.apply_then(|_| unreachable!(), |()| unreachable!());
            let asked = block_on(bad.apply_async(|_| ()));
            assert!(matches!(asked, Err(AsyncError::Poisoned)));
            let failed = barrier().expect_err("two have");
            assert_eq!(failed.count(), 2, "{policy}");
            bad.clear_poison();
            bad.post(|_| panic!("again"));
            let failed = barrier().expect_err("one has");
            assert_eq!((failed.count(), failed.message()), (1, "again"));
            barrier().expect("all has been said");
            bad.clear_poison();
            // A callback's panic comes out of a call.
            let raised = catch_unwind(AssertUnwindSafe(|| {
                bad.apply_then(|_| (), |()| panic!("a callback's"));
                barrier().expect("requests are well");
            }));
            let payload = raised.expect_err("it has");
            assert_eq!(payload.downcast_ref(), Some(&"a callback's"));
        });
        run.expect("a thread");
    }
}

/// A session kept in a thread-local is refused inside closures: nothing may wait there, and the
/// closure has the value already.
#[test]
fn a_session_inside_a_closure_is_refused() {
    thread_local! {
        static SESSION: RefCell<Option<corelay_delegate::TrustSession<'static, u32>>> =
            const { RefCell::new(None) };
    }
    for policy in POLICIES {
        let run = Trustees::flat(1).policy(policy).run(|me| {
            let value: &'static _ = Box::leak(Box::new(me.entrust(0u32)));
            SESSION.with(|s| *s.borrow_mut() = Some(value.session()));
            let refused = catch_unwind(AssertUnwindSafe(|| {
                value.apply(|_| {
                    SESSION.with(|s| {
                        if let Some(session) = s.borrow_mut().as_mut() {
                            session.apply(|n| *n += 1);
                        }
                    });
                });
            }));
            let payload = refused.expect_err("a closure is a leaf");
            let message = payload.downcast_ref::<String>().expect("a text");
            assert!(message.contains("may not wait"), "{policy}: {message}");
            SESSION.with(|s| s.borrow_mut().take());
        });
        run.expect("a thread");
    }
}

/// A member makes requests to itself, then to others and itself in turn, then to itself again: the
/// adaptive policy changes its way, and nothing is overtaken.
#[test]
fn a_change_of_way_keeps_the_order() {
    let team = Trustees::flat(2).window(64).start().expect("threads");
    let logs = team.entrust_all([(0u32, 0u32), (0, 0)]);
    let logs = &logs;
    team.run(|me| {
        let who = me.number();
        let (mut asked, heard) = ([0u32; 2], Rc::new(Cell::new(0)));
        let mut ask = |to: usize| {
            let n = asked[to];
            asked[to] += 1;
            let check = move |next: &mut (u32, u32)| {
                let next = if who == 0 { &mut next.0 } else { &mut next.1 };
                assert_eq!(*next, n, "overtaken");
                *next += 1;
            };
            match n % 64 {
                63 => logs[to].apply(check),
                50..63 => logs[to].post(check),
                _ => {
                    let heard = Rc::clone(&heard);
                    logs[to].apply_then(check, move |()| heard.set(heard.get() + 1));
                }
            }
        };
        for _ in 0..6 {
            (0..3_000).for_each(|_| ask(who));
            (0..6_000).for_each(|i| ask(i % 2));
        }
        barrier().expect("nothing was overtaken");
        let then = |n: u32| n / 64 * 50 + (n % 64).min(50);
        assert_eq!(heard.get(), then(asked[0]) + then(asked[1]));
    });
}

/// A session's barrier waits for the requests of callbacks, too.
#[test]
fn a_sessions_barrier_runs_all_callbacks() {
    fn chain(t: Trust<u64>, left: u32, heard: Rc<Cell<u32>>) {
        let next = t.clone();
        let then = move |()| {
            heard.set(heard.get() + 1);
            if left > 0 {
                chain(next, left - 1, heard);
            }
        };
        t.apply_then(|n| *n += 1, then);
    }
    for policy in POLICIES {
        let run = Trustees::flat(1).policy(policy).run(|me| {
            let own = me.entrust(0u64);
            let heard = Rc::new(Cell::new(0));
            let (next, hear) = (own.clone(), Rc::clone(&heard));
            let mut session = own.session();
            session.issue(|n| *n += 1, move |()| chain(next, 5, hear));
            session.barrier();
            heard.get()
        });
        assert_eq!(run.expect("a thread"), [6], "{policy}");
    }
}

#[test]
fn a_sessions_barrier_inside_a_callback_is_refused() {
    for policy in POLICIES {
        let run = Trustees::flat(1).policy(policy).run(|me| {
            let own = me.entrust(0u64);
            let (handle, refused) = (own.clone(), Rc::new(Cell::new(false)));
            let note = Rc::clone(&refused);
            let then = move |()| {
                let mut session = handle.session();
                let barrier = catch_unwind(AssertUnwindSafe(|| session.barrier()));
                note.set(barrier.is_err());
            };
            own.apply_then(|_| (), then);
            barrier().expect("no request panics");
            refused.get()
        });
        assert_eq!(run.expect("a thread"), [true], "{policy}");
    }
}

/// A future that is polled once, and then when it is woken.
#[test]
fn polling_completes_a_future_of_an_own_object() {
    struct Parked(std::thread::Thread);
    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    for policy in POLICIES {
        let run = Trustees::flat(1).policy(policy).run(|me| {
            let own = me.entrust(7u64);
            let mut asked = pin!(own.apply_async(|n| *n));
            let waker = Waker::from(Arc::new(Parked(std::thread::current())));
            let mut context = Context::from_waker(&waker);
            loop {
                match asked.as_mut().poll(&mut context) {
                    Poll::Ready(answer) => return answer.expect("no panic"),
                    Poll::Pending => std::thread::park(),
                }
            }
        });
        assert_eq!(run.expect("a thread"), [7], "{policy}");
    }
}

/// A member that waits by looking at an object of its own sees another member's change, if its
/// policy serves at all before the function has ended.
#[test]
fn a_member_that_calls_only_itself_serves() {
    let others = POLICIES.into_iter().filter(|&p| p != Policy::FastPath);
    for policy in others {
        let _watch = watchdog();
        let team = Trustees::flat(2).policy(policy).start().expect("threads");
        let flag = &team.entrust_on(0, false);
        team.run(|me| match me.number() {
            0 => while !flag.apply(|flag| *flag) {},
            _ => flag.apply(|flag| *flag = true),
        });
    }
}

/// A call that has run callbacks, because its own way was not clear, raises their panic, as one
/// that travels does.
#[test]
fn a_call_raises_the_panic_of_a_callback_that_it_has_run() {
    for policy in [Policy::Queue, Policy::Blocked] {
        let run = Trustees::flat(1).policy(policy).run(|me| {
            let own = me.entrust(0u32);
            own.apply_then(|n| *n += 1, |()| panic!("a callback's"));
            let raised = catch_unwind(AssertUnwindSafe(|| own.apply(|n| *n += 1)));
            let message = raised.err().and_then(|p| p.downcast_ref::<&str>().copied());
            (message, own.apply(|n| *n))
        });
        assert_eq!(
            run.expect("a thread"),
            [(Some("a callback's"), 2)],
            "{policy}"
        );
    }
}

#[test]
fn a_handle_names_its_trustee() {
    let team = Trustees::flat(2).start().expect("there are threads");
    let handles = team.run(|me| me.entrust(()));
    let numbers: Vec<_> = handles.iter().map(Trust::trustee).collect();
    assert_eq!(numbers, [0, 1]);
}
