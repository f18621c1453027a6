//! The greedy client (D13): a member of a flat team that asks only its own object, while the
//! other members ask for the same object.
//!
//! ```text
//!   member 0, the greedy one      its object        members 1, 2, …, the victims
//!   step, step, step, … ─────────► ┌───────┐ ◄───── a request, and another, …
//!                                  │ board │        until WINDOW of them are in flight;
//!   serves when its policy         └───────┘        then they wait, serve each other,
//!   says so, or never                               and ring if nothing comes
//! ```
//!
//! The demonstration counts instead of timing. Its clock is the greedy member's steps. One thread
//! does everything that is done to the object, one thing after the other, so the object itself
//! keeps the [record](Record): how many requests of each victim it has answered after so many
//! steps.
//!
//! A thread that does not get a CPU looks like a victim too. So after every [`REST`] steps, under
//! every policy alike, the greedy member rests until each victim waits for it again. A rest makes
//! no call of corelay, so the greedy member serves nobody meanwhile. Each victim therefore has
//! [`WINDOW`] requests to be answered between two rests, on one CPU as on many, and more if it is
//! quick enough to ask again.

mod board;
mod picture;

pub use board::{Mark, Record};
pub use picture::picture;

use board::{Board, Victim};
use corelay::{Member, Policy, StartError, Trust, Trustees, barrier};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::thread;
use serde::Serialize;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The fewest members of a scenario: the greedy one, and two victims that have each other to
/// serve.
pub const FEWEST_MEMBERS: usize = 3;

/// The most steps of a scenario. More would take an hour with the quickest policy.
pub const MOST_STEPS: u64 = 1_000_000_000;

/// Requests that a victim has in flight before it waits.
pub const WINDOW: usize = 8;

/// Steps between two rests of the greedy member.
pub const REST: u64 = 100;

/// Sleep requested in a rest. The kernel makes some 70 µs of it, in which other threads get the
/// CPU.
const REST_SLEEP: Duration = Duration::from_micros(20);

/// The size of the team and the length of the play.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scenario {
    /// Members of the team: the greedy one and the victims.
    pub members: usize,
    /// Requests that the greedy member makes to its own object.
    pub steps: u64,
}

/// The reason that a scenario has no record.
#[derive(Debug)]
pub enum Fault {
    /// The team did not start.
    Start(StartError),
    /// Ctrl-C ended the play.
    Interrupted,
    /// Requests were lost or answered twice, as the sentence says.
    Wrong(String),
}

/// The state of one run that its members share.
struct Play<'a> {
    steps: u64,
    victims: Arc<[Victim]>,
    /// Whether the greedy member's function runs. Before that, its thread serves all requests.
    has_begun: AtomicBool,
    /// Whether the greedy member has made its steps.
    is_over: AtomicBool,
    interrupted: &'a AtomicBool,
    /// Called at each rest with the steps made since the last one.
    tick: &'a (dyn Fn(u64) + Sync),
}

/// The counts of one victim.
#[derive(Default)]
struct Seen {
    /// Requests that the victim has made to the greedy member's object.
    asked: u64,
    /// Callbacks of these requests that have run.
    answered: u64,
    /// Requests that the victim has made to the next victim's object.
    posted: u64,
}

impl Scenario {
    /// Plays the scenario under one policy. `tick` is called at each rest, with the steps since
    /// the last.
    ///
    /// ```
    /// use corelay::Policy;
    /// use corelay_lab_course::greedy::Scenario;
    ///
    /// let scenario = Scenario { members: 3, steps: 2_000 };
    /// let play = |policy| scenario.play(policy, &Default::default(), &|_| {}).unwrap();
    /// assert!(play(Policy::FastPath).is_starved());
    /// assert!(!play(Policy::Bound(64)).is_starved());
    /// ```
    ///
    /// # Errors
    /// A [`Fault`] if there is no record to trust.
    ///
    /// # Panics
    /// With fewer members than [`FEWEST_MEMBERS`], without a step, or with more than
    /// [`MOST_STEPS`].
    pub fn play(
        self,
        policy: Policy,
        interrupted: &AtomicBool,
        tick: &(dyn Fn(u64) + Sync),
    ) -> Result<Record, Fault> {
        assert!(self.members >= FEWEST_MEMBERS, "two victims at least");
        assert!(
            (1..=MOST_STEPS).contains(&self.steps),
            "1..={MOST_STEPS} steps"
        );
        let victims: Arc<[Victim]> = (1..self.members).map(|_| Victim::default()).collect();
        let team = Trustees::flat(self.members)
            .policy(policy)
            .window(WINDOW)
            .start()
            .map_err(Fault::Start)?;
        let board = team.entrust_on(0, Board::new(self.steps, Arc::clone(&victims)));
        let own: Vec<_> = (1..self.members)
            .map(|member| team.entrust_on(member, 0u64))
            .collect();
        let play = Play {
            steps: self.steps,
            victims,
            has_begun: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            interrupted,
            tick,
        };
        let seen = team.run(|me| play.part(me, &board, &own));
        let served: Vec<u64> = own.iter().map(|own| own.apply(|n| *n)).collect();
        if play.is_interrupted() {
            return Err(Fault::Interrupted);
        }
        let (record, answered) = board.apply(|board| board.close(policy.to_string()));
        check(&seen[1..], &answered, &served).map_err(Fault::Wrong)?;
        Ok(record)
    }
}

