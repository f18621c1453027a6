//! A hash table that threads share. It is correct, and it does not scale: find out why, and
//! change that. README.md has the task and the rules.

#![forbid(unsafe_code)]

use std::sync::{Mutex, MutexGuard};

/// A hash table from numbers to numbers, shared by reference.
///
/// ```
/// let table = table::Table::with_capacity(10);
/// assert_eq!(table.insert(1, 10), None);
/// assert_eq!(table.insert(1, 11), Some(10));
/// assert_eq!(table.get(1), Some(11));
/// assert_eq!(table.remove(1), Some(11));
/// assert_eq!(table.len(), 0);
/// ```
#[derive(Debug)]
pub struct Table {
    // The big lock.
    all: Mutex<Buckets>,
}

impl Table {
    /// Makes an empty table with room for about `n` keys. It takes more keys, too.
    pub fn with_capacity(n: usize) -> Self {
        Self {
            all: Mutex::new(Buckets::with_capacity(n)),
        }
    }

    /// Sets the value of a key. Returns the value that the key had before, if any.
    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.lock().insert(key, value)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: u64) -> Option<u64> {
        self.lock().get(key)
    }

    /// Removes a key. Returns its value, if it was there.
    pub fn remove(&self, key: u64) -> Option<u64> {
        self.lock().remove(key)
    }

    /// Returns the number of keys. It need be right only while nobody writes.
    pub fn len(&self) -> usize {
        self.lock().len
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all keys, in any order. They need be right only while nobody writes.
    pub fn keys(&self) -> Vec<u64> {
        self.lock().keys()
    }

    fn lock(&self) -> MutexGuard<'_, Buckets> {
        self.all.lock().expect("nothing panics under the lock")
    }
}

/// A table for one thread: lists of pairs, one list for each hash.
#[derive(Debug)]
struct Buckets {
    /// The lists; their number is a power of two.
    lists: Vec<Vec<(u64, u64)>>,
    len: usize,
}

impl Buckets {
    fn with_capacity(n: usize) -> Self {
        Self {
            lists: vec![Vec::new(); n.max(1).next_power_of_two()],
            len: 0,
        }
    }

    fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        let list = self.list(key);
        if let Some(pair) = list.iter_mut().find(|pair| pair.0 == key) {
            return Some(std::mem::replace(&mut pair.1, value));
        }
        list.push((key, value));
        self.len += 1;
        if self.len > self.lists.len() {
            self.grow();
        }
        None
    }

    fn get(&self, key: u64) -> Option<u64> {
        let list = &self.lists[self.place(key)];
        Some(list.iter().find(|pair| pair.0 == key)?.1)
    }

    fn remove(&mut self, key: u64) -> Option<u64> {
        let list = self.list(key);
        let at = list.iter().position(|pair| pair.0 == key)?;
        let (_, value) = list.swap_remove(at);
        self.len -= 1;
        Some(value)
    }

    fn keys(&self) -> Vec<u64> {
        self.lists.iter().flatten().map(|pair| pair.0).collect()
    }

    /// Doubles the number of lists.
    fn grow(&mut self) {
        let more = vec![Vec::new(); 2 * self.lists.len()];
        for (key, value) in std::mem::replace(&mut self.lists, more)
            .into_iter()
            .flatten()
        {
            self.list(key).push((key, value));
        }
    }

    fn list(&mut self, key: u64) -> &mut Vec<(u64, u64)> {
        let at = self.place(key);
        &mut self.lists[at]
    }

    /// Chooses the list by Fibonacci hashing, whose better bits are the upper ones.
    fn place(&self, key: u64) -> usize {
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 32) as usize & (self.lists.len() - 1)
    }
}
