//! The current execution context.

use super::{
    Call, Cancelled, CoroutineState, NoSwitch, Sleeper, Token, poll_sources, set_panic_aside,
};
use crate::Backoff;
use crate::facade::thread_local;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::time::Instant;

/// Work for a fresh fibre.
pub type Task = Box<dyn FnOnce()>;

/// A scheduler that lends itself to threads, by [`run`](Self::run).
#[derive(Clone, Copy, Debug)]
pub struct Host(fn(body: Task, stack: Option<usize>));

impl Host {
    /// A host that runs its bodies by `run`.
    ///
    /// # Safety
    /// * `run` does what [`run`](Self::run) says.
    /// * Its coroutines stop only where those of a [`Context`] may.
    pub const unsafe fn new(run: fn(body: Task, stack: Option<usize>)) -> Self {
        Self(run)
    }

    /// Runs `body` as a coroutine on the calling thread, in a [`Context`] that can
    /// [`spawn`](Context::spawn), and returns when the body and all that it has spawned have ended.
    /// Their stacks have `stack` bytes each, or as many as the scheduler sees fit.
    pub fn run(self, body: Task, stack: Option<usize>) {
        (self.0)(body, stack);
    }
}

/// What a scheduler of fibres or coroutines offers to the code that runs on it.
///
/// # Safety
/// * [`running`](Self::running) tells the truth, and the stand lives until its coroutine has ended.
/// * A coroutine that has stopped for a [`SuspensionPoint`](super::SuspensionPoint) goes on after its [`CoroutineState`]'s `go_on`
///   has been called, and not before.
/// * [`wait`](Self::wait) does not unwind: whoever sets the token, or writes an answer first, may
///   write into the frames that wait.
/// * [`spawn`](Self::spawn) runs the task on this thread, or gives it back.
/// * No coroutine stops inside the initialiser or the destructor of a thread-local, nor inside a call
///   for whose time a thread-local points to something: the others of its thread would find it
///   there. A scheduler does not see that, so it is created by an `unsafe` function, whose callers
///   promise it for all code that they run.
pub unsafe trait Context {
    /// Suspends the code that calls, and returns when `token` is set; others run meanwhile.
    /// The scheduler [subscribes](Token::subscribe) to the token.
    ///
    /// # Errors
    /// The code that calls has been cancelled, and `call` [is cancellable](Call::is_cancellable).
    fn wait(&self, call: Call, token: &Token) -> Result<(), Cancelled>;

    /// Runs `wait`, which blocks this thread and all coroutines that stay on it: for dumps, which
    /// name the coroutine that runs and its `call`.
    fn block(&self, _call: Call, wait: &mut dyn FnMut()) {
        wait();
    }

    /// The coroutine that runs on this thread; `None` while the scheduler itself does.
    fn running(&self) -> Option<NonNull<CoroutineState>>;

    /// Runs `task` in a fibre of its own on this thread.
    ///
    /// # Errors
    /// The task, where the context cannot.
    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    /// Lets the other coroutines of this thread that are ready run first. False where there are
    /// none, or where this is none.
    fn give_turn(&self) -> bool {
        false
    }

    /// True where a coroutine of this thread is ready, besides the one that runs. Who makes one
    /// ready from elsewhere wakes the thread's [`Sleeper`].
    fn has_ready(&self) -> bool {
        false
    }
}

thread_local! {
    static CURRENT: Cell<Option<NonNull<dyn Context>>> = const { Cell::new(None) };
    /// Guards of [`on_thread`] that live.
    static BLOCKING: Cell<usize> = const { Cell::new(0) };
}

#[inline]
pub(super) fn current() -> Option<NonNull<dyn Context>> {
    let context = CURRENT.try_with(Cell::get).unwrap_or(None);
    context.filter(|_| BLOCKING.try_with(Cell::get).unwrap_or(0) == 0)
}

/// True under [`on_thread`]: waits block this thread, though there may be a context. For contexts
/// whose code waits without this module.
#[inline]
pub fn is_on_thread() -> bool {
    BLOCKING.try_with(Cell::get).unwrap_or(0) > 0
}

/// Runs `f` with `context` as what waits on this thread go to. A scheduler calls it around
/// its loop; the code that it resumes inside sees the context.
///
/// # Safety
/// No other scheduler suspends the code that calls while `f` runs. Its thread would go on with a
/// context in a frame that is not its own any more, and another thread would take the context away.
pub unsafe fn enter<R>(context: &dyn Context, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<NonNull<dyn Context>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|current| current.set(self.0));
        }
    }
    // SAFETY: only the lifetime changes; `Restore` takes the pointer away before `context`
    // ends, also when `f` unwinds: on this thread, by the caller's duty.
    let context = unsafe {
        std::mem::transmute::<NonNull<dyn Context + '_>, NonNull<dyn Context>>(NonNull::from(
            context,
        ))
    };
    let _restore = Restore(CURRENT.try_with(Cell::get).unwrap_or(None));
    let _ = CURRENT.try_with(|current| current.set(Some(context)));
    f()
}

/// Waits until `token` is set, by the current context: suspends a fibre, or spins, yields
/// and sleeps on a thread, polling the thread's sources meanwhile. No cancellation ends it.
///
/// # Panics
/// Inside a [`NoSwitch`] guard.
#[track_caller]
pub fn wait(token: &Token) {
    // Not cancellable, so that it ends with the token.
    let _ = wait_in(Call::new("a wait"), token);
}

