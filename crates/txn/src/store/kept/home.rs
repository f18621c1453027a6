//! The directory of a store: its disk, and the tables there that nobody has asked for yet.

use crate::store::disk::{Disk, DiskReport, Recovered, RecoveredTable, Snapshot, SnapshotError};
use std::sync::{Arc, Mutex, MutexGuard};

/// A store's place on disk.
pub(crate) struct Home {
    pub(super) disk: Disk,
    pub(super) recovered: Recovered,
    unopened: Mutex<Vec<Unopened>>,
}

/// A table that was found on disk.
struct Unopened {
    table: Arc<RecoveredTable>,
    is_loading: bool,
}

/// The rows of a table while they are being loaded. If this is dropped, they can be loaded again.
pub(super) struct Loading<'h> {
    home: &'h Home,
    table: Arc<RecoveredTable>,
    is_loaded: bool,
}

impl Home {
    pub(super) fn new(disk: Disk, mut recovered: Recovered) -> Self {
        let tables = std::mem::take(&mut recovered.tables);
        let unopened = tables.into_iter().map(|table| Unopened {
            table: Arc::new(table),
            is_loading: false,
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
        self.unopened()
            .iter()
            .any(|place| place.table.name() == name)
    }

    /// Takes the rows of a table to load them. `None` if the disk has none; an error if they are
    /// being loaded already.
    pub(super) fn load(&self, name: &str) -> Result<Option<Loading<'_>>, InUse> {
        let mut unopened = self.unopened();
        let mut places = unopened.iter_mut();
        let Some(found) = places.find(|place| place.table.name() == name) else {
            return Ok(None);
        };
        if std::mem::replace(&mut found.is_loading, true) {
            return Err(InUse);
        }
        Ok(Some(Loading {
            home: self,
            table: Arc::clone(&found.table),
            is_loaded: false,
        }))
    }

    /// Puts all tables that have not been opened into a snapshot. `others` is called before any of
    /// them can be opened.
    pub(super) fn save<R>(
        &self,
        snapshot: &mut Snapshot<'_>,
        others: impl FnOnce() -> R,
    ) -> Result<R, SnapshotError> {
        let unopened = self.unopened();
        if unopened.iter().any(|place| place.is_loading) {
            return Err(SnapshotError::Busy);
        }
        let places = unopened.iter();
        let tables: Vec<_> = places.map(|place| Arc::clone(&place.table)).collect();
        let others = others();
        // Tables can be opened while this writes. Whatever changes in one then is in the log.
        drop(unopened);
        for table in tables {
            for (key, value) in table.entries() {
                let append = |bytes: &[u8], to: &mut Vec<u8>| {
                    to.extend_from_slice(bytes);
                    Ok(())
                };
                snapshot.put(table.id(), |to| append(key, to), |to| append(value, to))?;
            }
        }
        Ok(others)
    }
}

/// Somebody else is loading the table.
pub(super) struct InUse;

impl Loading<'_> {
    pub(super) fn table(&self) -> &RecoveredTable {
        &self.table
    }

    /// Forgets the rows, which are in the table now, and the table in the store.
    pub(super) fn finish(mut self) {
        self.is_loaded = true;
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let mut unopened = self.home.unopened();
        let mut places = unopened.iter();
        let place = places.position(|place| Arc::ptr_eq(&place.table, &self.table));
        let Some(place) = place else { return };
        if self.is_loaded {
            // This has the rows, too, and frees them after the lock is released.
            unopened.remove(place);
        } else {
            unopened[place].is_loading = false;
        }
    }
}
