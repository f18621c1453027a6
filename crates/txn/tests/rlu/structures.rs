//! Lists and tables compared with the standard library's map, and used by several threads.

use super::{Body, Random, on_every_clock, scaled};
use corelay_clock::{Clock, Logical};
use corelay_txn::rlu::{Domain, RluHash, RluList};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_list_and_a_table_do_what_a_map_does() {
    for (deferral, seed) in [(1, 1), (1, 2), (7, 3), (7, 4)] {
        let domain = Domain::with_deferral(Logical::new(), deferral);
        let list: RluList<_, u64, u64> = RluList::new_in(&domain);
        let table: RluHash<_, u64, u64> = RluHash::new_in(&domain, 5);
        let mut map = BTreeMap::new();
        let mut session = domain.session();
        let mut random = Random::new(seed);
        for step in 0..3_000 {
            let key = random.below(40);
            match random.below(4) {
                0 => {
                    // In both structures, or in neither.
                    let abort = random.below(5) == 0;
                    let added = session.try_write(|section| {
                        let one = list.insert(section, key, step)?;
                        let two = table.insert(section, key, step)?;
                        assert_eq!(one, two);
                        if abort { Err(section.abort()) } else { Ok(one) }
                    });
                    if let Ok(added) = added {
                        assert_eq!(added, !map.contains_key(&key));
                        map.entry(key).or_insert(step);
                    }
                }
                1 => {
                    let removed = session.write(|section| {
                        Ok((list.remove(section, &key)?, table.remove(section, &key)?))
                    });
                    let expected = map.remove(&key);
                    assert_eq!(removed, (expected, expected));
                }
                _ => session.read(|section| {
                    assert_eq!(list.get(section, &key), map.get(&key).copied());
                    assert_eq!(table.get(section, &key), map.get(&key).copied());
                }),
            }
            if step % 50 == 0 {
                session.read(|section| {
                    assert!(list.iter(section).eq(map.iter().map(|(&k, &v)| (k, v))));
                    let all: BTreeMap<_, _> = table.iter(section).collect();
                    assert_eq!(all, map);
                });
            }
        }
    }
}

/// A writer moves a token from position to position, over a list and a table; a scan of both sees
/// it exactly once.
#[test]
fn iteration_is_under_one_snapshot() {
    struct Token;
    impl Body for Token {
        fn run<C: Clock + 'static>(&self, name: &str, make: impl Fn() -> C) {
            let domain = Domain::new(make());
            let list: RluList<C> = RluList::new_in(&domain);
            let table: RluHash<C> = RluHash::new_in(&domain, 4);
            domain
                .session()
                .write(|section| list.insert(section, 0, ()));
            let stop = AtomicBool::new(false);
            std::thread::scope(|s| {
                s.spawn(|| {
                    let mut random = Random::new(5);
                    let mut session = domain.session();
                    let mut at = (true, 0);
                    while !stop.load(Ordering::Relaxed) {
                        let to = (random.below(2) == 0, random.below(30));
                        session.write(|section| {
                            let gone = match at {
                                (true, key) => list.remove(section, &key)?,
                                (false, key) => table.remove(section, &key)?,
                            };
                            assert!(gone.is_some());
                            match to {
                                (true, key) => list.insert(section, key, ()),
                                (false, key) => table.insert(section, key, ()),
                            }
                        });
                        at = to;
                    }
                });
                let mut session = domain.session();
                for _ in 0..scaled(4_000) {
                    let seen = session
                        .read(|section| list.iter(section).count() + table.iter(section).count());
                    assert_eq!(seen, 1, "{name}");
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
    }
    on_every_clock(&Token);
}
