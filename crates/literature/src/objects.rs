//! The objects of a delegation, in a row for each server. Each begins on a cache line of its own.

use crate::row::Row;
use crate::wait::Wait;
use corelay_sync::facade::cell::UnsafeCell;

/// An object that begins on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Aligned<T>(UnsafeCell<T>);

/// The position of an object: its server, and its index in the server's row.
#[derive(Clone, Copy, Debug)]
struct Position {
    server: u32,
    index: u32,
}

/// The objects of every server, in a row each: the two-dimensional array of the thesis. Each server
/// makes its own row.
#[derive(Debug)]
pub(crate) struct Objects<T> {
    rows: Box<[Row<Aligned<T>>]>,
    positions: Box<[Position]>,
}

impl<T> Objects<T> {
    /// Deals out the numbers of `objects` objects to the servers in turn: object `i` to server
    /// `i % servers`. The objects are not made yet.
    pub(crate) fn new(servers: usize, objects: usize) -> Self {
        let narrow = |n| u32::try_from(n).expect("there are fewer than 2^32 servers and objects");
        let position = |number| Position {
            server: narrow(number % servers),
            index: narrow(number / servers),
        };
        let row = |server| Row::of((objects + servers - 1 - server) / servers);
        Self {
            rows: (0..servers).map(row).collect(),
            positions: (0..objects).map(position).collect(),
        }
    }

    /// Makes the row of a server on this thread, unless it is there. `make` gets each object's
    /// number.
    ///
    /// # Safety
    /// The caller is that server.
    pub(crate) unsafe fn make(&self, server: usize, mut make: impl FnMut(usize) -> T) {
        let servers = self.rows.len();
        let object = |index| Aligned(UnsafeCell::new(make(index * servers + server)));
        // SAFETY: there is one server of that number (the caller's duty).
        unsafe { self.rows[server].make(object) };
    }

    /// The server of an object.
    ///
    /// # Panics
    /// If there is no object of that number.
    #[inline(always)]
    pub(crate) fn server_of(&self, var: usize) -> usize {
        self.positions[var].server as usize
    }

    /// The server of an object, and the object. Waits until the server has made its row.
    ///
    /// # Panics
    /// If there is no object of that number.
    #[inline(always)]
    pub(crate) fn at(&self, var: usize) -> (usize, &UnsafeCell<T>) {
        let Position { server, index } = self.positions[var];
        let row = &self.rows[server as usize];
        let row = row.get().unwrap_or_else(|| wait_for(row));
        (server as usize, &row[index as usize].0)
    }

    /// All objects, in the order of their numbers. `None` if some server has not made its own.
    pub(crate) fn all(&self) -> Option<impl Iterator<Item = &UnsafeCell<T>>> {
        let is_made = |row: &Row<_>| row.len() == 0 || row.get().is_some();
        let are_made = self.rows.iter().all(is_made);
        are_made.then(|| (0..self.positions.len()).map(|var| self.at(var).1))
    }
}

/// Waits until a server has made its row.
#[cold]
fn wait_for<T>(row: &Row<T>) -> &[T] {
    let mut wait = Wait::new();
    loop {
        if let Some(values) = row.get() {
            return values;
        }
        wait.again();
    }
}
