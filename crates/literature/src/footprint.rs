//! The footprint of a protocol: the memory that both sides keep in their caches.

#![forbid(unsafe_code)]

/// The bytes that a server and all its clients take: see
/// [`Delegation::footprint`](crate::Delegation::footprint).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Request lines of all clients: both sides have them in their caches.
    pub requests: usize,
    /// Response lines for all clients: both sides have them in their caches.
    pub responses: usize,
    /// The server's own state.
    pub server: usize,
    /// The own states of all clients.
    pub clients: usize,
}
