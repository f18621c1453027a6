//! Promise 5 for futures: a full window blocks no thread. The request waits in its future, first
//! come first served; dropped there, it holds nobody up; on another thread it goes on.

use crate::promise_03_futures::{Counting, block_on, poll_with};
use crate::support::{Tally, hold_up, panic_of, scaled, start, until, watchdog};
use corelay_delegate::{
    ApplyFuture, AsyncError, ClientGuard, Trust, Trustees, TryPostError, barrier,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

/// A log on a trustee with a window of `window`, and a function that fills that.
fn log(window: usize) -> (Trustees, Trust<Vec<u64>>) {
    let trustees = start(Trustees::dedicated(1).window(window));
    let log = trustees.entrust(Vec::new());
    (trustees, log)
}

/// Fills the window of this thread.
fn fill(log: &Trust<Vec<u64>>) {
    while log.try_post(|_| ()).is_ok() {}
    assert!(matches!(log.try_post(|_| ()), Err(TryPostError::Full(_))));
}

fn push(log: &Trust<Vec<u64>>, number: u64) -> ApplyFuture<()> {
    log.apply_async(move |log| log.push(number))
}

#[test]
fn full_window_blocks_no_thread() {
    let _watch = watchdog();
    let (_trustees, log) = log(4);
    let held = hold_up(&log);
    fill(&log);
    let (counting, waker) = Counting::new();
    let mut parked = push(&log, 7);
    assert!(poll_with(&mut parked, &waker).is_pending());
    assert!(poll_with(&mut parked, &waker).is_pending());
    let mut posted = log.post_async(|log| log.push(8));
    let mut context = Context::from_waker(&waker);
    assert!(Pin::new(&mut posted).poll(&mut context).is_pending());
    assert!(format!("{parked:?} {posted:?}").contains("false"));
    assert_eq!(counting.woken(), 0);
    drop(held);
    until(|| counting.woken() == 2);
    block_on(parked).unwrap();
    block_on(posted).unwrap();
    assert_eq!(log.apply(std::mem::take), [7, 8]);
}

#[test]
fn first_polled_is_first_served() {
    let _watch = watchdog();
    let (_trustees, log) = log(4);
    let held = hold_up(&log);
    fill(&log);
    let mut futures: Vec<_> = (0..20).map(|number| push(&log, number)).collect();
    let (counting, waker) = Counting::new();
    for future in &mut futures {
        assert!(poll_with(future, &waker).is_pending());
    }
    drop(held);
    until(|| counting.woken() > 0);
    // Whoever comes now comes after those that wait, even if there is room.
    let mut late = push(&log, 99);
    let late = thread::scope(|s| {
        // Polled in the wrong order, by one thread.
        let mut pending: Vec<_> = futures.into_iter().rev().collect();
        while !pending.is_empty() {
            pending.retain_mut(|future| poll_with(future, &waker).is_pending());
            if let Poll::Ready(ready) = poll_with(&mut late, &waker) {
                ready.unwrap();
                late = push(&log, 100);
            }
        }
        s.spawn(move || block_on(late)).join().unwrap()
    });
    late.unwrap();
    let order: Vec<u64> = log.apply(std::mem::take);
    let at = |number| order.iter().position(|&n| n == number).unwrap();
    // Those that are let in at a time may be polled in any order.
    for number in 0..20 {
        assert!(at(number).abs_diff(number as usize) < 4 + 2, "{order:?}");
    }
    assert!(at(99) >= 16, "{order:?}");
}

#[test]
fn future_that_was_never_polled_holds_nobody_up() {
    let _watch = watchdog();
    let (_trustees, log) = log(2);
    let held = hold_up(&log);
    fill(&log);
    let _never: Vec<_> = (0..10).map(|number| push(&log, number)).collect();
    let mut parked = push(&log, 11);
    let (counting, waker) = Counting::new();
    assert!(poll_with(&mut parked, &waker).is_pending());
    drop(held);
    until(|| counting.woken() == 1);
    block_on(parked).unwrap();
    assert_eq!(log.apply(|log| log.clone()), [11]);
}

#[test]
fn dropped_future_runs_nothing_and_lets_the_next_in() {
    let _watch = watchdog();
    let (_trustees, log) = log(2);
    for is_woken in [false, true] {
        let held = hold_up(&log);
        fill(&log);
        let tally = Tally::new();
        let (counting, waker) = Counting::new();
        let mut parked: Vec<_> = (0..5)
            .map(|number| {
                let token = tally.token();
                log.apply_async(move |log| {
                    drop(token);
                    log.push(number);
                })
            })
            .collect();
        for future in &mut parked {
            assert!(poll_with(future, &waker).is_pending());
        }
        if is_woken {
            drop(held);
            until(|| counting.woken() > 0);
            // Those that were let in go without using it.
            for future in parked.drain(..4) {
                drop(future);
            }
            until(|| counting.woken() >= 3);
        } else {
            for future in parked.drain(..4) {
                drop(future);
            }
            drop(held);
        }
        assert_eq!(tally.dropped(), 4);
        block_on(parked.pop().unwrap()).unwrap();
        tally.assert_all_dropped(5);
        assert_eq!(log.apply(std::mem::take), [4]);
    }
}

#[test]
fn task_that_moves_sends_from_where_it_is() {
    let _watch = watchdog();
    let (_trustees, log) = log(4);
    let held = hold_up(&log);
    fill(&log);
    let (counting, waker) = Counting::new();
    let mut parked = push(&log, 5);
    assert!(poll_with(&mut parked, Waker::noop()).is_pending());
    // The other thread's window is empty.
    let moved = thread::spawn(move || {
        let sent = poll_with(&mut parked, Waker::noop()).is_pending();
        assert!(sent && format!("{parked:?}").contains("true"));
        waker.wake();
        parked
    });
    // The thread ends when its request has run.
    until(|| counting.woken() == 1);
    drop(held);
    block_on(moved.join().unwrap()).unwrap();
}

#[test]
fn task_outlives_the_thread_on_which_it_waited() {
    let _watch = watchdog();
    let (_trustees, log) = log(4);
    let (counting, waker) = Counting::new();
    let of_thread = log.clone();
    let parked = thread::spawn(move || {
        let held = hold_up(&of_thread);
        fill(&of_thread);
        let mut parked = push(&of_thread, 6);
        assert!(poll_with(&mut parked, &waker).is_pending());
        drop(held);
        parked
    });
    let parked = parked.join().unwrap();
    until(|| counting.woken() == 1);
    block_on(parked).unwrap();
    assert_eq!(log.apply(std::mem::take), [6]);
}

#[test]
fn shutdown_ends_the_wait() {
    let _watch = watchdog();
    let (trustees, log) = log(4);
    let tally = Tally::new();
    let held = hold_up(&log);
    fill(&log);
    let (counting, waker) = Counting::new();
    let mut parked: Vec<_> = (0..9)
        .map(|_| {
            let token = tally.token();
            log.apply_async(move |_| drop(token))
        })
        .collect();
    for future in &mut parked {
        assert!(poll_with(future, &waker).is_pending());
    }
    let opener = thread::spawn(move || drop(held));
    trustees.shutdown();
    opener.join().unwrap();
    let mut awaited = parked.into_iter();
    // Each that learns it lets the next one learn it.
    while let Some(future) = awaited.next() {
        until(|| counting.woken() >= 9 - awaited.len());
        assert!(matches!(block_on(future), Err(AsyncError::Closed)));
    }
    tally.assert_all_dropped(9);
    assert!(matches!(block_on(push(&log, 1)), Err(AsyncError::Closed)));
    assert!(matches!(
        block_on(log.post_async(|_| ())),
        Err(AsyncError::Closed)
    ));
}

#[test]
fn calls_that_block_do_not_wait_for_tasks() {
    let _watch = watchdog();
    let (_trustees, log) = log(2);
    let held = hold_up(&log);
    fill(&log);
    let mut parked: Vec<_> = (0..8).map(|number| push(&log, number)).collect();
    for future in &mut parked {
        assert!(poll_with(future, Waker::noop()).is_pending());
    }
    drop(held);
    // Nobody polls the tasks that have been let in.
    for number in 100..200 {
        log.post(move |log| log.push(number));
        log.apply(|_| ());
    }
    barrier().unwrap();
    parked.into_iter().map(block_on).for_each(Result::unwrap);
    assert_eq!(log.apply(|log| log.len()), 108);
}

#[test]
fn delegated_closure_that_polls_leaves_the_task_to_others() {
    let _watch = watchdog();
    let (trustees, log) = log(2);
    let other = trustees.entrust(());
    let held = hold_up(&log);
    fill(&log);
    let mut parked = push(&log, 3);
    assert!(poll_with(&mut parked, Waker::noop()).is_pending());
    drop(held);
    let (counting, waker) = Counting::new();
    let parked = other.apply(move |()| {
        assert!(poll_with(&mut parked, &waker).is_pending());
        parked
    });
    assert_eq!(counting.woken(), 1);
    block_on(parked).unwrap();
    let text = other.apply(move |()| panic_of(|| log.apply_async(|_| ())));
    assert!(text.contains("Trust::apply_async"), "{text}");
}

/// Makes a request of its own, tries to wait, and panics.
struct Unruly {
    log: Trust<Vec<u64>>,
    woken: Counting,
}

impl Wake for Unruly {
    fn wake(self: Arc<Self>) {
        self.log.post(|log| log.push(50));
        let text = panic_of(|| self.log.apply(|log| log.len()));
        assert!(
            text.contains("inside a waker on a trustee's thread"),
            "{text}"
        );
        self.woken.count();
        panic!("a waker that panics");
    }
}

#[test]
fn wakers_may_ask_but_not_wait_and_may_panic() {
    let _watch = watchdog();
    let (_trustees, log) = log(2);
    let held = hold_up(&log);
    fill(&log);
    let unruly = Arc::new(Unruly {
        log: log.clone(),
        woken: Counting::default(),
    });
    let waker = Waker::from(Arc::clone(&unruly));
    let mut parked: Vec<_> = (0..2).map(|number| push(&log, number)).collect();
    for future in &mut parked {
        assert!(poll_with(future, &waker).is_pending());
    }
    drop(held);
    until(|| unruly.woken.woken() == 2);
    parked.into_iter().map(block_on).for_each(Result::unwrap);
    until(|| log.apply(|log| log.len()) == 4);
    let mut seen = log.apply(std::mem::take);
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 50, 50]);
}

