//! A launched closure, from its coroutine's first step to its last, and its waits.

use super::discard::discard;
use super::holds::WaitingCoroutine;
use super::serving::Serving;
use super::thread::{Owner, in_turn};
use crate::error::CircularWait;
use crate::object::Header;
use crate::wait_graph::{self, Wait};
use crate::wire::{Channel, LaunchId};
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::{self, NoSwitch, SuspensionPoint};
use std::ptr;
use std::task::Waker;

/// A closure on its way to its coroutine.
pub(crate) trait LaunchBody {
    /// Runs it, and hands its result over. What it returns says that it has ended, once dropped.
    ///
    /// # Safety
    /// `object` is its, held for it, on its trustee, which `serving` is of.
    unsafe fn run(self: Box<Self>, object: *mut Header, serving: &Serving) -> Ticket;

    /// Whose it is.
    fn number(&self) -> LaunchId;
}

/// Its client counts a launch as pending until this is dropped.
pub(crate) struct Ticket {
    channel: Arc<Channel>,
    number: LaunchId,
}

impl Ticket {
    pub(crate) fn new(channel: &Arc<Channel>, number: LaunchId) -> Self {
        Self {
            channel: Arc::clone(channel),
            number,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        wait_graph::end(self.number);
        self.channel.end_launch();
    }
}

/// What a launched closure is to this crate, while it runs: a client of its own.
pub(crate) struct RunningLaunch {
    number: LaunchId,
    owner: Owner,
}

impl Serving {
    /// Runs `launch` in a coroutine of this thread, `object` held for it: by a request on the object.
    ///
    /// # Errors
    /// The scheduler has no room for it: it has been dropped.
    ///
    /// # Safety
    /// `launch` is for `object`, of this trustee, which is not held.
    pub(crate) unsafe fn launch(
        &self,
        object: *mut Header,
        launch: Box<dyn LaunchBody>,
    ) -> Result<(), &'static str> {
        let number = launch.number();
        let serving = ptr::from_ref(self);
        let task = move || {
            // SAFETY: its trustee does not end before its coroutines.
            let serving = unsafe { &*serving };
            // SAFETY: held below, for this one.
            unsafe { serving.live(object, launch) };
        };
        if let Err(task) = wait::spawn(Box::new(task)) {
            discard(task);
            return Err("corelay: no memory for the stack of a launched closure");
        }
        let holds = &self.holds;
        holds.coroutines.set(holds.coroutines.get() + 1);
        self.hold(object, number);
        Ok(())
    }

    /// The life of a coroutine.
    ///
    /// # Safety
    /// As [`LaunchBody::run`].
    unsafe fn live(&self, object: *mut Header, launch: Box<dyn LaunchBody>) {
        let me = RunningLaunch {
            number: launch.number(),
            owner: Owner::of_launch(launch.number()),
        };
        let coroutine = wait::running().expect("a host says who runs");
        let holds = &self.holds;
        holds.running.borrow_mut().push((coroutine, &raw const me));
        // SAFETY: the caller's duty.
        let ticket = unsafe { launch.run(object, self) };
        // The trustee's loop lets the object go.
        holds.ended.borrow_mut().push(object);
        drop(ticket);
        // What it has asked for as a client, as at a thread's end.
        me.owner.finish();
        holds
            .running
            .borrow_mut()
            .retain(|&(other, _)| other != coroutine);
        wait_graph::forget(me.number);
        holds.coroutines.set(holds.coroutines.get() - 1);
    }
}

/// Runs `f` on what the launched closure that runs here keeps as a client; `None` where none does.
pub(crate) fn with_owner<R>(f: impl FnOnce(&Owner) -> R) -> Option<R> {
    with_running(|launched| f(&launched.owner))
}

/// The launch whose closure runs here.
pub(crate) fn current() -> Option<LaunchId> {
    with_running(|launched| launched.number)
}

fn with_running<R>(f: impl FnOnce(&RunningLaunch) -> R) -> Option<R> {
    let coroutine = wait::running()?;
    let launched = Serving::with_current(|serving| {
        let running = serving.holds.running.borrow();
        let mine = running.iter().find(|&&(other, _)| other == coroutine);
        mine.map(|&(_, launched)| launched)
    })??;
    // SAFETY: in the frame of the coroutine that runs here.
    Some(f(unsafe { &*launched }))
}

