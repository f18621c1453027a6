//! Handles that stand for nothing, or not any more.

use crate::support::*;
use corelay_capi::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// The common result of every call that takes `servers`.
fn all_say(servers: Servers) -> Status {
    let mut n = 0;
    let said = [
        count(servers).expect_err("absent"),
        delegate(servers, 0, answer, &[]).expect_err("absent"),
        increment_now(servers, 0, &mut n).expect_err("absent"),
        unsafe { increment_then(servers, 0, &raw mut n, None, null_mut()) },
        unsafe { increment_then(servers, 0, &raw mut n, Some(note), null_mut()) },
        corelay_shutdown_servers(servers),
    ];
    assert_eq!((said, n), ([said[0]; 6], 0));
    said[0]
}

#[test]
fn made_up_handles_are_refused() {
    let servers = Launched::new(1);
    let s = servers.0;
    let client = create(give_back, null_mut()).expect("a thread");
    let low = u64::from(u32::MAX);
    // This is not the next index: another test's servers may be there.
    for made_up in [0, 1, 42, low, u64::MAX, s ^ 1 << 24, s + (1 << 40), s & low] {
        assert_eq!(all_say(made_up), Status::BadHandle);
        assert_eq!(join(made_up), Err(Status::BadHandle));
    }
    assert_eq!(all_say(client), Status::BadHandle);
    assert_eq!(join(s), Err(Status::BadHandle));
    assert_eq!(join(client), Ok(null_mut()));
}

#[test]
fn what_is_shut_down_stays_closed() {
    let servers = launch(1).expect("a thread");
    let (mut got, mut n) = (Got::new(), 0);
    for _ in 0..100 {
        let asked = unsafe { increment_then(servers, 0, &raw mut n, Some(note), user(&mut got)) };
        assert_eq!(asked, Status::Ok);
    }
    assert_eq!(corelay_shutdown_servers(servers), Status::Ok);
    assert_eq!(n, 100, "what was accepted has run");
    // On this thread, which has used the handle, and on one that has not.
    assert_eq!(all_say(servers), Status::Closed);
    thread::spawn(move || assert_eq!(all_say(servers), Status::Closed))
        .join()
        .expect("it is closed there too");
    assert_eq!(corelay_async_barrier(), Status::Ok);
    assert!(
        got.into_iter().eq(1..=100),
        "callbacks that were due have run"
    );
    for _ in 0..50 {
        let later = Launched::new(1);
        assert_ne!(later.0, servers);
        assert_eq!(delegate(later.0, 0, answer, &[]), Ok(42));
        assert_eq!(all_say(servers), Status::Closed);
        assert_eq!(delegate(later.0, 0, answer, &[]), Ok(42));
    }
}

#[test]
fn groups_are_independent() {
    let (one, three) = (Launched::new(1), Launched::new(3));
    assert_ne!(one.0, three.0);
    assert_eq!((count(one.0), count(three.0)), (Ok(1), Ok(3)));
    let (mut a, mut b) = (0, 0);
    for _ in 0..500 {
        assert_eq!(
            unsafe { increment_then(one.0, 0, &raw mut a, None, null_mut()) },
            Status::Ok
        );
        assert_eq!(
            unsafe { increment_then(three.0, 2, &raw mut b, None, null_mut()) },
            Status::Ok
        );
    }
    drop(three);
    assert_eq!(b, 500);
    assert_eq!(increment_now(one.0, 0, &mut a), Ok(501));
}

/// The call that runs the callback still uses what the callback shuts down.
#[test]
fn a_callback_may_replace_the_servers() {
    struct Replaced {
        old: Servers,
        new: Servers,
    }
    extern "C" fn replace(user: *mut c_void, _: u64) {
        let all: &mut Replaced = unsafe { &mut *user.cast() };
        if all.new != 0 {
            return;
        }
        assert_eq!(corelay_shutdown_servers(all.old), Status::Ok);
        all.new = launch(1).expect("a thread");
        assert_eq!(delegate(all.new, 0, answer, &[]), Ok(42));
        assert_eq!(all_say(all.old), Status::Closed);
    }
    for _ in 0..10 {
        let mut n = 0;
        let old = launch(1).expect("a thread");
        let mut all = Replaced { old, new: 0 };
        let to = user(&mut all);
        let asked = loop {
            let asked = unsafe { increment_then(old, 0, &raw mut n, Some(replace), to) };
            if asked != Status::Ok {
                break asked;
            }
        };
        assert_eq!(asked, Status::Closed);
        assert_eq!(corelay_async_barrier(), Status::Ok);
        assert_eq!(corelay_shutdown_servers(all.new), Status::Ok);
    }
}

/// Servers come and go while others use whatever handle they see: a request that was accepted has
/// run, and nothing else happens.
#[test]
fn shutdown_races_with_use() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    static OVER: AtomicBool = AtomicBool::new(false);
    static RAN: AtomicU64 = AtomicU64::new(0);
    extern "C" fn run(_: *const u64) -> u64 {
        RAN.fetch_add(1, Ordering::Relaxed)
    }
    let user = || {
        let (mut accepted, mut got) = (0, Got::new());
        let mut left = 0;
        while !OVER.load(Ordering::Relaxed) {
            let servers = NOW.load(Ordering::Relaxed);
            let waited = delegate(servers, 0, run, &[]).map_or_else(|e| e, |_| Status::Ok);
            let asked = unsafe {
                let to = user(&mut got);
                corelay_delegate_async(servers, 1, Some(note), to, Some(run), &raw const left, 1)
            };
            left += 1;
            for status in [waited, asked] {
                assert!(matches!(status, Status::Ok | Status::Closed), "{status:?}");
                accepted += u64::from(status == Status::Ok);
            }
        }
        let asked = accepted;
        assert_eq!(corelay_async_barrier(), Status::Ok);
        (asked, got.len() as u64)
    };
    let first = launch(2).expect("threads");
    NOW.store(first, Ordering::Relaxed);
    let (accepted, callbacks) = thread::scope(|s| {
        let users: Vec<_> = (0..3).map(|_| s.spawn(user)).collect();
        for _ in 0..scaled(100) {
            let next = launch(2).expect("threads");
            let last = NOW.swap(next, Ordering::Relaxed);
            thread::yield_now();
            assert_eq!(corelay_shutdown_servers(last), Status::Ok);
        }
        OVER.store(true, Ordering::Relaxed);
        users.into_iter().fold((0, 0), |(a, c), user| {
            let (accepted, callbacks) = user.join().expect("nothing else is said");
            (a + accepted, c + callbacks)
        })
    });
    assert_eq!(
        corelay_shutdown_servers(NOW.load(Ordering::Relaxed)),
        Status::Ok
    );
    assert_eq!(RAN.load(Ordering::Relaxed), accepted);
    assert!(callbacks <= accepted && callbacks > 0);
}
