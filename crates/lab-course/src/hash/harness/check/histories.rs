//! Many short rounds of calls, recorded with the moments at which each began and ended.
//!
//! The moments are numbers from one counter: a call that ended before another began has the
//! smaller number. A round is a few calls of two or three threads on two keys of its own. The lab
//! looks at each key by itself, and so finds for each round whether one order explains it.
//!
//! In most rounds the threads run at the same time. In some they take turns, call by call, which
//! on any machine finds threads that keep changes to themselves.
//!
//! Many more rounds are only watched: one thread replaces the value of a key, and the others look
//! at it. A key that vanishes, or gets an older value back, is seen at once, and the round is
//! kept for the lab. Leaving the other rounds out does no harm, because their keys are their own.

use crate::alone::LONGEST;
use crate::crew::{few, noisy};
use crate::record::{Ask, Call, write};
use crate::table::Table;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Instant;
use turns::Dice;

/// Number of tables, each of which grows over its rounds.
const TABLES: usize = 40;
const ROUNDS: usize = 40;
const CALLS: usize = 8;
/// Tables on which threads take turns.
const TURNS: usize = 2;
/// Tables whose rounds are only watched, and the number of these rounds.
const WATCHED_TABLES: usize = 40;
const WATCHED_ROUNDS: usize = 250;

/// Records rounds into a file. Returns the number of rounds and of calls in it.
pub fn record(path: &Path) -> (usize, usize) {
    let threads = few().min(3);
    let now = AtomicU64::new(1);
    let mut all: Vec<Vec<Call>> = (0..threads).map(|_| Vec::new()).collect();
    let mut kept = 0;
    let began = Instant::now();
    for number in 0..TABLES + WATCHED_TABLES {
        // A table may be slow and correct.
        if began.elapsed() > 4 * LONGEST {
            break;
        }
        let rounds: Vec<usize> = match number.checked_sub(TABLES) {
            None => (number * ROUNDS..).take(ROUNDS).collect(),
            // One in three is a round of the watched kind.
            Some(number) => (TABLES * ROUNDS + 3 * number * WATCHED_ROUNDS..)
                .filter(|round| round % 3 == REPLACING)
                .take(WATCHED_ROUNDS)
                .collect(),
        };
        for calls in played(&rounds, threads, number < TURNS, &now) {
            if number < TABLES || calls.iter().any(|calls| goes_back(calls)) {
                kept += 1;
                for (all, calls) in all.iter_mut().zip(calls) {
                    all.extend(calls);
                }
            }
        }
    }
    write(path, &all).expect("the lab's folder can be written");
    (kept, threads * kept * CALLS)
}

/// Plays rounds and returns the calls of each, by thread.
fn played(
    rounds: &[usize],
    threads: usize,
    by_turns: bool,
    now: &AtomicU64,
) -> Vec<Vec<Vec<Call>>> {
    let table = Table::with_capacity(4);
    let done = noisy(threads, |thread, meeting| {
        let play = |(nth, &round): (usize, &usize)| {
            // The calls are chosen before, so that little time passes between two of them.
            let asks = asks(round, thread);
            let mut calls = Vec::with_capacity(CALLS);
            if !by_turns {
                meeting.wait();
            }
            for (n, ask) in asks.into_iter().enumerate() {
                let turn = (nth * CALLS + n) * threads + thread;
                calls.push(match by_turns {
                    true => meeting.turn(turn, || Call::make(&table, ask, now)),
                    false => Call::make(&table, ask, now),
                });
            }
            calls
        };
        rounds.iter().enumerate().map(play).collect::<Vec<_>>()
    });
    let mut threads: Vec<_> = done.into_iter().map(Vec::into_iter).collect();
    let round = |_: &usize| threads.iter_mut().filter_map(Iterator::next).collect();
    rounds.iter().map(round).collect()
}

/// Whether a looking thread saw the key vanish or an older value. Values only grow, and `None` is
/// less than any.
fn goes_back(calls: &[Call]) -> bool {
    calls.windows(2).any(|two| two[1].answer < two[0].answer)
}

/// The kind of round, of three, in which a value is replaced again and again.
const REPLACING: usize = 1;

fn asks(round: usize, thread: usize) -> Vec<Ask> {
    let mut dice = Dice::new((round * 8 + thread) as u64);
    let first = 2 * round as u64;
    let ask = |n| {
        let key = first + dice.below(2);
        let value = (thread as u64 + 1) * 100 + n;
        match (round % 3, thread, dice.below(4)) {
            // Each thread does everything.
            (0, _, 0) => Ask::Remove(key),
            (0, _, 1) => Ask::Get(key),
            (0, ..) => Ask::Insert(key, value),
            // Thread 0 replaces the value of a key; the others look at it.
            (REPLACING, 0, _) => Ask::Insert(first, value),
            (REPLACING, ..) => Ask::Get(first),
            // Thread 0 inserts and removes a key; the others look at it or remove it too.
            (_, 0, _) if n % 2 == 0 => Ask::Insert(first, value),
            (_, 0, _) | (_, _, 0) => Ask::Remove(first),
            _ => Ask::Get(first),
        }
    };
    (0..CALLS as u64).map(ask).collect()
}
