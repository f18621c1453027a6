//! A channel: values from any number of senders to any number of receivers, through a buffer of
//! fixed capacity.

mod errors;
mod state;

use crate::spin::Spin;
use crate::wait::{Interrupted, Limit, block_within, unwind};
use crate::wait_queue::Node;
use crate::waiter::Waiter;
pub use errors::{
    RecvError, RecvUntilError, SendError, SendUntilError, TryRecvError, TrySendError,
};
use state::{Get, MessageSlot, Put, Served, State};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Makes a channel with room for `capacity` values, all of it allocated now. With capacity 0 there
/// is no buffer: a sender waits until a receiver takes the value.
///
/// Each value is received once, in the order in which it was sent. Waiting senders and receivers
/// are served in order of arrival. The channel closes when the last handle of one side is dropped,
/// or by `close`. Then nothing is sent any more, waiting senders get their values back, and
/// receivers get the values that are left. Values that nobody can receive any more are dropped with
/// the last receiver.
///
/// ```
/// use corelay_fibre::{Cluster, channel};
///
/// // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
/// let cluster = unsafe { Cluster::start(2) }?;
/// let (sender, receiver) = channel(4);
/// let producers: Vec<_> = (0..3)
///     .map(|i| {
///         let sender = sender.clone();
///         cluster.spawn(move || sender.send(i).unwrap())
///     })
///     .collect();
/// drop(sender);
/// // On a thread or in a fibre, until all senders are gone.
/// assert_eq!(receiver.iter().sum::<i32>(), 3);
/// # for producer in producers { producer.join().unwrap() }
/// # Ok::<(), corelay_fibre::StartError>(())
/// ```
///
/// # Panics
/// If so much memory cannot be addressed. If the memory is not available, the process aborts.
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Spin::new(State::new(capacity)));
    let receiver = Receiver {
        shared: Arc::clone(&shared),
    };
    (Sender { shared }, receiver)
}

type Shared<T> = Spin<State<T>>;

/// Wakes the waiter on the other side that has been served, and gives the caller's own waiter back.
/// Called outside the lock.
#[inline(always)]
fn serve<T>(result: Option<(Waiter, Served<T>)>) -> Option<Waiter> {
    let (waiter, served) = result?;
    if let Some(served) = served {
        served.wake();
    }
    Some(waiter)
}

/// The side of a [`channel`] into which values are sent.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Sends a value, and waits for room if there is none.
    ///
    /// If the fibre is cancelled while it waits, it unwinds and the value is dropped.
    ///
    /// ```
    /// # use corelay_fibre::{channel, SendError};
    /// let (sender, receiver) = channel(1);
    /// sender.send("first").unwrap();
    /// drop(receiver);
    /// assert_eq!(sender.send("second"), Err(SendError("second")));
    /// ```
    ///
    /// # Errors
    /// Gives the value back if the channel is closed; or if it is full and the call comes from a
    /// destructor while the fibre unwinds, where it does not wait.
    ///
    /// # Panics
    /// In a place where nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
    #[track_caller]
    #[inline(always)]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        match self.send_within("Sender::send", Limit::Told, value) {
            Ok(()) => Ok(()),
            Err(
                SendUntilError::Closed(value)
                | SendUntilError::Interrupted(value, Interrupted::Unwinding),
            ) => Err(SendError(value)),
            Err(SendUntilError::Interrupted(value, why)) => {
                drop(value);
                unwind(why)
            }
        }
    }

    /// Sends a value if that needs no wait.
    ///
    /// ```
    /// # use corelay_fibre::{channel, TrySendError};
    /// let (sender, _receiver) = channel(1);
    /// assert_eq!(sender.try_send(1), Ok(()));
    /// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    /// ```
    ///
    /// # Errors
    /// Gives the value back if there is no room, or if the channel is closed.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        match self.shared.with(|state| state.put(value)) {
            Put::Done(served) => {
                if let Some(served) = served {
                    served.wake();
                }
                Ok(())
            }
            Put::Full(value) => Err(TrySendError::Full(value)),
            Put::Closed(value) => Err(TrySendError::Closed(value)),
        }
    }

    /// Sends a value as [`send`](Self::send) does, and waits until `deadline` at most.
    ///
    /// # Errors
    /// Gives the value back if the channel is closed, the deadline has passed, or the fibre has
    /// been cancelled; or if the channel is full and the call comes from a destructor while the
    /// fibre unwinds, where it does not wait.
    ///
    /// # Panics
    /// As for [`send`](Self::send).
    #[track_caller]
    pub fn send_until(&self, value: T, deadline: Instant) -> Result<(), SendUntilError<T>> {
        self.send_within("Sender::send_until", Limit::Until(deadline), value)
    }

    #[track_caller]
    #[inline(always)]
    fn send_within(
        &self,
        call: &'static str,
        limit: Limit,
        value: T,
    ) -> Result<(), SendUntilError<T>> {
        let value = match self.try_send(value) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed(value)) => return Err(SendUntilError::Closed(value)),
            Err(TrySendError::Full(value)) => value,
        };
        let node = Node::new(MessageSlot::new(Some(value)));
        let shared = &*self.shared;
        // SAFETY: this wait alone enqueues the node, and among the senders only.
        let remove = |_| shared.with(|state| unsafe { state.remove_sender(&node) });
        let ended = block_within(limit, call, &remove, |waiter| {
            // SAFETY: the frame waits here until the node has been taken out, and the node holds
            // the value.
            serve(shared.with(|state| unsafe { state.put_or_wait(&node, waiter) }))
        });
        match (node.payload.into_inner(), ended) {
            (None, _) => Ok(()),
            (Some(value), Ok(())) => Err(SendUntilError::Closed(value)),
            (Some(value), Err(why)) => Err(SendUntilError::Interrupted(value, why)),
        }
    }

    /// Closes the channel, even if others have handles.
    pub fn close(&self) {
        self.shared.with(State::close).wake();
    }

    /// Whether the channel is closed: then no value will be sent.
    pub fn is_closed(&self) -> bool {
        self.shared.with(|state| state.is_closed())
    }
}

