//! Reports of running trustees as values for `serde`.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_delegate::report::{Report, State};
use corelay_delegate::{ClientGuard, Metrics, Trustees, barrier, name};
use std::time::Duration;

#[path = "watch/mod.rs"]
mod watch;

use watch::watchdog;

#[test]
fn a_report_makes_the_round_trip() {
    let _watch = watchdog();
    let _client = ClientGuard::named("front \"end\"\t");
    for observe in [false, true] {
        let builder = Trustees::dedicated(2).name("owner").window(4);
        let trustees = builder.observe(observe).start().unwrap();
        let t = trustees.entrust_on(0, 0u64).named("stock");
        let _other = trustees.entrust_on(1, 0u8);
        t.post(|_| std::thread::sleep(Duration::from_millis(1)));
        for _ in 0..1_000 {
            t.request(name!("checkout"))
                .apply_then(|n| *n += 1, |()| ());
        }
        barrier().unwrap();
        let report = trustees.report();
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(json, report.to_json());
        let read: Report = serde_json::from_str(&json).unwrap();
        assert_eq!(read, report);
        assert_eq!(read.trustees[0].observed.is_some(), observe);
        assert_eq!(read.to_string(), report.to_string());
        // Parts by themselves, too.
        let parts = serde_json::to_value(&report.trustees[0]).unwrap();
        assert_eq!(parts["objects"][0]["type_name"], "u64");
        let metrics: Metrics = serde_json::from_value(parts["metrics"].clone()).unwrap();
        assert_eq!(metrics, report.trustees[0].metrics);
    }
}

#[test]
fn states_have_their_names() {
    let states = [State::Awake, State::Asleep, State::Closing, State::ShutDown];
    let json = serde_json::to_string(&states).unwrap();
    assert_eq!(json, r#"["awake","asleep","closing","shut_down"]"#);
    assert_eq!(serde_json::from_str::<[State; 4]>(&json).unwrap(), states);
}
