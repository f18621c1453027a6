//! The methods of `corelay-locks`: the object is behind a lock, spinning or combining.

use super::clients;
use crate::window::Window;
use crate::workload::{Client, Object};
use corelay_sync::{Session, Shared};
use std::rc::Rc;

pub(super) fn run<L: Shared<Value: Object> + 'static>(lock: L, window: &Rc<Window>) {
    let lock = Rc::new(lock);
    let shared = Rc::clone(&lock);
    clients(window, move |number, window| {
        let mut session = shared.session();
        let mut client = Client::new(number, window.size());
        while window.ask() {
            session.apply(client.operation::<L::Value>());
            window.done(number);
        }
    });
    window.check(lock.session().apply(|object| object.served()));
}