/// True where a launched closure, or another coroutine beside a trustee's loop, may not be suspended. A
/// thread could wait inside a [`NoSwitch`], but what a coroutine waits for may have to be served by its
/// thread.
pub(crate) fn may_not_wait() -> bool {
    in_turn() && NoSwitch::is_active()
}

/// Panics there.
#[cold]
pub(crate) fn refuse_to_wait(call: &str) {
    if may_not_wait() {
        NoSwitch::refuse(call);
    }
}

/// Suspends the coroutine that runs here, beside its trustee's loop, until `is_over`, which that loop
/// asks; in the graph it waits for `what`, where its request does not say so itself. Where it may not
/// be suspended, under a guard of [`on_thread`](wait::on_thread), its trustee serves
/// [beneath](super::holds::Lent::serve_beneath) it, and the other coroutines there wait. So it does
/// where the coroutine unwinds and the system has no thread that would keep its panic, and where a
/// client is finished inside of what may not be suspended.
///
/// # Errors
/// That would close a ring in which nothing can be refused but this wait. Never where the wait is for
/// a call, whose frame is borrowed, or for answers: a request is part of each such ring.
pub(crate) fn suspend_until(
    what: Option<Wait>,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<(), CircularWait> {
    if is_over() {
        return Ok(());
    }
    let Some(here) = wait::here() else {
        return wait_beneath(what, is_over);
    };
    let _waits = what.and_then(Waits::begin).transpose()?;
    let point = SuspensionPoint::new();
    // SAFETY: only the lifetime changes: it is looked at until the point is set.
    let is_over = unsafe {
        std::mem::transmute::<*mut (dyn FnMut() -> bool + '_), *mut dyn FnMut() -> bool>(is_over)
    };
    let waiter = WaitingCoroutine {
        is_over,
        point: &raw const point,
    };
    Serving::with_current(|serving| serving.holds.waiters.borrow_mut().push(waiter));
    // SAFETY: nothing has suspended it since; the point is this call's.
    unsafe { here.wait(&point) };
    Ok(())
}

/// Keeps the coroutine that runs here, and has its trustee serve beneath it: see [`suspend_until`].
#[cold]
fn wait_beneath(what: Option<Wait>, is_over: &mut dyn FnMut() -> bool) -> Result<(), CircularWait> {
    // First, so that all that is held afterwards is held by closures that have not ended, which the
    // graph knows.
    Serving::with_current(|serving| serving.beneath(|trustee| trustee.settle()));
    let _blocks = current().map(Blocks::begin).transpose()?;
    let _waits = what.and_then(Waits::begin).transpose()?;
    Serving::with_current(|serving| serving.beneath(|trustee| trustee.serve_beneath(is_over)));
    Ok(())
}

/// The closure that runs here keeps others from running: says so until dropped.
struct Blocks(LaunchId);

impl Blocks {
    fn begin(number: LaunchId) -> Result<Self, CircularWait> {
        // Made first: it undoes what a ring leaves half done.
        let blocks = Self(number);
        wait_graph::block(number).map(|()| blocks)
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        wait_graph::unblock(self.0);
    }
}

/// The closure that runs here waits: says so until dropped.
pub(crate) struct Waits(LaunchId);

impl Waits {
    /// `None` where no launched closure runs here.
    pub(crate) fn begin(what: Wait) -> Option<Result<Self, CircularWait>> {
        let number = current()?;
        Some(wait_graph::wait(number, what).map(|()| Self(number)))
    }

    /// Begins a join as `begin` does. `waker` wakes the joiner if the join is refused later.
    pub(crate) fn join(other: LaunchId, waker: &Waker) -> Option<Result<Self, CircularWait>> {
        let number = current()?;
        Some(wait_graph::join(number, other, waker.clone()).map(|()| Self(number)))
    }

    /// Why it is to join no longer.
    pub(crate) fn refusal(&self) -> Option<CircularWait> {
        wait_graph::refusal_of_join(self.0)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        wait_graph::go_on(self.0);
    }
}
