//! The waiting seam, with threads and with a toy coroutine scheduler.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod toy;

use corelay_sync::wait::{
    self, CodeName, NoSwitch, Sleeper, Source, SuspensionPoint, Token, register,
};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Instant;
use toy::Toy;

#[test]
fn a_thread_waits_for_a_token() {
    for delay in [0, 1, 20] {
        let token = Token::new();
        std::thread::scope(|s| {
            s.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(delay));
                token.notify();
            });
            wait::wait(&token);
        });
        assert!(token.is_set());
    }
}

#[test]
fn many_tokens_are_set_and_freed_at_once() {
    // The notifier must not touch a token that its waiter has seen set.
    let (send, receive) = std::sync::mpsc::sync_channel::<&'static Token>(1);
    let notifier = std::thread::spawn(move || receive.iter().for_each(Token::notify));
    for _ in 0..20_000 {
        let token = Box::into_raw(Box::new(Token::new()));
        // SAFETY: it is freed below, after the notifier has set it.
        send.send(unsafe { &*token }).unwrap();
        // SAFETY: it is freed below, after the notifier has set it.
        wait::wait(unsafe { &*token });
        // SAFETY: it comes from `Box::into_raw`, and is set, so the notifier does not touch it any
        // more.
        drop(unsafe { Box::from_raw(token) });
    }
    drop(send);
    notifier.join().unwrap();
}

