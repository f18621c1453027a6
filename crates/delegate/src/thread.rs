//! What a thread keeps: its clients by trustee, and what its callbacks left to be done.
//!
//! The table is a plain thread-local array, indexed by the trustee's slot: the fast path
//! is two loads and two compares. The owner behind it ends with the thread: it waits for
//! the answers and runs the callbacks. A destructor that calls corelay after that gets a
//! temporary client, which finishes before the call returns.

use crate::channel::client::Client;
use crate::error::discard_payload;
use crate::trustee::Shared;
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::thread_local;
use corelay_sync::wait::{NoSwitch, Registration, Source, register};
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

const NO_TABLE: Table = Table { clients: std::ptr::null(), len: 0 };

thread_local! {
    static TABLE: Cell<Table> = const { Cell::new(NO_TABLE) };
    static OWNER: Owner = Owner::new();
}

/// The client of this thread for the trustee in `slot`, if it has one.
#[inline(always)]
pub(crate) fn lookup<'a>(slot: u32) -> Option<&'a Client> {
    let table = table();
    if slot as usize >= table.len {
        return None;
    }
    // SAFETY: the table has `len` entries while it is installed.
    let client = unsafe { *table.clients.add(slot as usize) };
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

/// Hides the table: every call takes its slow path.
#[inline(always)]
pub(crate) fn hide_table() -> Table {
    let table = table();
    show_table(NO_TABLE);
    table
}

/// Undoes [`hide_table`].
#[inline(always)]
pub(crate) fn show_table(table: Table) {
    let _ = TABLE.try_with(|t| t.set(table));
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
            client.finish();
        }
    }
}

/// The slow path of [`lookup`]: makes this thread a client of `trustee`.
#[cold]
pub(crate) fn connect(trustee: &Arc<Shared>) -> Result<ClientRef, NoClient> {
    if let Some(running) = NoSwitch::active() {
        return Err(NoClient::Nested(running));
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
        let table = table();
        if slot >= table.len {
            return;
        }
        // SAFETY: the table has `len` entries while it is installed.
        let client = unsafe { *table.clients.add(slot) };
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

/// Ends this thread's clients now, as at its end.
pub(crate) fn retire_clients() {
    with_owner(Owner::finish);
}

/// `None` where the thread has come so far to its end that its owner is gone.
fn with_owner<R>(f: impl FnOnce(&Owner) -> R) -> Option<R> {
    OWNER.try_with(f).ok()
}

/// Keeps the clients, and finishes them at the thread's end.
struct Owner {
    /// By slot.
    clients: RefCell<Vec<Option<Rc<Client>>>>,
    /// The same, as the fast path reads them.
    pointers: RefCell<Vec<*const Client>>,
    state: Rc<ThreadState>,
    registrations: RefCell<Vec<Registration>>,
}

impl Source for Client {
    fn poll(&self) {
        if !self.thread.is_busy() {
            self.flush();
            self.reap();
        }
    }
}

impl Owner {
    fn new() -> Self {
        Self {
            clients: RefCell::new(Vec::new()),
            pointers: RefCell::new(Vec::new()),
            state: Rc::new(ThreadState::default()),
            registrations: RefCell::new(Vec::new()),
        }
    }

    fn connect(&self, trustee: &Arc<Shared>) -> Option<Rc<Client>> {
        let slot = trustee.slot.index();
        if let Some(Some(client)) = self.clients.borrow().get(slot) {
            // The table was hidden, and is not any more.
            return Some(Rc::clone(client));
        }
        self.sweep();
        let client = Rc::new(Client::connect(trustee, &self.state)?);
        let mut clients = self.clients.borrow_mut();
        let mut pointers = self.pointers.borrow_mut();
        if clients.len() <= slot {
            clients.resize(slot + 1, None);
            pointers.resize(slot + 1, std::ptr::null());
        }
        // A wait of another kind on this thread polls it too.
        self.registrations.borrow_mut().extend(register(&client));
        clients[slot] = Some(Rc::clone(&client));
        pointers[slot] = Rc::as_ptr(&client);
        show_table(Table { clients: pointers.as_ptr(), len: pointers.len() });
        Some(client)
    }

    /// Drops the clients of trustees that have ended, so that slots are used again.
    fn sweep(&self) {
        if self.state.is_busy() {
            return;
        }
        let mut ended = Vec::new();
        {
            let mut clients = self.clients.borrow_mut();
            let mut pointers = self.pointers.borrow_mut();
            for (client, pointer) in clients.iter_mut().zip(pointers.iter_mut()) {
                let over = client.as_ref().is_some_and(|client| {
                    client.trustee.is_gone() && client.is_idle() && Rc::strong_count(client) == 1
                });
                if over {
                    *pointer = std::ptr::null();
                    ended.extend(client.take());
                }
            }
        }
        drop(ended);
    }

    fn finish(&self) {
        loop {
            let Some(client) = self.clients.borrow_mut().iter_mut().find_map(Option::take) else {
                break;
            };
            // While it finishes, its callbacks may call on it: it stays in the fast table.
            client.finish();
            if let Some(pointer) =
                self.pointers.borrow_mut().get_mut(client.trustee.slot.index())
            {
                *pointer = std::ptr::null();
            }
        }
        self.state.discard_held();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.finish();
        show_table(NO_TABLE);
    }
}

type Deferred = Box<dyn FnOnce()>;

/// What all clients of a thread have in common.
#[derive(Default)]
pub(crate) struct ThreadState {
    in_callback: Cell<bool>,
    running_deferred: Cell<bool>,
    deferred: RefCell<VecDeque<Deferred>>,
    /// The first panic of a callback, until the call that ran it has done its own work.
    held: RefCell<Option<Box<dyn Any + Send>>>,
}

/// Callbacks run until it is dropped.
pub(crate) struct InCallback<'a>(&'a ThreadState);

impl Drop for InCallback<'_> {
    fn drop(&mut self) {
        self.0.in_callback.set(false);
    }
}

impl ThreadState {
    /// A callback runs on this thread.
    pub(crate) fn in_callback(&self) -> bool {
        self.in_callback.get()
    }

    fn is_busy(&self) -> bool {
        self.in_callback.get() || self.running_deferred.get()
    }

    pub(crate) fn enter_callbacks(&self) -> InCallback<'_> {
        debug_assert!(!self.in_callback.get(), "callbacks start no callbacks");
        self.in_callback.set(true);
        InCallback(self)
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

    /// Goes on with the panic of a callback, if one is held and this is the outermost call.
    #[cold]
    pub(crate) fn raise_held(&self) {
        if self.is_busy() {
            return;
        }
        let held = self.held.borrow_mut().take();
        if let Some(payload) = held {
            resume_unwind(payload);
        }
    }

    fn discard_held(&self) {
        let held = self.held.borrow_mut().take();
        discard_payload(held);
    }

    /// True where one more request of a callback may wait.
    pub(crate) fn may_defer(&self, most: u32) -> bool {
        self.deferred.borrow().len() < most as usize
    }

    pub(crate) fn defer(&self, job: Deferred) {
        self.deferred.borrow_mut().push_back(job);
    }

    /// Runs what callbacks have deferred, and what that makes callbacks defer.
    pub(crate) fn run_deferred(&self) {
        if self.deferred.borrow().is_empty() || self.is_busy() {
            return;
        }
        self.running_deferred.set(true);
        loop {
            let Some(job) = self.deferred.borrow_mut().pop_front() else { break };
            if let Err(payload) = crate::channel::lane::guarded(job) {
                self.hold(payload);
            }
        }
        self.running_deferred.set(false);
    }
}
