//! The ways of sharing that the lab compares, a file each, and their catalogue: the one table
//! from which the lists, the help, the report, the schedules and the tests derive.
//!
//! A new method takes a file of its own, and here its `mod` and its entry; CONTRIBUTING.md walks
//! through it.
//!
//! All methods but `atomic` take any [`Workload`]: N ways × M structures, each way written once.
//! Types are erased where a method is set up for a point of the sweep ([`Contender`]), never per
//! operation: each pair of method and workload has a loop of its own.

pub mod alone;
pub mod atomic;
#[cfg(test)]
pub(crate) mod broken;
pub mod channel;
mod contender;
pub mod counted;
mod entry;
pub mod fibres;
pub mod flat;
pub mod literature;
pub mod lock;
pub mod noop;
pub mod pattern;
#[cfg(unix)]
mod pthread;
pub(crate) mod replication;
pub(crate) mod rwlock;
mod style;
pub mod tasks;
pub mod tokio;
pub mod trust;
mod unread;

pub(crate) use contender::Build;
pub use contender::{Contender, Kind, Method, SetupLimit};
pub use entry::{Entry, Form, OnSchedule, Schedule, named};
pub use style::{Marker, Style};

use crate::workload::operation::Workload;
use Form::{Instruction, Later, OneWay, Waits};
use Schedule::{IfAsked, Never, Usual};
use std::sync::LazyLock;

/// All methods of fetch-add, in the order of tables.
pub static METHODS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut methods = vec![Entry {
        method: atomic::METHOD,
        form: Instruction,
        what: "the hardware's fetch-and-add: only for operations that are one instruction",
        compared: Some(Style::of("c-black", Marker::Square, "")),
        schedule: IfAsked(noop::waits()),
    }];
    methods.extend(any());
    methods
});

/// The methods that take any workload, in the order of tables.
pub fn any<W: Workload>() -> Vec<Entry<W>> {
    let mut methods = portable();
    #[cfg(unix)]
    methods.insert(
        1,
        Entry {
            method: pthread::mutex(),
            form: Waits,
            what: "the C library's mutex around each variable",
            compared: None,
            schedule: IfAsked(noop::waits()),
        },
    );
    methods
}

