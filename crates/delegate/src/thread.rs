//! What a thread keeps: its clients by trustee, and what its callbacks left to be done.
//!
//! The table is a plain thread-local array, indexed by the trustee's slot: the fast path
//! is two loads and two compares. The owner behind it ends with the thread: it waits for
//! the answers and runs the callbacks. A destructor that calls corelay after that gets a
//! temporary client, which finishes before the call returns.

use crate::channel::client::Client;
use crate::error::{BarrierError, discard_payload};
use crate::flat::member::{self, is_member};
use crate::future::pool::Pools;
use crate::held::circle::Number;
use crate::held::launched;
use crate::leaf::Leaf;
use crate::report::roster::Name;
use crate::serving::{Serving, guarded};
use crate::trustee::Shared;
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::thread_local;
use corelay_sync::wait::{NoSwitch, OnThread, Registration, Source, on_thread, register};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::panic::resume_unwind;
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
    static OWNER: Ending = Ending(Owner::new());
    /// The owner while its destructor runs: callbacks still find it.
    static ENDING: Cell<*const Owner> = const { Cell::new(std::ptr::null()) };
    /// A temporary client finishes: what runs meanwhile are callbacks, and no owner knows it.
    static FINISHES: Cell<bool> = const { Cell::new(false) };
}

/// The client of this thread for the trustee in `slot`, if it has one.
#[inline(always)]
pub(crate) fn lookup<'a>(slot: u32) -> Option<&'a Client> {
    let table = table();
    if slot as usize >= table.len {
        return None;
    }
    // SAFETY: the table has `len` entries while it is installed.
    let client = unsafe { *table.clients.wrapping_add(slot as usize) };
    // SAFETY: null, or a client of the owner. It is dropped at the thread's end, or by
    // `Owner::sweep`, which runs when no call of this crate is under way on this thread.
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
            let finishes = |now| FINISHES.try_with(|f| f.replace(now)).unwrap_or(now);
            let outer = finishes(true);
            client.finish();
            client.thread.discard_held();
            finishes(outer);
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
        None => Client::connect(trustee, &Rc::new(ThreadState::default()))
            .map(|client| ClientRef::Temporary(Rc::new(client)))
            .ok_or(NoClient::Closed),
    }
}

