use corelay_fibre::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn spawn_and_join() {
    let cluster = Cluster::start(2).unwrap();
    let handles: Vec<_> = (0..100).map(|i| cluster.spawn(move || i * 2)).collect();
    let sum: i32 = handles.into_iter().map(|h| h.join().unwrap()).sum();
    assert_eq!(sum, 9900);
    let boom = cluster.spawn(|| panic!("boom"));
    assert!(boom.join().is_err());
}

#[test]
fn rings() {
    for migrating in [false, true] {
        let cluster = Cluster::start(2).unwrap();
        let n = 50;
        let sems: Arc<Vec<_>> = Arc::new((0..n).map(|i| BinarySemaphore::new(i == 0)).collect());
        let count = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..n)
            .map(|i| {
                let (sems, count) = (sems.clone(), count.clone());
                let f = move || {
                    for _ in 0..1000 {
                        sems[i].wait();
                        count.fetch_add(1, Ordering::Relaxed);
                        sems[(i + 1) % n].post();
                    }
                };
                if migrating {
                    unsafe { cluster.fibre().migrating() }.spawn(f).unwrap()
                } else {
                    cluster.spawn(f)
                }
            })
            .collect();
        for h in handles {
            h.join().unwrap();
        }
        assert_eq!(count.load(Ordering::Relaxed), n * 1000);
    }
}

#[test]
fn yields_and_semaphores() {
    let cluster = Cluster::start(2).unwrap();
    let s = Arc::new(Semaphore::new(3));
    let inside = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..64)
        .map(|_| {
            let (s, inside) = (s.clone(), inside.clone());
            cluster.spawn(move || {
                for _ in 0..200 {
                    s.acquire();
                    assert!(inside.fetch_add(1, Ordering::SeqCst) < 3);
                    yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    s.release();
                }
            })
        })
        .collect();
    for h in handles {
        h.join().unwrap();
    }
}

#[test]
fn a_starved_one_runs() {
    let cluster = Cluster::start(2).unwrap();
    let flag = Arc::new(AtomicUsize::new(0));
    let f = flag.clone();
    let h = cluster.spawn(move || {
        let g = f.clone();
        let inner = spawn(move || g.store(1, Ordering::SeqCst));
        while f.load(Ordering::SeqCst) == 0 {
            std::hint::spin_loop();
        }
        inner
    });
    h.join().unwrap().join().unwrap();
}

#[test]
fn cancelled_in_every_wait() {
    use std::time::{Duration, Instant};
    let cluster = Cluster::start(2).unwrap();
    for _ in 0..200 {
        let s = Arc::new(Semaphore::new(0));
        let b = Arc::new(BinarySemaphore::new(false));
        let hs: Vec<JoinHandle<()>> = vec![
            {
                let s = s.clone();
                cluster.spawn(move || s.acquire())
            },
            {
                let s = s.clone();
                cluster.spawn(move || s.acquire())
            },
            {
                let b = b.clone();
                cluster.spawn(move || b.wait())
            },
            cluster.spawn(park),
            cluster.spawn(|| {
                sleep(Duration::from_secs(100)).unwrap_err();
                park()
            }),
            {
                let s = s.clone();
                cluster.spawn(move || {
                    s.acquire_until(Instant::now() + Duration::from_secs(50))
                        .map_err(|_| park())
                        .unwrap()
                })
            },
            {
                let inner = cluster.spawn(park);
                cluster.spawn(move || {
                    let f = inner.fibre().clone();
                    let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| inner.join()));
                    f.cancel();
                    std::panic::resume_unwind(r.unwrap_err())
                })
            },
        ];
        for h in &hs {
            h.fibre().cancel();
        }
        for h in hs {
            assert!(h.join().unwrap_err().is::<Cancelled>());
        }
        s.release();
        assert!(s.try_acquire());
    }
}

#[test]
fn deadlines() {
    use std::time::{Duration, Instant};
    let cluster = Cluster::start(2).unwrap();
    let s = Arc::new(Semaphore::new(0));
    let hs: Vec<_> = (0..1000u64)
        .map(|i| {
            let s = s.clone();
            cluster.spawn(move || {
                let t = Instant::now();
                let until = t + Duration::from_micros(i * 20);
                let got = s.acquire_until(until);
                if got.is_err() {
                    assert!(Instant::now() >= until);
                }
                sleep(Duration::from_micros(i)).unwrap();
                got.is_ok()
            })
        })
        .collect();
    for _ in 0..500 {
        s.release();
        std::thread::sleep(Duration::from_micros(3));
    }
    let ok = hs
        .into_iter()
        .map(|h| h.join().unwrap())
        .filter(|b| *b)
        .count();
    let mut left = 0;
    while s.try_acquire() {
        left += 1;
    }
    assert_eq!(ok + left, 500);
    assert_eq!(
        s.acquire_until(Instant::now() + Duration::from_millis(2)),
        Err(Interrupted::TimedOut)
    );
}
