//! The program that checks the answer's table.

#![forbid(unsafe_code)]

use checked::Table;

/// If this does not compile, threads cannot share the table, or it lacks a call.
struct Checked(Table);

impl check::Map for Checked {
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.0.insert(key, value)
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(key)
    }

    fn remove(&self, key: u64) -> Option<u64> {
        self.0.remove(key)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn keys(&self) -> Vec<u64> {
        self.0.keys()
    }
}

fn main() {
    check::main(|n| Box::new(Checked(Table::with_capacity(n))));
}
