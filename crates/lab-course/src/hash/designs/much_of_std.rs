//! A correct design: one lock around a map. It uses much of `std::sync` on the way, by all the
//! names that there are, to show that it builds and works as it is checked.

#![forbid(unsafe_code)]

use core::sync::atomic::AtomicI32;
use std::collections::HashMap;
use std::sync::atomic::{self, AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::*;
use std::{fmt::Debug, thread, time::Duration};

static TABLES: AtomicUsize = AtomicUsize::new(0);
static SHARED: ::std::sync::Mutex<Vec<u8>> = ::std::sync::Mutex::new(Vec::new());
static ONCE: Once = Once::new();
static LAZY: LazyLock<RwLock<u64>> = LazyLock::new(|| RwLock::new(1));

thread_local! {
    static LOCAL: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[derive(Debug, Default)]
pub struct Table {
    map: std::sync::Mutex<HashMap<u64, u64>>,
    other: Option<Arc<Mutex<dyn Debug + Send>>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        TABLES.fetch_add(1, Ordering::SeqCst);
        ONCE.call_once(tour);
        let mut table = Self::default();
        table.other = Some(Arc::new(Mutex::new(3_u8)));
        table
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map.lock().unwrap().insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        LOCAL.set(LOCAL.get() + 1);
        self.map.lock().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.map.lock().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.lock().unwrap().keys().copied().collect()
    }
}

fn tour() {
    SHARED.lock().unwrap().push(1);
    *LAZY.write().unwrap() += 1;

    let mut mutex = Mutex::from(1);
    *mutex.get_mut().unwrap() += 1;
    let guard = mutex.lock().unwrap();
    assert!(matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
    assert_eq!(format!("{guard} {guard:?}"), "2 2");
    drop(guard);
    assert_eq!(
        format!("{mutex:?}"),
        "Mutex { data: 2, poisoned: false, .. }"
    );
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let panicked = std::panic::catch_unwind(|| {
        let _guard = mutex.lock();
        panic!("on purpose");
    });
    std::panic::set_hook(print);
    assert!(panicked.is_err() && mutex.is_poisoned());
    let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*guard, 2);
    drop(guard);
    assert!(matches!(mutex.try_lock(), Err(TryLockError::Poisoned(_))));
    mutex.clear_poison();
    assert_eq!(mutex.into_inner().unwrap(), 2);

    let lock = RwLock::new(5);
    let (one, two) = (lock.read().unwrap(), lock.try_read().unwrap());
    assert!(lock.try_write().is_err() && *one == *two);
    drop((one, two));
    let mut writer = lock.write().unwrap();
    *writer += 1;
    let reader: RwLockReadGuard<'_, i32> = RwLockWriteGuard::downgrade(writer);
    assert_eq!(*reader, 6);
    drop(reader);

    let pair = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            *pair.0.lock().unwrap() = true;
            pair.1.notify_all();
        });
        let is_set = pair
            .1
            .wait_while(pair.0.lock().unwrap(), |set| !*set)
            .unwrap();
        assert!(*is_set);
    });
    let short = Duration::from_micros(1);
    let (guard, waited) = pair.1.wait_timeout(pair.0.lock().unwrap(), short).unwrap();
    assert!(*guard && (waited.timed_out() || !waited.timed_out()));
    drop(guard);

    let number = AtomicI32::new(-1);
    assert_eq!(
        number.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some(n + 1)),
        Ok(-1)
    );
    assert_eq!(
        number.compare_exchange(0, 4, Ordering::AcqRel, Ordering::Acquire),
        Ok(0)
    );
    assert_eq!(number.fetch_max(9, Ordering::Relaxed), 4);
    let same: &std::sync::atomic::AtomicI32 = &number;
    assert_eq!(same.load(Ordering::SeqCst), 9);
    assert!(!AtomicBool::default().fetch_not(Ordering::SeqCst));
    assert!(AtomicPtr::<u8>::default().load(Ordering::SeqCst).is_null());
    atomic::fence(Ordering::SeqCst);

    let barrier = Barrier::new(2);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            barrier.wait();
            sender.send(1).unwrap();
        });
        barrier.wait();
        assert_eq!(receiver.recv(), Ok(1));
    });
    thread::yield_now();
    std::hint::spin_loop();
    thread::sleep(short);
    thread::park_timeout(short);
}
