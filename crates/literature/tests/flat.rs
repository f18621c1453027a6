//! Flat delegation on the thesis's lines, by every policy.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod support;

use corelay_history::model::counter::{Counter, Operation, Output};
use corelay_history::{History, Recorder, check};
use corelay_literature::{AsyncLines, Busy, FlatPolicy, Member, Place, ShapeError};
use std::cell::{Cell, RefCell};
use std::panic::catch_unwind;
use std::rc::Rc;
use std::sync::Barrier;
use std::thread;
use support::stressed;

const POLICIES: [FlatPolicy; 6] = [
    FlatPolicy::Queue,
    FlatPolicy::Blocked,
    FlatPolicy::FastPath,
    FlatPolicy::Bound(1),
    FlatPolicy::Bound(7),
    FlatPolicy::Doorbell,
];

/// A callback that any thread can make.
type Then = Box<dyn FnOnce(u64)>;
type Team = (AsyncLines<u64, Then>, Vec<Place<u64, Then>>);

fn team(policy: FlatPolicy, lines: usize, members: usize, objects: usize) -> Team {
    Member::team(policy, lines, members, objects, |_| 0).unwrap()
}

fn add(count: &mut u64) -> u64 {
    *count += 1;
    *count - 1
}

/// Each member adds one `times` times to objects in turn, in each of some rounds. Every answer of an
/// object is given once, and all have come at a barrier.
fn count(policy: FlatPolicy, lines: usize, members: usize, times: usize) {
    const ROUNDS: usize = 3;
    let objects = members + 1;
    let (counts, team) = team(policy, lines, members, objects);
    let all = Barrier::new(members);
    let work = |place: Place<u64, Then>| {
        let mut member = place.take();
        let seen = Rc::new(RefCell::new(vec![Vec::new(); objects]));
        for round in 1..=ROUNDS {
            for i in 0..times {
                let (object, seen) = (i % objects, Rc::clone(&seen));
                let then = move |before| seen.borrow_mut()[object].push(before);
                member.issue(object, add, Box::new(then));
            }
            member.barrier();
            assert_eq!(
                seen.borrow().iter().map(Vec::len).sum::<usize>(),
                round * times
            );
            if all.wait().is_leader() {
                // Nobody is a client between barriers.
                let mut total = 0;
                counts.inspect(|count| total += count).unwrap();
                assert_eq!(total, (round * members * times) as u64);
            }
            all.wait();
        }
        let place = member.leave();
        let asked = place.asked().iter();
        assert!(asked.clone().all(|asked| asked.failed_pops <= asked.pops));
        // Between members everything goes by the lines.
        let sent: u64 = asked.map(|asked| asked.ready).sum();
        assert!(sent >= ((members - 1) * ROUNDS * (times / objects)) as u64);
        seen.take()
    };
    let seen = thread::scope(|s| {
        let team: Vec<_> = team.into_iter().map(|m| s.spawn(|| work(m))).collect();
        let seen = team.into_iter().map(|member| member.join().unwrap());
        seen.collect::<Vec<_>>()
    });
    let mut totals = Vec::new();
    counts.inspect(|count| totals.push(*count)).unwrap();
    for (object, total) in totals.into_iter().enumerate() {
        let mut answers: Vec<_> = seen.iter().flat_map(|seen| &seen[object]).collect();
        answers.sort_unstable();
        assert!(
            answers.into_iter().copied().eq(0..total),
            "{policy:?}, {lines} lines"
        );
    }
}

#[test]
fn every_operation_counts_and_every_callback_runs_once() {
    for policy in POLICIES {
        for (lines, members) in [(1, 1), (4, 2), (1, 3), (16, 3)] {
            count(policy, lines, members, stressed(61));
        }
    }
}

/// Every policy gives linearizable objects.
#[test]
fn histories_have_an_explanation() {
    for policy in POLICIES {
        let (_, team) = team(policy, 4, 3, 1);
        let start = Barrier::new(team.len());
        let record = |(number, place): (usize, Place<u64, Then>)| {
            let mut member = place.take();
            let recorder = Rc::new(RefCell::new(Recorder::with_capacity(stressed(300))));
            start.wait();
            for n in 0..stressed(300) {
                let delta = ((n + number) % 3) as i64;
                let call = recorder.borrow_mut().invoke(Operation::FetchAdd(delta));
                let noted = Rc::clone(&recorder);
                let then = move |before: u64| {
                    noted
                        .borrow_mut()
                        .respond(call, Output::Value(before as i64));
                };
                let run = move |count: &mut u64| std::mem::replace(count, *count + delta as u64);
                member.issue(0, run, Box::new(then));
            }
            member.barrier();
            Rc::into_inner(recorder).unwrap().into_inner()
        };
        let history: History<_, _> = thread::scope(|s| {
            let team = team.into_iter().enumerate();
            let team: Vec<_> = team.map(|member| s.spawn(|| record(member))).collect();
            let recorders = team.into_iter().map(|member| member.join().unwrap());
            recorders.collect()
        });
        check(&Counter::new(0), &history).unwrap_or_else(|why| panic!("{policy:?}: {why}"));
    }
}

/// The thesis's greedy client: a member that only asks itself does not serve, and a bell or a bound
/// makes it serve.
#[test]
fn a_bell_and_a_bound_cure_greed() {
    for (policy, is_cured) in [
        (FlatPolicy::FastPath, false),
        (FlatPolicy::Bound(7), true),
        (FlatPolicy::Doorbell, true),
    ] {
        let (_, mut team) = team(policy, 1, 2, 2);
        let (victim, greedy) = (team.pop().unwrap(), team.pop().unwrap());
        let asked = Barrier::new(2);
        thread::scope(|s| {
            s.spawn(|| {
                let mut greedy = greedy.take();
                asked.wait();
                // The victim's second request waits for the line, and rings.
                for _ in 0..10_000 {
                    greedy.issue(0, add, Box::new(|_| ()));
                }
                while is_cured && greedy.served().requests == 0 {
                    greedy.issue(0, add, Box::new(|_| ()));
                }
                assert_eq!(greedy.served().requests > 0, is_cured, "{policy:?}");
                greedy.barrier();
            });
            let mut victim = victim.take();
            asked.wait();
            victim.issue(0, add, Box::new(|_| ()));
            victim.issue(0, add, Box::new(|_| ()));
            victim.barrier();
        });
    }
}

/// Operations on the fast path run while objects cannot be looked at.
#[test]
fn own_operations_run_at_once() {
    let (counts, mut team) = team(FlatPolicy::FastPath, 4, 1, 1);
    let mut member = team.remove(0).take();
    let looked = counts.clone();
    let answer = Rc::new(Cell::new(0));
    let told = Rc::clone(&answer);
    let look = move |count: &mut u64| {
        assert_eq!(looked.inspect(|_| unreachable!()), Err(Busy));
        add(count) + 7
    };
    member.issue(0, look, Box::new(move |answer| told.set(answer)));
    assert_eq!(answer.get(), 7);
    member.barrier();
    counts.inspect(|count| assert_eq!(*count, 1)).unwrap();
}

#[test]
fn a_team_has_lines() {
    let made = Member::<u64, Then>::team(FlatPolicy::Queue, 0, 1, 1, |_| 0);
    assert_eq!(made.err(), Some(ShapeError));
    let zero = || Member::<u64, Then>::team(FlatPolicy::Bound(0), 1, 1, 1, |_| 0);
    assert!(catch_unwind(zero).is_err());
}
