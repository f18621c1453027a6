//! Promise 3: Futures need no polling by the thread that asked: the trustee stores the result
//! and wakes. Dropping the future abandons it. And what promises 5, 6, 7 and 11 say of them.

use crate::support::{
    Gate, OnDrop, Rng, Tally, hold_up, one, panic_of, scaled, start, text_of, until, watchdog,
};
use corelay_delegate::{
    ApplyFuture, AsyncError, ClientGuard, Trustees, TryApplyAsyncError, barrier, poll,
};
use std::cell::Cell;
use std::future::Future;
use std::panic::panic_any;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor there is. It calls nothing of corelay's but the future.
fn block_on<O>(task: impl Future<Output = O>) -> O {
    let mut task = pin!(task);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(output) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

fn poll_with<R>(future: &mut ApplyFuture<R>, waker: &Waker) -> Poll<Result<R, AsyncError>> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Counting {
    fn new() -> (Arc<Self>, Waker) {
        let counting = Arc::new(Self::default());
        (Arc::clone(&counting), Waker::from(counting))
    }

    fn woken(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

#[test]
fn promise_03_a_future_gives_the_result() {
    let _watch = watchdog();
    let trustees = one();
    let words = trustees.entrust(Vec::new());
    let text = String::from("moved");
    let push = words.apply_async(move |words: &mut Vec<String>| {
        words.push(text);
        words.len()
    });
    let copy = words.apply_async(|words| words[0].clone());
    assert_eq!(block_on(push).unwrap(), 1);
    assert_eq!(block_on(copy).unwrap(), "moved");
}

#[test]
fn promise_03_the_call_asks_and_not_the_first_poll() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let future = t.apply_async(|n| {
        *n += 1;
        *n
    });
    // In the order of the requests: the future's is the first.
    assert_eq!(t.apply(|n| *n), 1);
    assert_eq!(block_on(future).unwrap(), 1);
}

#[test]
fn promise_03_a_future_needs_nothing_of_the_thread_that_asked() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    for n in 0..scaled(200) {
        let (give, given) = mpsc::channel();
        let (done, over) = mpsc::channel::<()>();
        let t = t.clone();
        let asker = thread::spawn(move || {
            give.send(t.apply_async(|n| std::mem::replace(n, *n + 1)))
                .unwrap();
            // It blocks, and calls corelay no more until the future has completed.
            over.recv().unwrap();
        });
        let result = block_on(given.recv().unwrap()).unwrap();
        done.send(()).unwrap();
        assert_eq!(result, n);
        asker.join().unwrap();
    }
}

#[test]
fn promise_03_a_future_outlives_the_thread_that_asked() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(7u64);
    let ask = || {
        let t = t.clone();
        let thread = thread::spawn(move || {
            let small: Vec<_> = (0..300).map(|_| t.apply_async(|n| *n)).collect();
            let large = t.apply_async(|n| [*n; 5].map(Box::new));
            // Some go back to their pool before it is orphaned.
            let early = small.into_iter().skip(3);
            (early.collect::<Vec<_>>(), large)
        });
        // The thread's end waits for its requests, not for its futures.
        thread.join().unwrap()
    };
    let (small, large) = ask();
    for future in small {
        assert_eq!(block_on(future).unwrap(), 7);
    }
    assert_eq!(*block_on(large).unwrap()[4], 7);
    let (small, large) = ask();
    drop(large);
    thread::spawn(|| drop(small)).join().unwrap();

    // Abandoned by a thread that is ending while its trustee is held up.
    let (tally, held) = (Tally::new(), hold_up(&t));
    let (t, token, asked) = (t.clone(), tally.token(), Gate::new());
    let ask = asked.clone();
    let ending = thread::spawn(move || {
        drop(t.apply_async(move |_| token));
        ask.open();
    });
    asked.wait();
    drop(held);
    ending.join().unwrap();
    tally.assert_all_dropped(1);
}

