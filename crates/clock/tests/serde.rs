//! Times and calibrations as values for `serde`.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_clock::{
    CalibrateError, Calibrator, Clock, Logical, Movement, Nanoseconds, Offsets, Order, Rate, Time,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::Duration;

/// Checks that the value is written so, and reads the same again.
#[track_caller]
fn round_trip<V: Serialize + DeserializeOwned + PartialEq + Debug>(value: &V, written: Value) {
    assert_eq!(serde_json::to_value(value).unwrap(), written);
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<V>(&text).unwrap(), *value);
}

#[test]
fn times_and_their_orders_make_the_round_trip() {
    let clock = Logical::new();
    let times = [Time::ZERO, clock.commit_time(Time::ZERO), Time::NEVER];
    round_trip(&times.to_vec(), json!(times.map(Time::raw)));
    round_trip(
        &vec![Order::Before, Order::After, Order::Uncertain],
        json!(["before", "after", "uncertain"]),
    );
    let rate = Rate {
        ticks_per_ns: 2.1,
        error: 5e-4,
    };
    round_trip(&rate, json!({ "ticks_per_ns": 2.1, "error": 5e-4 }));
    let time = Nanoseconds {
        value: -3.25,
        error: 0.5,
    };
    round_trip(&time, json!({ "value": -3.25, "error": 0.5 }));
    let moved = json!({ "from": 0, "to": 3, "ticks": 17, "certain": true });
    let read: Movement = serde_json::from_value(moved.clone()).unwrap();
    assert_eq!(
        (read.from, read.to, read.ticks, read.certain),
        (0, 3, 17, true)
    );
    round_trip(&read, moved);
}

#[test]
fn offsets_have_a_row_for_each_cpu() {
    let mut offsets = Offsets::unknown(&[4, 1]);
    offsets.lower(1, 4, -7);
    let written = serde_json::to_value(&offsets).unwrap();
    assert_eq!(
        written,
        json!({ "cpus": [1, 4], "ticks": [[null, -7], [null, null]] })
    );
}

#[test]
fn a_calibration_is_written_as_it_is() {
    let found = match Calibrator::new()
        .rounds(1_000)
        .looks(1)
        .over(Duration::ZERO)
        .run()
    {
        Ok(found) => found,
        // The counters of this machine are none to order by.
        Err(CalibrateError::Stopped) => unreachable!("nobody stops it"),
        Err(why) => return println!("not measured: {why}"),
    };
    let written = serde_json::to_value(&found).unwrap();
    assert_eq!(written["boundary_ticks"], found.boundary);
    assert_eq!(written["step_ticks"], found.step);
    assert_eq!(written["limit_ns"], found.limit.as_nanos() as u64);
    assert_eq!(written["took_ns"], found.took.as_nanos() as u64);
    assert_eq!(written["rate"]["ticks_per_ns"], found.rate.ticks_per_ns);
    let (from, to, ticks) = found.offsets.largest().unwrap();
    let index = |cpu| {
        found
            .offsets
            .cpus()
            .iter()
            .position(|known| *known == cpu)
            .unwrap()
    };
    assert_eq!(written["offsets"]["ticks"][index(from)][index(to)], ticks);
    assert_eq!(written["offsets"]["cpus"], json!(found.offsets.cpus()));
}
