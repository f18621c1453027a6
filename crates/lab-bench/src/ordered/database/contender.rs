//! Works, their procedures, and their contenders.

use super::engine::{Engine, Transaction};
use super::host::{Host, Session};
use crate::ordered::ledger::Ledger;
use crate::ordered::served::clients;
use corelay::ClientGuard;
use corelay_lab_measure::method::{Contender, SetupLimit};
use corelay_lab_measure::schema::{ConflictCounts, Trustee};
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::Client;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One transaction in so many is timed, from its first attempt to its answer. The two looks at the
/// clock then take 1.5 ns of each, and a second of measuring has thousands of times.
const TIMED: u64 = 32;

/// A workload: tables, the terminals that work on them, and a check.
pub(super) trait Work: Copy + Send + Sync + 'static {
    /// All tables, as an engine keeps them.
    type Tables<E: Engine>: Send + Sync + 'static;

    /// A client's state, which it keeps from slice to slice.
    type Terminal: Send + 'static;

    /// Makes the tables, empty.
    fn tables<E: Engine>(self, engine: &mut E) -> Self::Tables<E>;

    /// Fills the tables.
    ///
    /// # Errors
    /// That of `limit`.
    fn populate(self, session: &mut impl Session<Self>, limit: &SetupLimit) -> Result<(), String>;

    /// Makes the terminal of client `index` out of `clients`.
    fn terminal(self, index: usize, clients: usize) -> Self::Terminal;

    /// Runs a transaction, chosen by `random`. Returns something of what it has read.
    fn transact(
        self,
        terminal: &mut Self::Terminal,
        random: u64,
        session: &mut impl Session<Self>,
    ) -> u64;

    /// Checks the tables against what the terminals have done.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    fn check(
        self,
        terminals: &[&Self::Terminal],
        session: &mut impl Session<Self>,
    ) -> Result<(), String>;
}

/// A transaction of a work, written once for all engines.
pub(super) trait Procedure<W: Work>: Sync {
    type Answer: Send;

    /// Whether it only reads.
    fn is_read_only(&self) -> bool {
        false
    }

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        tables: &W::Tables<E>,
    ) -> Result<Self::Answer, E::Stop>;
}

/// A work on a host.
struct DatabaseContender<W: Work, H> {
    work: W,
    host: H,
    clients: Range<usize>,
    /// A client has the lock of its own for a whole slice.
    terminals: Box<[Mutex<W::Terminal>]>,
    ledger: Ledger,
}

/// Fills the tables of a host, and makes a contender of it.
pub(super) fn contender<W: Work, H: Host<W>>(
    work: W,
    host: H,
    point: &Point,
    limit: &SetupLimit,
) -> Result<Box<dyn Contender>, String> {
    {
        // Closes this thread's channels, if the host has a trustee.
        let _client = ClientGuard::new();
        work.populate(&mut host.session(), limit)?;
    }
    let clients = clients(point);
    let terminal = |index| Mutex::new(work.terminal(index, clients.len()));
    Ok(Box::new(DatabaseContender {
        work,
        host,
        terminals: (0..clients.len()).map(terminal).collect(),
        clients,
        ledger: Ledger::default(),
    }))
}

fn locked<T>(terminal: &Mutex<T>) -> MutexGuard<'_, T> {
    terminal.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W: Work, H: Host<W>> Contender for DatabaseContender<W, H> {
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let mut terminal = locked(&self.terminals[client.index]);
        let mut session = self.host.session();
        client.among(usize::MAX).drive_timed(TIMED, |random| {
            self.work
                .transact(&mut terminal, random as u64, &mut session)
        })
    }

    fn total(&self) -> Result<u64, String> {
        let _client = ClientGuard::new();
        let terminals: Vec<_> = self.terminals.iter().map(locked).collect();
        let terminals: Vec<_> = terminals.iter().map(|terminal| &**terminal).collect();
        self.work.check(&terminals, &mut self.host.session())?;
        Ok(0)
    }

    fn counts(&self) -> Option<ConflictCounts> {
        Some(self.ledger.take(self.host.counts()))
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.host.end()
    }
}
