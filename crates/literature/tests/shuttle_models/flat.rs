//! Flat delegation on the thesis's lines under shuttle: random schedules of more members than loom
//! can afford.

use crate::schedules;
use corelay_literature::{FlatPolicy, Member, Place};
use shuttle::thread;
use std::cell::Cell;
use std::rc::Rc;

const SCHEDULES: usize = 100;
const MEMBERS: usize = 3;
const TIMES: u64 = 7;

type Then = Box<dyn FnOnce(u64)>;

/// Each member asks all, itself included; each callback runs once, and each answer is given once.
fn explore(policy: FlatPolicy) {
    schedules::model(SCHEDULES, move || {
        let team = Member::<u64, Then>::team(policy, 2, MEMBERS, MEMBERS, |_| 0);
        let (counts, team) = team.unwrap();
        let work = |place: Place<u64, Then>| {
            let mut member = place.take();
            let answers = Rc::new(Cell::new((0, 0)));
            for turn in 0..TIMES {
                let answers = Rc::clone(&answers);
                let then = move |before| {
                    let (count, sum) = answers.get();
                    answers.set((count + 1, sum + before));
                };
                let add = |count: &mut u64| {
                    *count += 1;
                    *count - 1
                };
                member.issue(turn as usize % MEMBERS, add, Box::new(then));
            }
            member.barrier();
            assert_eq!(answers.get().0, TIMES);
            answers.get().1
        };
        let spawn = |place| thread::spawn(move || work(place));
        let team: Vec<_> = team.into_iter().map(spawn).collect();
        let sum: u64 = team.into_iter().map(|member| member.join().unwrap()).sum();
        let (mut total, mut answers) = (0, 0);
        let look = |count: &u64| {
            total += count;
            answers += count * (count - 1) / 2;
        };
        counts.inspect(look).unwrap();
        assert_eq!((total, answers), (MEMBERS as u64 * TIMES, sum));
    });
}

#[test]
fn queue() {
    explore(FlatPolicy::Queue);
}

#[test]
fn blocked() {
    explore(FlatPolicy::Blocked);
}

#[test]
fn fast_path_with_a_bound() {
    explore(FlatPolicy::Bound(3));
}

#[test]
fn doorbell() {
    explore(FlatPolicy::Doorbell);
}
