//! The methods of `corelay-literature`: a server owns the object, and is asked by the papers'
//! protocols.

use super::clients;
use crate::window::Window;
use crate::workload::{Client, Object};
use corelay_coherence::spawn;
use corelay_literature::{AsyncLines, Blocking, Delegation, Protocol, Server, Shape};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::rc::Rc;
use std::sync::Mutex;

pub(super) fn blocking<P: Blocking + 'static, O: Object>(object: O, window: &Rc<Window>) {
    let (object, servers) = Delegation::<P, O>::new(1, window.clients(), 1, once(object));
    serve(servers, window, object, |object, number, window| {
        let mut lines = object.client(number).expect("each is another client");
        let mut client = Client::new(number, window.size());
        while window.ask() {
            lines.apply(0, client.operation::<O>());
            window.done(number);
        }
    });
}

type Callback = Box<dyn FnOnce(u64)>;

pub(super) fn lines<O: Object>(shape: Shape, object: O, window: &Rc<Window>) {
    let clients = window.clients();
    let (object, servers) = AsyncLines::<O, Callback>::shaped(shape, 1, clients, 1, once(object));
    serve(servers, window, object, |object, number, window| {
        let mut lines = object.client(number).expect("each is another client");
        let mut client = Client::new(number, window.size());
        while window.ask() {
            let done = Rc::clone(window);
            let then = Box::new(move |_| done.done(number));
            lines.issue(0, client.operation::<O>(), then);
        }
    });
}

/// Has the server take `object` as its only one.
fn once<O: Send>(object: O) -> impl Fn(usize) -> O + Send + Sync {
    let object = Mutex::new(Some(object));
    move |_| object.lock().unwrap().take().expect("there is one")
}

/// Runs a server, and `client` for each client, until all clients have ended. Then stops the server
/// and checks the object.
fn serve<P: Protocol + 'static, O: Object>(
    servers: Vec<Server<P, O>>,
    window: &Rc<Window>,
    object: Delegation<P, O>,
    client: fn(&Delegation<P, O>, usize, &Rc<Window>),
) {
    let stop = Rc::new(CachePadded::new(AtomicBool::new(false)));
    let stopped = Rc::clone(&stop);
    let server = spawn(move || {
        for mut server in servers {
            server.run(&stopped);
        }
    });
    let object = Rc::new(object);
    let shared = Rc::clone(&object);
    clients(window, move |index, window| client(&shared, index, window));
    // Release: pairs with the Acquire of `Server::run`.
    stop.store(true, Ordering::Release);
    server.join().expect("a server does not panic");
    let check = |object: &O| window.check(object.served());
    object.inspect(check).expect("all clients have gone");
}
