//! `ycsb`: requests to one table, some of them in a transaction (Cooper et al., "Benchmarking cloud
//! serving systems with YCSB", SoCC 2010).
//!
//! | mix | requests |
//! |---|---|
//! | A | 50 % reads, 50 % updates |
//! | B | 95 % reads, 5 % updates |
//! | C | reads only |
//! | E | 95 % scans of 1 to 100 rows, 5 % insertions |
//! | F | 50 % reads, 50 % reads with an update of what was read |
//!
//! A row has ten fields of 100 bytes, as in DBx1000, the workload's usual form for stores in memory
//! (Yu et al., "Staring into the abyss", VLDB 2015). A request touches one field, and an update adds
//! 1 to a number in it, so that the sum of all is known. The keys of a transaction differ: a key
//! drawn twice is replaced by the next one that is free. Each client draws some half a million requests
//! beforehand, as DBx1000 does, and begins again when it has made all of them.
//!
//! Keys of a sorted table (E) lie `2^64 / rows` apart. An insertion goes to a random place in
//! between.

mod recorded;

use super::contender::{Procedure, Work};
use super::engine::{Engine, Form, Transaction};
use super::host::Session;
use super::tape::Tape;
use corelay_history::transactions::Level;
use corelay_lab_measure::method::SetupLimit;
use corelay_lab_measure::workload::random::Random;
use corelay_lab_measure::workload::zipf::Zipf;
use rand_core::SeedableRng;
use rand_xoshiro::SplitMix64;
use recorded::Recording;
use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

/// The most rows that a scan visits.
const MAX_SCAN: u64 = 100;

/// Rows that one transaction fills in, or checks.
const BATCH: u64 = 16;

/// A mix of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Half of the requests update.
    A,
    /// One in twenty requests updates.
    B,
    /// All requests read.
    C,
    /// Requests scan, and one in twenty inserts.
    E,
    /// Half of the requests read and update what they have read.
    F,
}

impl Mix {
    /// All mixes.
    pub const ALL: [Self; 5] = [Self::A, Self::B, Self::C, Self::E, Self::F];
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_it = |mix: &&Self| mix.to_string().eq_ignore_ascii_case(text);
        let found = Self::ALL.iter().find(is_it);
        let unknown = || format!("there is no mix `{text}`; name one of A, B, C, E, F");
        found.copied().ok_or_else(unknown)
    }
}

/// The parameters of `ycsb`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The mix of requests.
    pub mix: Mix,
    /// Number of rows.
    pub rows: u64,
    /// Number of requests in a transaction.
    pub requests: usize,
    /// The skew θ of Zipf's law, by which rows are chosen: 0 is uniform; below 1.
    pub theta: f64,
}