/// The side of a [`channel`] from which values are received.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Receiver<T> {
    /// Receives the next value, and waits for one if there is none. A fibre that is cancelled while
    /// it waits unwinds.
    ///
    /// ```
    /// # use corelay_fibre::{RecvError, channel};
    /// let (sender, receiver) = channel(2);
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert_eq!(receiver.recv(), Err(RecvError));
    /// ```
    ///
    /// # Errors
    /// The channel is closed, and all its values have been received; or it is empty and the call
    /// comes from a destructor while the fibre unwinds, where it does not wait.
    ///
    /// # Panics
    /// In a place where nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
    #[track_caller]
    #[inline(always)]
    pub fn recv(&self) -> Result<T, RecvError> {
        match self.recv_within("Receiver::recv", Limit::Told) {
            Ok(value) => Ok(value),
            Err(RecvUntilError::Closed | RecvUntilError::Interrupted(Interrupted::Unwinding)) => {
                Err(RecvError)
            }
            Err(RecvUntilError::Interrupted(why)) => unwind(why),
        }
    }

    /// Receives the next value, if there is one.
    ///
    /// # Errors
    /// The channel is empty, or it is closed and empty.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match self.shared.with(State::get) {
            Get::Value(value, served) => {
                if let Some(served) = served {
                    served.wake();
                }
                Ok(value)
            }
            Get::Empty => Err(TryRecvError::Empty),
            Get::Closed => Err(TryRecvError::Closed),
        }
    }

    /// Receives the next value as [`recv`](Self::recv) does, and waits until `deadline` at most.
    ///
    /// # Errors
    /// The channel is closed and empty, the deadline has passed, or the fibre has been cancelled;
    /// or the channel is empty and the call comes from a destructor while the fibre unwinds, where
    /// it does not wait. No value was taken.
    ///
    /// # Panics
    /// As for [`recv`](Self::recv).
    #[track_caller]
    pub fn recv_until(&self, deadline: Instant) -> Result<T, RecvUntilError> {
        self.recv_within("Receiver::recv_until", Limit::Until(deadline))
    }

    #[track_caller]
    #[inline(always)]
    fn recv_within(&self, call: &'static str, limit: Limit) -> Result<T, RecvUntilError> {
        match self.try_recv() {
            Ok(value) => return Ok(value),
            Err(TryRecvError::Closed) => return Err(RecvUntilError::Closed),
            Err(TryRecvError::Empty) => {}
        }
        let node = Node::new(MessageSlot::new(None));
        let shared = &*self.shared;
        // SAFETY: this wait alone enqueues the node, and among the receivers only.
        let remove = |_| shared.with(|state| unsafe { state.remove_receiver(&node) });
        let ended = block_within(limit, call, &remove, |waiter| {
            // SAFETY: the frame waits here until the node has been taken out.
            serve(shared.with(|state| unsafe { state.get_or_wait(&node, waiter) }))
        });
        match (node.payload.into_inner(), ended) {
            (Some(value), _) => Ok(value),
            (None, Ok(())) => Err(RecvUntilError::Closed),
            (None, Err(why)) => Err(RecvUntilError::Interrupted(why)),
        }
    }

    /// An iterator that receives values until the channel is closed and empty.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// Closes the channel, even if others have handles. Its values can still be received.
    pub fn close(&self) {
        self.shared.with(State::close).wake();
    }

    /// Whether the channel is closed: then no values come beyond those in it.
    pub fn is_closed(&self) -> bool {
        self.shared.with(|state| state.is_closed())
    }

    /// The number of values in the channel now.
    pub fn len(&self) -> usize {
        self.shared.with(|state| state.len())
    }

    /// Whether no value is in the channel now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The iterator over a [`Receiver`]'s values, which waits for each.
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.with(|state| state.sender_handles += 1);
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.with(|state| state.receiver_handles += 1);
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let rest = self.shared.with(|state| {
            state.sender_handles -= 1;
            (state.sender_handles == 0).then(|| state.close())
        });
        if let Some(rest) = rest {
            rest.wake();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let rest = self.shared.with(|state| {
            state.receiver_handles -= 1;
            (state.receiver_handles == 0).then(|| (state.close(), state.take_buffer()))
        });
        if let Some((rest, unreceived)) = rest {
            rest.wake();
            drop(unreceived);
        }
    }
}

fn debug<T>(shared: &Shared<T>, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (len, capacity, is_closed) =
        shared.with(|state| (state.len(), state.capacity(), state.is_closed()));
    f.debug_struct(name)
        .field("len", &len)
        .field("capacity", &capacity)
        .field("is_closed", &is_closed)
        .finish()
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(&self.shared, "Sender", f)
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(&self.shared, "Receiver", f)
    }
}
