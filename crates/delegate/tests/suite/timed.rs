//! Requests with a deadline.

use crate::support::{
    Gate, Tally, hold_up, hold_up_from_elsewhere, one, panic_of, scaled, start, watchdog,
};
use corelay_delegate::{AsyncError, TimeoutError, Trustees, barrier, poll};
use std::future::{Future, pending, poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(3600);

#[test]
fn an_answer_in_time_comes_as_from_apply() {
    let _watchdog = watchdog();
    let trustees = one();
    let hits = trustees.entrust(1);
    for limit in [LONG, Duration::MAX] {
        assert_eq!(hits.apply_timeout(limit, |hits| *hits).unwrap(), 1);
    }
    // One for which the caller sleeps.
    let slow = hits.apply_timeout(LONG, |hits| {
        std::thread::sleep(SOON * 20);
        *hits
    });
    assert_eq!(slow.unwrap(), 1);
}

#[test]
fn a_closure_that_has_not_begun_in_time_comes_back_and_never_runs() {
    let _watchdog = watchdog();
    let tally = Tally::new();
    // With room, and without: then the request has not even been sent.
    for window in [8, 1] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let hits = trustees.entrust(0);
        let held = hold_up(&hits);
        let token = tally.token();
        let add = move |hits: &mut i32| {
            let _token = &token;
            *hits += 1;
        };
        let add = match hits.apply_timeout(SOON, add) {
            Err(TimeoutError::NotRun(add)) => add,
            other => panic!("{other:?}"),
        };
        let mut mine = 7;
        add(&mut mine);
        assert_eq!(mine, 8);
        drop(held);
        assert_eq!(hits.apply(|hits| *hits), 0);
    }
    tally.assert_all_dropped(2);
}

#[test]
fn a_closure_that_runs_when_the_time_is_up_runs_to_its_end() {
    let _watchdog = watchdog();
    let (trustees, tally) = (one(), Tally::new());
    let hits = trustees.entrust(0);
    let (begun, go_on) = (Gate::new(), Gate::new());
    let (begin, held, theirs) = (begun.clone(), go_on.clone(), tally.clone());
    let (mut deadline, mut request) = (false, {
        let is_up = begun.clone();
        let deadline = poll_fn(move |_| {
            is_up.wait();
            Poll::Ready(())
        });
        hits.apply_async_until(deadline, move |hits| {
            begin.open();
            held.wait();
            *hits += 1;
            theirs.token()
        })
    });
    let mut context = Context::from_waker(Waker::noop());
    while !deadline {
        match Pin::new(&mut request).poll(&mut context) {
            Poll::Pending => {}
            Poll::Ready(Err(TimeoutError::Running)) => deadline = true,
            Poll::Ready(other) => panic!("{}", other.is_ok()),
        }
    }
    go_on.open();
    assert_eq!(hits.apply(|hits| *hits), 1);
    drop(request);
    trustees.shutdown();
    tally.assert_all_dropped(1);
}

#[test]
fn a_future_that_is_dropped_takes_its_closure_back() {
    let (trustees, tally) = (one(), Tally::new());
    let hits = trustees.entrust(0);
    let held = hold_up(&hits);
    let token = tally.token();
    drop(hits.apply_async_until(pending(), move |hits| {
        drop(token);
        *hits += 1;
    }));
    tally.assert_all_dropped(1);
    drop(held);
    assert_eq!(hits.apply(|hits| *hits), 0);
}

#[test]
fn what_goes_wrong_in_time_is_told() {
    let trustees = one();
    let hits = trustees.entrust(0);
    assert_eq!(
        panic_of(|| hits.apply_timeout(LONG, |_| panic!("in time"))),
        "in time"
    );
    assert!(matches!(
        hits.apply_timeout(LONG, |_| ()),
        Err(TimeoutError::Failed(AsyncError::Poisoned))
    ));
    let nested = trustees.entrust(0);
    let theirs = nested.clone();
    let refusal = panic_of(|| nested.apply(move |_| drop(theirs.apply_timeout(SOON, |_| ()))));
    assert!(refusal.contains("Trust::apply_timeout"), "{refusal}");
    trustees.shutdown();
    assert!(matches!(
        nested.apply_timeout(LONG, |_| ()),
        Err(TimeoutError::Failed(AsyncError::Closed))
    ));
}

