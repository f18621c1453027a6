//! Flat delegation on the thesis's lines under loom: every interleaving of the shipped source (up to
//! the preemption bound) with every permitted stale read.

use corelay_literature::{FlatPolicy, Member, Place};
use loom::thread;
use std::cell::Cell;
use std::rc::Rc;

type Then = Box<dyn FnOnce(u64)>;

/// A member asks the other one, `requests` times, and comes to the barrier.
fn ask(place: Place<u64, Then>, other: usize, requests: u64) {
    let mut member = place.take();
    let sum = Rc::new(Cell::new(0));
    for _ in 0..requests {
        let sum = Rc::clone(&sum);
        let add = |count: &mut u64| {
            *count += 1;
            *count
        };
        member.issue(
            other,
            add,
            Box::new(move |answer| sum.set(sum.get() + answer)),
        );
    }
    member.barrier();
    assert_eq!(sum.get(), (1..=requests).sum());
}

/// Two members ask each other.
fn model(policy: FlatPolicy, requests: [u64; 2]) {
    loom::model(move || {
        let (counts, mut team) = Member::<u64, Then>::team(policy, 1, 2, 2, |_| 0).unwrap();
        let second = team.pop().unwrap();
        let first = team.pop().unwrap();
        let other = thread::spawn(move || ask(second, 0, requests[1]));
        ask(first, 1, requests[0]);
        other.join().unwrap();
        let mut seen = Vec::new();
        counts.inspect(|count| seen.push(*count)).unwrap();
        assert_eq!(seen, [requests[1], requests[0]]);
    });
}

#[test]
fn blocked() {
    model(FlatPolicy::Blocked, [2, 1]);
}

#[test]
fn queue() {
    model(FlatPolicy::Queue, [1, 1]);
}

#[test]
fn doorbell() {
    model(FlatPolicy::Doorbell, [2, 0]);
}
