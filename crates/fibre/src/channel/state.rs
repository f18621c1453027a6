//! What is in a channel, and who waits for it: under its lock.
//!
//! | buffer | senders wait | receivers wait |
//! |---|---|---|
//! | empty | only where there is no room at all | perhaps |
//! | some | no | no |
//! | full | perhaps | no |
//! | closed | no | no |
//!
//! A value goes from a sender that waits into the buffer as soon as there is room, or from a sender
//! into the frame of a receiver that waits: in order of arrival, and nobody overtakes. Where a value
//! is says what has become of it: one in its sender's frame has not been sent.

use crate::wait_queue::{Node, Taken, TakenAll, WaitQueue};
use crate::waiter::Waiter;
use corelay_sync::facade::cell::UnsafeCell;
use std::collections::VecDeque;

/// In the frame of who waits: what a sender has, or what a receiver has got. Used under the lock, by
/// who has taken the node out, and by its owner when that goes on.
pub(super) struct MessageSlot<T>(UnsafeCell<Option<T>>);

impl<T> MessageSlot<T> {
    pub(super) fn new(value: Option<T>) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub(super) fn into_inner(self) -> Option<T> {
        self.0.into_inner()
    }

    /// # Safety
    /// As the type says.
    unsafe fn replace(&self, value: Option<T>) -> Option<T> {
        // SAFETY: the caller's duty.
        (self.0).with_mut(|slot| std::mem::replace(unsafe { &mut *slot }, value))
    }
}

pub(super) struct State<T> {
    buffer: VecDeque<T>,
    capacity: usize,
    /// Those who wait.
    senders: WaitQueue<MessageSlot<T>>,
    receivers: WaitQueue<MessageSlot<T>>,
    is_closed: bool,
    /// Handles.
    pub(super) sender_handles: usize,
    pub(super) receiver_handles: usize,
}

/// One that has been served, to be woken outside the lock.
pub(super) type Served<T> = Option<Taken<MessageSlot<T>>>;

pub(super) enum Put<T> {
    Done(Served<T>),
    Full(T),
    Closed(T),
}

pub(super) enum Get<T> {
    Value(T, Served<T>),
    Empty,
    Closed,
}

/// All that waited when the channel was closed.
pub(super) struct Rest<T> {
    senders: TakenAll<MessageSlot<T>>,
    receivers: TakenAll<MessageSlot<T>>,
}

impl<T> Rest<T> {
    pub(super) fn wake(self) {
        self.receivers.wake();
        self.senders.wake();
    }
}

impl<T> State<T> {
    /// With one handle at each side.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            buffer: VecDeque::with_capacity(capacity),
            capacity,
            senders: WaitQueue::new(),
            receivers: WaitQueue::new(),
            is_closed: false,
            sender_handles: 1,
            receiver_handles: 1,
        }
    }

    pub(super) fn put(&mut self, value: T) -> Put<T> {
        if self.is_closed {
            return Put::Closed(value);
        }
        if let Some(receiver) = self.receivers.pop() {
            // SAFETY: taken out by us.
            unsafe { receiver.payload().replace(Some(value)) };
            return Put::Done(Some(receiver));
        }
        if self.buffer.len() < self.capacity {
            self.buffer.push_back(value);
            return Put::Done(None);
        }
        Put::Full(value)
    }

    pub(super) fn get(&mut self) -> Get<T> {
        let first = self.buffer.pop_front();
        let sender = self.senders.pop();
        // SAFETY: taken out by us.
        let next = (sender.as_ref()).and_then(|sender| unsafe { sender.payload().replace(None) });
        match (first, next) {
            (Some(first), next) => {
                // There is room now.
                self.buffer.extend(next);
                Get::Value(first, sender)
            }
            // Without a buffer, from frame to frame.
            (None, Some(next)) => Get::Value(next, sender),
            (None, None) if self.is_closed => Get::Closed,
            (None, None) => Get::Empty,
        }
    }

    /// Sends what the sender has, or lets it wait: `None`. It is given back where it does not wait,
    /// with a receiver that has been served.
    ///
    /// # Safety
    /// The sender's frame waits, and has a value.
    pub(super) unsafe fn put_or_wait(
        &mut self,
        node: &Node<MessageSlot<T>>,
        waiter: Waiter,
    ) -> Option<(Waiter, Served<T>)> {
        // SAFETY: nobody else knows the node.
        let value = unsafe { node.payload.replace(None) }.expect("a sender has a value");
        match self.put(value) {
            Put::Done(receiver) => Some((waiter, receiver)),
            Put::Closed(value) => {
                // SAFETY: as above.
                unsafe { node.payload.replace(Some(value)) };
                Some((waiter, None))
            }
            Put::Full(value) => {
                // SAFETY: as above.
                unsafe { node.payload.replace(Some(value)) };
                // SAFETY: new; the caller's duty.
                unsafe { self.senders.push(node, waiter) };
                None
            }
        }
    }

    /// Gives the receiver a value, or lets it wait: `None`. It is given back where it does not wait,
    /// with a sender that has been served.
    ///
    /// # Safety
    /// The receiver's frame waits.
    pub(super) unsafe fn get_or_wait(
        &mut self,
        node: &Node<MessageSlot<T>>,
        waiter: Waiter,
    ) -> Option<(Waiter, Served<T>)> {
        match self.get() {
            Get::Value(value, sender) => {
                // SAFETY: nobody else knows the node.
                unsafe { node.payload.replace(Some(value)) };
                Some((waiter, sender))
            }
            Get::Closed => Some((waiter, None)),
            Get::Empty => {
                // SAFETY: new; the caller's duty.
                unsafe { self.receivers.push(node, waiter) };
                None
            }
        }
    }

    /// Takes a sender out whose wait was interrupted, with its value.
    ///
    /// # Safety
    /// The node waits here, or is in no queue.
    pub(super) unsafe fn remove_sender(&mut self, node: &Node<MessageSlot<T>>) -> Option<Waiter> {
        // SAFETY: the caller's duty.
        unsafe { self.senders.remove(node) }
    }

    /// Takes a receiver out whose wait was interrupted.
    ///
    /// # Safety
    /// As [`remove_sender`](Self::remove_sender).
    pub(super) unsafe fn remove_receiver(&mut self, node: &Node<MessageSlot<T>>) -> Option<Waiter> {
        // SAFETY: the caller's duty.
        unsafe { self.receivers.remove(node) }
    }

    /// Nothing is sent any more.
    pub(super) fn close(&mut self) -> Rest<T> {
        self.is_closed = true;
        Rest {
            senders: self.senders.take_all(),
            receivers: self.receivers.take_all(),
        }
    }

    /// What nobody will receive.
    pub(super) fn take_buffer(&mut self) -> VecDeque<T> {
        std::mem::take(&mut self.buffer)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }
}
