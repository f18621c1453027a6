//! The objects that hostile code acts upon, and its misbehaviours.

use corelay_delegate::{ClientGuard, Trust, Trustees, barrier, poll};
use corelay_sync::{Issue, Shared};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Wake;

/// Counts tokens that are alive.
#[derive(Clone, Default)]
pub(crate) struct Tokens(Arc<AtomicI64>);

impl Tokens {
    /// Asserts that each token has been dropped, and none twice. Threads that have been joined may
    /// still be dropping their thread-locals.
    pub(crate) fn assert_balanced(&self, act: &str) {
        for _ in 0..10_000 {
            if self.0.load(Ordering::Acquire) <= 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(self.0.load(Ordering::Acquire), 0, "{act}: tokens alive");
    }
}

/// A token that must be dropped once.
struct Token(Tokens);

impl Token {
    fn new(tokens: &Tokens) -> Self {
        tokens.0.fetch_add(1, Ordering::Relaxed);
        Self(tokens.clone())
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let before = self.0.0.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a token was dropped twice");
    }
}

/// The objects of a play: one of each of two trustees, and one that panics on everything.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) near: Trust<u64>,
    pub(crate) far: Trust<u64>,
    tokens: Tokens,
}

thread_local! {
    /// The number of misbehaviours under way: without a limit they would breed without end.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

impl Stage {
    pub(crate) fn new(trustees: &Trustees, tokens: &Tokens) -> Self {
        Self {
            near: trustees.entrust_on(0, 0),
            far: trustees.entrust_on(1, 0),
            tokens: tokens.clone(),
        }
    }

    /// A value whose destructor misbehaves.
    pub(crate) fn hostile(&self) -> Hostile {
        Hostile {
            stage: self.clone(),
            _token: Token::new(&self.tokens),
        }
    }

    /// Does everything that user code may do at a bad moment, each with its panic caught.
    pub(crate) fn misbehave(&self) {
        if DEPTH.get() > 0 {
            return;
        }
        DEPTH.set(1);
        let acts: [&dyn Fn(); 14] = [
            &|| drop(ClientGuard::new()),
            &|| poll(),
            &|| drop(barrier()),
            &|| self.near.post(self.touch()),
            &|| self.far.apply_then(self.touch_value(), self.note()),
            &|| assert!(self.near.apply(self.touch_value()) > 0),
            &|| drop(ClientGuard::named("hostile")),
            &|| drop(self.far.apply_async(self.touch_value())),
            &|| self.far.apply(self.touch()),
            &|| {
                let mut session = self.near.session();
                session.issue(self.touch_value(), self.note());
                session.reap();
                session.barrier();
            },
            &|| self.visit_other_trustees(),
            &|| drop(self.near.clone()),
            &|| panic_any(Token::new(&self.tokens)),
            &|| drop(ClientGuard::new()),
        ];
        for act in acts {
            drop(catch_unwind(AssertUnwindSafe(act)));
        }
        DEPTH.set(0);
    }

    /// Becomes a client of trustees that end, and of others later: the earlier client is swept.
    fn visit_other_trustees(&self) {
        for _ in 0..2 {
            if let Ok(trustees) = Trustees::dedicated(1).start() {
                let object = trustees.entrust(Token::new(&self.tokens));
                object.apply(|_| ());
                object.post(|_| panic!("on purpose"));
            }
        }
    }

    fn touch(&self) -> impl FnOnce(&mut u64) + Send + 'static + use<> {
        let token = Token::new(&self.tokens);
        move |n| {
            *n += 1;
            drop(token);
        }
    }

    fn touch_value(&self) -> impl FnOnce(&mut u64) -> u64 + Send + 'static + use<> {
        let touch = self.touch();
        move |n| {
            touch(n);
            *n
        }
    }

    fn note(&self) -> impl FnOnce(u64) + 'static + use<> {
        let token = Token::new(&self.tokens);
        move |_| drop(token)
    }
}

/// A value whose destructor misbehaves: a capture, a result, a payload, an object. A waker, too.
pub(crate) struct Hostile {
    stage: Stage,
    _token: Token,
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stage.misbehave();
    }
}

impl Wake for Hostile {
    fn wake(self: Arc<Self>) {
        self.stage.misbehave();
    }
}
