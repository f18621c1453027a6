//! The channel, on fibres and threads.

use crate::promise;
use crate::waiters::{Dice, Running, everywhere, late, rounds, run, soon, spawn};
use corelay_fibre::{
    Cancelled, Interrupted, RecvError, RecvUntilError, SendError, SendUntilError, TryRecvError,
    TrySendError, channel, yield_now,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts how often values are made and dropped.
#[derive(Clone, Default)]
struct Count(Arc<(AtomicUsize, AtomicUsize)>);

struct Counted(Count, usize);

impl Count {
    fn make(&self, n: usize) -> Counted {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone(), n)
    }

    fn assert_all_dropped(&self) {
        let (made, dropped) = &*self.0;
        assert_eq!(
            made.load(Ordering::Relaxed),
            dropped.load(Ordering::Relaxed)
        );
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.1.fetch_add(1, Ordering::Relaxed);
    }
}

/// Each value arrives once, those of one sender in order at each receiver.
#[test]
fn each_value_once_and_in_order() {
    everywhere(|cluster, crew| {
        for capacity in [0, 1, 3, 64] {
            let times = rounds(60);
            let (sender, receiver) = channel(capacity);
            let producers: Vec<_> = (0..4)
                .map(|i| {
                    let sender = sender.clone();
                    spawn(cluster, crew(i), move || {
                        for n in 0..times {
                            sender.send((i, n)).unwrap();
                        }
                    })
                })
                .collect();
            drop(sender);
            let got = run(cluster, crew, 3, move |_| {
                receiver.iter().collect::<Vec<_>>()
            });
            for producer in producers {
                producer.join().unwrap();
            }
            for got in &got {
                for i in 0..4 {
                    assert!(got.iter().filter(|(from, _)| *from == i).is_sorted());
                }
            }
            let mut all: Vec<_> = got.into_iter().flatten().collect();
            all.sort_unstable();
            assert!((0..4).flat_map(|i| (0..times).map(move |n| (i, n))).eq(all));
        }
    });
}

/// Closing, cancelling, timing out and dropping at once: a value that was sent is received or
/// dropped once, and one that was not sent comes back.
#[test]
fn everything_at_once() {
    everywhere(|cluster, crew| {
        for round in 0..rounds(40) {
            let count = Count::default();
            let (sender, receiver) = channel(round % 4);
            let sent = Arc::new(AtomicUsize::new(0));
            let received = Arc::new(AtomicUsize::new(0));
            let running: Vec<_> = (0..12)
                .map(|i| {
                    let (sender, receiver) = (sender.clone(), receiver.clone());
                    let (sent, received) = (Arc::clone(&sent), Arc::clone(&received));
                    let count = count.clone();
                    spawn(cluster, crew(i), move || {
                        let mut dice = Dice::new(round * 100 + i);
                        if i % 2 == 0 {
                            drop(receiver);
                            for n in 0..10 {
                                let value = count.make(n);
                                let left = match dice.roll(4) {
                                    0 => sender.try_send(value).err().map(TrySendError::into_inner),
                                    1 => {
                                        let end = sender.send_until(value, soon(n));
                                        end.err().map(SendUntilError::into_inner)
                                    }
                                    _ => sender.send(value).err().map(SendError::into_inner),
                                };
                                match left {
                                    None => drop(sent.fetch_add(1, Ordering::Relaxed)),
                                    Some(left) => assert_eq!(left.1, n),
                                }
                            }
                        } else {
                            drop(sender);
                            for n in 0..10 {
                                let value = match dice.roll(4) {
                                    0 => receiver.try_recv().ok(),
                                    1 => receiver.recv_until(soon(n)).ok(),
                                    _ => receiver.recv().ok(),
                                };
                                received.fetch_add(usize::from(value.is_some()), Ordering::Relaxed);
                                if dice.roll(20) == 0 {
                                    yield_now();
                                }
                            }
                        }
                    })
                })
                .collect();
            let rest = receiver.clone();
            drop((sender, receiver));
            for fibre in running
                .iter()
                .skip(round % 5)
                .step_by(5)
                .filter_map(Running::fibre)
            {
                fibre.cancel();
            }
            if round % 3 == 0 {
                rest.close();
            }
            // Receivers may leave before senders have sent all, and those wait then.
            let drain = |left: bool| {
                while let Ok(value) = rest.try_recv() {
                    received.fetch_add(1, Ordering::Relaxed);
                    drop(value);
                }
                left
            };
            while drain(!running.iter().all(Running::is_finished)) {
                std::thread::yield_now();
            }
            for end in running.into_iter().map(Running::join) {
                assert!(end.is_ok() || end.is_err_and(|end| end.is::<Cancelled>()));
            }
            drain(false);
            assert_eq!(rest.try_recv().err(), Some(TryRecvError::Closed));
            assert_eq!(
                sent.load(Ordering::Relaxed),
                received.load(Ordering::Relaxed)
            );
            count.assert_all_dropped();
        }
    });
}

