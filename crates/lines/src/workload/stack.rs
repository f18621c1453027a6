//! The workload `stack`: a stack in an array.

use super::memory::Words;
use super::{Client, Object, room};

pub(crate) struct Stack {
    values: Words,
    room: u32,
    len: u32,
    served: u64,
}

impl Object for Stack {
    /// The value to put, or none to take one.
    type Request = Option<u32>;

    fn new(size: u32) -> Self {
        let mut stack = Self {
            values: Words::new(room(size)),
            room: room(size),
            len: 0,
            served: 0,
        };
        (0..size).for_each(|value| _ = stack.serve(Some(value)));
        stack.served = 0;
        stack
    }

    fn warm_up(size: u32) -> u64 {
        8 * u64::from(size)
    }

    fn choose(client: &mut Client) -> Option<u32> {
        client
            .made()
            .is_multiple_of(2)
            .then(|| client.below(client.room()))
    }

    /// Returns the value that was put or taken, or `u64::MAX` if the stack is full or empty.
    fn serve(&mut self, value: Option<u32>) -> u64 {
        self.served += 1;
        match value {
            Some(value) if self.len < self.room => {
                self.values.at(self.len).set(value.into());
                self.len += 1;
                value.into()
            }
            None if self.len > 0 => {
                self.len -= 1;
                self.values.at(self.len).get()
            }
            _ => u64::MAX,
        }
    }

    fn served(&self) -> u64 {
        self.served
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::in_turn;

    /// By hand, for eight values in the first of two lines, `F` and `S`, which place 0 has made. `L`
    /// is the lock's line.
    ///
    /// | place | request | moves | claims |
    /// |---|---|---|---|
    /// | 0 | put into S | | |
    /// | 1 | take from S | L, S | |
    /// | 1 | take from F | F | |
    /// | 0 | put into F | L | F |
    #[test]
    fn the_top_moves_to_the_place_that_puts_or_takes() {
        let requests = [(0, Some(1)), (1, None), (1, None), (0, Some(2))];
        assert_eq!(
            in_turn::<Stack>(8, requests),
            [(0, 0), (2, 0), (1, 0), (1, 1)]
        );
    }

    #[test]
    fn answers_are_those_of_a_stack() {
        let mut stack = Stack::new(10);
        let mut known: Vec<u32> = (0..10).collect();
        let mut client = Client::new(1, 10);
        // More puts than takes until it is full, and then more takes until it is empty.
        for nth in 0..400 {
            let share = if nth < 200 { 70 } else { 30 };
            let value = (client.below(100) < share).then_some(nth);
            let expected = match value {
                Some(value) if known.len() < 20 => {
                    known.push(value);
                    Some(value)
                }
                Some(_) => None,
                None => known.pop(),
            };
            assert_eq!(
                stack.serve(value),
                expected.map_or(u64::MAX, u64::from),
                "{nth}"
            );
        }
        assert_eq!(stack.served(), 400);
    }
}
