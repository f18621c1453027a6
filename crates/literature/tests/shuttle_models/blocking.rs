//! Protocols whose clients wait, under shuttle: random schedules of more threads than loom
//! can afford.
//!
//! `RUSTFLAGS="--cfg corelay_shuttle" cargo test -p corelay-literature --release --test
//! shuttle_blocking`
//!
//! `CORELAY_SHUTTLE_ITERATIONS` says how many schedules each test draws. A failing one is
//! printed, to be replayed with `shuttle::replay`.

use crate::common::{add, for_all_protocols};
use crate::schedules;
use corelay_literature::{Blocking, Delegation, Server};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;

for_all_protocols!({ two_servers_and_a_group_of_clients });

const SCHEDULES: usize = 300;
const CLIENTS: usize = 17;
const TIMES: usize = 3;

fn two_servers_and_a_group_of_clients<P: Blocking + 'static>() {
    schedules::model(SCHEDULES, || {
        let (counts, servers) = Delegation::<P, u64>::new(2, CLIENTS, 2, |_| 0);
        let counts = Arc::new(counts);
        let stop = Arc::new(AtomicBool::new(false));
        let serve = |mut server: Server<P, u64>| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || server.run(&stop))
        };
        let servers: Vec<_> = servers.into_iter().map(serve).collect();
        let ask = |index| {
            let counts = Arc::clone(&counts);
            thread::spawn(move || {
                let mut client = counts.client(index).unwrap();
                let answers = (0..TIMES).map(|turn| add(&mut client, (index + turn) % 2));
                answers.sum::<u64>()
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(ask).collect();
        let sum: u64 = clients.into_iter().map(|c| c.join().unwrap()).sum();
        stop.store(true, Ordering::Release);
        servers.into_iter().for_each(|s| s.join().unwrap());
        let (mut total, mut answers) = (0, 0);
        let look = |count: &u64| {
            total += count;
            answers += count * (count - 1) / 2;
        };
        counts.inspect(look).unwrap();
        assert_eq!((total, answers), ((CLIENTS * TIMES) as u64, sum));
    });
}
