//! Checks a table: its answers, its content afterwards, and its answers while other threads
//! write.
//!
//! The program, `check FOLDER SECONDS SEED LENGTH`, leaves `messages.jsonl` (the stages, and the fault that ended them)
//! and `history.jsonl` (recorded calls, for the lab to judge) in the folder. Standard output and
//! error belong to the table. LENGTH is the time in ms that the stages with a length of their own take
//! together, at least. The lab stops a program that takes too long; if the lab is gone,
//! the program stops itself.

#![forbid(unsafe_code)]

mod alone;
mod bulk;
mod crew;
mod explain;
mod fresh;
mod growth;
mod histories;
mod keys;
mod messages;
mod plan;
mod quiet;
mod record;
mod rounds;
mod table;
mod watch;

pub use table::{Make, Map};

use std::env;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use turns::Dice;

/// Checks the tables that `make` makes. The arguments are those of the program.
pub fn main(make: Make) {
    table::is_made_by(make);
    let mut args = env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("a folder"));
    let mut number = || {
        args.next()
            .and_then(|text| text.parse::<u64>().ok())
            .expect("a number")
    };
    let limit = Duration::from_secs(number());
    let mut dice = Dice::new(number());
    let time = Duration::from_millis(number());
    let began = Instant::now();
    let history = folder.join("history.jsonl");
    messages::begin(&folder.join("messages.jsonl"));
    watch::begin(limit);
    messages::stage("one thread alone");
    turns::counted(|| alone::all(&mut dice));
    // On a slow machine, what the first stage took is no longer there for this one.
    let longest = (2 * time).saturating_sub(began.elapsed()).max(time);
    messages::stage("threads that take turns at every lock operation");
    let turns = rounds::play(time * 7 / 10, longest, &mut dice, &history);
    messages::stage("keys that were just inserted");
    let lookups = fresh::all(time * 3 / 10, &mut dice);
    messages::stage("threads with keys of their own");
    bulk::disjoint();
    messages::stage("threads that insert and remove the same keys");
    bulk::overlapping();
    messages::stage("threads that do everything to a few keys");
    bulk::mixed();
    messages::stage("recorded histories");
    let recorded = histories::record(&history);
    messages::done(recorded, turns, lookups);
}
