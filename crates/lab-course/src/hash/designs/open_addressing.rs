//! A correct design: stripes of open addressing with marks for removed keys, which grow and
//! shrink on their own.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

#[derive(Clone, Copy, PartialEq)]
enum Slot {
    Free,
    Gone,
    Full(u64, u64),
}

struct Slots {
    slots: Vec<Slot>,
    used: usize,
    len: usize,
}

pub struct Table {
    stripes: Vec<RwLock<Slots>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        let stripe = |_| {
            let slots = vec![Slot::Free; 4];
            RwLock::new(Slots {
                slots,
                used: 0,
                len: 0,
            })
        };
        Self {
            stripes: (0..16).map(stripe).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.write(key).insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let slots = self.read(key);
        slots.value(slots.find(key)?)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.write(key).remove(key)
    }

    pub fn len(&self) -> usize {
        self.stripes
            .iter()
            .map(|slots| slots.read().unwrap().len)
            .sum()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut keys = Vec::new();
        for slots in &self.stripes {
            for slot in &slots.read().unwrap().slots {
                if let Slot::Full(key, _) = slot {
                    keys.push(*key);
                }
            }
        }
        keys
    }

    fn read(&self, key: u64) -> RwLockReadGuard<'_, Slots> {
        self.stripes[(hash(key) >> 60) as usize].read().unwrap()
    }

    fn write(&self, key: u64) -> RwLockWriteGuard<'_, Slots> {
        self.stripes[(hash(key) >> 60) as usize].write().unwrap()
    }
}

fn hash(key: u64) -> u64 {
    let hash = (key ^ (key >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash ^ (hash >> 31)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

impl Slots {
    fn find(&self, key: u64) -> Option<usize> {
        let last = self.slots.len() - 1;
        let mut at = hash(key) as usize & last;
        loop {
            match self.slots[at] {
                Slot::Free => return None,
                Slot::Full(is, _) if is == key => return Some(at),
                _ => at = (at + 1) & last,
            }
        }
    }

    fn value(&self, at: usize) -> Option<u64> {
        match self.slots[at] {
            Slot::Full(_, value) => Some(value),
            _ => None,
        }
    }

    fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        if let Some(at) = self.find(key) {
            let old = self.value(at);
            self.slots[at] = Slot::Full(key, value);
            return old;
        }
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.rebuild((2 * self.len).next_power_of_two().max(4) * 2);
        }
        self.put(key, value);
        self.len += 1;
        None
    }

    fn put(&mut self, key: u64, value: u64) {
        let last = self.slots.len() - 1;
        let mut at = hash(key) as usize & last;
        while let Slot::Full(..) = self.slots[at] {
            at = (at + 1) & last;
        }
        self.used += usize::from(self.slots[at] == Slot::Free);
        self.slots[at] = Slot::Full(key, value);
    }

    fn remove(&mut self, key: u64) -> Option<u64> {
        let at = self.find(key)?;
        let old = self.value(at);
        self.slots[at] = Slot::Gone;
        self.len -= 1;
        if self.slots.len() > 16 && 8 * self.len < self.slots.len() {
            self.rebuild(self.slots.len() / 4);
        }
        old
    }

    fn rebuild(&mut self, n: usize) {
        let old = std::mem::replace(&mut self.slots, vec![Slot::Free; n]);
        self.used = 0;
        for slot in old {
            if let Slot::Full(key, value) = slot {
                self.put(key, value);
            }
        }
    }
}
