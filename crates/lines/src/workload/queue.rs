//! The workload `queue`: a FIFO queue in a ring buffer.

use super::memory::Words;
use super::{Client, Object, room};

pub(crate) struct Queue {
    values: Words,
    room: u32,
    /// The place of the oldest value.
    first: u32,
    len: u32,
    served: u64,
}

impl Object for Queue {
    /// The value to put, or none to take one.
    type Request = Option<u32>;

    fn new(size: u32) -> Self {
        let mut queue = Self {
            values: Words::new(room(size)),
            room: room(size),
            first: 0,
            len: 0,
            served: 0,
        };
        (0..size).for_each(|value| _ = queue.serve(Some(value)));
        queue.served = 0;
        queue
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

    /// Returns the value that was put or taken, or `u64::MAX` if the queue is full or empty.
    fn serve(&mut self, value: Option<u32>) -> u64 {
        self.served += 1;
        match value {
            Some(value) if self.len < self.room => {
                let last = (self.first + self.len) % self.room;
                self.values.at(last).set(value.into());
                self.len += 1;
                value.into()
            }
            None if self.len > 0 => {
                let value = self.values.at(self.first).get();
                self.first = (self.first + 1) % self.room;
                self.len -= 1;
                value
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
    use std::collections::VecDeque;

    /// By hand, for eight values in the first of two lines, `F` and `S`, which place 0 has made. `L`
    /// is the lock's line.
    ///
    /// | place | request | moves |
    /// |---|---|---|
    /// | 0 | take | |
    /// | 1 | take | L, F |
    /// | 1 | take | |
    /// | 1 | put | S |
    /// | 0 | put | L, S |
    /// | 0 | take | |
    #[test]
    fn a_line_of_values_moves_to_the_place_that_puts_or_takes() {
        let requests = [
            (0, None),
            (1, None),
            (1, None),
            (1, Some(1)),
            (0, Some(2)),
            (0, None),
        ];
        assert_eq!(
            in_turn::<Queue>(8, requests),
            [(0, 0), (2, 0), (0, 0), (1, 0), (2, 0), (0, 0)]
        );
    }

    #[test]
    fn answers_are_those_of_a_queue() {
        let mut queue = Queue::new(10);
        let mut known: VecDeque<u32> = (0..10).collect();
        let mut client = Client::new(1, 10);
        // More puts than takes until it is full, and then more takes until it is empty.
        for nth in 0..400 {
            let share = if nth < 200 { 70 } else { 30 };
            let value = (client.below(100) < share).then_some(nth);
            let expected = match value {
                Some(value) if known.len() < 20 => {
                    known.push_back(value);
                    Some(value)
                }
                Some(_) => None,
                None => known.pop_front(),
            };
            assert_eq!(
                queue.serve(value),
                expected.map_or(u64::MAX, u64::from),
                "{nth}"
            );
        }
        assert_eq!(queue.served(), 400);
    }
}
