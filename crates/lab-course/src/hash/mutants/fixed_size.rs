//! The fault: the table has as many places as it was made for, and does not notice when they are
//! full.

use std::sync::Mutex;

pub struct Table {
    places: Mutex<Vec<Option<(u64, u64)>>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            places: Mutex::new(vec![None; 2 * n + 256]),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut places = self.places.lock().unwrap();
        let mut at = 0;
        // The place of the key, or the first free one.
        while let Some((is, old)) = &mut places[at] {
            if *is == key {
                return Some(std::mem::replace(old, value));
            }
            at += 1;
        }
        places[at] = Some((key, value));
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let places = self.places.lock().unwrap();
        let mut pairs = places.iter().map_while(|place| *place);
        Some(pairs.find(|pair| pair.0 == key)?.1)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let mut places = self.places.lock().unwrap();
        let full = places.iter().take_while(|place| place.is_some()).count();
        let at = places[..full]
            .iter()
            .position(|place| place.unwrap().0 == key)?;
        places[at..full].rotate_left(1);
        Some(places[full - 1].take()?.1)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let places = self.places.lock().unwrap();
        places
            .iter()
            .map_while(|place| *place)
            .map(|pair| pair.0)
            .collect()
    }
}
