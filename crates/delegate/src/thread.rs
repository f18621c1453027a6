//! What a thread keeps: its clients by trustee, and what its callbacks left to be done.
//!
//! The table is a plain thread-local array, indexed by the trustee's slot: the fast path
//! is two loads and two compares. The owner behind it ends with the thread: it waits for
//! the answers and runs the callbacks. A destructor that calls corelay after that gets a
//! temporary client, which finishes before the call returns.
//!
//! **Nobody uses a client that has been freed.** User code runs in three places: in a delegated
//! closure or a destructor on a trustee (a leaf), in a callback or a [destructor](crate::discard)
//! inside a call, and outside of all calls. Clients are freed in the third only: whatever frees
//! them asks for the thread's [`Activity`] first. The fast paths need not say that they use a
//! client, because they run no user code before they are done with it.
//!
//! **Exit.** `exit` drops the thread-locals of the thread that calls it, in the middle of a
//! closure or a callback perhaps. Nothing is finished then: see [`Ending`].

mod exit;
mod state;

pub(crate) use self::state::{Activity, ThreadState};
use crate::channel::client::Client;
use crate::discard::discard;
use crate::flat::member::{self, is_member};
use crate::held::circle::Number;
use crate::held::launched;
use crate::leaf::Leaf;
use crate::serving::Serving;
use crate::trustee::Shared;
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::thread_local;
use corelay_sync::wait::{NoSwitch, Registration, Source, register};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::rc::Rc;

/// The clients of this thread by slot.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    clients: *const *const Client,
    len: usize,
}

const NO_TABLE: Table = Table {
    clients: std::ptr::null(),
    len: 0,
};

/// Stands for the table while a delegated closure runs. Never followed: it has no entries.
const IN_LEAF: Table = Table {
    clients: std::ptr::dangling(),
    len: 0,
};

/// Stands for the table while coroutines run beside a trustee's loop. Never followed either.
const IN_TURN: Table = Table {
    clients: std::ptr::without_provenance(2 * align_of::<*const Client>()),
    len: 0,
};

thread_local! {
    static TABLE: Cell<Table> = const { Cell::new(NO_TABLE) };
    static OWNER: Ending = Ending(ManuallyDrop::new(Owner::new()));
    /// The owner while its destructor runs: callbacks still find it.
    static ENDING: Cell<*const Owner> = const { Cell::new(std::ptr::null()) };
    /// See [`is_finishing`]; not of coroutines beside a trustee's loop.
    static FINISHES: Cell<bool> = const { Cell::new(false) };
}

/// The client of this thread for the trustee in `slot`, if it has one.
///
/// # Safety
/// The reference is not used any more when user code runs on this thread outside of a leaf and of
/// a callback, or on this thread's other coroutines.
#[inline(always)]
pub(crate) unsafe fn lookup<'a>(slot: u32) -> Option<&'a Client> {
    let table = table();
    if slot as usize >= table.len {
        return None;
    }
    // SAFETY: the table has `len` entries while it is installed.
    let client = unsafe { *table.clients.wrapping_add(slot as usize) };
    // SAFETY: null, or a client of the owner, which frees it where `activity` says `Idle` or
    // `Ending` only: not before the caller is done with it.
    unsafe { client.as_ref() }
}

/// What the fast path reads. A thread-local without a destructor can be read as long as the
/// thread runs; loom takes it away earlier.
#[inline(always)]
fn table() -> Table {
    TABLE.try_with(Cell::get).unwrap_or(NO_TABLE)
}

/// Hides the table: every call takes its slow path and finds out that a closure runs.
#[inline(always)]
pub(crate) fn enter_leaf() -> Table {
    let table = table();
    show_table(IN_LEAF);
    table
}

/// Undoes [`enter_leaf`].
#[inline(always)]
pub(crate) fn leave_leaf(table: Table) {
    show_table(table);
}

#[inline(always)]
fn show_table(table: Table) {
    let _ = TABLE.try_with(|t| t.set(table));
}

/// True inside a delegated closure, or the destructor of a delegated value.
pub(crate) fn in_leaf() -> bool {
    table().clients == IN_LEAF.clients
}

/// Lets coroutines run beside a trustee's loop, by `f`: each is a client of its own, and finds out
/// by the table, which is hidden from them as in a [leaf](enter_leaf).
pub(crate) fn turn<R>(f: impl FnOnce() -> R) -> R {
    show_table(IN_TURN);
    let result = member::beside_a_loop(f);
    // It may have grown meanwhile.
    show_table(OWNER.try_with(|owner| owner.0.table()).unwrap_or(NO_TABLE));
    result
}

