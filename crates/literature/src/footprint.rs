//! What a protocol keeps in the caches of both sides.

#![forbid(unsafe_code)]

/// Bytes of a server and all its clients, by the sizes of what is there: see
/// [`Delegation::footprint`](crate::Delegation::footprint).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Request lines of all clients: both sides have them in their caches.
    pub requests: usize,
    /// Response lines for all clients: as above.
    pub responses: usize,
    /// What the server keeps for itself.
    pub server: usize,
    /// What all clients keep for themselves.
    pub clients: usize,
}