/// Waits as [`wait`] does, for `call`. A wait that was cancelled leaves its waker in the token, which must not be
/// waited for again.
///
/// # Errors
/// The fibre that runs here has been cancelled, and `call` [is cancellable](Call::is_cancellable).
/// Never on a thread, and never in a destructor of a fibre that unwinds already.
///
/// # Panics
/// Inside a [`NoSwitch`] guard.
pub fn wait_in(call: Call, token: &Token) -> Result<(), Cancelled> {
    if token.is_set() {
        return Ok(());
    }
    NoSwitch::refuse_at(call);
    match current() {
        Some(context) if std::thread::panicking() => wait_unwinding(context, call, token),
        // SAFETY: inside `enter`, which keeps the context.
        Some(context) => unsafe { context.as_ref() }.wait(call, token)?,
        None => {}
    }
    // Also where a context has returned too early: callers free what the answer is
    // written into.
    if !token.is_set() {
        blocking(call, || wait_on_thread(token));
    }
    Ok(())
}

/// In a destructor, of code that unwinds: a second panic would end the process, so nothing is
/// cancelled.
#[cold]
fn wait_unwinding(context: NonNull<dyn Context>, mut call: Call, token: &Token) {
    call.is_cancellable = false;
    // SAFETY: inside `enter`, which keeps the context.
    let wait = || unsafe { context.as_ref() }.wait(call, token);
    // Where the panic cannot be set aside, the thread waits.
    let _ = set_panic_aside(wait);
}

/// Runs `wait`, which blocks this thread; a coroutine that runs here is named in dumps meanwhile, as
/// one that blocks its scheduler.
pub fn blocking(call: Call, wait: impl FnOnce()) {
    let mut wait = Some(wait);
    let mut run = || {
        if let Some(wait) = wait.take() {
            wait();
        }
    };
    match CURRENT.try_with(Cell::get).unwrap_or(None) {
        // SAFETY: inside `enter`, which keeps the context.
        Some(context) => unsafe { context.as_ref() }.block(call, &mut run),
        None => run(),
    }
}

/// Blocks this thread until `token` is set or the time has come; true if it is set. After a
/// false nothing of this wait is left in the token.
pub fn wait_until(token: &Token, deadline: Instant) -> bool {
    let sleeper = Sleeper::current();
    let Some(subscribed) = token.add(sleeper.waker()) else {
        return true;
    };
    while !token.is_set() {
        poll_sources();
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            token.remove(subscribed);
            break;
        }
        sleeper.sleep(Some(left), || {
            // A callback of this thread may set it.
            poll_sources();
            token.is_set()
        });
    }
    token.is_set()
}

/// While it lives, waits on this thread block the thread, whatever context there is: for code
/// that runs between fibres, such as callbacks. A forgotten guard only goes on blocking.
///
/// It stays on its thread:
/// ```compile_fail,E0277
/// let guard = corelay_sync::wait::on_thread();
/// std::thread::spawn(move || drop(guard));
/// ```
#[derive(Debug)]
#[must_use = "waits suspend again when the guard is dropped"]
pub struct OnThread {
    _of_this_thread: PhantomData<*const ()>,
}

/// Has waits block the thread until the guard is dropped.
pub fn on_thread() -> OnThread {
    let _ = BLOCKING.try_with(|depth| depth.set(depth.get() + 1));
    OnThread {
        _of_this_thread: PhantomData,
    }
}

impl Drop for OnThread {
    fn drop(&mut self) {
        let _ = BLOCKING.try_with(|depth| depth.set(depth.get() - 1));
    }
}

/// Runs `task` in a fibre of its own. It suspends nothing, so a guard of [`on_thread`] is no obstacle.
///
/// # Errors
/// The task, where there is no context that can.
pub fn spawn(task: Task) -> Result<(), Task> {
    match CURRENT.try_with(Cell::get).unwrap_or(None) {
        // SAFETY: inside `enter`, which keeps the context.
        Some(context) => unsafe { context.as_ref() }.spawn(task),
        None => Err(task),
    }
}

/// Lets the other coroutines of this thread that are ready run first; false where there are none.
///
/// # Panics
/// Inside a [`NoSwitch`] guard, where there are some.
pub fn give_turn() -> bool {
    // SAFETY: inside `enter`, which keeps the context.
    current().is_some_and(|context| unsafe { context.as_ref() }.give_turn())
}

/// True where a coroutine of this thread is ready, besides the one that runs.
pub fn has_ready() -> bool {
    // SAFETY: inside `enter`, which keeps the context.
    current().is_some_and(|context| unsafe { context.as_ref() }.has_ready())
}

/// The coroutine that runs on this thread, whether it may be suspended or not: who it is.
pub fn running() -> Option<NonNull<CoroutineState>> {
    let context = CURRENT.try_with(Cell::get).unwrap_or(None)?;
    // SAFETY: inside `enter`, which keeps the context.
    unsafe { context.as_ref() }.running()
}

fn wait_on_thread(token: &Token) {
    let sleeper = Sleeper::current();
    let mut subscribed = false;
    let mut backoff = Backoff::new();
    while !token.is_set() {
        poll_sources();
        if backoff.is_spent() {
            if !subscribed {
                token.subscribe(sleeper.waker());
                subscribed = true;
                continue;
            }
            sleeper.sleep(None, || {
                poll_sources();
                token.is_set()
            });
        } else {
            backoff.wait();
        }
    }
}
