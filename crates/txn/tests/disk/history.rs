//! A history of commits whose prefixes can be told from what is recovered.
//!
//! Commit number `n` writes the entry `n % SPREAD` and, together with it, the entry `last` of its
//! thread, and removes an older one. Both hold `n`, so half a commit is seen, and so is one that is
//! missing before one that is there.

use crate::faulty::{Faulty, Image};
use corelay_txn::store::disk::{
    Disk, Durable, EncodeError, OpenError, Options, Records, Recovered, Snapshot, SnapshotError,
    TableId, Writer,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The state of the two tables, by their names and keys.
pub(crate) type State = BTreeMap<(String, Vec<u8>), Vec<u8>>;

const SPREAD: u64 = 7;

/// An epoch ends only if somebody waits for it.
pub(crate) fn lazy() -> Options {
    Options {
        epoch_interval: Duration::from_secs(1000),
        ..Options::default()
    }
}

/// A store of one thread, which also knows what its state has to be after each commit.
pub(crate) struct Run {
    pub(crate) disk: Arc<Disk>,
    pub(crate) writer: Writer,
    pub(crate) tables: [TableId; 2],
    pub(crate) state: State,
    /// The number of the next commit.
    pub(crate) next: u64,
}

pub(crate) fn raw(bytes: &[u8]) -> impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError> {
    |to| {
        to.extend_from_slice(bytes);
        Ok(())
    }
}

impl Run {
    pub(crate) fn open(storage: &Faulty, options: &Options) -> Result<(Self, Report), OpenError> {
        let (disk, recovered) = Disk::open_in(Arc::new(storage.clone()), options)?;
        let tables = ["left", "right"].map(|name| disk.table(name, "bytes").unwrap());
        let (state, report) = state_of(recovered);
        let next = state
            .get(&("right".to_owned(), b"last".to_vec()))
            .map_or(0, |value| number(value) + 1);
        let writer = disk.writer();
        Ok((
            Self {
                disk: Arc::new(disk),
                writer,
                tables,
                state,
                next,
            },
            report,
        ))
    }

    /// Commits the next commit. Returns its handle, or `None` if the store refuses it.
    pub(crate) fn commit(&mut self) -> Option<Durable> {
        let number = self.next;
        let records = records(self.tables, number);
        self.writer.admit().ok()?;
        let durable = self.writer.enter().ok()?.commit(number, &records);
        apply(&mut self.state, number);
        self.next += 1;
        Some(durable)
    }

    /// Puts the whole state into a snapshot.
    pub(crate) fn fill(&self, snapshot: &mut Snapshot<'_>) -> Result<(), SnapshotError> {
        for ((table, key), value) in &self.state {
            let table = self.tables[usize::from(table == "right")];
            snapshot.put(table, raw(key), raw(value))?;
        }
        Ok(())
    }
}

/// The records of a commit.
pub(crate) fn records([left, right]: [TableId; 2], number: u64) -> Records {
    let mut records = Records::new();
    let value = value(number);
    let key = [(number % SPREAD) as u8];
    records.put(left, raw(&key), raw(&value)).unwrap();
    records.put(right, raw(b"last"), raw(&value)).unwrap();
    let gone = [((number + 3) % SPREAD) as u8];
    records.remove(left, raw(&gone)).unwrap();
    records
}

fn apply(state: &mut State, number: u64) {
    let value = value(number);
    let key = vec![(number % SPREAD) as u8];
    state.insert(("left".to_owned(), key), value.clone());
    state.insert(("right".to_owned(), b"last".to_vec()), value);
    let gone = vec![((number + 3) % SPREAD) as u8];
    state.remove(&("left".to_owned(), gone));
}

/// Values of different lengths.
fn value(number: u64) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    value.resize(8 + number as usize % 5, b'.');
    value
}

pub(crate) fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// The state after the first `commits` commits.
pub(crate) fn state_after(commits: u64) -> State {
    let mut state = State::new();
    for number in 0..commits {
        apply(&mut state, number);
    }
    state
}

/// The report of an opening, without the tables.
pub(crate) type Report = Recovered;

pub(crate) fn state_of(mut recovered: Recovered) -> (State, Report) {
    let mut state = State::new();
    for table in std::mem::take(&mut recovered.tables) {
        assert_eq!(table.tag(), "bytes");
        let name = table.name().to_owned();
        for (key, value) in table.entries() {
            let before = state.insert((name.clone(), key.to_vec()), value.to_vec());
            assert!(before.is_none());
        }
    }
    (state, recovered)
}

/// Opens an image, and finds the number of commits of which it is the state.
pub(crate) fn recover(image: &Image) -> Result<(u64, Report), OpenError> {
    recover_with(image, &lazy())
}

pub(crate) fn recover_with(image: &Image, options: &Options) -> Result<(u64, Report), OpenError> {
    let (run, report) = Run::open(&Faulty::new(image), options)?;
    assert_eq!(run.state, state_after(run.next), "not a prefix");
    Ok((run.next, report))
}
