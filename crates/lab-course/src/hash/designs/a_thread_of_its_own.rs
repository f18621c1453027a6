//! A correct design: a thread has the map, and the others send it their calls.

use std::collections::HashMap;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread;

type Work = Box<dyn FnOnce(&mut HashMap<u64, u64>) + Send>;

pub struct Table {
    work: Sender<Work>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        let (work, works) = channel::<Work>();
        thread::spawn(move || {
            let mut map = HashMap::with_capacity(n);
            works.into_iter().for_each(|work| work(&mut map));
        });
        Self { work }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.ask(move |map| map.insert(key, value))
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.ask(move |map| map.get(&key).copied())
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.ask(move |map| map.remove(&key))
    }

    pub fn len(&self) -> usize {
        self.ask(|map| map.len())
    }

    pub fn keys(&self) -> Vec<u64> {
        self.ask(|map| map.keys().copied().collect())
    }

    fn ask<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut HashMap<u64, u64>) -> R + Send + 'static,
    ) -> R {
        let (answer, answers): (SyncSender<R>, _) = sync_channel(1);
        let work = move |map: &mut HashMap<u64, u64>| {
            let _ = answer.send(work(map));
        };
        self.work.send(Box::new(work)).unwrap();
        answers.recv().unwrap()
    }
}
