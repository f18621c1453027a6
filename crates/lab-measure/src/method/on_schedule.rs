//! Methods whose operations can arrive on a schedule: the table of the workload `latency`.
//!
//! A method whose clients run [`Client::drive`](crate::workload::random::Client::drive)
//! can do so as it is; one whose answers come to a callback runs
//! [`Client::issue`](crate::workload::random::Client::issue). With each stands its
//! generator: the same loop around nothing.

use super::literature::lines;
use super::{Kind, Method, atomic, channel, flat, literature, lock, noop, tokio, trust};
use crate::workload::fetch_add::FetchAdd;
use crate::workload::latency::MAX_LOAD;
use crate::workload::operation::Workload;
use crate::workload::point::Point;

/// A method, and what generates its load.
#[derive(Clone, Copy, Debug)]
pub struct OnSchedule<W = FetchAdd> {
    /// The method.
    pub method: Method<W>,
    /// Its generator alone.
    pub generator: Method<W>,
    /// Measured where nobody says which.
    pub usual: bool,
}

/// Those that take any workload, in the order of tables.
pub const fn any_on_schedule<W: Workload>() -> [OnSchedule<W>; 11] {
    [
        usual(waits(lock::mutex())),
        waits(lock::parking_lot()),
        waits(lock::ttas()),
        waits(lock::ticket()),
        waits(lock::mcs()),
        waits(lock::clh()),
        usual(waits(channel::one())),
        usual(with(tokio::on_schedule(), tokio::generator())),
        usual(waits(trust::apply())),
        usual(with(trust::then(), noop::calls_back())),
        usual(with(flat::adaptive(), noop::calls_back())),
    ]
}

/// All of them that do fetch-add, in the order of tables.
pub static ON_SCHEDULE: &[OnSchedule] = &{
    let mut all = [waits(atomic::METHOD); 20];
    let (_, others) = all.split_at_mut(1);
    let (any_workload, fixed) = others.split_at_mut(11);
    any_workload.copy_from_slice(&any_on_schedule());
    fixed.copy_from_slice(&[
        with(flat::queue(), noop::calls_back()),
        with(flat::blocked(), noop::calls_back()),
        with(flat::fast_path(), noop::calls_back()),
        with(flat::bound(), noop::calls_back()),
        with(flat::doorbell(), noop::calls_back()),
        waits(literature::ffwd()),
        waits(literature::rcl()),
        with(literature::async_lines(), noop::calls_back()),
    ]);
    all
};

const fn waits<W: Workload>(method: Method<W>) -> OnSchedule<W> {
    with(method, noop::waits())
}

const fn with<W: Workload>(method: Method<W>, generator: Method<W>) -> OnSchedule<W> {
    OnSchedule {
        method,
        generator,
        usual: false,
    }
}

const fn usual<W: Workload>(entry: OnSchedule<W>) -> OnSchedule<W> {
    OnSchedule {
        usual: true,
        ..entry
    }
}

impl OnSchedule {
    /// The entry of that name.
    ///
    /// # Errors
    /// A clause that says why the method has none.
    pub fn named(name: &str) -> Result<Self, String> {
        if let Some(read) = lines::with_parameters(name) {
            return read.map(|method| with(method, noop::calls_back()));
        }
        let found = ON_SCHEDULE.iter().find(|entry| entry.method.name() == name);
        found.copied().ok_or_else(|| match name {
            "trust-post" => "`trust-post` has no answer, so it has no latency".to_owned(),
            name if name.starts_with("trust-fibre") => format!(
                "`{name}` has as many calls on their way as fibres, which wait for answers and not \
                 for moments; `trust-then` has a latency"
            ),
            "channel-pipelined" => {
                "`channel-pipelined` sends in batches of 64 and not when an operation is due"
                    .to_owned()
            }
            _ => format!("there is no method `{name}` with a latency"),
        })
    }
}

impl<W> OnSchedule<W> {
    /// The point at which the generator, alone, has as many clients as the method has at
    /// `point`, and more to issue than it can.
    pub(crate) fn generator_point(&self, point: &Point) -> Point {
        let mut point = point.clone();
        point.adjust(&self.method);
        point.load = Some(MAX_LOAD);
        if self.method.kind() == Kind::Actor {
            point.servers = 1;
        }
        point
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::METHODS;

    #[test]
    fn every_method_has_a_schedule_or_a_reason_why_not() {
        for method in METHODS {
            match OnSchedule::named(method.name()) {
                Ok(entry) => assert_eq!(entry.method.kind(), method.kind()),
                Err(why) => assert!(
                    ["no answer", "batches", "not for moments"]
                        .iter()
                        .any(|word| why.contains(word)),
                    "{why}"
                ),
            }
        }
        let lines = OnSchedule::named("async-lines:4x8").unwrap().method.lines();
        assert_eq!((lines.lines(), lines.pending()), (4, Some(8)));
        assert!(OnSchedule::named("async-lines:0").is_err());
        assert!(OnSchedule::named("magic").unwrap_err().contains("`magic`"));
    }
}
