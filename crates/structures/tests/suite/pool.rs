//! The pool on hardware: what each call promises, and many threads at once.

use crate::Random;
use corelay_structures::pool::{Pool, Pooled, Session};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

fn place<T>(node: &Pooled<T>) -> usize {
    ptr::from_ref(&**node).addr()
}

#[test]
fn handles_go_to_threads_and_nodes_are_small() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    fn shorter<'a>(node: Pooled<&'static str>) -> Pooled<&'a str> {
        node
    }
    is_send::<Pool<u8>>();
    is_sync::<Pool<u8>>();
    is_send::<Session<u8>>();
    is_send::<Pooled<u8>>();
    is_sync::<Pooled<u8>>();
    assert_eq!(size_of::<Option<Pooled<[u64; 9]>>>(), size_of::<usize>());
    let session = Pool::new().session();
    assert_eq!(*shorter(session.alloc("a")), "a");
}

/// A node takes the size of its value, and no more; the next one lies beside it.
#[test]
fn twenty_four_bytes_take_twenty_four() {
    let session = Pool::new().session();
    let nodes: Vec<_> = (0..100).map(|n: u64| session.alloc([n; 3])).collect();
    for (left, right) in nodes.iter().zip(&nodes[1..]) {
        assert_eq!(place(right) - place(left), 24);
    }
    assert_eq!(Pool::<[u64; 3]>::MAX_CHUNK, (65_536 - 64 - 128) / 24);
}

#[test]
fn any_type_has_a_node() {
    #[repr(align(4096))]
    struct Page(u8);
    let over = Pool::with_chunk(3).session();
    let pages: Vec<_> = (0..20).map(|n| over.alloc(Page(n))).collect();
    assert!(pages.iter().all(|page| place(page) % 4096 == 0));
    assert_eq!(pages.iter().map(|page| u32::from(page.0)).sum::<u32>(), 190);

    let nothing = Pool::new().session();
    let (a, b) = (nothing.alloc(()), nothing.alloc(()));
    assert_ne!(place(&a), place(&b));
    nothing.free(a);

    let bytes = Pool::new().session();
    let [mut x, y] = [bytes.alloc([1_u8; 25]), bytes.alloc([2; 25])];
    x.fill(3);
    assert_eq!((x[24], y[0]), (3, 2));
}

/// A value is moved in, so it takes stack, and more than once if nothing is optimised.
#[test]
fn a_large_type_has_a_node() {
    let body = || {
        let pool = Pool::new();
        let large = pool.session();
        let nodes: Vec<_> = (0..9_u8).map(|n| large.alloc([n; 1 << 20])).collect();
        assert!(nodes.iter().zip(0..).all(|(node, n)| node[77] == n));
        assert_eq!((pool.stats().chunks, pool.stats().slots), (2, 16));
        nodes.into_iter().for_each(|node| large.free(node));
    };
    let roomy = thread::Builder::new().stack_size(64 << 20);
    roomy.spawn(body).unwrap().join().unwrap();
}

#[test]
fn chunks_have_a_size_in_range() {
    let most = Pool::<u64>::MAX_CHUNK;
    for slots in [1, 2, most] {
        let pool = Pool::with_chunk(slots);
        let session = pool.session();
        let _nodes: Vec<_> = (0..=slots).map(|n| session.alloc(n as u64)).collect();
        assert_eq!(pool.stats().chunks, 2);
    }
    for slots in [0, most + 1] {
        let refused = catch_unwind(|| Pool::<u64>::with_chunk(slots)).unwrap_err();
        let why = refused.downcast_ref::<String>().unwrap();
        assert!(why.contains(&format!("give 1 to {most}")), "{why}");
    }
}

#[test]
fn a_panic_of_a_drop_frees_the_node() {
    struct Loud(bool);
    impl Drop for Loud {
        fn drop(&mut self) {
            assert!(!self.0, "loud");
        }
    }
    let pool = Pool::with_chunk(1);
    let session = pool.session();
    let node = session.alloc(Loud(true));
    catch_unwind(AssertUnwindSafe(|| session.free(node))).unwrap_err();
    let node = session.alloc(Loud(true));
    catch_unwind(AssertUnwindSafe(|| drop(node))).unwrap_err();
    session.free(session.alloc(Loud(false)));
    assert_eq!(pool.stats().slots, 1);
}

