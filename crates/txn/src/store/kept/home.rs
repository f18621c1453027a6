//! The directory of a store: its disk, and the tables there that nobody has asked for yet.

use crate::store::disk::{Disk, DiskReport, Recovered, RecoveredTable, Snapshot, SnapshotError};
use std::sync::{Mutex, MutexGuard};

/// A store's place on disk.
pub(crate) struct Home {
    pub(super) disk: Disk,
    pub(super) recovered: Recovered,
    unopened: Mutex<Vec<Unopened>>,
}

/// A table that was found on disk.
struct Unopened {
    name: String,
    /// Absent while its rows are being loaded.
    table: Option<RecoveredTable>,
}

/// The rows of a table while they are being loaded. They are given back when this is dropped: what
/// was found on disk must be in each snapshot.
pub(super) struct Loading<'h> {
    home: &'h Home,
    table: Option<RecoveredTable>,
}

impl Home {
    pub(super) fn new(disk: Disk, mut recovered: Recovered) -> Self {
        let tables = std::mem::take(&mut recovered.tables);
        let unopened = tables.into_iter().map(|table| Unopened {
            name: table.name().to_owned(),
            table: Some(table),
        });
        Self {
            unopened: Mutex::new(unopened.collect()),
            disk,
            recovered,
        }
    }

    pub(in crate::store) fn report(&self) -> DiskReport {
        self.disk.report()
    }

    fn unopened(&self) -> MutexGuard<'_, Vec<Unopened>> {
        self.unopened
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether a table of this name is on disk and has not been opened.
    pub(in crate::store) fn has_unopened(&self, name: &str) -> bool {
        self.unopened().iter().any(|table| table.name == name)
    }

    /// Takes the rows of a table to load them. `None` if the disk has none; an error if they are
    /// being loaded already.
    pub(super) fn load(&self, name: &str) -> Result<Option<Loading<'_>>, InUse> {
        let mut unopened = self.unopened();
        let Some(found) = unopened.iter_mut().find(|table| table.name == name) else {
            return Ok(None);
        };
        let table = Some(found.table.take().ok_or(InUse)?);
        Ok(Some(Loading { home: self, table }))
    }

    /// Puts all tables that have not been opened into a snapshot, and then calls `others`, before any
    /// of them can be opened.
    pub(super) fn save<R>(
        &self,
        snapshot: &mut Snapshot<'_>,
        others: impl FnOnce() -> R,
    ) -> Result<R, SnapshotError> {
        let unopened = self.unopened();
        for Unopened { table, .. } in &*unopened {
            let table = table.as_ref().ok_or(SnapshotError::Busy)?;
            for (key, value) in table.entries() {
                let append = |bytes: &[u8], to: &mut Vec<u8>| {
                    to.extend_from_slice(bytes);
                    Ok(())
                };
                snapshot.put(table.id(), |to| append(key, to), |to| append(value, to))?;
            }
        }
        Ok(others())
    }
}

/// Somebody else is loading the table.
pub(super) struct InUse;

impl Loading<'_> {
    pub(super) fn table(&self) -> &RecoveredTable {
        self.table.as_ref().expect("taken by `finish` only")
    }

    /// Forgets the rows, which are in the table now, and the table in the store.
    pub(super) fn finish(mut self) {
        let gone = self.table.take();
        let name = gone.as_ref().map_or("", RecoveredTable::name);
        self.home.unopened().retain(|table| table.name != name);
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        let mut unopened = self.home.unopened();
        if let Some(place) = unopened.iter_mut().find(|place| place.name == table.name()) {
            place.table = Some(table);
        }
    }
}
