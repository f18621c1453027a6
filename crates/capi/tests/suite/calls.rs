//! The calls that work, and the mistakes that a call can report.

use crate::support::*;
use corelay_capi::*;
use std::ptr::{null, null_mut};
use std::thread;

/// The weighed sum of words; the first word is their number.
extern "C" fn weigh(words: *const u64) -> u64 {
    let n = unsafe { *words };
    (1..n).map(|i| i * unsafe { *words.add(i as usize) }).sum()
}

#[test]
fn every_number_of_words_arrives() {
    let servers = Launched::new(1);
    assert_eq!(delegate(servers.0, 0, answer, &[]), Ok(42));
    for n in 1..=CORELAY_MAX_WORDS as u64 {
        let words: Vec<u64> = (0..n).map(|i| if i == 0 { n } else { 10 * i }).collect();
        let sum = (1..n).map(|i| i * 10 * i).sum();
        assert_eq!(delegate(servers.0, 0, weigh, &words), Ok(sum));
        let mut got = Got::new();
        let status = unsafe {
            let (first, count) = (words.as_ptr(), words.len());
            corelay_delegate_async(
                servers.0,
                0,
                Some(note),
                user(&mut got),
                Some(weigh),
                first,
                count,
            )
        };
        assert_eq!(status, Status::Ok);
        // The words have been copied.
        drop(words);
        assert_eq!(corelay_async_barrier(), Status::Ok);
        assert_eq!(got, [sum]);
    }
}

/// More callbacks than fit at a time, too; on a thread of their own, since `got` is not shared.
#[test]
fn callbacks_run_once_and_in_order() {
    let servers = Launched::new(2);
    let servers = servers.0;
    thread::scope(|s| {
        for server in [0, 0, 1] {
            s.spawn(move || {
                let (mut got, mut n) = (Got::new(), 0);
                for i in 0..3000 {
                    let status = unsafe {
                        increment_then(servers, server, &raw mut n, Some(note), user(&mut got))
                    };
                    assert_eq!(status, Status::Ok);
                    if i % 700 == 0 {
                        assert_eq!(corelay_poll(), Status::Ok);
                    }
                }
                assert_eq!(corelay_async_barrier(), Status::Ok);
                assert!(got.into_iter().eq(1..=3000));
                assert_eq!(n, 3000);
            });
        }
    });
}

#[test]
fn requests_without_a_callback_run_too() {
    let servers = Launched::new(1);
    let mut n = 0;
    for _ in 0..1000 {
        let status = unsafe { increment_then(servers.0, 0, &raw mut n, None, null_mut()) };
        assert_eq!(status, Status::Ok);
    }
    assert_eq!(corelay_async_barrier(), Status::Ok);
    assert_eq!(increment_now(servers.0, 0, &mut n), Ok(1001));
}

#[test]
fn null_is_refused() {
    let servers = Launched::new(1);
    let (s, mut n, mut result) = (servers.0, 0, 5);
    let (words, to, arg) = ([1, 2], &raw mut result, user(&mut n));
    let (w, none) = (words.as_ptr(), null());
    let refused = unsafe {
        [
            corelay_launch_servers(1, null_mut()),
            corelay_count_servers(s, null_mut()),
            corelay_delegate(s, 0, None, w, 2, to),
            corelay_delegate(s, 0, Some(weigh), none, 2, to),
            corelay_delegate(s, 0, Some(answer), none, 0, null_mut()),
            corelay_delegate_async(s, 0, None, null_mut(), None, w, 2),
            corelay_delegate_async(s, 0, None, null_mut(), Some(weigh), none, 1),
            corelay_delegate_ptr(s, 0, None, arg, to),
            corelay_delegate_ptr(s, 0, Some(increment), arg, null_mut()),
            corelay_delegate_async_ptr(s, 0, None, null_mut(), None, arg),
        ]
    };
    assert_eq!(refused, [Status::Null; 10]);
    assert_eq!(corelay_async_barrier(), Status::Ok);
    assert_eq!((n, result), (0, 5));
}

#[test]
fn numbers_out_of_range_are_refused() {
    for count in [0, CORELAY_MAX_SERVERS + 1, u32::MAX] {
        assert_eq!(launch(count), Err(Status::BadCount));
    }
    let servers = Launched::new(2);
    let mut n = 0;
    for server in [2, 3, u32::MAX] {
        assert_eq!(
            delegate(servers.0, server, answer, &[]),
            Err(Status::BadServer)
        );
        assert_eq!(
            increment_now(servers.0, server, &mut n),
            Err(Status::BadServer)
        );
        let asked = unsafe { increment_then(servers.0, server, &raw mut n, None, null_mut()) };
        assert_eq!(asked, Status::BadServer);
    }
    let words = [1; CORELAY_MAX_WORDS];
    for count in [CORELAY_MAX_WORDS + 1, usize::MAX] {
        let mut result = 5;
        let (first, none) = (words.as_ptr(), null_mut());
        let refused = unsafe {
            [
                corelay_delegate(servers.0, 0, Some(weigh), first, count, &raw mut result),
                corelay_delegate_async(servers.0, 0, None, none, Some(weigh), first, count),
            ]
        };
        assert_eq!((refused, result), ([Status::TooManyWords; 2], 5));
    }
}