/// Runs `f` on this thread's clients; nothing where it has none, or none any more. Clients
/// that `f` makes are visited too.
pub(crate) fn for_each_client(mut f: impl FnMut(&Client)) {
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
        // SAFETY: null, or a client of the owner, see `lookup`.
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

/// True inside a callback.
pub(crate) fn in_callback() -> bool {
    match state() {
        Some(state) => state.in_callback(),
        None => FINISHES.try_with(Cell::get).unwrap_or(false),
    }
}

/// Ends this thread's clients now, as at its end. Does nothing where a call of this crate is
/// under way on this thread: inside a callback or a delegated closure.
pub(crate) fn retire_clients() {
    if in_leaf() {
        return;
    }
    with_owner(|owner| {
        if !owner.state.in_callback() {
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

/// The thread's, finished at its end.
struct Ending(Owner);

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
        if !self.thread.in_callback() {
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
        Self::with_state(ThreadState {
            launch: Some(launch),
            ..ThreadState::default()
        })
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
    /// Not in a callback, nor on a member, which may serve inside another call: that call uses
    /// its client still.
    fn sweep(&self) {
        if self.state.in_callback() || is_member() {
            return;
        }
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

    /// Finishes all clients and lets go of those that no session uses. Callbacks may make
    /// new ones meanwhile.
    pub(crate) fn finish(&self) {
        let mut slot = 0;
        while slot < self.clients.borrow().len() {
            if let Some(client) = self.client_in(slot) {
                client.finish();
                // A session that lives on finishes for itself.
                if Rc::strong_count(&client) == 2 {
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
            orphan.finish();
        }
        self.state.discard_held();
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = ENDING.try_with(|ending| ending.set(&raw const self.0));
        self.0.finish();
        show_table(NO_TABLE);
        let _ = ENDING.try_with(|ending| ending.set(std::ptr::null()));
    }
}

type Callback = Box<dyn FnOnce()>;

/// What all clients of a thread have in common.
#[derive(Default)]
pub(crate) struct ThreadState {
    /// Slots of this thread's futures.
    pub(crate) pools: Pools,
    in_callback: Cell<bool>,
    /// Callbacks whose answers came while another callback ran.
    left: RefCell<VecDeque<Callback>>,
    /// The first panic of a callback, until the call that ran it has done its own work.
    held: RefCell<Option<Box<dyn Any + Send>>>,
    /// What went wrong with requests of a member to itself, until its next barrier.
    own_faults: RefCell<Option<BarrierError>>,
    /// Clients whose last session ended inside a callback.
    orphans: RefCell<Vec<Rc<Client>>>,
    /// Given to the thread's clients.
    name: RefCell<Option<Name>>,
    /// The launched closure that is meant, rather than a thread.
    pub(crate) launch: Option<Number>,
}

/// Callbacks run until it is dropped.
pub(crate) struct InCallback<'a> {
    state: &'a ThreadState,
    /// A callback that waits must not be suspended: the others on this thread wait for the
    /// call that runs it.
    _on_thread: OnThread,
}

impl Drop for InCallback<'_> {
    fn drop(&mut self) {
        self.state.in_callback.set(false);
    }
}

impl ThreadState {
    /// What a client of this thread is called, if it is called anything.
    pub(crate) fn name(&self) -> Option<Name> {
        let given = self.name.borrow().clone();
        given.or_else(|| std::thread::current().name().map(Name::from))
    }

    pub(crate) fn set_name(&self, name: Name) {
        *self.name.borrow_mut() = Some(name);
    }

    /// A callback runs on this thread.
    pub(crate) fn in_callback(&self) -> bool {
        self.in_callback.get()
    }

    pub(crate) fn enter_callbacks(&self) -> InCallback<'_> {
        assert!(
            !self.in_callback.replace(true),
            "corelay: callbacks start no callbacks"
        );
        InCallback {
            state: self,
            _on_thread: on_thread(),
        }
    }

    /// Keeps the panic of a callback; a second one is dropped.
    pub(crate) fn hold(&self, payload: Box<dyn Any + Send>) {
        let earlier = self.held.borrow().is_some();
        if earlier {
            discard_payload(Some(payload));
        } else {
            *self.held.borrow_mut() = Some(payload);
        }
    }

    /// True where the panic of a callback is held.
    #[inline]
    pub(crate) fn has_held(&self) -> bool {
        self.held.borrow().is_some()
    }

    /// Goes on with the panic of a callback, if one is held and this is the outermost call.
    /// While the thread unwinds already, the panic stays held.
    #[cold]
    pub(crate) fn raise_held(&self) {
        if self.in_callback() || std::thread::panicking() {
            return;
        }
        if let Some(payload) = self.take_held() {
            resume_unwind(payload);
        }
    }

    fn discard_held(&self) {
        discard_payload(self.take_held());
    }

    /// Takes the panic of a callback that is held.
    pub(crate) fn take_held(&self) -> Option<Box<dyn Any + Send>> {
        self.held.borrow_mut().take()
    }

    /// True where one more callback may be left to be run.
    pub(crate) fn may_leave_callback(&self, most: u32) -> bool {
        self.left.borrow().len() < most as usize
    }

    /// Leaves a callback to be run when the present one has ended.
    pub(crate) fn leave_callback(&self, callback: Callback) {
        self.left.borrow_mut().push_back(callback);
    }

    /// Runs `callback`, and those that have been left so far. Their panics are held.
    #[inline]
    pub(crate) fn run_callback(&self, callback: impl FnOnce()) {
        let _in_callback = self.enter_callbacks();
        let mut callback = Some(callback);
        while let Err(payload) = guarded(|| {
            if let Some(callback) = callback.take() {
                callback();
            }
            if self.has_left_callbacks() {
                self.run_left_callbacks();
            }
        }) {
            self.hold(payload);
        }
    }

    /// A request of this thread to itself, that nobody waits for, went wrong.
    pub(crate) fn report_own_fault(&self, payload: Box<dyn Any + Send>) {
        let fault = BarrierError::new(payload, 1);
        let earlier = self.own_faults.take();
        let all = match earlier {
            None => fault,
            Some(earlier) => earlier.merge(fault),
        };
        self.own_faults.replace(Some(all));
    }

    /// What has gone wrong with such requests since it was last asked.
    pub(crate) fn take_own_faults(&self) -> Option<BarrierError> {
        self.own_faults.take()
    }

    /// Runs the callbacks that have been left so far. Those that they leave in turn are for
    /// the next time: first the ring's answers are reaped, which makes room.
    pub(crate) fn run_left_callbacks(&self) {
        let now = self.left.borrow().len();
        for _ in 0..now {
            let Some(callback) = self.left.borrow_mut().pop_front() else {
                return;
            };
            callback();
        }
    }

    /// True where callbacks have been left to be run.
    pub(crate) fn has_left_callbacks(&self) -> bool {
        !self.left.borrow().is_empty()
    }

    /// Keeps a client whose last session ended inside a callback: it is finished by the
    /// next barrier.
    pub(crate) fn adopt_orphan(&self, client: Rc<Client>) {
        self.orphans.borrow_mut().push(client);
    }

    /// Takes a client whose last session ended inside a callback.
    pub(crate) fn take_orphan(&self) -> Option<Rc<Client>> {
        self.orphans.borrow_mut().pop()
    }
}