/// The workload: its shape, and the tape for its history with the level that is promised.
#[derive(Clone, Copy)]
pub(super) struct Ycsb(Shape, Option<(&'static Tape, Level)>);

impl Ycsb {
    pub(super) fn new(shape: Shape, tape: Option<(&'static Tape, Level)>) -> Self {
        Self(shape, tape)
    }

    /// The key of a row, by number.
    fn key(self, row: u64) -> u64 {
        match self.0.mix {
            Mix::E => row * (u64::MAX / self.0.rows),
            _ => row,
        }
    }
}

/// The first eight bytes of a field are a number.
type Fields = [[u8; 100]; 10];

const EMPTY: Fields = [[0; 100]; 10];

fn number(row: &Fields, field: usize) -> u64 {
    row[field]
        .first_chunk()
        .map_or(0, |&bytes| u64::from_le_bytes(bytes))
}

fn set_number(row: &mut Fields, field: usize, number: u64) {
    row[field][..8].copy_from_slice(&number.to_le_bytes());
}

/// The table.
pub(super) struct Rows<E: Engine>(E::Table<u64, Fields>);

/// A request.
#[derive(Clone, Copy)]
enum Action {
    Read,
    Update,
    ReadAndUpdate,
    Insert,
    /// The number of rows to visit.
    Scan(u8),
}

#[derive(Clone, Copy)]
struct Request {
    key: u64,
    field: u8,
    action: Action,
}

/// A client: what it is going to ask for, and the numbers of its updates and insertions.
pub(super) struct Terminal {
    script: Script,
    /// Makes the keys of insertions others when the script begins again.
    salt: u64,
    is_read_only: bool,
    updates: u64,
    inserted: u64,
    /// For a run whose history is recorded.
    recording: Option<Recording>,
}

/// The requests that a client makes, drawn beforehand.
struct Script {
    requests: Box<[Request]>,
    /// Requests in a transaction.
    each: usize,
    /// The first request of the next transaction.
    next: usize,
}

/// The requests of a script: 8 MiB, enough to reach nearly all of 131,072 rows that are as likely.
const SCRIPT: usize = 1 << 19;

impl Script {
    fn draw(work: Ycsb, seed: u64) -> Self {
        let Shape {
            mix,
            rows,
            requests: each,
            theta,
        } = work.0;
        let zipf = Zipf::new(rows, theta);
        let mut ranks = SplitMix64::seed_from_u64(seed);
        // Another stream of the same generator.
        let mut random = Random::new(seed.rotate_left(32) ^ 0x5851_f42d_4c95_7f2d);
        let length = SCRIPT.next_multiple_of(each);
        let mut requests = Vec::with_capacity(length);
        // Those of the transaction that is being drawn.
        let mut keys = HashSet::new();
        while requests.len() < length {
            let percent = random.below(100);
            let action = match (mix, percent) {
                (Mix::A, 50..) | (Mix::B, 95..) => Action::Update,
                (Mix::F, 50..) => Action::ReadAndUpdate,
                (Mix::E, 95..) => Action::Insert,
                (Mix::E, _) => Action::Scan(1 + random.below(MAX_SCAN) as u8),
                _ => Action::Read,
            };
            let mut row = zipf.sample(&mut ranks);
            let mut key = work.key(row);
            if matches!(action, Action::Insert) {
                key = random.next();
            }
            if requests.len().is_multiple_of(each) {
                keys.clear();
            }
            while !keys.insert(key) {
                row = (row + 1) % rows;
                key = work.key(row);
            }
            let field = random.below(10) as u8;
            requests.push(Request { key, field, action });
        }
        Self {
            requests: requests.into(),
            each,
            next: 0,
        }
    }

    /// Goes on to the next transaction; after the last, to the first.
    fn turn(&mut self) {
        self.next += self.each;
        if self.next == self.requests.len() {
            self.next = 0;
        }
    }

    /// The requests of the transaction.
    fn transaction(&self) -> &[Request] {
        &self.requests[self.next..][..self.each]
    }
}

/// The transaction's answer: its updates and insertions, and a sum of what was read.
#[derive(Default)]
pub(super) struct Done {
    updates: u64,
    inserted: u64,
    sum: u64,
}

impl Procedure<Ycsb> for Terminal {
    type Answer = Done;

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    #[inline]
    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        Rows(table): &Rows<E>,
    ) -> Result<Done, E::Stop> {
        let mut done = Done::default();
        let requests = self.script.transaction();
        if requests.len() > 1 {
            let single =
                |request: &&Request| !matches!(request.action, Action::Insert | Action::Scan(_));
            let rows = requests.iter().filter(single);
            tx.prefetch(table, rows.map(|request| &request.key))?;
        }
        for &Request { key, field, action } in requests {
            let field = usize::from(field);
            let add = |row: &mut Fields, to| set_number(row, field, to + 1);
            match action {
                Action::Read => {
                    let read = tx.read(table, &key, |row| number(row, field))?;
                    done.sum += read.expect("the row is there");
                }
                Action::Update => {
                    let is_there = tx.update(table, &key, |row| add(row, number(row, field)))?;
                    is_there.expect("the row is there");
                    done.updates += 1;
                }
                Action::ReadAndUpdate => {
                    let read = tx.read(table, &key, |row| number(row, field))?;
                    let read = read.expect("the row is there");
                    tx.update(table, &key, |row| add(row, read))?;
                    done.updates += 1;
                }
                Action::Insert => {
                    done.inserted += u64::from(tx.insert(table, key ^ self.salt, EMPTY)?);
                }
                Action::Scan(mut left) => {
                    tx.scan(table, &key, &u64::MAX, |_, row| {
                        done.sum += number(row, field);
                        left -= 1;
                        match left {
                            0 => ControlFlow::Break(()),
                            _ => ControlFlow::Continue(()),
                        }
                    })?;
                }
            }
        }
        Ok(done)
    }
}

/// Fills in the rows of these keys.
struct Fill(Vec<u64>);

impl Procedure<Ycsb> for Fill {
    type Answer = ();

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        Rows(table): &Rows<E>,
    ) -> Result<(), E::Stop> {
        for &key in &self.0 {
            tx.insert(table, key, EMPTY)?;
        }
        Ok(())
    }
}

/// Adds the numbers of all fields of these rows up.
struct Sum(Vec<u64>);

impl Procedure<Ycsb> for Sum {
    type Answer = u64;

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        Rows(table): &Rows<E>,
    ) -> Result<u64, E::Stop> {
        let mut sum = 0;
        for key in &self.0 {
            let all = |row: &Fields| (0..10).map(|field| number(row, field)).sum::<u64>();
            sum += tx.read(table, key, all)?.expect("the row is there");
        }
        Ok(sum)
    }
}