/// A waker that counts how often it was woken.
#[derive(Default)]
struct Alarm {
    rung: AtomicUsize,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn many_threads_wait_for_one_token() {
    for round in 0..200 {
        let token = Token::new();
        let waiting = AtomicUsize::new(0);
        std::thread::scope(|s| {
            for waiter in 0..8 {
                let (token, waiting) = (&token, &waiting);
                s.spawn(move || {
                    waiting.fetch_add(1, Ordering::Relaxed);
                    if waiter % 2 == 0 {
                        wait::wait_until(token, Instant::now());
                    }
                    wait::wait(token);
                    assert!(token.is_set());
                });
            }
            // Each thread at another moment.
            while waiting.load(Ordering::Relaxed) < round % 9 {
                std::thread::yield_now();
            }
            token.notify();
        });
    }
}

#[test]
fn a_wait_that_times_out_leaves_no_subscription() {
    let alarm = Arc::new(Alarm::default());
    let token = Token::new();
    assert!(token.subscribe(Waker::from(Arc::clone(&alarm))));
    for _ in 0..10_000 {
        assert!(!wait::wait_until(&token, Instant::now()));
    }
    // The other waiter's subscription is still there, once.
    assert_eq!(Arc::strong_count(&alarm), 2);
    let mine = Sleeper::current();
    assert_eq!(Arc::strong_count(&mine), 2, "the thread's own, and this");
    token.notify();
    assert_eq!(alarm.rung.load(Ordering::Relaxed), 1);
    assert!(wait::wait_until(&token, Instant::now()));
    assert!(!token.subscribe(Waker::from(Arc::clone(&alarm))));
    assert_eq!(Arc::strong_count(&alarm), 1);
}

#[test]
fn a_token_that_is_dropped_unset_keeps_no_waker() {
    let alarm = Arc::new(Alarm::default());
    let token = Token::new();
    for _ in 0..3 {
        assert!(token.subscribe(Waker::from(Arc::clone(&alarm))));
    }
    drop(token);
    assert_eq!(alarm.rung.load(Ordering::Relaxed), 3);
    assert_eq!(Arc::strong_count(&alarm), 1);
}

#[test]
fn a_waker_that_unwinds_keeps_no_other_from_being_woken() {
    struct Unwinds;
    impl Wake for Unwinds {
        fn wake(self: Arc<Self>) {
            panic!("a waker unwinds");
        }
    }
    let alarm = Arc::new(Alarm::default());
    let token = Token::new();
    assert!(token.subscribe(Waker::from(Arc::clone(&alarm))));
    assert!(token.subscribe(Waker::from(Arc::new(Unwinds))));
    assert!(token.subscribe(Waker::from(Arc::clone(&alarm))));
    catch_unwind(AssertUnwindSafe(|| token.notify())).unwrap_err();
    assert!(token.is_set());
    assert_eq!(alarm.rung.load(Ordering::Relaxed), 2);
}

#[test]
fn coroutines_and_a_thread_wait_for_one_token() {
    let token = Arc::new(Token::new());
    let thread = std::thread::spawn({
        let token = Arc::clone(&token);
        move || wait::wait(&token)
    });
    let toy = Toy::new();
    for _ in 0..3 {
        let token = Arc::clone(&token);
        toy.add(move || wait::wait(&token));
    }
    let theirs = Arc::clone(&token);
    toy.add(move || theirs.notify());
    toy.run();
    thread.join().unwrap();
    assert_eq!(toy.suspensions.get(), 3);
}

#[test]
fn coroutines_run_while_others_wait() {
    let toy = Toy::new();
    let order = Rc::new(RefCell::new(Vec::new()));
    let tokens: Rc<Vec<Token>> = Rc::new((0..3).map(|_| Token::new()).collect());
    for i in 0..3 {
        let (order, tokens) = (Rc::clone(&order), Rc::clone(&tokens));
        toy.add(move || {
            order.borrow_mut().push(("waits", i));
            wait::wait(&tokens[i]);
            order.borrow_mut().push(("goes on", i));
        });
    }
    let (waker, tokens) = (Rc::clone(&order), Rc::clone(&tokens));
    toy.add(move || {
        assert_eq!(waker.borrow().len(), 3, "all three wait");
        for token in tokens.iter().rev() {
            token.notify();
        }
    });
    toy.run();
    assert_eq!(order.borrow().len(), 6);
    assert_eq!(toy.suspensions.get(), 3);
}

#[test]
fn coroutines_of_one_thread_wait_for_suspension_points() {
    let toy = Toy::new();
    let spots: Rc<[SuspensionPoint; 3]> = Rc::default();
    let order = Rc::new(RefCell::new(Vec::new()));
    for i in 0..3 {
        let (spots, order) = (Rc::clone(&spots), Rc::clone(&order));
        toy.add(move || {
            let here = wait::here().expect("a coroutine may wait");
            // SAFETY: the coroutine runs here, and is the only one to wait for its point.
            unsafe { here.wait(&spots[i]) };
            order.borrow_mut().push(i);
        });
    }
    let (theirs, before) = (Rc::clone(&spots), Rc::clone(&order));
    toy.add(move || {
        assert!(before.borrow().is_empty(), "all wait");
        theirs[2].set();
        theirs[0].set();
        assert!(before.borrow().is_empty(), "they go on in their turn");
        theirs[1].set();
        let here = wait::here().expect("a coroutine may wait");
        let spot = SuspensionPoint::new();
        spot.set();
        // SAFETY: the coroutine runs here, and is the only one to wait for this point, which is set
        // already.
        unsafe { here.wait(&spot) };
    });
    assert!(wait::here().is_none(), "a thread blocks");
    toy.run();
    assert_eq!(*order.borrow(), [2, 0, 1]);
    assert_eq!(toy.suspensions.get(), 3);
}

#[test]
fn an_idle_scheduler_sleeps_until_another_thread_notifies() {
    let toy = Toy::new();
    let token = Arc::new(Token::new());
    let theirs = Arc::clone(&token);
    let thread = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        theirs.notify();
    });
    toy.add(move || wait::wait(&token));
    toy.run();
    thread.join().unwrap();
}

#[test]
fn a_coroutine_spawns_another() {
    let toy = Toy::new();
    let ran = Rc::new(Cell::new(false));
    let seen = Rc::clone(&ran);
    toy.add(move || assert!(wait::spawn(Box::new(move || seen.set(true))).is_ok()));
    toy.run();
    assert!(ran.get());
    assert!(
        wait::spawn(Box::new(|| ())).is_err(),
        "a plain thread has no fibres"
    );
}

