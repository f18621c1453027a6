//! Fibres as threads, until the crate of fibres is there.
#![allow(
    unreachable_pub,
    missing_docs,
    dead_code,
    missing_debug_implementations
)]
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
use std::any::Any;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What a figure must not leave unsaid.
pub const NOTE: &str = "threads of the system stand in for fibres here";
pub type SpawnError = std::io::Error;

#[derive(Debug)]
pub struct Cluster {
    live: Arc<(Mutex<usize>, Condvar)>,
    processors: usize,
    next: AtomicUsize,
}
pub struct Counters {
    pub migrations: u64,
}
thread_local!(static HOME: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) });
impl Cluster {
    pub fn start(n: usize) -> std::io::Result<Self> {
        Ok(Self {
            live: Arc::default(),
            processors: n,
            next: AtomicUsize::new(0),
        })
    }
    pub fn fibre(&self) -> Builder<'_> {
        Builder(self)
    }
    pub fn counters(&self) -> Counters {
        Counters { migrations: 0 }
    }
}
impl Drop for Cluster {
    fn drop(&mut self) {
        let mut live = self.live.0.lock().unwrap();
        while *live > 0 {
            live = self.live.1.wait(live).unwrap();
        }
    }
}
pub struct Builder<'a>(&'a Cluster);
pub struct JoinHandle<T>(thread::JoinHandle<T>);
impl Builder<'_> {
    /// # Safety
    /// None here.
    #[allow(unsafe_code)]
    pub unsafe fn migrating(self) -> Self {
        self
    }
    pub fn spawn<T: Send + 'static>(
        self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<JoinHandle<T>> {
        let live = Arc::clone(&self.0.live);
        *live.0.lock().unwrap() += 1;
        let home = self.0.next.fetch_add(1, Ordering::Relaxed) % self.0.processors;
        thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || {
                HOME.set(Some(home));
                let value = f();
                *live.0.lock().unwrap() -= 1;
                live.1.notify_all();
                value
            })
            .map(JoinHandle)
    }
}
impl<T> JoinHandle<T> {
    pub fn join(self) -> Result<T, Box<dyn Any + Send>> {
        self.0.join()
    }
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}
pub fn processor() -> Option<usize> {
    HOME.get()
}
pub fn yield_now() {
    thread::yield_now()
}
#[derive(Debug)]
pub struct BinarySemaphore(Mutex<bool>, Condvar);
impl BinarySemaphore {
    pub const fn new(open: bool) -> Self {
        Self(Mutex::new(open), Condvar::new())
    }
    pub fn wait(&self) {
        let mut open = self.0.lock().unwrap();
        while !*open {
            open = self.1.wait(open).unwrap();
        }
        *open = false;
    }
    pub fn post(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
}
#[derive(Debug)]
pub struct Semaphore(Mutex<(u32, u32, u32)>, Condvar);
impl Semaphore {
    pub const fn new(n: u32) -> Self {
        Self(Mutex::new((n, 0, 0)), Condvar::new())
    }
    pub fn acquire(&self) {
        let mut s = self.0.lock().unwrap();
        if s.0 > 0 {
            s.0 -= 1;
            return;
        }
        let ticket = s.1;
        s.1 += 1;
        while s.2 <= ticket {
            s = self.1.wait(s).unwrap();
        }
    }
    pub fn try_acquire(&self) -> bool {
        let mut s = self.0.lock().unwrap();
        let had = s.0 > 0;
        s.0 -= u32::from(had);
        had
    }
    pub fn release(&self) {
        self.release_many(1);
    }
    pub fn release_many(&self, n: u32) {
        let mut s = self.0.lock().unwrap();
        for _ in 0..n {
            if s.2 < s.1 {
                s.2 += 1;
            } else {
                s.0 += 1;
            }
        }
        self.1.notify_all();
    }
}