#[test]
fn promise_03_the_waker_of_the_last_poll_is_woken() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let held = hold_up(&t);
    let mut future = t.apply_async(|n| *n);
    let (first, first_waker) = Counting::new();
    let (second, second_waker) = Counting::new();
    for waker in [&first_waker, &first_waker, &second_waker, &second_waker] {
        assert!(poll_with(&mut future, waker).is_pending());
    }
    // Ours and the one in `first_waker`: the slot's has been dropped.
    assert_eq!(Arc::strong_count(&first), 2);
    assert_eq!(Arc::strong_count(&second), 3);
    drop(held);
    until(|| second.woken() == 1);
    assert_eq!(first.woken(), 0);
    // Woken, so ready.
    assert!(matches!(
        poll_with(&mut future, &first_waker),
        Poll::Ready(Ok(0))
    ));
    until(|| Arc::strong_count(&second) == 2);
    let polled = panic_of(|| poll_with(&mut future, &first_waker));
    assert!(polled.contains("polled after"), "{polled}");
}

#[test]
fn promise_03_a_future_moves_between_threads() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    for round in 0..scaled(300) {
        let held = (round % 2 == 0).then(|| hold_up(&t));
        let mut future = t.apply_async(|n| {
            *n += 1;
            *n
        });
        let (_counting, waker) = Counting::new();
        if let Poll::Ready(result) = poll_with(&mut future, &waker) {
            assert!(held.is_none());
            assert_eq!(result.unwrap(), round + 1);
            continue;
        }
        let other = thread::spawn(move || block_on(future).unwrap());
        drop(held);
        assert_eq!(other.join().unwrap(), round + 1);
    }
}

#[test]
fn promise_03_a_dropped_future_leaves_nothing() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(());
    let tally = Tally::new();
    let mut made = 0;
    let mut token = || {
        made += 1;
        tally.token()
    };

    // Before the request has run, without a waker and with one.
    let held = hold_up(&t);
    for polls in 0..3 {
        let (small, boxed) = (token(), [token(), token(), token(), token()]);
        let mut small = t.apply_async(move |()| small);
        let mut boxed = t.apply_async(move |()| (boxed, [0u64; 100]));
        let (counting, waker) = Counting::new();
        for _ in 0..polls {
            assert!(poll_with(&mut small, &waker).is_pending());
            assert!(poll_with(&mut boxed, &waker).is_pending());
        }
        drop((small, boxed, waker));
        assert_eq!(Arc::strong_count(&counting), 1);
    }
    assert_eq!(tally.dropped(), 0);
    drop(held);
    // The requests have run, and the results were dropped on the trustee.
    barrier().unwrap();
    tally.assert_all_dropped(15);

    // After it has run, not polled, and polled before.
    for polled in [false, true] {
        let held = hold_up(&t);
        let kept = token();
        let mut future = t.apply_async(move |()| kept);
        let (counting, waker) = Counting::new();
        if polled {
            assert!(poll_with(&mut future, &waker).is_pending());
        }
        drop(held);
        barrier().unwrap();
        assert_eq!(counting.woken(), usize::from(polled));
        assert_eq!(tally.made() - tally.dropped(), 1);
        drop(future);
        assert_eq!(tally.made(), tally.dropped());
    }

    // Taken, and a dropped future's fault.
    let kept = token();
    let result = block_on(t.apply_async(move |()| kept)).unwrap();
    assert_eq!(tally.made() - tally.dropped(), 1);
    drop(result);
    let held = hold_up(&t);
    let lost = token();
    drop(t.apply_async(move |()| panic_any(lost)));
    drop(held);
    barrier().unwrap();
    tally.assert_all_dropped(made);
}

