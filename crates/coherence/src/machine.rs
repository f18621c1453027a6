//! The hardware threads of a machine, and their distances.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

/// A machine: sockets, cores in each socket and hardware threads in each core. Written `4x16x2`.
///
/// Hardware threads are *places*, numbered as Linux numbers the CPUs of such a machine: first
/// one of each core, socket by socket, then their siblings in the same order.
///
/// ```
/// use corelay_coherence::{Distance, Machine};
///
/// let machine: Machine = "4x16x2".parse().unwrap();
/// assert_eq!(machine.places(), 128);
/// assert_eq!(machine.distance(0, 64), Distance::Core); // its sibling
/// assert_eq!(machine.distance(0, 15), Distance::Socket);
/// assert_eq!(machine.distance(0, 16), Distance::Across);
/// assert!("4x16".parse::<Machine>().is_err());
/// assert!("64x64x2".parse::<Machine>().is_err()); // more than 512 places
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    sockets: usize,
    cores: usize,
    threads: usize,
}

/// The distance between two hardware threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// They are siblings: threads of one core.
    Core,
    /// They are on different cores of one socket.
    Socket,
    /// They are on different sockets.
    Across,
}

impl Machine {
    /// The most places that a machine may have.
    pub const MAX_PLACES: usize = 512;

    /// A machine of so many sockets, cores in each socket and hardware threads in each core.
    ///
    /// # Errors
    /// If one of the numbers is 0, or there are more than [`MAX_PLACES`](Self::MAX_PLACES) places.
    pub fn new(sockets: usize, cores: usize, threads: usize) -> Result<Self, MachineError> {
        let places = sockets
            .checked_mul(cores)
            .and_then(|all| all.checked_mul(threads));
        match places {
            Some(1..=Self::MAX_PLACES) => Ok(Self {
                sockets,
                cores,
                threads,
            }),
            _ => Err(MachineError::Places),
        }
    }

    /// The number of sockets.
    pub fn sockets(self) -> usize {
        self.sockets
    }

    /// The number of cores in each socket.
    pub fn cores(self) -> usize {
        self.cores
    }

    /// The number of hardware threads in each core.
    pub fn threads(self) -> usize {
        self.threads
    }

    /// The number of hardware threads of the machine, 1 to [`MAX_PLACES`](Self::MAX_PLACES).
    pub fn places(self) -> usize {
        self.sockets * self.cores * self.threads
    }

    /// The distance between two different places.
    pub fn distance(self, a: usize, b: usize) -> Distance {
        let core = |place: usize| place % (self.sockets * self.cores);
        if core(a) == core(b) {
            Distance::Core
        } else if core(a) / self.cores == core(b) / self.cores {
            Distance::Socket
        } else {
            Distance::Across
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.sockets, self.cores, self.threads)
    }
}

impl FromStr for Machine {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        let number = |part: &str| {
            // `parse` would take a sign.
            let is_plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| part.parse().unwrap_or(usize::MAX))
        };
        let parts: Option<Vec<usize>> = text.trim().split('x').map(number).collect();
        match parts.as_deref() {
            Some(&[sockets, cores, threads]) => Self::new(sockets, cores, threads),
            _ => Err(MachineError::Form),
        }
    }
}

/// The reason why there is no such [`Machine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineError {
    /// The text is not three numbers with an `x` between them.
    Form,
    /// There is no hardware thread, or there are too many.
    Places,
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str(
                "a machine is sockets x cores of each x hardware threads of each core, as 4x16x2",
            ),
            Self::Places => write!(
                f,
                "a machine has from 1 to {} hardware threads",
                Machine::MAX_PLACES
            ),
        }
    }
}

impl std::error::Error for MachineError {}
