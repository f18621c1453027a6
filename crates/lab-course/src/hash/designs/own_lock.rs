//! A correct design: a lock of readers and writers made of a mutex and a condition variable,
//! around one map.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard};

/// The number of readers, or that there is a writer.
#[derive(Default)]
struct Lock {
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

pub struct Table {
    lock: Lock,
    map: Vec<Mutex<HashMap<u64, u64>>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            lock: Lock::default(),
            map: (0..8).map(|_| Mutex::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.lock.write(|| self.map(key).insert(key, value))
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.lock.read(|| self.map(key).get(&key).copied())
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.lock.write(|| self.map(key).remove(&key))
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut keys = Vec::new();
        for map in &self.map {
            keys.extend(map.lock().unwrap().keys());
        }
        keys
    }

    fn map(&self, key: u64) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.map[key as usize % 8].lock().unwrap()
    }
}

impl Lock {
    fn read<R>(&self, work: impl FnOnce() -> R) -> R {
        let state = self.state.lock().unwrap();
        let mut state = self
            .changed
            .wait_while(state, |(_, writes)| *writes)
            .unwrap();
        state.0 += 1;
        drop(state);
        let result = work();
        self.state.lock().unwrap().0 -= 1;
        self.changed.notify_all();
        result
    }

    fn write<R>(&self, work: impl FnOnce() -> R) -> R {
        let mut state = self.state.lock().unwrap();
        while state.0 > 0 || state.1 {
            state = self.changed.wait(state).unwrap();
        }
        state.1 = true;
        drop(state);
        let result = work();
        self.state.lock().unwrap().1 = false;
        self.changed.notify_all();
        result
    }
}