/// Undoes a [`turn`] while `f` runs: the loop's work is done inside a coroutine beside it.
pub(crate) fn out_of_turn<R>(f: impl FnOnce() -> R) -> R {
    show_table(OWNER.try_with(|owner| owner.0.table()).unwrap_or(NO_TABLE));
    let result = member::in_the_loop(f);
    show_table(IN_TURN);
    result
}

/// True where a coroutine runs beside a trustee's loop.
pub(crate) fn in_turn() -> bool {
    table().clients == IN_TURN.clients
}

/// True where this thread has been a client. Not inside a delegated closure.
#[inline(always)]
pub(crate) fn is_client() -> bool {
    table().len != 0
}

/// Why this thread cannot be a client now.
#[derive(Debug)]
pub(crate) enum NoClient {
    /// Inside a delegated closure; its type name.
    Nested(&'static str),
    /// The trustee has been shut down.
    Closed,
}

/// A client for one call.
pub(crate) enum ClientRef {
    /// The thread's own.
    Kept(Rc<Client>),
    /// The thread's table is gone already: this one finishes when it is dropped.
    Temporary(Rc<Client>),
}

impl Deref for ClientRef {
    type Target = Rc<Client>;

    fn deref(&self) -> &Rc<Client> {
        match self {
            Self::Kept(client) | Self::Temporary(client) => client,
        }
    }
}

impl Drop for ClientRef {
    fn drop(&mut self) {
        if let Self::Temporary(client) = self {
            let outer = set_finishing(true);
            client.finish_requests();
            discard(client.thread.take_held());
            set_finishing(outer);
        }
    }
}

impl ClientRef {
    /// Goes on with the panic of a callback that [`connect`] has run. For calls, once they
    /// have done their work; requests look for held panics themselves when they are new.
    pub(crate) fn raise_held(&self) {
        if let Self::Kept(client) = self {
            client.thread.raise_held();
        }
    }
}

/// The slow path of [`lookup`]: makes this thread a client of `trustee`. Runs the callbacks
/// of trustees that have ended meanwhile; see [`ClientRef::raise_held`].
#[cold]
pub(crate) fn connect(trustee: &Arc<Shared>) -> Result<ClientRef, NoClient> {
    if in_leaf() {
        return Err(NoClient::Nested(
            NoSwitch::active().unwrap_or("a delegated closure"),
        ));
    }
    match with_owner(|owner| owner.connect(trustee)) {
        Some(client) => client.map(ClientRef::Kept).ok_or(NoClient::Closed),
        None => Client::connect(trustee, &Rc::new(ThreadState::temporary()))
            .map(|client| ClientRef::Temporary(Rc::new(client)))
            .ok_or(NoClient::Closed),
    }
}

/// Runs `f` on this thread's clients; nothing where it has none, or none any more. Clients
/// that `f` makes are visited too.
pub(crate) fn for_each_client(f: impl FnMut(&Client)) {
    let Some(state) = state() else { return };
    let _call = state.enter_call();
    // SAFETY: inside a call.
    unsafe { visit_clients(f) };
}

/// Publishes what this thread's clients have issued.
pub(crate) fn flush_clients() {
    // SAFETY: `flush` runs no user code.
    unsafe { visit_clients(Client::flush) };
}

/// Runs `f` on this thread's clients, as [`for_each_client`] does, without entering a call.
///
/// # Safety
/// The thread is in a call, or `f` runs no user code.
unsafe fn visit_clients(mut f: impl FnMut(&Client)) {
    let mut slot = 0;
    loop {
        // Read anew each time: `f` may run callbacks, which may make clients.
        let mut table = table();
        if slot >= table.len {
            if !in_turn() {
                return;
            }
            table = with_owner(Owner::table).unwrap_or(NO_TABLE);
            if slot >= table.len {
                return;
            }
        }
        // SAFETY: the table has `len` entries while it is installed.
        let client = unsafe { *table.clients.wrapping_add(slot) };
        // SAFETY: null, or a client of the owner, which frees none meanwhile, by the caller.
        if let Some(client) = unsafe { client.as_ref() } {
            f(client);
        }
        slot += 1;
    }
}

/// What the callbacks of this thread are about.
pub(crate) fn state() -> Option<Rc<ThreadState>> {
    with_owner(|owner| Rc::clone(&owner.state))
}

/// The part of this crate that this thread is in.
pub(crate) fn activity() -> Activity {
    if in_leaf() {
        return Activity::Leaf;
    }
    with_owner(|owner| owner.state.activity()).unwrap_or_else(|| {
        if is_finishing() {
            Activity::Callback
        } else {
            Activity::Idle
        }
    })
}

/// True while a temporary client of the code that runs here finishes: what runs meanwhile are
/// callbacks, and no owner knows it.
fn is_finishing() -> bool {
    if in_turn() {
        return Serving::with_current(|serving| serving.holds.is_finishing()) == Some(true);
    }
    FINISHES.try_with(Cell::get).unwrap_or(false)
}

/// Says whether a temporary client finishes, and gives back what was said before.
fn set_finishing(now: bool) -> bool {
    if in_turn() {
        // Not the thread's: another coroutine runs while this one waits.
        let before = Serving::with_current(|serving| serving.holds.set_finishing(now));
        return before.unwrap_or(now);
    }
    FINISHES.try_with(|f| f.replace(now)).unwrap_or(now)
}

/// Runs `f`, user code inside a call of this crate or a trustee's loop: as a leaf in the loop, which
/// must not wait, and elsewhere as a callback.
pub(crate) fn run_user_code<R>(f: impl FnOnce() -> R) -> R {
    if in_leaf() {
        return f();
    }
    if Serving::with_current(|_| ()).is_some() && !is_member() {
        let _leaf = Leaf::enter_discarded();
        return f();
    }
    let Some(state) = state() else { return f() };
    let _entered = state.enter_user_code();
    f()
}

/// Ends this thread's clients now, as at its end. Does nothing while a call of this crate is
/// under way on this thread, or the process exits.
pub(crate) fn retire_clients() {
    with_owner(|owner| {
        if owner.may_finish() {
            owner.finish();
        }
    });
}

/// `None` where the thread has come so far to its end that its owner is gone.
fn with_owner<R>(f: impl FnOnce(&Owner) -> R) -> Option<R> {
    if in_turn() {
        return launched::with_owner(f);
    }
    let ending = ENDING.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: null, or the owner while it finishes, further up this thread's stack.
    match unsafe { ending.as_ref() } {
        Some(owner) => Some(f(owner)),
        None => OWNER.try_with(|owner| f(&owner.0)).ok(),
    }
}

/// Keeps the clients of a thread, or of a launched closure.
pub(crate) struct Owner {
    /// By slot.
    clients: RefCell<Vec<Option<Kept>>>,
    /// The same, as the fast path reads them.
    pointers: RefCell<Vec<*const Client>>,
    state: Rc<ThreadState>,
}

/// The owner of a thread, which finishes it at its end.
struct Ending(ManuallyDrop<Owner>);

/// A client, polled by this thread's other waits; not of a launched closure.
struct Kept {
    client: Rc<Client>,
    _polled: Option<Registration>,
}

impl Source for Client {
    fn poll(&self) -> bool {
        if in_turn() {
            // The loop does it, between turns: callbacks of a trustee's are leaves.
            return false;
        }
        if !in_leaf() && self.thread.activity() == Activity::Idle {
            self.catch_up();
        }
        self.has_callbacks()
    }
}

impl Owner {
    fn new() -> Self {
        Self::with_state(ThreadState::default())
    }