#[test]
fn promise_03_results_of_every_size() {
    #[derive(Debug, PartialEq)]
    #[repr(align(256))]
    struct Aligned(u8);
    #[repr(align(64))]
    struct AlignedNothing;

    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(3u8);
    for _ in 0..scaled(300) {
        let nothing = t.apply_async(|_| ());
        let byte = t.apply_async(|b| *b);
        let words = t.apply_async(|b| [u64::from(*b); 7]);
        let more = t.apply_async(|b| [u64::from(*b); 8]);
        let large = t.apply_async(|b| [*b; 64 << 10]);
        let aligned = t.apply_async(|b| Aligned(*b));
        let aligned_nothing = t.apply_async(|_| AlignedNothing);
        block_on(nothing).unwrap();
        assert_eq!(block_on(byte).unwrap(), 3);
        assert_eq!(block_on(words).unwrap(), [3; 7]);
        assert_eq!(block_on(more).unwrap(), [3; 8]);
        assert!(block_on(large).unwrap().iter().all(|b| *b == 3));
        let aligned = block_on(aligned).unwrap();
        assert_eq!(aligned, Aligned(3));
        assert_eq!((&raw const aligned).addr() % 256, 0);
        let aligned_nothing = block_on(aligned_nothing).unwrap();
        assert_eq!((&raw const aligned_nothing).addr() % 64, 0);
    }
    // And captures of every size; two with a destructor of their own among them.
    let tally = Tally::new();
    let (token, large) = (tally.token(), [1u64; 23]);
    let fits = t.apply_async(move |_| (large.iter().sum::<u64>(), token));
    let (token, larger) = (tally.token(), [1u64; 24]);
    let boxed = t.apply_async(move |_| (larger.iter().sum::<u64>(), token));
    let aligned = Aligned(9);
    let over_aligned = t.apply_async(move |_| aligned);
    assert_eq!(block_on(fits).unwrap().0, 23);
    assert_eq!(block_on(boxed).unwrap().0, 24);
    assert_eq!(block_on(over_aligned).unwrap(), Aligned(9));
    tally.assert_all_dropped(2);
}

#[test]
fn promise_03_nothing_sized_is_dropped_once() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(());
    let held = hold_up(&t);
    let taken = t.apply_async(|()| Nothing);
    drop(t.apply_async(|()| Nothing));
    drop(held);
    let taken = block_on(taken).unwrap();
    barrier().unwrap();
    assert_eq!(DROPS.load(Ordering::Relaxed), 1);
    drop(taken);
    assert_eq!(DROPS.load(Ordering::Relaxed), 2);
}

#[test]
fn promise_03_a_late_destructor_may_ask() {
    thread_local! {
        static LATE: Cell<Option<OnDrop<Box<dyn FnOnce()>>>> = const { Cell::new(None) };
    }
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(5u64);
    let (give, given) = mpsc::channel();
    thread::spawn({
        let t = t.clone();
        move || {
            let kept = t.apply_async(|n| *n);
            let late: Box<dyn FnOnce()> = Box::new(move || {
                // The thread's own client and pools are gone by now, or about to be.
                let new = t.apply_async(|n| *n + 1);
                give.send((block_on(kept).unwrap(), block_on(new).unwrap()))
                    .unwrap();
                give.send((0, 0)).unwrap();
                drop(t.apply_async(|n| *n));
            });
            LATE.set(Some(OnDrop::new(late)));
        }
    })
    .join()
    .unwrap();
    assert_eq!(given.recv().unwrap(), (5, 6));
}

#[test]
fn promise_04_futures_keep_the_order_of_all_requests() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(32));
    let log = trustees.entrust(Vec::new());
    let (mut futures, n) = (Vec::new(), scaled(3_000));
    for i in 0..n {
        let push = move |log: &mut Vec<u64>| {
            log.push(i);
            log.len() as u64
        };
        match i % 5 {
            0 => log.post(move |log| log.push(i)),
            1 => log.apply_then(push, |_| ()),
            2 => assert_eq!(log.apply(push), i + 1),
            _ => futures.push((i, log.apply_async(push))),
        }
    }
    for (i, future) in futures {
        assert_eq!(block_on(future).unwrap(), i + 1);
    }
    barrier().unwrap();
    assert!(log.apply(|log| log.iter().copied().eq(0..n)));
}

