//! Calls inside delegated functions and inside callbacks.

use crate::support::*;
use corelay_capi::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

struct Inside {
    servers: Servers,
    client: Client,
    said: Vec<Status>,
    n: u64,
    got: Got,
}

impl Inside {
    fn new(servers: Servers) -> Self {
        Self {
            servers,
            client: create(give_back, null_mut()).expect("a thread"),
            said: Vec::new(),
            n: 0,
            got: Got::new(),
        }
    }
}

/// Makes every call that waits, asks or changes something.
extern "C" fn call_everything(arg: *mut c_void) -> u64 {
    let inside: &mut Inside = unsafe { &mut *arg.cast() };
    let (s, mut word, mut place) = (inside.servers, 0, null_mut());
    let n = &raw mut inside.n;
    let (f, g): (Function, PtrFunction) = (Some(answer), Some(increment));
    inside.said = unsafe {
        vec![
            corelay_delegate(s, 0, f, null(), 0, &raw mut word),
            corelay_delegate(s, 1, f, null(), 0, &raw mut word),
            corelay_delegate_async(s, 0, Some(note), null_mut(), f, null(), 0),
            corelay_delegate_async(s, 1, None, null_mut(), f, null(), 0),
            corelay_delegate_ptr(s, 1, g, n.cast(), &raw mut word),
            corelay_delegate(0, 9, f, null(), 0, &raw mut word),
            increment_then(s, 0, n, None, null_mut()),
            increment_then(s, 1, n, Some(note), null_mut()),
            corelay_async_barrier(),
            corelay_poll(),
            corelay_launch_servers(1, &raw mut word),
            corelay_shutdown_servers(s),
            corelay_client_thread_create(&raw mut word, Some(give_back), null_mut()),
            corelay_client_thread_join(inside.client, &raw mut place),
        ]
    };
    u64::from(count(s) == Ok(2))
}

#[test]
fn a_delegated_function_is_a_leaf() {
    let servers = Launched::new(2);
    let mut inside = Inside::new(servers.0);
    let (to, mut counted) = (user(&mut inside), 0);
    let status =
        unsafe { corelay_delegate_ptr(servers.0, 0, Some(call_everything), to, &raw mut counted) };
    assert_eq!((status, counted), (Status::Ok, 1));
    assert_eq!(inside.said, [Status::Nested; 14]);

    inside.said.clear();
    let mut got = Got::new();
    let (to, got) = (user(&mut inside), user(&mut got));
    let f: PtrFunction = Some(call_everything);
    let status = unsafe { corelay_delegate_async_ptr(servers.0, 1, Some(note), got, f, to) };
    assert_eq!(status, Status::Ok);
    assert_eq!(corelay_async_barrier(), Status::Ok);
    assert_eq!(inside.said, [Status::Nested; 14]);
    assert_eq!(inside.n, 0, "nothing was sent afterwards either");
    assert_eq!(join(inside.client), Ok(null_mut()));
}

extern "C" fn call_inside(arg: *mut c_void, _: u64) {
    let inside: &mut Inside = unsafe { &mut *arg.cast() };
    inside.said.push(corelay_async_barrier());
    inside.said.push(corelay_poll());
    let n = &raw mut inside.n;
    let waited = delegate(inside.servers, 0, answer, &[]);
    inside.said.push(waited.map_or_else(|e| e, |_| Status::Ok));
    // No callback runs meanwhile, so this ends.
    loop {
        let to = user(&mut inside.got);
        let asked = unsafe { increment_then(inside.servers, 0, n, Some(note), to) };
        if asked != Status::Ok {
            inside.said.push(asked);
            return;
        }
    }
}

#[test]
fn a_callback_asks_but_does_not_wait_for_callbacks() {
    let servers = Launched::new(1);
    let mut inside = Inside::new(servers.0);
    let (to, f) = (user(&mut inside), Some(answer as extern "C" fn(_) -> _));
    let f = f.map(|f| f as unsafe extern "C" fn(*const u64) -> u64);
    let status =
        unsafe { corelay_delegate_async(servers.0, 0, Some(call_inside), to, f, null(), 0) };
    assert_eq!(status, Status::Ok);
    assert_eq!(corelay_async_barrier(), Status::Ok);
    let said = [
        Status::InCallback,
        Status::InCallback,
        Status::Ok,
        Status::Full,
    ];
    assert_eq!(inside.said, said);
    assert!(inside.n >= 256);
    let mut got = inside.got;
    got.sort_unstable();
    assert!(
        got.into_iter().eq(1..=inside.n),
        "each accepted one's callback has run"
    );
    assert_eq!(join(inside.client), Ok(null_mut()));
}

#[test]
fn nothing_to_wait_for_is_no_error() {
    assert_eq!(corelay_async_barrier(), Status::Ok);
    assert_eq!(corelay_poll(), Status::Ok);
}
