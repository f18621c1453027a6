//! Alarms, which wake threads that sleep in event loops: `epoll`, `kqueue`, `io_uring`.

use crate::facade::atomic::{AtomicU64, Ordering};

/// The alarm of a thread that sleeps in an event loop: a file descriptor that becomes readable when
/// another thread rings. Under the model checkers a condition variable stands for it.
#[derive(Debug)]
pub(super) struct Alarm {
    alarm: imp::Alarm,
    /// The number of rings that the thread has not taken yet. It may differ from the number of those
    /// that have come: a thread stores that it wakes another one, and rings then.
    owed: AtomicU64,
}

impl Alarm {
    /// Makes an alarm that has not rung.
    ///
    /// # Errors
    /// The system gives no more file descriptors.
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            alarm: imp::Alarm::new()?,
            owed: AtomicU64::new(0),
        })
    }

    /// Makes the descriptor readable until the thread takes the ring. Any thread may ring, once for
    /// each sleep.
    pub(super) fn ring(&self) {
        self.alarm.ring();
    }

    /// Takes the rings that have come, so that the descriptor is no longer readable. Called by the
    /// alarm's own thread at the end of a sleep; `is_woken` says whether a thread rings for that, or
    /// is about to. A ring that comes late is taken at a later end of a sleep.
    pub(super) fn settle(&self, is_woken: bool) {
        // Relaxed, all of them: the thread's own.
        let owed = self.owed.load(Ordering::Relaxed) + u64::from(is_woken);
        if owed > 0 {
            self.owed.store(owed - self.alarm.take(), Ordering::Relaxed);
        }
    }

    /// The descriptor, which an event loop watches for reading.
    #[cfg(not(any(corelay_loom, corelay_shuttle)))]
    pub(super) fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.alarm.fd()
    }

    /// Waits until there is a ring, in the place of an event loop.
    #[cfg(any(corelay_loom, corelay_shuttle))]
    pub(super) fn wait(&self) {
        self.alarm.wait();
    }

    /// Whether there is a ring, so that an event loop would not sleep.
    #[cfg(any(corelay_loom, corelay_shuttle))]
    pub(super) fn has_rung(&self) -> bool {
        self.alarm.has_rung()
    }
}

#[cfg(all(target_os = "linux", not(any(corelay_loom, corelay_shuttle))))]
mod imp {
    use std::fs::File;
    use std::io::{Error, Read, Result, Write};
    use std::os::fd::{AsFd, BorrowedFd, FromRawFd};

    /// An `eventfd`, which counts its rings.
    #[derive(Debug)]
    pub(super) struct Alarm(File);

    impl Alarm {
        pub(super) fn new() -> Result<Self> {
            // SAFETY: the call takes no pointers.
            let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
            if fd < 0 {
                return Err(Error::last_os_error());
            }
            // SAFETY: the descriptor is new and belongs to nobody else.
            Ok(Self(unsafe { File::from_raw_fd(fd) }))
        }

        pub(super) fn ring(&self) {
            // The write fails only if 2^64 - 2 rings wait, and then the descriptor is readable.
            let _ = (&self.0).write(&1u64.to_ne_bytes());
        }

        pub(super) fn take(&self) -> u64 {
            let mut rings = [0; 8];
            match (&self.0).read(&mut rings) {
                Ok(8) => u64::from_ne_bytes(rings),
                _ => 0,
            }
        }

        pub(super) fn fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

#[cfg(all(unix, not(any(target_os = "linux", corelay_loom, corelay_shuttle))))]
mod imp {
    use std::io::{Read, Result, Write};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixStream;

    /// Two ends of a stream: each ring is a byte.
    #[derive(Debug)]
    pub(super) struct Alarm {
        rung: UnixStream,
        ringer: UnixStream,
    }

    impl Alarm {
        pub(super) fn new() -> Result<Self> {
            let (rung, ringer) = UnixStream::pair()?;
            rung.set_nonblocking(true)?;
            ringer.set_nonblocking(true)?;
            Ok(Self { rung, ringer })
        }

        pub(super) fn ring(&self) {
            // At most one ring waits for each sleep, so the stream is never full.
            let _ = (&self.ringer).write(&[1]);
        }

        pub(super) fn take(&self) -> u64 {
            let mut rings = [0; 64];
            (&self.rung).read(&mut rings).unwrap_or(0) as u64
        }

        pub(super) fn fd(&self) -> BorrowedFd<'_> {
            self.rung.as_fd()
        }
    }
}

#[cfg(any(corelay_loom, corelay_shuttle))]
mod imp {
    use crate::facade::sync::{Condvar, Mutex};
    use std::io::Result;

    #[derive(Debug)]
    pub(super) struct Alarm {
        rings: Mutex<u64>,
        rung: Condvar,
    }

    impl Alarm {
        pub(super) fn new() -> Result<Self> {
            Ok(Self {
                rings: Mutex::new(0),
                rung: Condvar::new(),
            })
        }

        pub(super) fn ring(&self) {
            *self.rings.lock().unwrap() += 1;
            self.rung.notify_one();
        }

        pub(super) fn take(&self) -> u64 {
            std::mem::take(&mut self.rings.lock().unwrap())
        }

        pub(super) fn has_rung(&self) -> bool {
            *self.rings.lock().unwrap() > 0
        }

        pub(super) fn wait(&self) {
            let mut rings = self.rings.lock().unwrap();
            while *rings == 0 {
                rings = self.rung.wait(rings).unwrap();
            }
        }
    }
}
