//! Requests of callbacks that find no room: they wait in their thread's queue.
//!
//! A callback must not reap (it would start further callbacks, and recursion would grow
//! with the window), so it cannot make room. Its request goes into the queue of its
//! thread, which is emptied before the call that ran the callback returns.

use super::client::{Client, Patience, Refusal};
use crate::object::Header;

/// Keeps the object alive while its request waits in the queue.
struct Held(*mut Header);

impl Held {
    /// # Safety
    /// `object` is alive.
    unsafe fn new(object: *mut Header) -> Self {
        // SAFETY: alive, by the caller.
        unsafe { &*object }.retain();
        Self(object)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the count from `new`.
        unsafe { Header::release(self.0) };
    }
}

/// # Safety
/// As [`Client::issue`], until the thread's queue has been run.
#[cold]
pub(super) unsafe fn issue<T, F, R, C>(client: &Client, object: *mut Header, f: F, then: C)
where
    F: FnOnce(&mut T) -> R,
    C: FnOnce(R),
{
    // SAFETY: alive, by the caller.
    let held = unsafe { Held::new(object) };
    let job = move |client: &Client| {
        // SAFETY: `held` keeps the object; the rest is the duty of our caller.
        let result = unsafe { client.issue(held.0, f, then, Patience::Wait) };
        result.map_err(|(refusal, ..)| refusal)
    };
    enqueue(client, Box::new(job));
}

/// # Safety
/// As [`Client::post`], until the thread's queue has been run.
#[cold]
pub(super) unsafe fn post<T, F: FnOnce(&mut T)>(client: &Client, object: *mut Header, f: F) {
    // SAFETY: alive, by the caller.
    let held = unsafe { Held::new(object) };
    let job = move |client: &Client| {
        // SAFETY: `held` keeps the object; the rest is the duty of our caller.
        let result = unsafe { client.post(held.0, f, Patience::Wait) };
        result.map_err(|(refusal, _)| refusal)
    };
    enqueue(client, Box::new(job));
}

fn enqueue<'a>(
    client: &Client,
    job: Box<dyn FnOnce(&Client) -> Result<(), Refusal> + 'a>,
) {
    // SAFETY: only the lifetime changes; the callers' callers guarantee it until the queue
    // has been run, which is before their frames are left.
    let job = unsafe {
        std::mem::transmute::<
            Box<dyn FnOnce(&Client) -> Result<(), Refusal> + 'a>,
            Box<dyn FnOnce(&Client) -> Result<(), Refusal>>,
        >(job)
    };
    client.stop_fast_path();
    client.deferred.set(client.deferred.get() + 1);
    let this: *const Client = client;
    client.thread.defer(Box::new(move || {
        // SAFETY: a client outlives the queue of its thread.
        let client = unsafe { &*this };
        client.deferred.set(client.deferred.get() - 1);
        if job(client).is_err() {
            client.report_lost();
        }
    }));
}
