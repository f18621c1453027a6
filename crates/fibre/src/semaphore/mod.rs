//! Semaphores.

mod binary;
mod counting;

pub use binary::BinarySemaphore;
pub use counting::Semaphore;