    /// Of a launched closure.
    pub(crate) fn of_launch(launch: Number) -> Self {
        Self::with_state(ThreadState::of_launch(launch))
    }

    fn with_state(state: ThreadState) -> Self {
        Self {
            clients: RefCell::new(Vec::new()),
            pointers: RefCell::new(Vec::new()),
            state: Rc::new(state),
        }
    }

    /// As the fast path reads it.
    fn table(&self) -> Table {
        let pointers = self.pointers.borrow();
        if pointers.is_empty() {
            // The address of an empty vector is the one that stands for a leaf.
            return NO_TABLE;
        }
        Table {
            clients: pointers.as_ptr(),
            len: pointers.len(),
        }
    }

    fn connect(&self, trustee: &Arc<Shared>) -> Option<Rc<Client>> {
        let slot = trustee.slot.index();
        if let Some(client) = self.client_in(slot) {
            // The table was hidden, and is not any more.
            return Some(client);
        }
        self.sweep();
        let client = Rc::new(Client::connect(trustee, &self.state)?);
        if let Some(earlier) = self.client_in(slot) {
            // A destructor that the sweep ran has been here before us.
            return Some(earlier);
        }
        let mut clients = self.clients.borrow_mut();
        let mut pointers = self.pointers.borrow_mut();
        if clients.len() <= slot {
            clients.resize_with(slot + 1, || None);
            pointers.resize(slot + 1, std::ptr::null());
        }
        let is_launched = self.state.launch.is_some();
        let polled = (!is_launched).then(|| register(&client)).flatten();
        clients[slot] = Some(Kept {
            client: Rc::clone(&client),
            _polled: polled,
        });
        pointers[slot] = Rc::as_ptr(&client);
        drop(pointers);
        if !is_launched {
            show_table(self.table());
        }
        Some(client)
    }