#[test]
fn values_are_entrusted_without_blocking() {
    let _watch = watchdog();
    let (trustees, log) = log(2);
    let tally = Tally::new();
    let value = block_on(trustees.entrust_async(vec![tally.token()])).unwrap();
    assert_eq!(value.apply(|value| value.len()), 1);
    let held = hold_up(&log);
    fill(&log);
    let mut parked = trustees.entrust_async([tally.token(), tally.token()]);
    assert!(poll_with(&mut parked, Waker::noop()).is_pending());
    drop(trustees.entrust_async(tally.token()));
    assert_eq!(tally.dropped(), 1);
    drop(held);
    let both = block_on(parked).unwrap();
    drop((value, both));
    trustees.shutdown();
    tally.assert_all_dropped(4);
}

/// Tasks in a queue, which several threads run.
struct Pool {
    ready: Mutex<Vec<Arc<Task>>>,
    left: AtomicU64,
}

struct Task {
    pool: Arc<Pool>,
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let pool = Arc::clone(&self.pool);
        pool.ready.lock().unwrap().push(self);
    }
}

impl Pool {
    fn run(&self) {
        let _client = ClientGuard::new();
        while self.left.load(Ordering::Acquire) > 0 {
            let task = self.ready.lock().unwrap().pop();
            let Some(task) = task else {
                thread::yield_now();
                continue;
            };
            let waker = Waker::from(Arc::clone(&task));
            let mut place = task.future.lock().unwrap();
            if let Some(future) = place.as_mut()
                && let Poll::Ready(()) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                *place = None;
                self.left.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }
}

/// Many tasks on few threads with tiny windows: each request runs once, and every task ends.
#[test]
fn many_tasks_share_tiny_windows() {
    let _watch = watchdog();
    for window in [1, 2, 3, 16] {
        let trustees = start(Trustees::dedicated(2).window(window));
        let sums = [0, 1].map(|trustee| trustees.entrust_on(trustee, 0u64));
        let tasks = 40;
        let each = scaled(200);
        let pool = Arc::new(Pool {
            ready: Mutex::new(Vec::new()),
            left: AtomicU64::new(tasks),
        });
        for number in 0..tasks {
            let sums = sums.clone();
            let future = async move {
                for i in 0..each {
                    let sum = &sums[(i + number) as usize % 2];
                    match (i + number) % 5 {
                        0 => sum.post_async(|sum| *sum += 1).await.unwrap(),
                        // Given up, sent or not: it adds nothing.
                        1 => {
                            let mut dropped = sum.apply_async(|_| ());
                            let _ = poll_with(&mut dropped, Waker::noop());
                            drop(dropped);
                            sum.apply_async(|sum| *sum += 1).await.unwrap();
                        }
                        2 => sum.post(|sum| *sum += 1),
                        _ => sum.apply_async(|sum| *sum += 1).await.unwrap(),
                    }
                }
            };
            let task = Task {
                pool: Arc::clone(&pool),
                future: Mutex::new(Some(Box::pin(future))),
            };
            pool.ready.lock().unwrap().push(Arc::new(task));
        }
        thread::scope(|s| (0..3).for_each(|_| _ = s.spawn(|| pool.run())));
        let total: u64 = sums.iter().map(|sum| sum.apply(|sum| *sum)).sum();
        assert_eq!(total, tasks * each);
    }
}
