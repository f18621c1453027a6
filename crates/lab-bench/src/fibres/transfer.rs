//! Transfer (C6): a leader spins until all other fibres have seen it. The followers park or yield;
//! those on the leader's processor can run only if another processor takes them.
//!
//! ```text
//! leader     lead_idx += 1 │ spin until every idx is lead_idx │ name the next │ post all others
//! followers                │ idx += 1, then park or yield     │ yield, look again: a recheck
//! ```
//! The chapter's pseudo-code has the test of the flavour inverted; here the parking flavour posts.

use super::fibre::{self, BinarySemaphore};
use super::spec::{Flavour, Length, NO_PROGRESS, Spec};
use super::team::{FibreRandom, StopCondition, Tally, Work};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use corelay_sync::facade::hint;
use std::time::Instant;

/// The state of a run.
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

/// The part of a fibre's state that the leader reads.
struct Member {
    /// The last leadership that the fibre has seen; only the fibre itself writes it.
    idx: AtomicU64,
    semaphore: BinarySemaphore,
}

impl Transfer {
    pub(super) fn new(spec: &Spec, flavour: Flavour) -> Self {
        let member = || Member {
            idx: AtomicU64::new(0),
            semaphore: BinarySemaphore::new(false),
        };
        // Drawn, as all later ones (the chapter: "selected at random"), from a stream of its own.
        let first = FibreRandom::of(spec.seed, spec.fibres).below(spec.fibres);
        Self {
            flavour,
            leaders: match spec.length {
                Length::Iterations(leaders) => leaders,
                Length::Time(_) => u64::MAX,
            },
            seed: spec.seed,
            leader: CachePadded::new(AtomicUsize::new(first)),
            lead_idx: CachePadded::new(AtomicU64::new(0)),
            done: CachePadded::new(AtomicBool::new(false)),
            given_up: AtomicBool::new(false),
            members: (0..spec.fibres)
                .map(|_| CachePadded::new(member()))
                .collect(),
        }
    }

    /// Leads once. Returns whether all others have seen it.
    fn lead(&self, me: usize, random: &mut FibreRandom) -> bool {
        // Relaxed: only leaders write it, and each leader has seen its predecessor's write.
        let idx = self.lead_idx.load(Ordering::Relaxed) + 1;
        // Release: pairs with the Acquire in `follow`; passes on the writes of all leaders.
        self.lead_idx.store(idx, Ordering::Release);
        // Relaxed: only the leader reads it while this fibre leads, and this fibre is the leader.
        self.members[me].idx.store(idx, Ordering::Relaxed);
        let seen = idx <= self.leaders && self.all_see(idx);
        if seen {
            let next = random.below(self.members.len());
            // Release: pairs with the Acquire in `fibre`; the next leader sees these writes.
            self.leader.store(next, Ordering::Release);
        } else {
            // Relaxed: read after the fibres have been joined.
            self.given_up.store(idx <= self.leaders, Ordering::Relaxed);
            // Relaxed: carries no data; in the parking flavour all are woken afterwards.
            self.done.store(true, Ordering::Relaxed);
        }
        if self.flavour == Flavour::Park {
            let others = self.members.iter().enumerate();
            others
                .filter(|(other, _)| *other != me)
                .for_each(|(_, member)| member.semaphore.post());
        }
        seen
    }

    /// Spins until all fibres have seen this leader. Returns false if that takes too long.
    fn all_see(&self, idx: u64) -> bool {
        let start = Instant::now();
        for member in &self.members {
            // Acquire: pairs with the Release in `follow`, so that leaders are ordered.
            while member.idx.load(Ordering::Acquire) != idx {
                hint::spin_loop();
                if start.elapsed() > NO_PROGRESS {
                    return false;
                }
            }
        }
        true
    }

    /// Looks for a new leader once, and waits if there is one. Returns whether there was none.
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
            Flavour::Park => member.semaphore.wait(),
            Flavour::Yield => fibre::yield_now(),
        }
        false
    }
}

impl Work for Transfer {
    fn fibre(&self, me: usize, _end: &StopCondition) -> Tally {
        let mut random = FibreRandom::of(self.seed, me);
        let (mut led, mut rechecks) = (0, 0);
        // Relaxed: carries no data.
        while !self.done.load(Ordering::Relaxed) {
            // Acquire: pairs with the Release of the previous leader.
            if self.leader.load(Ordering::Acquire) == me {
                led += u64::from(self.lead(me, &mut random));
            } else {
                rechecks += u64::from(self.follow(me));
            }
        }
        Tally {
            rechecks: Some(rechecks),
            ..Tally::of(led)
        }
    }

    /// Checks, for a run that completed, that every fibre has seen every leader.
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
