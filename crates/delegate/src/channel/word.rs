//! The packed words of the channel.

/// Where a side stands in a ring: 8-byte units in the upper half, requests in the lower.
///
/// ```text
/// 63            32 31             0
/// +---------------+---------------+
/// | cursor, units | count         |
/// +---------------+---------------+
/// ```
/// Both wrap. One addition of [`step`] advances both. When the count wraps, its carry
/// moves the cursor by one unit; both sides add the same steps, so they skip the same
/// unit, and [`SPARE`](super::ring::SPARE) leaves room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position(pub(crate) u64);

/// What one request of `units` adds to a [`Position`].
pub(crate) const fn step(units: usize) -> u64 {
    ((units as u64) << 32) | 1
}

/// What a jump of `units` adds: room, but no request.
pub(crate) const fn jump_step(units: usize) -> u64 {
    (units as u64) << 32
}

impl Position {
    #[inline(always)]
    pub(crate) const fn new(cursor: u32, count: u32) -> Self {
        Self(((cursor as u64) << 32) | count as u64)
    }

    /// Units since the beginning, modulo 2^32.
    #[inline(always)]
    pub(crate) const fn cursor(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Requests since the beginning, modulo 2^32.
    #[inline(always)]
    pub(crate) const fn count(self) -> u32 {
        self.0 as u32
    }

    /// The position behind a request of `step`.
    #[inline(always)]
    pub(crate) const fn after(self, step: u64) -> Self {
        Self(self.0.wrapping_add(step))
    }
}

/// True where `a` lies behind `b` in a wrapping order (their distance is below 2^31).
#[inline(always)]
pub(crate) const fn is_past(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// The word a trustee polls: the ring is published up to `cursor`, and behind it waits
/// the lone call number `call`.
///
/// ```text
/// 63            32 31           1   0
/// +---------------+--------------+---+
/// | cursor, units | call number  | 0 |   in the answer the lowest bit says "fault"
/// +---------------+--------------+---+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mail(pub(crate) u64);

impl Mail {
    const FAULT: u64 = 1;
    const CALLS: u64 = 0xffff_fffe;

    #[inline(always)]
    pub(crate) const fn new(cursor: u32, call: u32) -> Self {
        Self(((cursor as u64) << 32) | ((call << 1) as u64))
    }

    #[inline(always)]
    pub(crate) const fn cursor(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// True where the two words speak of different lone calls.
    #[inline(always)]
    pub(crate) const fn call_differs(self, other: Self) -> bool {
        (self.0 ^ other.0) & Self::CALLS != 0
    }

    /// The ring is published up to `cursor`; the lone call stays what it was.
    #[inline(always)]
    pub(crate) const fn with_cursor(self, cursor: u32) -> Self {
        Self(((cursor as u64) << 32) | (self.0 & Self::CALLS))
    }

    /// The ring is published up to `cursor`, and a new lone call waits behind it.
    #[inline(always)]
    pub(crate) const fn with_next_call(self, cursor: u32) -> Self {
        Self(((cursor as u64) << 32) | ((self.0.wrapping_add(2)) & Self::CALLS))
    }

    /// As an answer: the lone call faulted.
    #[inline(always)]
    pub(crate) const fn faulted(self) -> Self {
        Self(self.0 | Self::FAULT)
    }

    /// As an answer: did it fault?
    #[inline(always)]
    pub(crate) const fn is_fault(self) -> bool {
        self.0 & Self::FAULT != 0
    }

    /// As an answer: is it one to `mail`, faulted or not?
    #[inline(always)]
    pub(crate) const fn answers(self, mail: Self) -> bool {
        self.0 & !Self::FAULT == mail.0
    }
}
