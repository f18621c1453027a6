//! The order of one client's requests (D14): kept by one request line, broken by more.
//!
//! *By hand* the server is stepped as in the thesis's figure of the race. The client writes to
//! all lines but the last, the server looks at them all, and the client goes on: its next
//! request is on the last line, the one after it on the first again. The server, which looks at
//! lines in their order, executes that one first.
//!
//! *Live* a server runs on a thread of its own, and the object counts the requests that are
//! executed after one which was issued later.

use corelay_literature::{AsyncLines, Shape};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use serde::Serialize;
use std::thread;

/// Lines with which a client is shown by hand: more make a long list and nothing new.
pub const SHOWN: usize = 8;

/// More would take minutes, and nobody shows how far it is.
pub const MOST_REQUESTS: u64 = 10_000_000;

/// What a client has issued and what became of its order.
#[derive(Clone, Debug, Serialize)]
pub struct Live {
    /// Request lines.
    pub lines: usize,
    /// Length of the pending queue; `None` where requests are written directly.
    pub queue: Option<usize>,
    /// Requests executed.
    pub executed: u64,
    /// Those that were executed after one that was issued later.
    pub overtaken: u64,
}

/// Requests 1, 2, 3, … in the order in which a server executes them that is stepped by hand:
/// two rounds over so many lines, written directly.
///
/// # Panics
/// Where the lines are none or too many for a [`Shape`].
pub fn by_hand(lines: usize) -> Vec<u64> {
    let shape = Shape::direct(lines).expect("the number of lines was checked");
    let list = Vec::<u64>::new();
    let (list, mut servers) = AsyncLines::<_, fn(u64)>::shaped(shape, 1, 1, [list]);
    let server = &mut servers[0];
    let mut client = list.client(0).expect("nobody else asks");
    for number in 1..2 * lines.max(2) as u64 {
        let note = move |list: &mut Vec<u64>| {
            list.push(number);
            number
        };
        client.issue(0, note, |_| ());
        // A single line is served before it can be written again.
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

/// What the object keeps.
#[derive(Default)]
struct Record {
    latest: u64,
    executed: u64,
    overtaken: u64,
}

/// One client issues so many requests to a server on a thread of its own.
pub fn live(shape: Shape, requests: u64) -> Live {
    let (record, servers) = AsyncLines::<_, fn(u64)>::shaped(shape, 1, 1, [Record::default()]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for mut server in servers {
            let stop = &stop;
            scope.spawn(move || server.run(stop));
        }
        let mut client = record.client(0).expect("nobody else asks");
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
        // Release: pairs with the Acquire in `Server::run`; all is served.
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
    fn the_thesis_figure_by_hand() {
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
