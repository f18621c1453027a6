//! State that the clients of a thread, or of a launched closure, have in common.

use super::thread::{KeptClient, in_turn};
use crate::catch::guarded;
use crate::context::discard::discard;
use crate::error::{BarrierError, Faults};
use crate::observe::roster::Name;
use crate::slots::pool::Pools;
use crate::wire::LaunchId;
use corelay_sync::wait::{OnThread, on_thread};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::rc::Rc;

/// The kind of code of this crate that a thread is in. Clients are retired, swept and polled only
/// while it is [`Idle`](Self::Idle), because every other activity may hold a reference to one.
///
/// ```text
///   Idle ──► Call ──► Callback        a destructor counts as a callback
///     └─────────────────▲
///   Idle ──► Ending ────┘             Leaf: from anywhere, and back
/// ```
/// Activities nest: each guard restores the one before it. A call inside a callback stays a
/// callback, so that it starts no further ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Activity {
    /// No call is under way.
    #[default]
    Idle,
    /// A call uses clients. User code runs in the activities below only.
    Call,
    /// User code runs inside a call: a callback, or the destructor of a payload.
    Callback,
    /// A delegated closure runs, or a destructor on a trustee. Never kept in a [`ThreadState`]:
    /// the hidden table says it, see [`enter_leaf`](super::thread::enter_leaf).
    Leaf,
    /// The clients are being finished: the thread ends, or its [`ClientGuard`](crate::ClientGuard).
    Ending,
}

type Callback = Box<dyn FnOnce()>;

/// The state that all clients of a thread share.
#[derive(Default)]
pub(crate) struct ThreadState {
    /// The slots of this thread's futures.
    pub(crate) pools: Pools,
    activity: Cell<Activity>,
    /// Callbacks left to run after the present one: their answers came while it ran.
    left: RefCell<VecDeque<Callback>>,
    /// The first panic of a callback, until the call that ran it has done its own work.
    held: RefCell<Option<Box<dyn Any + Send>>>,
    /// Failures of a member's requests to itself, until its next barrier.
    own_faults: RefCell<Faults>,
    /// Clients whose last session ended inside a callback or a closure.
    orphans: RefCell<Vec<Rc<dyn KeptClient>>>,
    /// The name given to the thread's clients.
    name: RefCell<Option<Name>>,
    /// The launch, if this is the state of a launched closure rather than of a thread.
    pub(crate) launch: Option<LaunchId>,
    /// Whether callbacks may be suspended: all calls that run them, and all clients, belong to one
    /// coroutine.
    is_coroutines: bool,
}

/// The thread is in an [`Activity`] until this guard is dropped.
pub(crate) struct Entered<'a> {
    state: &'a ThreadState,
    before: Activity,
}

/// User code runs inside a call until this guard is dropped.
pub(crate) struct InUserCode<'a> {
    _entered: Entered<'a>,
    /// Keeps a callback that waits from being suspended, since the other coroutines of this thread
    /// wait for the call that runs it. `None` if the clients are a coroutine's own.
    _on_thread: Option<OnThread>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        self.state.activity.set(self.before);
    }
}

impl ThreadState {
    /// The state of a launched closure.
    pub(super) fn of_launch(launch: LaunchId) -> Self {
        Self {
            launch: Some(launch),
            is_coroutines: true,
            ..Self::default()
        }
    }

    /// The state for a temporary client of the code that runs here.
    pub(crate) fn temporary() -> Self {
        Self {
            is_coroutines: in_turn(),
            ..Self::default()
        }
    }

    /// The name of this thread's clients, if there is one.
    pub(crate) fn name(&self) -> Option<Name> {
        let given = self.name.borrow().clone();
        given.or_else(|| std::thread::current().name().map(Name::from))
    }

    pub(crate) fn set_name(&self, name: Name) {
        *self.name.borrow_mut() = Some(name);
    }

    /// The activity of the thread, unless a leaf runs on it.
    pub(crate) fn activity(&self) -> Activity {
        self.activity.get()
    }

    /// Whether a callback runs on this thread.
    pub(crate) fn in_callback(&self) -> bool {
        self.activity.get() == Activity::Callback
    }

