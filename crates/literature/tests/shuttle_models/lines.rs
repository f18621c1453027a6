//! The thesis's request lines under shuttle: random schedules of more threads than loom can
//! afford.
//!
//! `RUSTFLAGS="--cfg corelay_shuttle" cargo test -p corelay-literature --release --test
//! shuttle_lines`
//!
//! `CORELAY_SHUTTLE_ITERATIONS` says how many schedules each test draws. A failing one is
//! printed, to be replayed with `shuttle::replay`.

use crate::schedules;
use corelay_literature::{AsyncLines, Shape};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;
use std::cell::Cell;
use std::rc::Rc;

const SCHEDULES: usize = 300;
const CLIENTS: usize = 4;
const TIMES: u64 = 9;

type Then = Box<dyn FnOnce(u64)>;

/// Clients of two servers; each callback runs once, and each answer is given once.
fn explore(shape: Shape) {
    schedules::model(SCHEDULES, move || {
        let (counts, servers) = AsyncLines::<u64, Then>::shaped(shape, 2, CLIENTS, 2, |_| 0);
        let counts = Arc::new(counts);
        let stop = Arc::new(AtomicBool::new(false));
        let serving: Vec<_> = servers
            .into_iter()
            .map(|mut server| {
                let stop = Arc::clone(&stop);
                thread::spawn(move || server.run(&stop))
            })
            .collect();
        let ask = |index| {
            let counts = Arc::clone(&counts);
            thread::spawn(move || {
                let answers = Rc::new(Cell::new((0, 0)));
                let mut client = counts.client(index).unwrap();
                for turn in 0..TIMES {
                    let answers = Rc::clone(&answers);
                    let then = move |before| {
                        let (count, sum) = answers.get();
                        answers.set((count + 1, sum + before));
                    };
                    let add = |count: &mut u64| {
                        *count += 1;
                        *count - 1
                    };
                    client.issue((turn % 2) as usize, add, Box::new(then));
                }
                drop(client);
                assert_eq!(answers.get().0, TIMES);
                answers.get().1
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(ask).collect();
        let sum: u64 = clients.into_iter().map(|c| c.join().unwrap()).sum();
        stop.store(true, Ordering::Release);
        serving.into_iter().for_each(|s| s.join().unwrap());
        let (mut total, mut answers) = (0, 0);
        let look = |count: &u64| {
            total += count;
            answers += count * (count - 1) / 2;
        };
        counts.inspect(look).unwrap();
        assert_eq!((total, answers), (CLIENTS as u64 * TIMES, sum));
    });
}

#[test]
fn lines_behind_a_queue() {
    explore(Shape::queue(2, 3).unwrap());
}

#[test]
fn lines_written_directly() {
    explore(Shape::direct(3).unwrap());
}
