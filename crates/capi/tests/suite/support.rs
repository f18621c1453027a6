//! The calls with results instead of pointers to them, and functions to be delegated.

use corelay_capi::*;
use std::ffi::c_void;
use std::ptr::null_mut;

/// A group of servers that is shut down when it is dropped.
pub(crate) struct Launched(pub(crate) Servers);

impl Launched {
    pub(crate) fn new(count: u32) -> Self {
        Self(launch(count).expect("threads"))
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        assert_eq!(corelay_shutdown_servers(self.0), Status::Ok);
    }
}

fn told<T>(status: Status, value: T) -> Result<T, Status> {
    if status == Status::Ok {
        Ok(value)
    } else {
        Err(status)
    }
}

pub(crate) fn launch(count: u32) -> Result<Servers, Status> {
    let mut servers = 0;
    let status = unsafe { corelay_launch_servers(count, &raw mut servers) };
    told(status, servers)
}

pub(crate) fn count(servers: Servers) -> Result<u32, Status> {
    let mut count = 0;
    let status = unsafe { corelay_count_servers(servers, &raw mut count) };
    told(status, count)
}

/// Has `server` call `f` and waits.
pub(crate) fn delegate(
    servers: Servers,
    server: u32,
    f: extern "C" fn(*const u64) -> u64,
    words: &[u64],
) -> Result<u64, Status> {
    let mut result = 0;
    let (first, count) = (words.as_ptr(), words.len());
    let status =
        unsafe { corelay_delegate(servers, server, Some(f), first, count, &raw mut result) };
    told(status, result)
}

/// Has `server` add one to `count` and waits.
pub(crate) fn increment_now(servers: Servers, server: u32, n: &mut u64) -> Result<u64, Status> {
    let (arg, mut result) = (std::ptr::from_mut(n).cast(), 0);
    let status =
        unsafe { corelay_delegate_ptr(servers, server, Some(increment), arg, &raw mut result) };
    told(status, result)
}

/// Has `server` add one to what `arg` points to; `callback` gets `user` and the sum.
///
/// # Safety
/// `arg` points to a number that nobody else uses, and `user` is what `callback` takes, until the
/// callback has run.
pub(crate) unsafe fn increment_then(
    servers: Servers,
    server: u32,
    arg: *mut u64,
    callback: Callback,
    user: *mut c_void,
) -> Status {
    let f: PtrFunction = Some(increment);
    unsafe { corelay_delegate_async_ptr(servers, server, callback, user, f, arg.cast()) }
}

pub(crate) fn create(
    f: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    arg: *mut c_void,
) -> Result<Client, Status> {
    let mut client = 0;
    let status = unsafe { corelay_client_thread_create(&raw mut client, Some(f), arg) };
    told(status, client)
}

pub(crate) fn join(client: Client) -> Result<*mut c_void, Status> {
    let mut result = null_mut();
    let status = unsafe { corelay_client_thread_join(client, &raw mut result) };
    told(status, result)
}

pub(crate) extern "C" fn increment(arg: *mut c_void) -> u64 {
    let n: *mut u64 = arg.cast();
    unsafe {
        *n += 1;
        *n
    }
}

pub(crate) extern "C" fn answer(_: *const u64) -> u64 {
    42
}

pub(crate) extern "C" fn give_back(arg: *mut c_void) -> *mut c_void {
    arg
}

/// The results that callbacks have received.
pub(crate) type Got = Vec<u64>;

/// A callback whose `user` is a [`Got`].
pub(crate) extern "C" fn note(user: *mut c_void, result: u64) {
    unsafe { (*user.cast::<Got>()).push(result) };
}

pub(crate) fn user<T>(got: &mut T) -> *mut c_void {
    std::ptr::from_mut(got).cast()
}

/// `n` times what `CORELAY_STRESS` asks for (1 unless set).
pub(crate) fn scaled(n: u64) -> u64 {
    let factor = std::env::var("CORELAY_STRESS")
        .map_or(1, |text| text.parse().expect("CORELAY_STRESS is a number"));
    n * factor
}
