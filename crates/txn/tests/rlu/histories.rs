//! Recorded calls, checked for linearizability: without deferral a commit is visible when it
//! returns, on every clock.

use super::{Body, Random, on_every_clock, scaled};
use corelay_clock::Clock;
use corelay_history::model::map::{Map, Operation};
use corelay_history::{History, Recorder, check};
use corelay_txn::rlu::RluList;

#[test]
fn a_list_is_linearizable() {
    struct Lists;
    impl Body for Lists {
        fn run<C: Clock + 'static>(&self, name: &str, make: impl Fn() -> C) {
            for threads in [2, 4] {
                let list: RluList<C, u64, u64> = RluList::new(make());
                let mut recorders: Vec<_> = (0..threads).map(|_| Recorder::new()).collect();
                std::thread::scope(|s| {
                    for (id, recorder) in (0..).zip(&mut recorders) {
                        let list = &list;
                        s.spawn(move || calls(list, id, recorder));
                    }
                });
                let history: History<_, _> = recorders.into_iter().collect();
                if let Err(failure) = check(&Map::new(), &history) {
                    panic!("{name}, {threads} threads: {failure}");
                }
            }
        }
    }
    on_every_clock(&Lists);
}

fn calls<C: Clock>(
    list: &RluList<C, u64, u64>,
    id: u64,
    recorder: &mut Recorder<Operation<u64, u64>, Option<u64>>,
) {
    let mut random = Random::new(id);
    let mut session = list.session();
    for n in 0..scaled(400) {
        let key = random.below(5);
        let operation = match random.below(4) {
            0 => Operation::Insert(key, n),
            1 => Operation::Remove(key),
            _ => Operation::Get(key),
        };
        recorder.record(operation, |operation| match operation {
            Operation::Get(key) => session.get(key),
            Operation::Remove(key) => session.remove(key),
            // As a map does it: the old value is dropped.
            Operation::Insert(key, value) => session.session().write(|section| {
                let before = list.remove(section, key)?;
                assert!(list.insert(section, *key, *value)?);
                Ok(before)
            }),
        });
    }
}
