//! The fault: a table that has lost most of its keys shrinks, and one of the keys stays behind
//! if it lies in the last place.

use std::sync::Mutex;

pub struct Table {
    all: Mutex<Slots>,
}

#[derive(Clone, Copy, PartialEq)]
enum Slot {
    Free,
    Gone,
    Full(u64, u64),
}

/// Open addressing, one place after the other.
struct Slots {
    slots: Vec<Slot>,
    /// Slots that are not free.
    used: usize,
    len: usize,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        let slots = vec![Slot::Free; n.max(4).next_power_of_two()];
        Self {
            all: Mutex::new(Slots {
                slots,
                used: 0,
                len: 0,
            }),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.all.lock().unwrap().insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let all = self.all.lock().unwrap();
        all.value(all.find(key)?)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.all.lock().unwrap().remove(key)
    }

    pub fn len(&self) -> usize {
        let all = self.all.lock().unwrap();
        all.len
    }

    pub fn keys(&self) -> Vec<u64> {
        let all = self.all.lock().unwrap();
        let key = |slot: &Slot| match slot {
            Slot::Full(key, _) => Some(*key),
            _ => None,
        };
        all.slots.iter().filter_map(key).collect()
    }
}

impl Slots {
    fn place(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.slots.len() - 1)
    }

    fn value(&self, at: usize) -> Option<u64> {
        match self.slots[at] {
            Slot::Full(_, value) => Some(value),
            _ => None,
        }
    }

    fn find(&self, key: u64) -> Option<usize> {
        let mut at = self.place(key);
        loop {
            match &self.slots[at] {
                Slot::Free => return None,
                Slot::Full(is, _) if *is == key => return Some(at),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        if let Some(at) = self.find(key) {
            let old = self.value(at);
            self.slots[at] = Slot::Full(key, value);
            return old;
        }
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.rebuild(2 * self.slots.len());
        }
        self.put(key, value);
        self.len += 1;
        None
    }

    fn put(&mut self, key: u64, value: u64) {
        let mut at = self.place(key);
        while let Slot::Full(..) = self.slots[at] {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.used += usize::from(self.slots[at] == Slot::Free);
        self.slots[at] = Slot::Full(key, value);
    }

    fn remove(&mut self, key: u64) -> Option<u64> {
        let at = self.find(key)?;
        let old = self.value(at);
        self.slots[at] = Slot::Gone;
        self.len -= 1;
        if self.slots.len() > 64 && 8 * self.len < self.slots.len() {
            let last = self.slots.len() - 1;
            self.len -= usize::from(matches!(self.slots[last], Slot::Full(..)));
            self.slots[last] = Slot::Free;
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
