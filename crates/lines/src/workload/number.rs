//! The workload `fetch-add`: a number.

use super::{Client, Object};

impl Object for u64 {
    type Request = ();

    fn new(_size: u32) -> Self {
        0
    }

    fn warm_up(_size: u32) -> u64 {
        0
    }

    fn choose(_client: &mut Client) {}

    fn serve(&mut self, (): ()) -> u64 {
        *self += 1;
        *self
    }

    fn served(&self) -> u64 {
        *self
    }
}