/// Counts the rows from a key on, at most a thousand; says where to go on.
struct Count(u64);

impl Procedure<Ycsb> for Count {
    type Answer = (u64, Option<u64>);

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        Rows(table): &Rows<E>,
    ) -> Result<(u64, Option<u64>), E::Stop> {
        let (mut count, mut next) = (0, None);
        tx.scan(table, &self.0, &u64::MAX, |&key, _| {
            if count == 1000 {
                next = Some(key);
                return ControlFlow::Break(());
            }
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok((count, next))
    }
}

impl Ycsb {
    /// The keys of all rows that were there at the beginning, in batches.
    fn batches(self) -> impl Iterator<Item = Vec<u64>> {
        let rows = self.0.rows;
        let batch = move |from: u64| {
            let rows = from..(from + BATCH).min(rows);
            rows.map(|row| self.key(row)).collect()
        };
        (0..rows).step_by(BATCH as usize).map(batch)
    }
}

impl Work for Ycsb {
    type Tables<E: Engine> = Rows<E>;
    type Terminal = Terminal;

    fn tables<E: Engine>(self, engine: &mut E) -> Rows<E> {
        let form = match self.0.mix {
            Mix::E => Form::Sorted,
            _ => Form::Hashed(self.0.rows as usize),
        };
        Rows(engine.table("rows", form))
    }

    fn populate(self, session: &mut impl Session<Self>, limit: &SetupLimit) -> Result<(), String> {
        self.batches().try_for_each(|keys| {
            session.run(&Fill(keys));
            limit.check()
        })
    }

    fn terminal(self, index: usize, clients: usize) -> Terminal {
        let room = |tape: &Tape| tape.limit().div_ceil(clients as u64);
        Terminal {
            script: Script::draw(self, index as u64),
            salt: 0,
            is_read_only: self.0.mix == Mix::C,
            updates: 0,
            inserted: 0,
            recording: self.1.map(|(tape, _)| Recording::new(room(tape))),
        }
    }

    #[inline]
    fn transact(
        self,
        terminal: &mut Terminal,
        random: u64,
        session: &mut impl Session<Self>,
    ) -> u64 {
        terminal.script.turn();
        terminal.salt = random;
        let done = match &mut terminal.recording {
            Some(recording) if recording.has_room() => recording.run(
                terminal.script.transaction(),
                terminal.is_read_only,
                session,
            ),
            _ => session.run(terminal),
        };
        let done = done.unwrap_or_default();
        terminal.updates += done.updates;
        terminal.inserted += done.inserted;
        done.sum
    }

    fn check(
        self,
        terminals: &[&Terminal],
        session: &mut impl Session<Self>,
    ) -> Result<(), String> {
        if let Some((tape, level)) = self.1 {
            let recordings = || {
                terminals
                    .iter()
                    .filter_map(|terminal| terminal.recording.as_ref())
            };
            let is_whole = recordings().all(Recording::has_room);
            tape.put(recordings().map(Recording::take), level, is_whole)?;
        }
        if self.0.mix == Mix::E {
            let inserted: u64 = terminals.iter().map(|terminal| terminal.inserted).sum();
            let (mut rows, mut next) = (0, Some(0));
            while let Some(from) = next {
                let count;
                (count, next) = session.run(&Count(from)).unwrap_or_default();
                rows += count;
            }
            let expected = self.0.rows + inserted;
            return (rows == expected)
                .then_some(())
                .ok_or_else(|| format!("the table has {rows} rows instead of {expected}"));
        }
        let updates: u64 = terminals.iter().map(|terminal| terminal.updates).sum();
        let sums = self.batches().filter_map(|keys| session.run(&Sum(keys)));
        let sum: u64 = sums.sum();
        (sum == updates).then_some(()).ok_or_else(|| {
            format!("{updates} updates have committed, but all fields together have {sum}")
        })
    }
}
