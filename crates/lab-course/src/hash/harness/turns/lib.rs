//! Points in a table's lock operations, at which its threads are held up.
//!
//! The locks that an answer is checked with call this crate before a lock is taken, after it was
//! taken, after it was released, and before an atomic operation. What happens there is up to the
//! checker, which says so for each of its threads:
//!
//! * threads that [take turns](Turns) run one at a time and change places at points;
//! * threads with [noise](with_noise) run at the same time, and sometimes yield or sleep at points;
//! * nothing happens to other threads.

#![forbid(unsafe_code)]

mod dice;
mod path;
mod policy;
mod turns;

pub use dice::{Dice, mix};
pub use path::{Kind, passed};
pub use policy::Policy;
pub use turns::Turns;

use path::{Path, Rarity};
use policy::At;
use std::cell::RefCell;
use std::panic::Location;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The part of this thread in the check.
struct Me {
    part: Part,
    path: Path,
    /// Calls of this round.
    call: u32,
    /// Points of this call.
    nth: u32,
}

enum Part {
    Turns(Arc<Turns>, usize),
    Noise(Dice),
    Counting,
}

thread_local! {
    static ME: RefCell<Option<Me>> = const { RefCell::new(None) };
}

/// Runs `work` as thread `number` of those that take turns.
pub fn in_turns<R>(turns: &Arc<Turns>, number: usize, work: impl FnOnce() -> R) -> R {
    with(Part::Turns(Arc::clone(turns), number), work)
}

/// Runs `work` with a yield or a short sleep at some of its points.
pub fn with_noise<R>(seed: u64, work: impl FnOnce() -> R) -> R {
    with(Part::Noise(Dice::new(seed)), work)
}

/// Runs `work`, whose points count and do nothing else.
pub fn counted<R>(work: impl FnOnce() -> R) -> R {
    with(Part::Counting, work)
}

/// Runs `work` without points.
pub fn without_points<R>(work: impl FnOnce() -> R) -> R {
    let me = ME.take();
    let result = work();
    ME.set(me);
    result
}

/// Says that a round of calls begins.
pub fn new_round() {
    with_me(|me| (me.call, me.nth) = (0, 0));
}

/// Passes the point between two calls of the table.
#[track_caller]
pub fn between_calls() {
    point(Kind::Call, Location::caller(), 0);
}

fn with<R>(part: Part, work: impl FnOnce() -> R) -> R {
    ME.set(Some(Me {
        part,
        path: Path::default(),
        call: 0,
        nth: 0,
    }));
    let result = work();
    ME.set(None);
    result
}

/// Passes a point of a kind, at a place in the source, about the variable at an address.
pub fn point(kind: Kind, place: &Location<'_>, address: usize) {
    // A thread that unwinds ends the check, or is the table's own business.
    if !thread::panicking() {
        with_me(|me| me.point(kind, place, address));
    }
}

/// Takes a lock: by trying if threads take turns, by blocking if not.
pub fn acquire<R>(
    place: &Location<'_>,
    address: usize,
    mut attempt: impl FnMut() -> Option<R>,
    block: impl FnOnce() -> R,
) -> R {
    point(Kind::Before, place, address);
    let taken = loop {
        if let Some(taken) = attempt() {
            break Some(taken);
        }
        if !takes_turns(|turns, me| turns.waits(me)) {
            break None;
        }
    };
    let taken = taken.unwrap_or_else(block);
    point(Kind::Inside, place, address);
    taken
}

/// Waits in a way that the points do not see, for instance for a condition.
pub fn away<R>(wait: impl FnOnce() -> R) -> R {
    takes_turns(|turns, me| turns.goes_away(me));
    let result = wait();
    takes_turns(|turns, me| turns.come_back(me));
    result
}

fn takes_turns(then: impl FnOnce(&Turns, usize)) -> bool {
    let mut does = false;
    with_me(|me| {
        if let Part::Turns(turns, number) = &me.part {
            does = true;
            then(turns, *number);
        }
    });
    does
}

fn with_me(then: impl FnOnce(&mut Me)) {
    // Locks may also be used while the thread ends, when this variable is gone.
    let _ = ME.try_with(|me| {
        if let Ok(mut me) = me.try_borrow_mut()
            && let Some(me) = &mut *me
        {
            then(me);
        }
    });
}

impl Me {
    fn point(&mut self, kind: Kind, place: &Location<'_>, address: usize) {
        let rarity = self.path.at(kind, place, address);
        match kind {
            Kind::Call => (self.call, self.nth) = (self.call + 1, 0),
            _ => self.nth += 1,
        }
        let at = At {
            kind,
            rarity,
            call: self.call.wrapping_sub(1),
            nth: self.nth,
        };
        match &mut self.part {
            Part::Turns(turns, number) => turns.point(*number, at),
            Part::Noise(dice) => noise(dice, kind, rarity),
            Part::Counting => {}
        }
    }
}

/// Mostly does nothing, sometimes yields, and seldom sleeps for so long that others do much.
fn noise(dice: &mut Dice, kind: Kind, rarity: Rarity) {
    let (yields, sleeps) = match (kind, rarity) {
        (Kind::Call, _) | (Kind::Spin, _) => return,
        (_, Rarity::Rare) => (4, 8),
        (_, Rarity::Uncommon) => (32, 512),
        (_, Rarity::Common) => (512, 16_384),
    };
    if dice.one_in(sleeps) {
        thread::sleep(Duration::from_micros(1 + dice.below(60)));
    } else if dice.one_in(yields) {
        thread::yield_now();
    }
}
