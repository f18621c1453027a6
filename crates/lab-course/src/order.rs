//! The order of one client's requests (D14): one request line keeps it, several break it.
//!
//! *By hand*, the server is stepped as in the thesis's figure of the race. The client writes to
//! all lines but the last, and the server looks at them all. Then the client puts its next
//! request on the last line, and the one after it on the first line again. The server looks at
//! the lines in their order, so it executes that later request first.
//!
//! *Live*, a server runs on a thread of its own, and the object counts the requests that are
//! executed after one that was issued later.

use corelay_literature::{AsyncLines, Shape};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use serde::Serialize;
use std::thread;

/// The most lines shown by hand. More would make a long list and show nothing new.
pub const SHOWN: usize = 8;

/// The most requests of a live run. More would take minutes, and there is no progress bar.
pub const MOST_REQUESTS: u64 = 10_000_000;

/// The counts of a live run, in which the server has a thread of its own.
#[derive(Clone, Debug, Serialize)]
pub struct Live {
    /// Request lines between the client and the server.
    pub lines: usize,
    /// Length of the pending queue; `None` if requests are written directly.
    pub queue: Option<usize>,
    /// Requests that the server executed.
    pub executed: u64,
    /// Requests that were executed after one that was issued later.
    pub overtaken: u64,
}

/// Returns requests 1, 2, 3, … in the order in which a server that is stepped by hand executes
/// them: two rounds over so many lines, written directly.
///
/// # Panics
/// If the number of lines is 0 or too large for a [`Shape`].
pub fn by_hand(lines: usize) -> Vec<u64> {
    let shape = Shape::direct(lines).expect("the number of lines was checked");
    let (list, mut servers) =
        AsyncLines::<_, fn(u64)>::shaped(shape, 1, 1, 1, |_| Vec::<u64>::new());
    let server = &mut servers[0];
    server.begin();
    let mut client = list.client(0).expect("there is no other client");
    for number in 1..2 * lines.max(2) as u64 {
        let note = move |list: &mut Vec<u64>| {
            list.push(number);
            number
        };
        client.issue(0, note, |_| ());
        // The server serves a single line before the client can write it again.
        if lines == 1 || number == lines as u64 - 1 {
            server.pass();
        }
    }
    server.pass();
    drop(client);
    let mut order = Vec::new();
    let looked = list.inspect(|list| order.clone_from(list));
    looked.expect("the client has gone and all is served");
    order
}

/// The object: the last request it has executed, and its counts.
#[derive(Default)]
struct Record {
    latest: u64,
    executed: u64,
    overtaken: u64,
}

/// Lets one client issue so many requests to a server on a thread of its own.
pub fn live(shape: Shape, requests: u64) -> Live {
    let (record, servers) = AsyncLines::<_, fn(u64)>::shaped(shape, 1, 1, 1, |_| Record::default());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for mut server in servers {
            let stop = &stop;
            scope.spawn(move || server.run(stop));
        }
        let mut client = record.client(0).expect("there is no other client");
        for number in 1..=requests {
            let note = move |record: &mut Record| {
                record.executed += 1;
                record.overtaken += u64::from(number < record.latest);
                record.latest = record.latest.max(number);
                number
            };
            client.issue(0, note, |_| ());
        }
        drop(client);
        // Release: pairs with the Acquire in `Server::run`; says that all requests are served.
        stop.store(true, Ordering::Release);
    });
    let mut live = Live {
        lines: shape.lines(),
        queue: shape.pending(),
        executed: 0,
        overtaken: 0,
    };
    let looked = record.inspect(|record| {
        live.executed = record.executed;
        live.overtaken = record.overtaken;
    });
    looked.expect("the client has gone and all is served");
    live
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand_the_server_executes_in_the_thesis_order() {
        assert_eq!(by_hand(1), [1, 2, 3]);
        assert_eq!(by_hand(2), [1, 3, 2]);
        assert_eq!(by_hand(4), [1, 2, 3, 5, 6, 7, 4]);
    }

    #[test]
    fn one_line_keeps_the_order() {
        for shape in [Shape::direct(1), Shape::queue(1, 1), Shape::queue(1, 8)] {
            let live = live(shape.unwrap(), 1_000);
            assert_eq!((live.executed, live.overtaken), (1_000, 0));
        }
        assert_eq!(live(Shape::default(), 1_000).executed, 1_000);
    }
}