    /// Begins a call that uses clients of this thread.
    #[inline]
    pub(crate) fn enter_call(&self) -> Entered<'_> {
        let before = self.activity.get();
        self.activity.set(before.max(Activity::Call));
        Entered {
            state: self,
            before,
        }
    }

    /// Begins to finish the clients of this thread.
    pub(super) fn enter_ending(&self) -> Entered<'_> {
        Entered {
            state: self,
            before: self.activity.replace(Activity::Ending),
        }
    }

    /// Begins to run callbacks.
    #[inline]
    pub(crate) fn enter_callbacks(&self) -> InUserCode<'_> {
        assert!(!self.in_callback(), "corelay: callbacks start no callbacks");
        self.enter_user_code()
    }

    /// Begins to run user code, perhaps inside a callback.
    #[inline]
    pub(super) fn enter_user_code(&self) -> InUserCode<'_> {
        InUserCode {
            _entered: Entered {
                state: self,
                before: self.activity.replace(Activity::Callback),
            },
            _on_thread: (!self.is_coroutines).then(on_thread),
        }
    }

    /// Keeps the panic of a callback. A second one is dropped.
    pub(crate) fn hold(&self, payload: Box<dyn Any + Send>) {
        let earlier = self.held.borrow().is_some();
        if earlier {
            discard(payload);
        } else {
            *self.held.borrow_mut() = Some(payload);
        }
    }

    /// Whether the panic of a callback is held.
    #[inline]
    pub(crate) fn has_held(&self) -> bool {
        self.held.borrow().is_some()
    }

    /// Resumes the panic of a callback, if one is held and this is the outermost call. While the
    /// thread unwinds already, the panic stays held.
    #[inline]
    pub(crate) fn raise_held(&self) {
        if self.has_held() {
            self.raise_what_is_held();
        }
    }

    #[cold]
    fn raise_what_is_held(&self) {
        if self.in_callback() || std::thread::panicking() {
            return;
        }
        if let Some(payload) = self.take_held() {
            resume_unwind(payload);
        }
    }

    /// Takes the panic of a callback that is held.
    pub(crate) fn take_held(&self) -> Option<Box<dyn Any + Send>> {
        self.held.borrow_mut().take()
    }

    /// Whether one more callback may be left to run later.
    pub(crate) fn may_leave_callback(&self, limit: u32) -> bool {
        self.left.borrow().len() < limit as usize
    }

    /// Leaves a callback to run after the present one.
    pub(crate) fn leave_callback(&self, callback: Callback) {
        self.left.borrow_mut().push_back(callback);
    }

    /// Runs `callback`, and the callbacks left so far. Their panics are held.
    #[inline]
    pub(crate) fn run_callback(&self, callback: impl FnOnce()) {
        let _in_callback = self.enter_callbacks();
        let mut callback = Some(callback);
        while let Err(payload) = guarded(|| {
            if let Some(callback) = callback.take() {
                callback();
            }
            self.run_left_callbacks();
        }) {
            self.hold(payload);
        }
    }

    /// Counts a failed request of this thread to itself, without a waiting caller.
    pub(crate) fn report_own_fault(&self, payload: Box<dyn Any + Send>) {
        let late = self.own_faults.borrow_mut().add(payload, false);
        // Not borrowed here: the payload's destructor may make further requests.
        discard(late);
    }

    /// Takes the failures counted by [`report_own_fault`](Self::report_own_fault) since the last
    /// call.
    pub(crate) fn take_own_faults(&self) -> Option<BarrierError> {
        self.own_faults.take().into_error()
    }

    /// Runs the callbacks left so far. Callbacks that they leave in turn are for the next time:
    /// first the ring's answers are reaped, which makes room.
    #[inline]
    pub(crate) fn run_left_callbacks(&self) {
        if self.has_left_callbacks() {
            self.run_those_left();
        }
    }

    #[cold]
    fn run_those_left(&self) {
        let now = self.left.borrow().len();
        for _ in 0..now {
            let Some(callback) = self.left.borrow_mut().pop_front() else {
                return;
            };
            callback();
        }
    }

    /// Whether callbacks have been left to run.
    #[inline]
    pub(crate) fn has_left_callbacks(&self) -> bool {
        !self.left.borrow().is_empty()
    }

    /// Keeps a client whose last session ended inside a callback or a closure. The next barrier
    /// finishes it.
    pub(crate) fn adopt_orphan(&self, client: Rc<dyn KeptClient>) {
        self.orphans.borrow_mut().push(client);
    }

    /// Takes a client that [`adopt_orphan`](Self::adopt_orphan) has kept.
    pub(crate) fn take_orphan(&self) -> Option<Rc<dyn KeptClient>> {
        self.orphans.borrow_mut().pop()
    }
}
