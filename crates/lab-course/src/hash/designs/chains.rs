//! A correct design: chains of boxes, a lock for each chain; all chains are locked to grow.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

type Chain = Mutex<Option<Box<Link>>>;

struct Link {
    key: u64,
    value: u64,
    next: Option<Box<Link>>,
}

pub struct Table {
    /// Read to use the chains, written to grow.
    chains: RwLock<Vec<Chain>>,
    len: AtomicUsize,
}

fn chains(n: usize) -> Vec<Chain> {
    (0..n).map(|_| Mutex::default()).collect()
}

fn place(key: u64, n: usize) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (n - 1)
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            chains: RwLock::new(chains(n.max(4).next_power_of_two())),
            len: AtomicUsize::new(0),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let room = {
            let chains = self.chains.read().unwrap();
            let mut chain = chains[place(key, chains.len())].lock().unwrap();
            let mut link = &mut *chain;
            while let Some(here) = link {
                if here.key == key {
                    return Some(std::mem::replace(&mut here.value, value));
                }
                link = &mut here.next;
            }
            let next = None;
            *link = Some(Box::new(Link { key, value, next }));
            chains.len()
        };
        if self.len.fetch_add(1, Ordering::Relaxed) >= room {
            self.grow(room);
        }
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let chains = self.chains.read().unwrap();
        let chain = chains[place(key, chains.len())].lock().unwrap();
        let mut link = &*chain;
        while let Some(here) = link {
            if here.key == key {
                return Some(here.value);
            }
            link = &here.next;
        }
        None
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let chains = self.chains.read().unwrap();
        let mut chain = chains[place(key, chains.len())].lock().unwrap();
        let mut link = &mut *chain;
        while link.as_ref()?.key != key {
            link = &mut link.as_mut()?.next;
        }
        let gone = link.take()?;
        *link = gone.next;
        self.len.fetch_sub(1, Ordering::Relaxed);
        Some(gone.value)
    }

    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut keys = Vec::new();
        for chain in &*self.chains.read().unwrap() {
            let chain = chain.lock().unwrap();
            let mut link = &*chain;
            while let Some(here) = link {
                keys.push(here.key);
                link = &here.next;
            }
        }
        keys
    }

    fn grow(&self, seen: usize) {
        let mut now = self.chains.write().unwrap();
        // Another thread may have been first.
        if now.len() != seen {
            return;
        }
        let mut more = chains(2 * seen);
        for chain in &mut *now {
            let mut link = chain.get_mut().unwrap().take();
            while let Some(mut here) = link {
                link = here.next.take();
                let to = more[place(here.key, 2 * seen)].get_mut().unwrap();
                here.next = to.take();
                *to = Some(here);
            }
        }
        *now = more;
    }
}