#[test]
fn a_panic_after_the_time_poisons_the_value() {
    let _watchdog = watchdog();
    let trustees = one();
    let hits = trustees.entrust(0);
    let (begun, go_on) = (Gate::new(), Gate::new());
    let (begin, held) = (begun.clone(), go_on.clone());
    let deadline = poll_fn(move |_| {
        begun.wait();
        Poll::Ready(())
    });
    let mut request = hits.apply_async_until(deadline, move |_| {
        begin.open();
        held.wait();
        panic!("late");
    });
    let polled = Pin::new(&mut request).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(TimeoutError::Running))));
    go_on.open();
    assert!(hits.try_apply(|_| ()).is_err() && hits.is_poisoned());
    barrier().unwrap();
}

#[test]
fn a_member_serves_while_it_waits_for_an_answer_or_the_time() {
    let _watchdog = watchdog();
    let (send, receive) = std::sync::mpsc::channel();
    let receive = std::sync::Mutex::new(receive);
    let run = Trustees::flat(2).run(|me| {
        let mine = me.entrust(0);
        assert_eq!(mine.apply_timeout(LONG, |mine| *mine).unwrap(), 0);
        send.send(mine).unwrap();
        let theirs = receive.lock().unwrap().recv().unwrap();
        for _ in 0..200 {
            theirs.apply_timeout(LONG, |theirs| *theirs += 1).unwrap();
        }
        // Another thread keeps one of the two from serving.
        if me.number() == 0 {
            let outside = std::thread::spawn({
                let mine = theirs.clone();
                move || mine.apply(|_| std::thread::sleep(SOON * 50))
            });
            let late = theirs.apply_timeout(SOON * 5, |_| ());
            assert!(matches!(
                late,
                Ok(()) | Err(TimeoutError::NotRun(_) | TimeoutError::Running)
            ));
            while !outside.is_finished() {
                poll();
            }
        }
        theirs.apply(|theirs| *theirs)
    });
    assert!(run.unwrap().into_iter().all(|hits| hits <= 200));
}

#[test]
fn each_closure_runs_or_comes_back_whatever_the_time() {
    let _watchdog = watchdog();
    let trustees = start(Trustees::dedicated(1).window(4));
    let (hits, ran) = (trustees.entrust(0u64), Arc::new(AtomicU64::new(0)));
    let told = AtomicU64::new(0);
    std::thread::scope(|s| {
        for thread in 0..3u32 {
            let (hits, ran, told) = (&hits, &ran, &told);
            s.spawn(move || {
                for i in 0..scaled(500) as u32 {
                    let ran = Arc::clone(ran);
                    let limit = Duration::from_micros(u64::from((i * 7 + thread) % 60));
                    let result = hits.apply_timeout(limit, move |hits| {
                        ran.fetch_add(1, Ordering::Relaxed);
                        *hits += 1;
                    });
                    match result {
                        Ok(()) | Err(TimeoutError::Running) => {
                            told.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(TimeoutError::NotRun(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let counted = hits.apply(|hits| *hits);
    let told = told.load(Ordering::Relaxed);
    assert_eq!((counted, ran.load(Ordering::Relaxed)), (told, told));
}

#[test]
fn a_deadline_that_is_up_at_once_still_says_what_happened() {
    let _watchdog = watchdog();
    let trustees = one();
    let (hits, other) = (trustees.entrust(0), trustees.entrust(()));
    let held = hold_up_from_elsewhere(&other);
    let mut future = hits.apply_async_until(ready(()), |hits| *hits += 1);
    let polled = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(TimeoutError::NotRun(_)))));
    drop(held);
    assert_eq!(hits.apply(|hits| *hits), 0);
}
