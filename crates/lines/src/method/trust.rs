//! The methods of `corelay-delegate`: a trustee owns the object.

use super::clients;
use crate::window::Window;
use crate::workload::{Client, Object};
use corelay_delegate::{ClientGuard, Trust, Trustees, barrier};
use std::rc::Rc;
use std::time::Duration;

pub(super) fn apply<O: Object>(object: O, window: &Rc<Window>) {
    delegated(object, window, |object, number, window| {
        let mut client = Client::new(number, window.size());
        while window.ask() {
            object.apply(client.operation());
            window.done(number);
        }
    });
}

pub(super) fn apply_then<O: Object>(object: O, window: &Rc<Window>) {
    delegated(object, window, |object, number, window| {
        let mut client = Client::new(number, window.size());
        while window.ask() {
            let done = Rc::clone(window);
            object.apply_then(client.operation(), move |_| done.done(number));
        }
    });
}

/// Delegates each operation as a post. It counts as done as soon as it is posted, for a client does
/// not learn when a post is executed. At most 256 posts of a client are in flight, so the execution
/// is never far behind.
pub(super) fn post<O: Object>(object: O, window: &Rc<Window>) {
    delegated(object, window, |object, number, window| {
        let mut client = Client::new(number, window.size());
        while window.ask() {
            let operation = client.operation();
            object.post(move |object| _ = operation(object));
            window.done(number);
        }
    });
}

fn delegated<O: Object>(object: O, window: &Rc<Window>, client: fn(&Trust<O>, usize, &Rc<Window>)) {
    // There is no time here: an idle trustee goes on looking, as it does anywhere for a short
    // while.
    let builder = Trustees::dedicated(1).spin(Duration::MAX);
    let trustees = builder.start().expect("the trustee starts");
    // This thread's channel is given back, or the trustee would look at it in every pass.
    let guard = ClientGuard::new();
    let object = Rc::new(trustees.entrust(object));
    drop(guard);
    let shared = Rc::clone(&object);
    clients(window, move |index, window| {
        client(&shared, index, window);
        barrier().expect("no operation fails");
    });
    window.check(object.apply(|object| object.served()));
    drop(object);
    trustees.shutdown();
}