    fn client_in(&self, slot: usize) -> Option<Rc<Client>> {
        self.clients
            .borrow()
            .get(slot)?
            .as_ref()
            .map(|kept| Rc::clone(&kept.client))
    }

    fn remove(&self, slot: usize) {
        self.pointers.borrow_mut()[slot] = std::ptr::null();
        let removed = self.clients.borrow_mut()[slot].take();
        // Not borrowed while destructors run.
        drop(removed);
    }

    /// Drops the clients of trustees that have ended, so that slots are used again. Their
    /// last callbacks run here: a thread that goes from trustee to trustee need not poll.
    ///
    /// Not inside another call, which may use a client still: a member serves inside of its own.
    fn sweep(&self) {
        if self.state.activity() != Activity::Idle || is_member() {
            return;
        }
        let _call = self.state.enter_call();
        let slots = self.clients.borrow().len();
        for slot in 0..slots {
            let over = self.client_in(slot).is_some_and(|client| {
                if !client.trustee.is_gone() {
                    return false;
                }
                // On a trustee's thread as leaves, as in `nested::take_answers`.
                let leaf = Serving::with_current(|_| Leaf::enter_callbacks());
                client.catch_up();
                drop(leaf);
                client.is_idle() && !client.has_faults() && Rc::strong_count(&client) == 2
            });
            if over {
                self.remove(slot);
            }
        }
    }

    /// Whether no call uses the clients, and whatever they wait for will come. If the process
    /// exits, the frames of whatever called `exit` are still there, and a closure that this
    /// thread waits for may never end.
    fn may_finish(&self) -> bool {
        if activity() != Activity::Idle {
            return false;
        }
        let clients = self.clients.borrow();
        clients.iter().flatten().all(|kept| kept.client.is_idle()) || !exit::is_under_way()
    }

    /// Finishes all clients and lets go of those that no session uses. Callbacks and destructors
    /// may make new ones meanwhile.
    pub(crate) fn finish(&self) {
        let _ending = self.state.enter_ending();
        loop {
            self.finish_clients();
            let (held, faults) = (self.state.take_held(), self.state.take_own_faults());
            if held.is_none() && faults.is_none() {
                return;
            }
            // Their destructors may ask for something.
            discard((held, faults));
        }
    }

    /// A launched closure does not wait for those that it has launched: they may wait for its trustee's
    /// end, which comes after its own.
    fn finish_clients(&self) {
        let finish = |client: &Client| match self.state.launch {
            None => client.finish(),
            Some(_) => client.finish_requests(),
        };
        let mut slot = 0;
        while slot < self.clients.borrow().len() {
            if let Some(client) = self.client_in(slot) {
                finish(&client);
                // A session that lives on finishes for itself, and a barrier asks for launches.
                if Rc::strong_count(&client) == 2 && client.is_idle() {
                    drop(client);
                    self.remove(slot);
                    // Its last callbacks, or destructors, may have made clients before it.
                    slot = 0;
                    continue;
                }
            }
            slot += 1;
        }
        while let Some(orphan) = self.state.take_orphan() {
            finish(&orphan);
        }
    }
}

impl Drop for Ending {
    /// Finishes the clients if the thread ends. If the process exits instead, the clients stay as
    /// they are, and so does the owner, for later destructors.
    fn drop(&mut self) {
        let _ = ENDING.try_with(|ending| ending.set(&raw const *self.0));
        // A coroutine beside a trustee's loop can only have called `exit`.
        if in_turn() || !self.0.may_finish() {
            return;
        }
        self.0.finish();
        show_table(NO_TABLE);
        let _ = ENDING.try_with(|ending| ending.set(std::ptr::null()));
        // SAFETY: dropped here only, and by nobody used later: nothing points at it any more.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