#[test]
fn promise_05_a_full_window_waits_or_gives_back() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(4));
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    let held = hold_up(&t);
    let mut futures = Vec::new();
    let add = |t: &corelay_delegate::Trust<u64>| {
        let token = tally.token();
        t.try_apply_async(move |n| {
            drop(token);
            *n += 1;
            *n
        })
    };
    let refused = loop {
        match add(&t) {
            Ok(future) => futures.push(future),
            Err(TryApplyAsyncError::Full(f)) => break f,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!((futures.len(), tally.dropped()), (3, 0));
    drop(held);
    // Waits for room, without a poll of the futures.
    futures.push(t.apply_async(refused));
    let results: Vec<_> = futures
        .into_iter()
        .map(|future| block_on(future).unwrap())
        .collect();
    assert_eq!(results, [1, 2, 3, 4]);
    tally.assert_all_dropped(4);
    // As many futures may be kept as one likes: the window counts requests.
    let many: Vec<_> = (0..1_000).map(|i| t.apply_async(move |_| i)).collect();
    let mut many = many.into_iter().map(|future| block_on(future).unwrap());
    assert!(many.by_ref().eq(0..1_000));
}

#[test]
fn promise_05_a_callback_may_ask_for_futures() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2));
    let t = trustees.entrust(0u64);
    let futures = Rc::new(Cell::new(Vec::new()));
    let (kept, handle) = (Rc::clone(&futures), t.clone());
    t.apply_then(
        |_| (),
        move |()| {
            // More than the window takes: the later ones wait for their own answers.
            let asked = (0..6).map(|i| {
                handle.apply_async(move |n| {
                    *n += 1;
                    assert!(i < 5, "the sixth");
                    *n
                })
            });
            kept.set(asked.collect());
        },
    );
    barrier().unwrap();
    let results: Vec<_> = futures.take().into_iter().map(block_on).collect();
    for (i, result) in (1..).zip(&results[..5]) {
        assert_eq!(*result.as_ref().unwrap(), i);
    }
    let Err(AsyncError::Panicked(payload)) = &results[5] else {
        panic!("{:?}", results[5])
    };
    assert_eq!(text_of(&**payload), "the sixth");
    // The future has told of it, and nobody else does.
    barrier().unwrap();
}

#[test]
fn promise_06_a_panic_reaches_the_future_alone() {
    let _watch = watchdog();
    let trustees = one();
    let (t, other) = (trustees.entrust(0u64), trustees.entrust(0u64));
    let tally = Tally::new();
    let held = hold_up(&t);
    let called = Rc::new(Cell::new(0));
    let before = t.apply_async(|n| *n);
    let token = tally.token();
    let panics = t.apply_async(move |_| -> [u64; 3] {
        let _token = token;
        panic!("a message")
    });
    let token = tally.token();
    let poisoned = t.apply_async(move |_| drop(token));
    let note = Rc::clone(&called);
    other.apply_then(|_| 5, move |n| note.set(n));
    let fine = other.apply_async(|n| *n + 1);
    drop(held);
    assert_eq!(block_on(before).unwrap(), 0);
    let Err(AsyncError::Panicked(payload)) = block_on(panics) else {
        panic!("it panics")
    };
    assert_eq!(text_of(&*payload), "a message");
    let poisoned = block_on(poisoned);
    assert!(matches!(poisoned, Err(AsyncError::Poisoned)));
    assert_eq!(poisoned.unwrap_err().to_string(), "the object is poisoned");
    assert_eq!(block_on(fine).unwrap(), 1);
    // The futures were told; others' callbacks are not taken for theirs.
    barrier().unwrap();
    assert_eq!(called.get(), 5);
    tally.assert_all_dropped(2);
    assert!(t.is_poisoned());
    t.clear_poison();
    assert_eq!(block_on(t.apply_async(|n| *n)).unwrap(), 0);
    assert_eq!(trustees.shutdown()[0].panics, 1);
}

