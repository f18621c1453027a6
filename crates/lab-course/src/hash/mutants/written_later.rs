//! The fault: an insertion that finds the lock taken leaves its pair in a queue, which the next
//! call that gets the lock empties. A lookup may come between.

use std::collections::HashMap;
use std::sync::Mutex;

pub struct Table {
    map: Mutex<HashMap<u64, u64>>,
    queue: Mutex<Vec<(u64, u64)>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: Mutex::new(HashMap::with_capacity(n)),
            queue: Mutex::default(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let Ok(mut map) = self.map.try_lock() else {
            self.queue.lock().unwrap().push((key, value));
            let mut map = self.emptied();
            return map
                .get(&key)
                .copied()
                .filter(|old| *old != value)
                .or_else(|| {
                    map.insert(key, value);
                    None
                });
        };
        map.extend(self.queue.lock().unwrap().drain(..));
        map.insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.emptied().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.emptied().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.emptied().keys().copied().collect()
    }

    fn emptied(&self) -> std::sync::MutexGuard<'_, HashMap<u64, u64>> {
        let mut map = self.map.lock().unwrap();
        map.extend(self.queue.lock().unwrap().drain(..));
        map
    }
}
