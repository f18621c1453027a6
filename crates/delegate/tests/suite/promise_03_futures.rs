//! Promise 3: Futures need no polling by the thread that sent the request: the trustee stores the
//! result and wakes. Dropping the future abandons it. The other promises for futures are in
//! `futures`.

use crate::support::{Gate, OnDrop, Tally, hold_up, one, panic_of, scaled, until, watchdog};
use corelay_delegate::{ApplyFuture, AsyncError, barrier};
use std::cell::Cell;
use std::future::Future;
use std::panic::panic_any;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
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
pub(crate) fn block_on<O>(task: impl Future<Output = O>) -> O {
    let mut task = pin!(task);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(output) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

pub(crate) fn poll_with<R>(
    future: &mut ApplyFuture<R>,
    waker: &Waker,
) -> Poll<Result<R, AsyncError>> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Counts how often it is woken.
#[derive(Default)]
pub(crate) struct Counting(AtomicUsize);

impl Counting {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let counting = Arc::new(Self::default());
        (Arc::clone(&counting), Waker::from(counting))
    }

    pub(crate) fn woken(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Counting {
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.count();
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
    // This test's own and the one in `first_waker`: the slot's has been dropped.
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

    // A result that was taken, and a fault of a dropped future.
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
