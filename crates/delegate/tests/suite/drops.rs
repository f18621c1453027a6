//! Every value that is sent is dropped exactly once, whichever way it goes.

use crate::support::{Tally, Token, hold_up, one, panic_of, start, watchdog};
use corelay_delegate::{Trust, Trustees, TryApplyError, TryApplyThenError, TryPostError, barrier};
use std::sync::atomic::{AtomicU64, Ordering};

/// A capture, an answer or a callback of each size and alignment that travels differently.
trait Cargo: Send + 'static {
    fn new(tally: &Tally) -> Self;
}

impl Cargo for Token {
    fn new(tally: &Tally) -> Self {
        tally.token()
    }
}

/// Padding of so many words, with the token.
struct Padded<const WORDS: usize>(#[allow(dead_code)] Token, #[allow(dead_code)] [u64; WORDS]);

impl<const WORDS: usize> Cargo for Padded<WORDS> {
    fn new(tally: &Tally) -> Self {
        Self(tally.token(), [7; WORDS])
    }
}

#[repr(align(128))]
struct Aligned(#[allow(dead_code)] Token);

impl Cargo for Aligned {
    fn new(tally: &Tally) -> Self {
        Self(tally.token())
    }
}

impl Cargo for Box<dyn std::any::Any + Send> {
    fn new(tally: &Tally) -> Self {
        Box::new(tally.token())
    }
}

/// Sends captures of `F`, answers of `R` and callbacks of `C` in every form along every way.
fn ways<F: Cargo, R: Cargo, C: Cargo>() {
    let tally = Tally::new();
    let mut made = 0;
    let trustees = one();
    let t = trustees.entrust(());
    let request = || (F::new(&tally), tally.clone());
    // Executed.
    let send_all = |t: &Trust<()>| {
        for _ in 0..3 {
            let (f, tokens) = request();
            t.post(move |()| {
                let _f = &f;
                drop(R::new(&tokens));
            });
            let (f, tokens) = request();
            let c = C::new(&tally);
            t.apply_then(
                move |()| {
                    let _f = f;
                    R::new(&tokens)
                },
                move |r| {
                    let _c = &c;
                    drop(r);
                },
            );
        }
    };
    send_all(&t);
    barrier().unwrap();
    made += 3 * (2 + 3);
    tally.assert_all_dropped(made);
    for _ in 0..3 {
        let (f, tokens) = request();
        let r = t.apply(move |()| {
            let _f = f;
            R::new(&tokens)
        });
        drop(r);
        let (f, tokens) = request();
        let r = t.try_apply(move |()| {
            let _f = &f;
            R::new(&tokens)
        });
        assert!(r.is_ok());
    }
    made += 6 * 2;
    tally.assert_all_dropped(made);
    // Panicked, with the closure's local variables and captures on the way out.
    for form in 0..4 {
        let (f, tokens) = request();
        let c = C::new(&tally);
        let bad = move |(): &mut ()| -> R {
            let _f = &f;
            let _r = R::new(&tokens);
            panic!("on purpose");
        };
        match form {
            0 => {
                t.post(move |v| drop(bad(v)));
                drop(c);
            }
            1 => t.apply_then(bad, move |r| drop((r, c))),
            2 => assert_eq!(panic_of(|| t.apply(bad)), "on purpose"),
            _ => assert_eq!(panic_of(|| t.try_apply(bad)), "on purpose"),
        }
        assert_eq!(barrier().is_err(), form < 2);
        t.clear_poison();
    }
    made += 4 * 3;
    tally.assert_all_dropped(made);
    // Refused by poison.
    let _ = panic_of(|| t.apply(|()| panic!("poison")));
    send_all(&t);
    assert_eq!(barrier().unwrap_err().count(), 6);
    made += 3 * (1 + 2);
    let (f, tokens) = request();
    let result = t.try_apply(move |()| {
        let _f = &f;
        R::new(&tokens)
    });
    assert!(matches!(result, Err(TryApplyError::Poisoned)));
    let (f, tokens) = request();
    let text = panic_of(|| {
        t.apply(move |()| {
            let _f = f;
            R::new(&tokens)
        })
    });
    assert!(text.contains("poisoned"));
    made += 2;
    tally.assert_all_dropped(made);
    t.clear_poison();
    // Refused inside a closure.
    let handle = t.clone();
    let tokens = tally.clone();
    t.apply(move |()| {
        let f = F::new(&tokens);
        assert!(matches!(
            handle.try_apply(move |()| drop(f)),
            Err(TryApplyError::Nested(_))
        ));
        let f = F::new(&tokens);
        panic_of(|| handle.apply(move |()| drop(f)));
    });
    made += 2;
    tally.assert_all_dropped(made);
    // In flight at the shutdown, and refused after it.
    send_all(&t);
    made += 3 * (2 + 3);
    trustees.shutdown();
    for _ in 0..2 {
        let (f, c) = (F::new(&tally), C::new(&tally));
        let result = t.try_apply_then(move |()| drop(f), move |()| drop(c));
        assert!(matches!(result, Err(TryApplyThenError::Closed(..))));
        let f = F::new(&tally);
        assert!(matches!(
            t.try_post(move |()| drop(f)),
            Err(TryPostError::Closed(_))
        ));
        let f = F::new(&tally);
        assert!(matches!(
            t.try_apply(move |()| drop(f)),
            Err(TryApplyError::Closed(_))
        ));
        let (f, c) = (F::new(&tally), C::new(&tally));
        panic_of(|| t.apply_then(move |()| drop(f), move |()| drop(c)));
        let f = F::new(&tally);
        panic_of(|| t.apply(move |()| drop(f)));
    }
    made += 2 * 7;
    barrier().unwrap();
    tally.assert_all_dropped(made);
    // Refused by a full window.
    let trustees = start(Trustees::dedicated(1).window(1));
    let t = trustees.entrust(());
    let held = hold_up(&t);
    let (f, c) = (F::new(&tally), C::new(&tally));
    let result = t.try_apply_then(move |()| drop(f), move |()| drop(c));
    assert!(matches!(result, Err(TryApplyThenError::Full(..))));
    drop(result);
    let f = F::new(&tally);
    let result = t.try_post(move |()| drop(f));
    assert!(matches!(result, Err(TryPostError::Full(_))));
    drop(result);
    made += 3;
    tally.assert_all_dropped(made);
    drop(held);
    barrier().unwrap();
}

#[test]
fn values_are_dropped_once_on_every_way() {
    let _watch = watchdog();
    ways::<Token, Token, Token>();
    ways::<Padded<3>, Padded<2>, Padded<2>>();
    ways::<Padded<23>, Padded<7>, Padded<14>>();
    ways::<Padded<24>, Padded<8>, Padded<16>>();
    ways::<Padded<500>, Padded<500>, Padded<500>>();
    ways::<Aligned, Aligned, Aligned>();
    ways::<Token, Padded<100>, Aligned>();
    ways::<Aligned, Token, Padded<100>>();
    ways::<Box<dyn std::any::Any + Send>, Token, Box<dyn std::any::Any + Send>>();
}

/// Zero-sized values with destructors: there is nothing to move, and still each is dropped once.
#[test]
fn zero_sized_values_are_dropped_once() {
    let _watch = watchdog();
    static MADE: AtomicU64 = AtomicU64::new(0);
    static DROPPED: AtomicU64 = AtomicU64::new(0);
    struct Nothing;
    #[repr(align(64))]
    struct AlignedNothing(#[allow(dead_code)] Nothing);
    impl Nothing {
        fn new() -> Self {
            MADE.fetch_add(1, Ordering::Relaxed);
            Self
        }
    }
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Release);
        }
    }
    fn check(expected: u64) {
        assert_eq!(MADE.load(Ordering::Relaxed), expected);
        assert_eq!(DROPPED.load(Ordering::Acquire), expected);
    }
    let trustees = one();
    let t = trustees.entrust(Nothing::new());
    let value = 1;
    for _ in 0..10 {
        let (f, c) = (Nothing::new(), Nothing::new());
        t.apply_then(
            move |_| {
                let _f = &f;
                Nothing::new()
            },
            move |r| {
                let _both = (&r, &c);
            },
        );
        let (f, c) = (
            AlignedNothing(Nothing::new()),
            AlignedNothing(Nothing::new()),
        );
        t.apply_then(
            move |_| {
                let _f = f;
                AlignedNothing(Nothing::new())
            },
            move |r| drop((r, c)),
        );
        let f = Nothing::new();
        t.post(move |_| drop(f));
    }
    barrier().unwrap();
    let mut expected = 70;
    assert_eq!(DROPPED.load(Ordering::Acquire), expected);
    for _ in 0..10 {
        let f = Nothing::new();
        let r = t.apply(move |_| {
            let _f = &f;
            Nothing::new()
        });
        drop(r);
        drop(t.apply(|_| AlignedNothing(Nothing::new())));
        expected += 3;
        assert_eq!(DROPPED.load(Ordering::Acquire), expected);
    }
    // Without an answer, or unrun.
    let (f, c) = (Nothing::new(), Nothing::new());
    t.apply_then(
        move |_| {
            let _f = &f;
            panic!("on purpose")
        },
        move |(): ()| drop(c),
    );
    let (f, c) = (Nothing::new(), Nothing::new());
    t.apply_then(move |_| drop(f), move |()| drop(c));
    assert_eq!(barrier().unwrap_err().count(), 2);
    expected += 4;
    assert_eq!(DROPPED.load(Ordering::Acquire), expected);
    trustees.shutdown();
    check(expected + value);
}
