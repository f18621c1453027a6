//! A time, and the three answers of comparing two times: before, after, uncertain.

use std::fmt;

/// A time of some [`Clock`](crate::Clock), in that clock's units.
///
/// Times of different clocks are not comparable, nor are times of two processes. The value is
/// below 2^62 for 35 years at 4 GHz, so algorithms may keep two bits of a word for themselves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Time(u64);

/// The order of two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Order {
    /// The first is certainly earlier.
    Before,
    /// The first is certainly later.
    After,
    /// Either may be earlier.
    Uncertain,
}

impl Time {
    /// The time before every time that a clock gives out.
    pub const ZERO: Self = Self(0);
    /// The time after every time that a clock gives out: "not yet".
    pub const NEVER: Self = Self((1 << 62) - 1);

    /// Makes a time from its bare number, such as one that [`raw`](Self::raw) returned.
    #[inline(always)]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The bare number of this time, which algorithms keep in an atomic word.
    #[inline(always)]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEVER => f.write_str("never"),
            Self(raw) => write!(f, "@{raw}"),
        }
    }
}