/// Checks that every request was answered once and every callback ran once.
fn check(seen: &[Seen], answered: &[u64], served: &[u64]) -> Result<(), String> {
    for (victim, (seen, &answered)) in seen.iter().zip(answered).enumerate() {
        if (seen.asked, seen.asked) != (seen.answered, answered) {
            return Err(format!(
                "victim {}: {} requests, {answered} of them run, {} callbacks",
                victim + 1,
                seen.asked,
                seen.answered
            ));
        }
    }
    let (posted, served) = (seen.iter().map(|s| s.posted).sum(), served.iter().sum());
    let (posted, served): (u64, u64) = (posted, served);
    if posted != served {
        return Err(format!(
            "the victims have asked {posted} of each other, and served {served}"
        ));
    }
    Ok(())
}

impl Play<'_> {
    fn is_interrupted(&self) -> bool {
        // Relaxed: the flag carries no data.
        self.interrupted.load(Ordering::Relaxed)
    }

    fn part(&self, me: &Member, board: &Trust<Board>, own: &[Trust<u64>]) -> Seen {
        match me.number().checked_sub(1) {
            None => self.be_greedy(board),
            Some(victim) => self.be_victim(victim, board, &own[(victim + 1) % own.len()]),
        }
    }

    fn be_greedy(&self, board: &Trust<Board>) -> Seen {
        // Relaxed, here and below: the flags carry no data.
        self.has_begun.store(true, Ordering::Relaxed);
        self.rest();
        for step in 1..=self.steps {
            board.apply_then(Board::step, |()| {});
            if step % REST == 0 {
                (self.tick)(REST);
                self.rest();
                if self.is_interrupted() {
                    break;
                }
            }
        }
        self.is_over.store(true, Ordering::Relaxed);
        Seen::default()
    }

    /// Lets the victims run until each waits for the greedy member. Makes no call of corelay,
    /// because that would serve them.
    fn rest(&self) {
        for victim in &*self.victims {
            while !victim.waits_with(WINDOW) {
                thread::yield_now();
            }
        }
        std::thread::sleep(REST_SLEEP);
    }

    fn be_victim(&self, victim: usize, board: &Trust<Board>, next: &Trust<u64>) -> Seen {
        let answered = Rc::new(Cell::new(0));
        let mut seen = Seen::default();
        while !self.has_begun.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        while !self.is_over.load(Ordering::Relaxed) {
            seen.asked += 1;
            self.victims[victim].asks(seen.asked);
            let answered = Rc::clone(&answered);
            board.apply_then(
                move |board| board.answer(victim),
                move |()| answered.set(answered.get() + 1),
            );
            seen.posted += 1;
            next.post(|n| *n += 1);
        }
        barrier().expect("no closure panics");
        seen.answered = answered.get();
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICIES: [Policy; 6] = [
        Policy::Queue,
        Policy::Blocked,
        Policy::FastPath,
        Policy::Bound(64),
        Policy::Doorbell,
        Policy::Adaptive,
    ];

    fn play(members: usize, steps: u64, policy: Policy) -> Record {
        let scenario = Scenario { members, steps };
        scenario
            .play(policy, &AtomicBool::new(false), &|_| {})
            .unwrap()
    }

    #[test]
    fn only_the_fast_path_starves() {
        for members in [3, 5] {
            for policy in POLICIES {
                let record = play(members, 20_000, policy);
                let starved = policy == Policy::FastPath;
                assert_eq!(record.is_starved(), starved, "{policy}: {record:?}");
                let ends = record.marks.last().unwrap();
                assert_eq!((ends.step, ends.answered.len()), (20_000, members - 1));
                // The bounds are fair to the victims among each other, too.
                let each = ends.answered.iter().all(|&n| n > 0);
                assert_eq!(each, !starved, "{policy}: {record:?}");
            }
        }
    }

    #[test]
    fn no_victim_waits_longer_than_the_bound_and_one_rest() {
        let record = play(3, 10_000, Policy::Bound(64));
        // A pass finds nothing if the victims have not asked again since the last one.
        assert!(record.longest <= 64 + REST, "{record:?}");
        let record = play(3, 1_000, Policy::Bound(1_001));
        assert!(record.is_starved(), "longer than the play: {record:?}");
    }

    #[test]
    fn a_single_step_is_a_play() {
        let record = play(3, 1, Policy::FastPath);
        assert_eq!(record.marks.len(), 2);
        assert_eq!(record.longest, 1);
    }

    #[test]
    fn ctrl_c_ends_the_play_at_a_rest() {
        let (scenario, interrupted) = (
            Scenario {
                members: 3,
                steps: MOST_STEPS,
            },
            AtomicBool::new(false),
        );
        // Relaxed: the flag carries no data.
        let tick = |_| interrupted.store(true, Ordering::Relaxed);
        let ended = scenario.play(Policy::Adaptive, &interrupted, &tick);
        assert!(matches!(ended, Err(Fault::Interrupted)));
    }

    #[test]
    fn lost_and_doubled_requests_are_found() {
        let seen = |asked, answered, posted| Seen {
            asked,
            answered,
            posted,
        };
        let right = [seen(3, 3, 2), seen(4, 4, 1)];
        assert_eq!(check(&right, &[3, 4], &[1, 2]), Ok(()));
        assert!(check(&right, &[3, 5], &[1, 2]).is_err());
        assert!(check(&right, &[2, 4], &[1, 2]).is_err());
        assert!(check(&right, &[3, 4], &[1, 1]).is_err());
        assert!(check(&[seen(3, 2, 0)], &[3], &[0]).is_err());
    }
}