/// Dropping a value frees others by the same session, or ends the session.
#[test]
fn a_drop_may_free() {
    struct Tail(Rc<Session<Tail>>, Option<Pooled<Tail>>);
    impl Drop for Tail {
        fn drop(&mut self) {
            if let Some(rest) = self.1.take() {
                self.0.free(rest);
            }
        }
    }
    let pool = Pool::with_chunk(10);
    let session = Rc::new(pool.session());
    let list = |length| {
        (0..length).fold(None, |rest, _| {
            Some(session.alloc(Tail(Rc::clone(&session), rest)))
        })
    };
    session.free(list(10).unwrap());
    let again = list(10).unwrap();
    assert_eq!(pool.stats().chunks, 1);
    // Each node also has a handle to the session, the last one alone; with it the pool ends.
    drop((session, pool));
    drop(again);
}

#[test]
fn batches_go_when_they_are_full_or_others_come() {
    let pool = Pool::new();
    let [mine, hers, theirs] = [(); 3].map(|()| pool.session());
    let batched = || (pool.stats().batches, pool.stats().batched);
    for n in 0..31 {
        theirs.free(mine.alloc(n));
    }
    assert_eq!(batched(), (0, 0));
    theirs.free(mine.alloc(31));
    assert_eq!(batched(), (1, 32));
    theirs.free(mine.alloc(32));
    theirs.free(hers.alloc(33));
    assert_eq!(batched(), (2, 33));
    theirs.flush();
    theirs.flush();
    assert_eq!(batched(), (3, 34));
    theirs.free(mine.alloc(35));
    drop(theirs);
    assert_eq!(batched(), (4, 35));
}

/// Slots that others gave back are used before another chunk is made.
#[test]
fn what_comes_back_is_used() {
    let pool = Pool::with_chunk(8);
    let (mine, theirs) = (pool.session(), pool.session());
    for round in 0..100 {
        let nodes: Vec<_> = (0..8).map(|n| mine.alloc(n + round)).collect();
        nodes.into_iter().for_each(|node| theirs.free(node));
        theirs.flush();
    }
    assert_eq!((pool.stats().chunks, pool.stats().collected), (1, 99));
}

#[test]
fn what_is_reserved_is_used_up_first() {
    let pool = Pool::with_chunk(8);
    let session = pool.session();
    session.reserve(20);
    session.reserve(20);
    assert_eq!(pool.stats().chunks, 3);
    let mut nodes: Vec<_> = (0..20).map(|n| session.alloc(n)).collect();
    session.reserve(4);
    assert_eq!(pool.stats().chunks, 3);
    session.reserve(5);
    assert_eq!(pool.stats().chunks, 4);
    drop(session);
    let session = pool.session();
    nodes.extend((0..12).map(|n| session.alloc(n)));
    assert_eq!(pool.stats().chunks, 4);
}

#[derive(Debug, Clone)]
enum Call {
    Alloc,
    Free(usize),
    Drop(usize),
    Take(usize),
    Raw(usize),
    Flush,
    Renew,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        6 => Just(Call::Alloc),
        2 => any::<usize>().prop_map(Call::Free),
        2 => any::<usize>().prop_map(Call::Drop),
        1 => any::<usize>().prop_map(Call::Take),
        1 => any::<usize>().prop_map(Call::Raw),
        1 => Just(Call::Flush),
        1 => Just(Call::Renew),
    ]
}

proptest! {
    /// No address is given out while it is in use, and no value changes except through its node.
    #[test]
    fn no_address_is_given_out_twice(
        slots in 1..9_usize,
        calls in prop::collection::vec((0..3_usize, call()), 0..400),
    ) {
        let pool = Pool::with_chunk(slots);
        let mut sessions = [(); 3].map(|()| pool.session());
        let mut live = BTreeMap::<usize, (u64, Pooled<u64>)>::new();
        let mut most = 0;
        for ((who, call), number) in calls.into_iter().zip(0_u64..) {
            let pick = |live: &mut BTreeMap<usize, (u64, Pooled<u64>)>, at: usize| {
                let key = *live.keys().nth(at % live.len().max(1))?;
                live.remove(&key)
            };
            match call {
                Call::Alloc => {
                    let node = sessions[who].alloc(number);
                    let before = live.insert(place(&node), (number, node));
                    prop_assert!(before.is_none());
                }
                Call::Free(at) => if let Some((value, node)) = pick(&mut live, at) {
                    prop_assert_eq!(*node, value);
                    sessions[who].free(node);
                },
                Call::Drop(at) => if let Some((value, node)) = pick(&mut live, at) {
                    prop_assert_eq!(*node, value);
                    drop(node);
                },
                Call::Take(at) => if let Some((value, node)) = pick(&mut live, at) {
                    prop_assert_eq!(sessions[who].take(node), value);
                },
                Call::Raw(at) => if let Some((value, node)) = pick(&mut live, at) {
                    let raw = Pooled::into_raw(node);
                    // SAFETY: the pointer comes from `into_raw`, and is used once.
                    let node = unsafe { Pooled::from_raw(raw) };
                    live.insert(place(&node), (value, node));
                },
                Call::Flush => sessions[who].flush(),
                Call::Renew => {
                    // The old session is still there, so another heap is taken or made before it
                    // ends.
                    sessions[who] = pool.session();
                }
            }
            most = most.max(live.len());
        }
        for (_, (value, node)) in live {
            prop_assert_eq!(*node, value);
        }
        let stats = pool.stats();
        prop_assert!(stats.slots >= most as u64);
        prop_assert!(stats.heaps <= 4);
    }
}

