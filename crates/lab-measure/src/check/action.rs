//! Requests to structures, and their replies: one vocabulary for all kinds, so that each method is
//! compiled once for all structures.

use super::structure::Plain;
use crate::workload::operation::{Answer, Operation};
use corelay_sync::facade::thread;

/// An operation on a structure. Which ones a structure has depends on its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads the value of a key.
    Get(u64),
    /// Inserts a key with a value.
    Insert(u64, u64),
    /// Removes a key.
    Remove(u64),
    /// Adds a value.
    Push(u64),
    /// Takes the value, or the entry, whose turn it is.
    Pop,
    /// Reads the value whose turn it is.
    Peek,
}

/// The reply to an action: a number below 2^48, or nothing. Its meaning depends on the kind of the
/// structure and on the action.
pub(super) type Reply = Option<u64>;

/// Bits of a value and of a key, so that an entry fits into a reply.
const VALUE_BITS: u32 = 40;
const KEY_BITS: u32 = 8;

/// Bits of a reply's number.
const REPLY_BITS: u32 = VALUE_BITS + KEY_BITS;

/// An entry as a number.
pub(super) fn entry((key, value): (u64, u64)) -> u64 {
    debug_assert!(key >> KEY_BITS == 0 && value >> VALUE_BITS == 0);
    key << VALUE_BITS | value
}

/// The entry that [`entry`] has made a number.
pub(super) fn entry_of(number: u64) -> (u64, u64) {
    (number >> VALUE_BITS, number & ((1 << VALUE_BITS) - 1))
}

impl Action {
    /// Refuses an action of another kind.
    ///
    /// # Panics
    /// Always.
    pub(super) fn refuse(self) -> ! {
        unreachable!("{self:?} is no operation of this kind of structure")
    }
}

/// An action on its way to a structure.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub(super) action: Action,
    /// Whether the thread that runs the action gives up its CPU meanwhile, as if it were preempted
    /// inside a method's section. Other clients then come to wait for it.
    pub(super) lingers: bool,
    /// The place of the call among the client's calls in flight. Answers may come in any order.
    pub(super) place: u8,
}

/// The reply on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replied {
    pub(super) reply: Reply,
    pub(super) place: u8,
}

impl Request {
    pub(super) fn replied(self, reply: Reply) -> Replied {
        let place = self.place;
        Replied { reply, place }
    }
}

impl Operation<Plain> for Request {
    type Answer = Replied;

    fn run(self, object: &mut Plain) -> Replied {
        if self.lingers {
            thread::yield_now();
        }
        self.replied(object(self.action))
    }
}

impl Answer for Replied {
    /// From the lowest bit: 8 of the place, 1 that says whether there is a reply, and the reply.
    fn number(self) -> u64 {
        debug_assert!(self.reply.is_none_or(|number| number >> REPLY_BITS == 0));
        let reply = self.reply.map_or(0, |number| number << 1 | 1);
        reply << 8 | u64::from(self.place)
    }
}

impl From<u64> for Replied {
    fn from(number: u64) -> Self {
        let reply = number >> 8;
        Self {
            reply: (reply & 1 == 1).then_some(reply >> 1),
            place: number as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn replies_and_entries_round_trip(
            number in prop::option::of(0u64..1 << REPLY_BITS),
            place: u8,
        ) {
            let replied = Replied { reply: number, place };
            prop_assert_eq!(Replied::from(replied.number()), replied);
            let number = number.unwrap_or(0);
            prop_assert_eq!(entry(entry_of(number)), number);
        }
    }
}
