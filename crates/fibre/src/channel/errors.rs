//! The errors of sending and receiving.

use crate::wait::Interrupted;
use std::fmt;

/// The error of [`Sender::send`](super::Sender::send), which gives the value back: the channel is
/// closed, or it is full and the fibre unwinds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// The error of [`Sender::try_send`](super::Sender::try_send), which gives the value back.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrySendError<T> {
    /// There is no room now, and no receiver waits for a value.
    Full(T),
    /// The channel is closed, so no value will be sent any more.
    Closed(T),
}

/// The error of [`Sender::send_until`](super::Sender::send_until), which gives the value back.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendUntilError<T> {
    /// The wait for room has ended early.
    Interrupted(T, Interrupted),
    /// The channel is closed.
    Closed(T),
}

/// The error of [`Receiver::recv`](super::Receiver::recv): the channel is closed, and all its
/// values have been received; or it is empty and the fibre unwinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

/// The error of [`Receiver::try_recv`](super::Receiver::try_recv).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryRecvError {
    /// There is no value now.
    Empty,
    /// There will be no value: the channel is closed and empty.
    Closed,
}

/// The error of [`Receiver::recv_until`](super::Receiver::recv_until).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvUntilError {
    /// The wait for a value has ended early.
    Interrupted(Interrupted),
    /// There will be no value: the channel is closed and empty.
    Closed,
}

impl<T> SendError<T> {
    /// Takes the value that was not sent.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> TrySendError<T> {
    /// Takes the value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> SendUntilError<T> {
    /// Takes the value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Interrupted(value, _) | Self::Closed(value) => value,
        }
    }
}

const CLOSED: &str = "the channel is closed";
const CLOSED_OR_UNWINDING: &str = "the channel is closed, or the fibre unwinds and does not wait";

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Debug for SendUntilError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(_, why) => write!(f, "Interrupted(.., {why:?})"),
            Self::Closed(_) => f.write_str("Closed(..)"),
        }
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLOSED_OR_UNWINDING)
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the channel is full",
            Self::Closed(_) => CLOSED,
        })
    }
}

impl<T> fmt::Display for SendUntilError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(_, why) => why.fmt(f),
            Self::Closed(_) => f.write_str(CLOSED),
        }
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLOSED_OR_UNWINDING)
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the channel is empty",
            Self::Closed => CLOSED,
        })
    }
}

impl fmt::Display for RecvUntilError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(why) => why.fmt(f),
            Self::Closed => f.write_str(CLOSED),
        }
    }
}

impl<T> std::error::Error for SendError<T> {}
impl<T> std::error::Error for TrySendError<T> {}
impl<T> std::error::Error for SendUntilError<T> {}
impl std::error::Error for RecvError {}
impl std::error::Error for TryRecvError {}
impl std::error::Error for RecvUntilError {}