fn portable<W: Workload>() -> Vec<Entry<W>> {
    vec![
        Entry {
            method: alone::method(),
            form: Waits,
            what: "one thread without synchronisation, the baseline of the others",
            compared: None,
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: lock::mutex(),
            form: Waits,
            what: "the standard library's mutex around each variable",
            compared: Some(Style::of("c-blue", Marker::Box, "")),
            schedule: Usual(noop::waits()),
        },
        Entry {
            method: lock::parking_lot(),
            form: Waits,
            what: "parking_lot's mutex around each variable",
            compared: Some(Style::of("c-sky", Marker::Diamond, "6 3")),
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: rwlock::std(),
            form: Waits,
            what: "the standard library's reader-writer lock: read-only operations share it, all others \
                   write",
            compared: Some(Style::of("c-blue", Marker::Up, "2 3")),
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: rwlock::parking_lot(),
            form: Waits,
            what: "parking_lot's reader-writer lock, taken as `rwlock` is",
            compared: Some(Style::of("c-sky", Marker::Plus, "2 3")),
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: lock::tas(),
            form: Waits,
            what: "a plain test-and-set spin lock, which `ttas` improves on",
            compared: None,
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: lock::ttas(),
            form: Waits,
            what: "a test-and-test-and-set spin lock with back-off",
            compared: Some(Style::of("c-green", Marker::Up, "")),
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: lock::ticket(),
            form: Waits,
            what: "a fair spin lock: tickets served in order",
            compared: Some(Style::of("c-gold", Marker::Down, "6 3")),
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: lock::mcs(),
            form: Waits,
            what: "a fair queue lock: each waiter spins on its own line",
            compared: Some(Style::of("c-rose", Marker::Plus, "")),
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: lock::clh(),
            form: Waits,
            what: "a fair queue lock: each waiter spins on its predecessor's line",
            compared: Some(Style::of("c-brown", Marker::Cross, "2 3")),
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: lock::flat_combining(),
            form: Waits,
            what: "flat combining: the lock's holder runs the operations that waiters publish",
            compared: Some(Style::of("c-gold", Marker::Bar, "")),
            schedule: Usual(noop::waits()),
        },
        Entry {
            method: lock::cc_synch(),
            form: Waits,
            what: "the combining queue CC-Synch: the lock's holder runs its waiters' operations in \
                   order",
            compared: Some(Style::of("c-green", Marker::Square, "6 3")),
            schedule: Usual(noop::waits()),
        },
        Entry {
            method: lock::dsm_synch(),
            form: Waits,
            what: "the combining queue DSM-Synch: each waiter spins on memory of its own",
            compared: None,
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: lock::adaptive(),
            form: Waits,
            what: "corelay's lock for those who do not want to choose: spins, combines, and sleeps",
            compared: Some(Style::of("c-blue", Marker::Cross, "")),
            schedule: Usual(noop::waits()),
        },
        Entry {
            method: channel::one(),
            form: Waits,
            what: "an actor behind a crossbeam channel, one call at a time",
            compared: Some(Style::of("c-violet", Marker::Ring, "")),
            schedule: Usual(noop::waits()),
        },
        Entry {
            method: channel::pipelined(),
            form: Later,
            what: "the same actor with 64 calls outstanding and replies",
            compared: Some(Style::of("c-violet", Marker::Box, "6 3")),
            schedule: Never("sends requests in batches of 64, not when each is due"),
        },
        Entry {
            method: tokio::method(),
            form: Later,
            what: "an actor on Tokio (mpsc and oneshot) with 64 tasks",
            compared: Some(Style::of("c-grey", Marker::Diamond, "")),
            schedule: Usual(tokio::generator()),
        },
        Entry {
            method: trust::apply(),
            form: Waits,
            what: "corelay's delegation, one call at a time (`apply`)",
            compared: Some(Style::ours(Marker::Circle, "")),
            schedule: Usual(noop::waits()),
        },
        Entry {
            method: trust::then(),
            form: Later,
            what: "corelay's delegation with a callback per answer (`apply_then`)",
            compared: Some(Style::ours(Marker::Up, "")),
            schedule: Usual(noop::calls_back()),
        },
        Entry {
            method: tasks::method(),
            form: Later,
            what: "corelay's delegation from 64 Tokio tasks that await their answers (`apply_async`)",
            compared: Some(Style::ours(Marker::Cross, "")),
            schedule: Never("has no schedule, as its tasks wait for answers; use `trust-then`"),
        },
        Entry {
            method: trust::post(),
            form: OneWay,
            what: "corelay's delegation without answers (`post`)",
            compared: Some(Style::ours(Marker::Down, "7 4")),
            schedule: Never("has no answer, so it has no latency"),
        },
        Entry {
            method: flat::adaptive(),
            form: Later,
            what: "corelay's flat delegation: every thread is client and trustee (`apply_then`)",
            compared: Some(Style::ours(Marker::Diamond, "2 2")),
            schedule: Usual(noop::calls_back()),
        },
        Entry {
            method: flat::queue(),
            form: Later,
            what: "flat delegation: a member serves before each batch that it publishes",
            compared: None,
            schedule: IfAsked(noop::calls_back()),
        },
        Entry {
            method: flat::blocked(),
            form: Later,
            what: "flat delegation: a member serves only when it waits",
            compared: None,
            schedule: IfAsked(noop::calls_back()),
        },
        Entry {
            method: flat::fast_path(),
            form: Later,
            what: "flat delegation: `flat-blocked`, but requests to own objects run at once",
            compared: None,
            schedule: IfAsked(noop::calls_back()),
        },
        Entry {
            method: flat::bound(),
            form: Later,
            what: "flat delegation: `flat-fast-path`, and a member serves after a number of requests",
            compared: None,
            schedule: IfAsked(noop::calls_back()),
        },
        Entry {
            method: flat::doorbell(),
            form: Later,
            what: "flat delegation: `flat-fast-path`, and a member serves when its doorbell has rung",
            compared: None,
            schedule: IfAsked(noop::calls_back()),
        },
        Entry {
            method: replication::method(),
            form: Waits,
            what: "node replication: a log of operations, and a copy of all objects on each memory node",
            compared: None,
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: literature::ffwd(),
            form: Waits,
            what: "delegation as ffwd has it: 15 clients share a response line",
            compared: None,
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: literature::rcl(),
            form: Waits,
            what: "remote core locking: a request is answered in its own line",
            compared: None,
            schedule: IfAsked(noop::waits()),
        },
        Entry {
            method: literature::async_lines(),
            form: Later,
            what: "the thesis's request lines, and a queue of requests before them",
            compared: None,
            schedule: IfAsked(noop::calls_back()),
        },
        Entry {
            method: literature::flat_lines(),
            form: Later,
            what: "the thesis's request lines, and each thread is client and server",
            compared: None,
            schedule: IfAsked(noop::calls_back()),
        },
        Entry {
            method: literature::gepard(),
            form: Waits,
            what: "Gepard: fibres that wait for their answers, over four request lines for each pair",
            compared: None,
            schedule: Never(
                "has no schedule, as its fibres wait for answers and not for arrivals; use \
                 `async-lines`",
            ),
        },
        Entry {
            method: fibres::method(),
            form: Waits,
            what: "corelay's delegation by fibres, each of which waits for its answer",
            compared: None,
            schedule: Never(
                "has no schedule, as its fibres wait for answers and not for arrivals; use \
                 `trust-then`",
            ),
        },
    ]
}