#[test]
fn promise_06_faults_of_others_are_still_reported() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let held = hold_up(&t);
    let lost = t.apply_async(|_| panic!("told to the future"));
    t.post(|_| ());
    t.apply_then(|_| (), |()| panic!("the request was refused"));
    let refused = t.apply_async(|_| ());
    drop(held);
    let failed = barrier().unwrap_err();
    assert_eq!(
        (failed.count(), failed.message()),
        (2, "the object is poisoned")
    );
    let text = block_on(lost).unwrap_err().to_string();
    assert_eq!(text, "the closure panicked: told to the future");
    assert!(block_on(refused).is_err());
}

#[test]
fn promise_06_panics_of_wakers_and_results_harm_nobody() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("in wake");
        }
    }
    /// Is woken without harm, but not dropped.
    struct BadDrop;
    impl Wake for BadDrop {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for BadDrop {
        fn drop(&mut self) {
            panic!("in the waker's drop");
        }
    }

    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let held = hold_up(&t);
    let ask = || t.apply_async(|n| std::mem::replace(n, *n + 1));
    let (mut first, mut second) = (ask(), ask());
    assert!(poll_with(&mut first, &Waker::from(Arc::new(Bad))).is_pending());
    assert!(poll_with(&mut second, &Waker::from(Arc::new(BadDrop))).is_pending());
    // A result that nobody wants, whose destructor panics; and a payload of that kind.
    drop(t.apply_async(|_| OnDrop::new(|| panic!("in the result's drop"))));
    let third = ask();
    drop(held);
    assert_eq!(block_on(third).unwrap(), 2);
    assert_eq!(block_on(first).unwrap(), 0);
    assert_eq!(block_on(second).unwrap(), 1);
    assert!(!t.is_poisoned());
    barrier().unwrap();
    assert_eq!(trustees.shutdown()[0].panics, 3);
}

#[test]
fn promise_07_a_closure_cannot_ask() {
    let _watch = watchdog();
    let trustees = one();
    let (a, b) = (trustees.entrust(0u64), trustees.entrust(0u64));
    let inner = b.clone();
    let tally = Tally::new();
    let token = tally.token();
    let given_back = a.apply_async(move |_| {
        let f = move |_: &mut u64| drop(token);
        match inner.try_apply_async(f) {
            Err(TryApplyAsyncError::Nested(f)) => f(&mut 0),
            other => panic!("{other:?}"),
        }
    });
    block_on(given_back).unwrap();
    tally.assert_all_dropped(1);
    let inner = b.clone();
    let text = block_on(a.apply_async(move |_| drop(inner.apply_async(|n| *n))))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("Trust::apply_async") && text.contains("is a leaf"),
        "{text}"
    );
}

#[test]
fn promise_11_pending_futures_complete_at_shutdown() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let (begun, gate) = (Gate::new(), Gate::new());
    let (begin, wait) = (begun.clone(), gate.clone());
    let first = t.apply_async(move |_| {
        begin.open();
        wait.wait();
    });
    let mut rest: Vec<_> = (0..100).map(|_| t.apply_async(|n| *n)).collect();
    let (counting, waker) = Counting::new();
    assert!(poll_with(&mut rest[0], &waker).is_pending());
    begun.wait();
    // Before the trustee is asked to end, or while it waits to be.
    let opener = thread::spawn(move || gate.open());
    trustees.shutdown();
    opener.join().unwrap();
    assert_eq!(counting.woken(), 1);
    block_on(first).unwrap();
    for future in rest {
        assert_eq!(block_on(future).unwrap(), 0);
    }
    let tally = Tally::new();
    let token = tally.token();
    match t.try_apply_async(move |_| drop(token)) {
        Err(TryApplyAsyncError::Closed(f)) => f(&mut 0),
        other => panic!("{other:?}"),
    }
    tally.assert_all_dropped(1);
    let text = panic_of(|| t.apply_async(|n| *n));
    assert!(
        text.contains("Trust::apply_async") && text.contains("shut down"),
        "{text}"
    );
}