#[test]
fn a_waiting_thread_polls_its_sources() {
    struct Answers {
        arrived: Arc<AtomicBool>,
        token: Token,
    }
    impl Source for Answers {
        fn poll(&self) -> bool {
            if self.arrived.swap(false, Ordering::Acquire) {
                self.token.notify();
            }
            !self.token.is_set()
        }
    }
    let arrived = Arc::new(AtomicBool::new(false));
    let source = Rc::new(Answers {
        arrived: Arc::clone(&arrived),
        token: Token::new(),
    });
    assert!(!wait::has_sources());
    let registration = register(&source);
    assert!(wait::has_sources());
    let sleeper = wait::Sleeper::current();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        arrived.store(true, Ordering::Release);
        sleeper.wake_if_asleep();
    });
    wait::wait(&source.token);
    thread.join().unwrap();
    drop(registration);
    assert!(!wait::has_sources());
}

/// The poll drops the source's last owner, so that its destructor runs inside a wait.
#[test]
fn a_source_whose_destructor_unwinds_ends_the_process() {
    const NAME: &str = "a_source_whose_destructor_unwinds_ends_the_process";
    const IN_CHILD: &str = "CORELAY_TEST_UNWINDING_SOURCE";
    struct Last(RefCell<Option<Rc<Self>>>);
    impl Source for Last {
        fn poll(&self) -> bool {
            self.0.take().is_some()
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            panic!("a destructor unwinds");
        }
    }
    if std::env::var_os(IN_CHILD).is_some() {
        let source = Rc::new(Last(RefCell::default()));
        *source.0.borrow_mut() = Some(Rc::clone(&source));
        let registration = register(&source);
        drop(source);
        let _ = catch_unwind(wait::poll_sources);
        std::mem::forget(registration);
        return;
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env(IN_CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "it has gone on: {said}");
    assert!(said.contains("a source has unwound"), "{said}");
}

#[test]
fn sleeping_in_another_threads_sleeper_panics() {
    let sleeper = Sleeper::current();
    let other = std::thread::spawn(move || sleeper.sleep(None, || true));
    let refused = other.join().unwrap_err();
    let message = refused.downcast_ref::<&str>().unwrap();
    assert!(message.contains("another one's sleeper"), "{message}");
}

#[test]
fn a_forbidden_wait_is_a_named_panic() {
    let name = CodeName::fixed(&"the order book");
    // SAFETY: the guard is dropped below, before `name` ends.
    let guard = unsafe { NoSwitch::enter(&name) };
    let refused = catch_unwind(AssertUnwindSafe(|| wait::wait(&Token::new()))).unwrap_err();
    let message = refused.downcast_ref::<String>().unwrap();
    assert!(
        message.contains("the order book") && message.contains("seam.rs"),
        "{message}"
    );
    drop(guard);
    assert_eq!(NoSwitch::active(), None);
}

/// A destructor waits for a token and for a suspension point. Meanwhile another coroutine runs on
/// the thread, and does not see the panic.
#[test]
fn a_wait_while_unwinding_suspends_and_others_do_not_see_the_panic() {
    struct InDrop<F: FnMut()>(F);
    impl<F: FnMut()> Drop for InDrop<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let toy = Toy::new();
    let (token, spot) = (Arc::new(Token::new()), Rc::new(SuspensionPoint::new()));
    let (set_token, set_spot) = (Arc::clone(&token), Rc::clone(&spot));
    toy.add(move || {
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _in_drop = InDrop(|| {
                wait::wait(&token);
                assert!(std::thread::panicking());
                let here = wait::here().expect("its panic can be set aside");
                // SAFETY: `here` was asked just before, with no wait in between; this is the only
                // wait for the point.
                unsafe { here.wait(&spot) };
                assert!(std::thread::panicking());
            });
            resume_unwind(Box::new(()));
        }));
        assert!(unwound.is_err() && !std::thread::panicking());
    });
    toy.add(move || {
        assert!(!std::thread::panicking());
        set_token.notify();
        // The other coroutine goes on, and waits for the point or finds it set.
        wait::give_turn();
        assert!(!std::thread::panicking());
        set_spot.set();
    });
    toy.run();
    assert!(toy.suspensions.get() >= 2);
}
