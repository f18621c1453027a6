//! Protocols whose clients wait, under loom: every interleaving of the shipped source (up to
//! the preemption bound) with every permitted stale read.
//!
//! `RUSTFLAGS="--cfg corelay_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p corelay-literature
//! --release --test loom_blocking`
//!
//! Objects and requests lie in loom's `UnsafeCell`. So an access that is not ordered after the
//! other side's is reported as a race, whatever the counts come to.

use crate::common::{add, for_all_protocols};
use corelay_literature::{Blocking, Delegation, Server};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

for_all_protocols!({
    one_client_again_and_again,
    two_clients,
    two_servers,
    clients_come_and_go,
    a_client_waits_for_a_server_that_begins,
});

type Counts<P> = Arc<Delegation<P, u64>>;

/// Has every server run on a thread until `run` is done, and checks that each has then served as
/// many requests as `run` returns.
fn model<P: Blocking + 'static>(
    servers: usize,
    clients: usize,
    run: impl Fn(&Counts<P>) -> u64 + Send + Sync + 'static,
) {
    loom::model(move || {
        let (counts, halves) = Delegation::<P, u64>::new(servers, clients, servers, |_| 0);
        // Both sides have made their lines. A model below has them made meanwhile.
        (0..clients).for_each(|index| drop(counts.client(index)));
        let counts = Arc::new(counts);
        let stop = Arc::new(AtomicBool::new(false));
        let serve = |mut server: Server<P, u64>| {
            server.begin();
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                server.run(&stop);
                server.served().requests
            })
        };
        let halves: Vec<_> = halves.into_iter().map(serve).collect();
        let requests = run(&counts);
        stop.store(true, Ordering::Release);
        for server in halves {
            assert_eq!(server.join().unwrap(), requests);
        }
        let mut seen = Vec::new();
        counts.inspect(|count| seen.push(*count)).unwrap();
        assert!(seen.into_iter().eq(vec![requests; servers]));
    });
}

/// The toggle turns back, and turns again.
fn one_client_again_and_again<P: Blocking + 'static>() {
    model::<P>(1, 1, |counts| {
        let mut client = counts.client(0).unwrap();
        assert!((0..3).all(|turn| add(&mut client, 0) == turn));
        3
    });
}

/// Two clients of one server: one may be answered while the other reads its answer.
fn two_clients<P: Blocking + 'static>() {
    model::<P>(1, 2, |counts| {
        let other = thread::spawn({
            let counts = Arc::clone(counts);
            move || add(&mut counts.client(1).unwrap(), 0)
        });
        let mine = add(&mut counts.client(0).unwrap(), 0);
        assert_eq!(mine + other.join().unwrap(), 1, "0 and 1");
        2
    });
}

/// One client of two servers.
fn two_servers<P: Blocking + 'static>() {
    model::<P>(2, 1, |counts| {
        let mut client = counts.client(0).unwrap();
        assert_eq!([add(&mut client, 0), add(&mut client, 1)], [0, 0]);
        1
    });
}

/// Another thread wants to be the client that this one is: it becomes so before, after, or not at
/// all.
fn clients_come_and_go<P: Blocking + 'static>() {
    model::<P>(1, 1, |counts| {
        let ask = |counts: &Counts<P>| counts.client(0).map(|mut client| add(&mut client, 0));
        let other = thread::spawn({
            let counts = Arc::clone(counts);
            move || ask(&counts)
        });
        let answers = [ask(counts), other.join().unwrap()];
        let asked = answers.iter().flatten().count() as u64;
        assert!(answers.into_iter().flatten().all(|answer| answer < asked));
        asked
    });
}

/// Server and client make their lines at the same time.
fn a_client_waits_for_a_server_that_begins<P: Blocking + 'static>() {
    loom::model(|| {
        let (counts, mut servers) = Delegation::<P, u64>::new(1, 1, 1, |_| 5);
        let asking = thread::spawn(move || {
            let mut client = counts.client(0).unwrap();
            add(&mut client, 0)
        });
        while servers[0].pass() == 0 {
            thread::yield_now();
        }
        assert_eq!(asking.join().unwrap(), 5);
    });
}