/// Receivers that wait, and those that come later, learn that the channel is closed.
#[test]
fn the_last_sender_closes() {
    everywhere(|cluster, crew| {
        let (sender, receiver) = channel::<u8>(2);
        let waiting: Vec<_> = (0..4)
            .map(|i| {
                let receiver = receiver.clone();
                spawn(cluster, crew(i), move || receiver.recv())
            })
            .collect();
        sender.send(1).unwrap();
        drop(sender);
        let ends = waiting.into_iter().map(|w| w.join().unwrap());
        assert_eq!(ends.filter(|end| *end == Ok(1)).count(), 1);
        assert_eq!(receiver.recv(), Err(RecvError));
    });
}

/// Senders that wait get their values back; what was in the buffer is dropped with the last receiver.
#[test]
fn the_last_receiver_closes() {
    everywhere(|cluster, crew| {
        for capacity in [0, 2] {
            let count = Count::default();
            let (sender, receiver) = channel(capacity);
            for n in 0..capacity {
                sender.send(count.make(n)).unwrap();
            }
            let waiting: Vec<_> = (0..4)
                .map(|i| {
                    let (sender, count) = (sender.clone(), count.clone());
                    spawn(cluster, crew(i), move || {
                        sender.send(count.make(i)).map_err(|end| end.0.1)
                    })
                })
                .collect();
            drop(receiver);
            for (i, waiting) in waiting.into_iter().enumerate() {
                assert_eq!(waiting.join().unwrap(), Err(i));
            }
            count.assert_all_dropped();
            assert!(sender.is_closed());
        }
    });
}

/// A value that is in the channel when it closes can be received; a sender that waits then has not
/// sent.
#[test]
fn close_ends_the_channel() {
    everywhere(|cluster, crew| {
        let (sender, receiver) = channel(1);
        sender.send(1).unwrap();
        let waiting = spawn(cluster, crew(0), {
            let sender = sender.clone();
            move || sender.send(2)
        });
        sender.close();
        assert_eq!(waiting.join().unwrap(), Err(SendError(2)));
        assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [1]);
    });
}

/// Without a buffer a value goes from hand to hand.
#[test]
fn rendezvous() {
    everywhere(|cluster, crew| {
        let (sender, receiver) = channel(0);
        assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        let end = sender.send_until(1, soon(2));
        assert_eq!(
            end,
            Err(SendUntilError::Interrupted(1, Interrupted::TimedOut))
        );
        let sending = spawn(cluster, crew(0), move || sender.send(2));
        assert_eq!(receiver.recv(), Ok(2));
        sending.join().unwrap().unwrap();
        assert_eq!(receiver.recv(), Err(RecvError));
    });
}

/// A cancelled sender's value is dropped or comes back; a cancelled receiver takes none.
#[test]
fn cancelled() {
    let cluster = promise::cluster(2);
    for _ in 0..rounds(100) {
        let count = Count::default();
        let (sender, receiver) = channel(1);
        let receiving = cluster.spawn({
            let receiver = receiver.clone();
            move || {
                let end = receiver.recv_until(late()).err();
                assert_eq!(
                    end,
                    Some(RecvUntilError::Interrupted(Interrupted::Cancelled))
                );
                receiver.recv().map(drop)
            }
        });
        receiving.fibre().cancel();
        assert!(receiving.join().unwrap_err().is::<Cancelled>());
        sender.send(count.make(0)).unwrap();
        let sending = cluster.spawn({
            let (sender, count) = (sender.clone(), count.clone());
            move || {
                let end = sender.send_until(count.make(1), late()).unwrap_err();
                assert!(matches!(
                    end,
                    SendUntilError::Interrupted(_, Interrupted::Cancelled)
                ));
                let _ = sender.send(end.into_inner());
            }
        });
        sending.fibre().cancel();
        assert!(sending.join().unwrap_err().is::<Cancelled>());
        assert_eq!(receiver.recv().unwrap().1, 0);
        assert_eq!(receiver.try_recv().err(), Some(TryRecvError::Empty));
        drop((sender, receiver));
        count.assert_all_dropped();
    }
}
