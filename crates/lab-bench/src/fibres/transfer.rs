//! Transfer (C6): a leader spins until all others have seen that it leads. They wait, or
//! yield, and those that share its processor must be moved to another to run at all.
//!
//! ```text
//! leader     lead_idx += 1 │ spin until every idx is lead_idx │ name the next │ post all others
//! followers                │ idx += 1, then wait or yield     │ yield, look again: a recheck
//! ```
//! In the chapter's pseudo-code the test of whom to wake is inverted; here the parking flavour
//! posts.

use super::fibre::{self, BinarySemaphore};
use super::spec::{Flavour, Length, NO_PROGRESS, Spec};
use super::team::{Dice, End, Tally, Work};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use corelay_sync::facade::hint;
use std::time::Instant;

pub(super) struct Transfer {
    flavour: Flavour,
    leaders: u64,
    seed: u64,
    leader: CachePadded<AtomicUsize>,
    lead_idx: CachePadded<AtomicU64>,
    done: CachePadded<AtomicBool>,
    given_up: AtomicBool,
    members: Box<[CachePadded<Member>]>,
}

struct Member {
    /// The last leadership that it has seen: only it writes here.
    idx: AtomicU64,
    seat: BinarySemaphore,
}

impl Transfer {
    pub(super) fn new(spec: &Spec, flavour: Flavour) -> Self {
        let member = || Member {
            idx: AtomicU64::new(0),
            seat: BinarySemaphore::new(false),
        };
        Self {
            flavour,
            leaders: match spec.length {
                Length::Iterations(leaders) => leaders,
                Length::Time(_) => u64::MAX,
            },
            seed: spec.seed,
            leader: CachePadded::new(AtomicUsize::new(0)),
            lead_idx: CachePadded::new(AtomicU64::new(0)),
            done: CachePadded::new(AtomicBool::new(false)),
            given_up: AtomicBool::new(false),
            members: (0..spec.fibres)
                .map(|_| CachePadded::new(member()))
                .collect(),
        }
    }

    /// Leads once; whether all others have seen it.
    fn lead(&self, me: usize, dice: &mut Dice) -> bool {
        // Relaxed: only leaders write it, and who leads has seen what the one before it wrote.
        let idx = self.lead_idx.load(Ordering::Relaxed) + 1;
        // Release: pairs with the Acquire in `follow`; hands on what the leaders have done.
        self.lead_idx.store(idx, Ordering::Release);
        // Relaxed: nobody but a leader looks at it, and that is me.
        self.members[me].idx.store(idx, Ordering::Relaxed);
        let seen = idx <= self.leaders && self.all_see(idx);
        if seen {
            let next = dice.below(self.members.len());
            // Release: pairs with the Acquire in `fibre`; the next leader counts on from here.
            self.leader.store(next, Ordering::Release);
        } else {
            // Relaxed: read after the fibres are joined.
            self.given_up.store(idx <= self.leaders, Ordering::Relaxed);
            // Relaxed: it carries no data; in the parking flavour all are woken after it.
            self.done.store(true, Ordering::Relaxed);
        }
        if self.flavour == Flavour::Park {
            let others = self.members.iter().enumerate();
            others
                .filter(|(other, _)| *other != me)
                .for_each(|(_, member)| member.seat.post());
        }
        seen
    }

    /// Spins until everybody has seen this leader; false if that takes too long.
    fn all_see(&self, idx: u64) -> bool {
        let start = Instant::now();
        for member in &self.members {
            // Acquire: pairs with the Release in `follow`, so that leaders follow each other.
            while member.idx.load(Ordering::Acquire) != idx {
                hint::spin_loop();
                if start.elapsed() > NO_PROGRESS {
                    return false;
                }
            }
        }
        true
    }

    /// Follows once; whether there was no new leader yet.
    fn follow(&self, me: usize) -> bool {
        fibre::yield_now();
        let member = &self.members[me];
        // Relaxed: only this fibre writes it.
        let idx = member.idx.load(Ordering::Relaxed);
        // Acquire: pairs with the Release in `lead`.
        if self.lead_idx.load(Ordering::Acquire) == idx {
            return true;
        }
        // Release: pairs with the Acquire in `all_see`.
        member.idx.store(idx + 1, Ordering::Release);
        match self.flavour {
            Flavour::Park => member.seat.wait(),
            Flavour::Yield => fibre::yield_now(),
        }
        false
    }
}

impl Work for Transfer {
    fn fibre(&self, me: usize, _end: &End) -> Tally {
        let mut dice = Dice::of(self.seed, me);
        let (mut led, mut rechecks) = (0, 0);
        // Relaxed: as where it is set.
        while !self.done.load(Ordering::Relaxed) {
            // Acquire: pairs with the Release of the leader before.
            if self.leader.load(Ordering::Acquire) == me {
                led += u64::from(self.lead(me, &mut dice));
            } else {
                rechecks += u64::from(self.follow(me));
            }
        }
        Tally {
            rechecks: Some(rechecks),
            ..Tally::of(led)
        }
    }

    /// Where all leaders have had their turn, every member has seen each of them.
    fn check(&self, _tallies: &[Tally]) -> Result<(), String> {
        if !self.completed() {
            return Ok(());
        }
        // Relaxed: the fibres have been joined.
        let seen = |member: &CachePadded<Member>| member.idx.load(Ordering::Relaxed);
        match self
            .members
            .iter()
            .map(seen)
            .find(|&idx| idx < self.leaders)
        {
            None => Ok(()),
            Some(idx) => Err(format!(
                "wrong result: a fibre has seen {idx} leaders of {}",
                self.leaders
            )),
        }
    }

    fn completed(&self) -> bool {
        // Relaxed: the fibres have been joined.
        !self.given_up.load(Ordering::Relaxed)
    }
}