/// Values that are written all over, and counted.
struct Canary {
    words: [usize; 5],
}

static LIVE: AtomicUsize = AtomicUsize::new(0);

impl Canary {
    fn new(seed: usize) -> Self {
        // Relaxed: read when all threads have been joined.
        LIVE.fetch_add(1, Ordering::Relaxed);
        let words = std::array::from_fn(|at| seed.wrapping_mul(at + 1));
        Self { words }
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        for (at, word) in self.words.iter().enumerate() {
            assert_eq!(*word, self.words[0].wrapping_mul(at + 1), "two in one slot");
        }
        // Relaxed: read when all threads have been joined.
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Three producers, three consumers, and two threads that pass nodes on. Sessions come and go, and
/// the pool ends while nodes are out.
#[test]
fn nodes_of_many_threads() {
    for round in 0..5 * crate::stress() {
        let pool = Pool::with_chunk([1, 7, Pool::<Canary>::MAX_CHUNK][round % 3]);
        let basket = Mutex::new(Vec::new());
        thread::scope(|s| {
            let (give, given) = mpsc::sync_channel::<Pooled<Canary>>(100);
            let given = std::sync::Arc::new(Mutex::new(given));
            for thread in 0..3 {
                let (pool, give) = (pool.clone(), give.clone());
                s.spawn(move || {
                    let mut random = Random::new(1 + (round * 10 + thread) as u64);
                    let mut session = pool.session();
                    let mut kept = Vec::new();
                    for _ in 0..2_000 {
                        let node = session.alloc(Canary::new(random.below(usize::MAX)));
                        match random.below(10) {
                            0 => kept.push(node),
                            1 => session.free(node),
                            _ => give.send(node).unwrap(),
                        }
                        if random.below(300) == 0 {
                            kept.drain(..).for_each(|node| session.free(node));
                            session = pool.session();
                        }
                    }
                });
            }
            drop(give);
            for thread in 0..3 {
                let (pool, given, basket) = (&pool, std::sync::Arc::clone(&given), &basket);
                s.spawn(move || {
                    let mut random = Random::new(100 + (round * 10 + thread) as u64);
                    let mut session = pool.session();
                    loop {
                        let next = given.lock().unwrap().recv();
                        let Ok(node) = next else { break };
                        match random.below(8) {
                            0 => drop(node),
                            1 => drop(Pooled::into_inner(node)),
                            2 => drop(session.take(node)),
                            3 => basket.lock().unwrap().push(node),
                            _ => session.free(node),
                        }
                        match random.below(200) {
                            0 => session = pool.session(),
                            1 => session.flush(),
                            _ => {}
                        }
                    }
                });
            }
            for thread in 0..2 {
                let (pool, basket) = (&pool, &basket);
                s.spawn(move || {
                    let mut random = Random::new(200 + (round * 10 + thread) as u64);
                    for _ in 0..500 {
                        let session = pool.session();
                        let node = session.alloc(Canary::new(random.below(usize::MAX)));
                        let other = {
                            let mut basket = basket.lock().unwrap();
                            basket.push(node);
                            let at = random.below(basket.len());
                            basket.swap_remove(at)
                        };
                        session.free(other);
                    }
                });
            }
        });
        let left = basket.into_inner().unwrap();
        assert_eq!(LIVE.load(Ordering::Relaxed), left.len());
        drop(pool);
        // Two threads drop the nodes that have outlived the pool.
        let (mut left, mut right) = (left, Vec::new());
        right.extend(left.drain(left.len() / 2..));
        thread::scope(|s| {
            s.spawn(|| drop(left));
            s.spawn(|| drop(right));
        });
        assert_eq!(LIVE.load(Ordering::Relaxed), 0);
    }
}
