//! A session that does nothing does not stop others.

use super::{Body, Random, on_every_clock, scaled};
use corelay_clock::{Clock, Logical};
use corelay_txn::rlu::{Domain, Rlu};
use std::sync::mpsc::channel;
use std::time::Duration;

fn add<C: Clock>(session: &mut corelay_txn::rlu::Session<C>, cell: &Rlu<u64, C>) {
    session.write(|section| {
        *section.try_lock(cell)? += 1;
        Ok(())
    });
}

/// A session that has locked something and sleeps is helped.
#[test]
fn an_idle_session_blocks_no_other() {
    struct Idle;
    impl Body for Idle {
        fn run<C: Clock + 'static>(&self, name: &str, make: impl Fn() -> C) {
            for deferral in [1, 10] {
                let domain = Domain::with_deferral(make(), deferral);
                let cell = domain.cell(0);
                let mut idle = domain.session();
                add(&mut idle, &cell);
                let mut busy = domain.session();
                add(&mut busy, &cell);
                busy.sync();
                assert_eq!(idle.read(|s| *s.get(&cell)), 2, "{name}, {deferral}");
                assert_eq!(domain.stats().helps, 1, "{name}, {deferral}");
                add(&mut idle, &cell);
                idle.sync();
                assert_eq!(busy.read(|s| *s.get(&cell)), 3, "{name}, {deferral}");
            }
        }
    }
    on_every_clock(&Idle);
}

/// A session that is in sections all the time is requested to serve, and does.
#[test]
fn a_busy_session_gives_its_locks_up() {
    let domain = Domain::with_deferral(Logical::new(), 1_000_000);
    let cell = domain.cell(0);
    let (locked, wait_locked) = channel();
    let (done, wait_done) = channel();
    std::thread::scope(|s| {
        let (domain, cell) = (&domain, &cell);
        s.spawn(move || {
            let mut session = domain.session();
            add(&mut session, cell);
            locked.send(()).unwrap();
            while wait_done.try_recv().is_err() {
                session.read(|s| std::hint::black_box(*s.get(cell)));
            }
        });
        wait_locked.recv().unwrap();
        let mut session = domain.session();
        add(&mut session, cell);
        done.send(()).unwrap();
    });
    assert_eq!(domain.session().read(|s| *s.get(&cell)), 2);
}

/// A long section stops no session from writing, only from copying back twice.
#[test]
fn a_long_section_keeps_its_snapshot() {
    struct Long;
    impl Body for Long {
        fn run<C: Clock + 'static>(&self, name: &str, make: impl Fn() -> C) {
            let domain = Domain::new(make());
            let cells = [domain.cell(0), domain.cell(0)];
            let (begun, wait_begun) = channel();
            let (written, wait_written) = channel();
            std::thread::scope(|s| {
                let (domain, cells) = (&domain, &cells);
                s.spawn(move || {
                    let mut session = domain.session();
                    let seen = session.read(|s| {
                        let first = *s.get(&cells[0]);
                        begun.send(()).unwrap();
                        wait_written.recv().unwrap();
                        (first, *s.get(&cells[1]), *s.get(&cells[0]))
                    });
                    assert_eq!(seen, (0, 0, 0), "{name}");
                });
                wait_begun.recv().unwrap();
                let mut session = domain.session();
                session.write(|section| {
                    *section.try_lock(&cells[0])? = 1;
                    *section.try_lock(&cells[1])? = 1;
                    Ok(())
                });
                // Other sessions see it meanwhile.
                let mut other = domain.session();
                let seen = other.read(|s| (*s.get(&cells[0]), *s.get(&cells[1])));
                assert_eq!(seen, (1, 1), "{name}");
                written.send(()).unwrap();
            });
        }
    }
    on_every_clock(&Long);
}

/// More threads than CPUs, all on one cell: nothing is lost.
#[test]
fn increments_are_not_lost() {
    struct Count;
    impl Body for Count {
        fn run<C: Clock + 'static>(&self, name: &str, make: impl Fn() -> C) {
            const THREADS: u64 = 4;
            for deferral in [1, 3] {
                let domain = Domain::with_deferral(make(), deferral);
                let cells = [domain.cell(0), domain.cell(0)];
                let times = scaled(300);
                std::thread::scope(|s| {
                    for id in 0..THREADS {
                        let (domain, cells) = (&domain, &cells);
                        s.spawn(move || {
                            let mut random = Random::new(id);
                            let mut session = domain.session();
                            for _ in 0..times {
                                let first = random.below(2) as usize;
                                session.write(|section| {
                                    *section.try_lock(&cells[first])? += 1;
                                    *section.try_lock(&cells[1 - first])? += 1;
                                    Ok(())
                                });
                            }
                        });
                    }
                });
                let sum = domain
                    .session()
                    .read(|s| (*s.get(&cells[0]), *s.get(&cells[1])));
                let all = THREADS * times;
                assert_eq!(sum, (all, all), "{name}, deferral {deferral}");
            }
        }
    }
    on_every_clock(&Count);
}

/// Two sessions that hold the object that the other needs, each inside a section whenever the other
/// asks.
#[test]
fn an_aborted_session_serves_requests() {
    let domain = Domain::with_deferral(Logical::new(), 1_000_000);
    let cells = [domain.cell(0), domain.cell(0)];
    let (tell_one, hear_one) = channel();
    let (tell_other, hear_other) = channel();
    let both_hold = std::sync::Barrier::new(2);
    std::thread::scope(|s| {
        for (mine, tell, hear) in [(0, tell_one, hear_other), (1, tell_other, hear_one)] {
            let (domain, cells, both_hold) = (&domain, &cells, &both_hold);
            s.spawn(move || {
                let mut session = domain.session();
                add(&mut session, &cells[mine]);
                both_hold.wait();
                let mut tries = 0;
                session.write(|section| {
                    tries += 1;
                    assert!(tries < 100, "asked again and again");
                    let _ = tell.send(());
                    if tries == 1 && mine == 1 {
                        let _ = hear.recv();
                    }
                    // Until the other session's next section begins: none begins while it waits for
                    // this one.
                    let _ = hear.recv_timeout(Duration::from_millis(50));
                    *section.try_lock(&cells[1 - mine])? += 1;
                    Ok(())
                });
            });
        }
    });
    let sum = domain
        .session()
        .read(|s| (*s.get(&cells[0]), *s.get(&cells[1])));
    assert_eq!(sum, (2, 2));
}