#[test]
fn promise_11_what_is_not_taken_is_given_back() {
    let _watch = watchdog();
    let tally = Tally::new();
    for _ in 0..scaled(100) {
        let trustees = one();
        let t = trustees.entrust(0u64);
        let ran = Arc::new(AtomicU64::new(0));
        let asker = {
            let (ran, tally) = (Arc::clone(&ran), tally.clone());
            thread::spawn(move || {
                let mut accepted = 0;
                loop {
                    let (ran, token) = (Arc::clone(&ran), tally.token());
                    let asked = t.try_apply_async(move |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                        token
                    });
                    match asked {
                        Ok(future) if accepted % 3 == 0 => drop(future),
                        Ok(future) => drop(block_on(future).unwrap()),
                        Err(TryApplyAsyncError::Full(_)) => {
                            poll();
                            continue;
                        }
                        Err(TryApplyAsyncError::Closed(_)) => return accepted,
                        Err(other) => panic!("{other}"),
                    }
                    accepted += 1;
                }
            })
        };
        until(|| ran.load(Ordering::Relaxed) > 10);
        trustees.shutdown();
        assert_eq!(asker.join().unwrap(), ran.load(Ordering::Relaxed));
        assert_eq!(tally.made(), tally.dropped());
    }
}

/// Futures of many threads, awaited, dropped, polled and dropped, or given to other threads,
/// of two trustees.
#[test]
fn stress_futures() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2).window(64));
    let objects = [trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64)];
    let tally = Tally::new();
    let (give, given) = mpsc::channel();
    let taker = thread::spawn(move || {
        let mut taken = 0;
        for (i, future) in given {
            assert_eq!(
                block_on::<Result<(u64, _, [u64; 4]), _>>(future).unwrap().0,
                i
            );
            taken += 1;
        }
        taken
    });
    let asker = |seed: u64| {
        let (objects, tally, give) = (&objects, &tally, give.clone());
        move || {
            let _guard = ClientGuard::new();
            let mut rng = Rng::new(seed);
            let (mut flying, mut given) = (Vec::new(), 0);
            for i in 0..scaled(5_000) {
                let t = &objects[rng.below(2) as usize];
                let token = tally.token();
                if rng.below(4) == 0 {
                    let future = t.apply_async(move |n| {
                        *n += 1;
                        (i, token, [i; 4])
                    });
                    given += 1;
                    give.send((i, future)).unwrap();
                    continue;
                }
                flying.push((
                    i,
                    t.apply_async(move |n| {
                        *n += 1;
                        drop(token);
                        i
                    }),
                ));
                while flying.len() as u64 > rng.below(100) {
                    let at = rng.below(flying.len() as u64) as usize;
                    let (i, mut future) = flying.swap_remove(at);
                    match rng.below(4) {
                        0 => drop(future),
                        1 => drop(poll_with(&mut future, &Counting::new().1)),
                        2 => {
                            let _ = poll_with(&mut future, &Counting::new().1)
                                .map(|result| assert_eq!(result.unwrap(), i))
                                .is_pending()
                                .then(|| assert_eq!(block_on(future).unwrap(), i));
                        }
                        _ => assert_eq!(block_on(future).unwrap(), i),
                    }
                }
            }
            barrier().unwrap();
            given
        }
    };
    let asked: u64 = thread::scope(|s| {
        let askers: Vec<_> = (1..=4).map(|seed| s.spawn(asker(seed))).collect();
        askers.into_iter().map(|asker| asker.join().unwrap()).sum()
    });
    drop(give);
    assert_eq!(taker.join().unwrap(), asked);
    assert_eq!(
        objects.iter().map(|t| t.apply(|n| *n)).sum::<u64>(),
        4 * scaled(5_000)
    );
    tally.assert_all_dropped(4 * scaled(5_000));
}
