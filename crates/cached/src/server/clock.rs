//! The seconds of a server, as memcached counts them.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Expiries up to this many seconds, 30 days, count from now; later ones are times since 1970.
const LONGEST_DELAY: u32 = 30 * 24 * 3600;
/// The second at which a server starts, as in memcached: 1 is always over.
const FIRST: u32 = 62;
/// A second that is over.
const OVER: u32 = 1;

/// A clock that stands still between two [ticks](Self::tick).
#[derive(Clone)]
pub(crate) struct Clock {
    start: Instant,
    /// The second 0, since 1970.
    zero: u32,
    now: u32,
}

impl Clock {
    /// Starts a clock.
    pub(crate) fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since_1970.map_or(FIRST, |time| time.as_secs() as u32);
        Self {
            start: Instant::now(),
            zero: seconds.saturating_sub(FIRST),
            now: FIRST,
        }
    }

    /// Looks at the time.
    pub(crate) fn tick(&mut self) {
        self.now = FIRST + self.start.elapsed().as_secs() as u32;
    }

    /// The second, as of the last tick.
    #[inline]
    pub(crate) fn now(&self) -> u32 {
        self.now
    }

    /// The seconds since the start, as of the last tick.
    pub(crate) fn uptime(&self) -> u32 {
        self.now - FIRST
    }

    /// The seconds since 1970, as of the last tick.
    pub(crate) fn time(&self) -> u32 {
        self.zero + self.now
    }

    /// The second at which an item expires for which a client has given `expiry`; 0 if it does not.
    #[inline]
    pub(crate) fn expiry(&self, expiry: i32) -> u32 {
        u32::try_from(expiry).map_or(OVER, |expiry| self.unsigned_expiry(expiry))
    }

    /// The same of an `expiry` that has no sign, as in the binary protocol.
    #[inline]
    pub(crate) fn unsigned_expiry(&self, expiry: u32) -> u32 {
        match expiry {
            0 => 0,
            delay if delay <= LONGEST_DELAY => self.now() + delay,
            time if time > self.zero => time - self.zero,
            _ => OVER,
        }
    }
}
