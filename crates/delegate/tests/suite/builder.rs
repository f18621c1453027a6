//! The settings that a builder refuses, and the trustees that it makes.

use crate::support::{start, watchdog};
use corelay_delegate::{StartError, Trustees};
use corelay_topology::{current_cpu, process_affinity};
use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[test]
fn bad_settings_are_refused_in_a_sentence() {
    let _watch = watchdog();
    let refused = [
        (
            Trustees::dedicated(0),
            "zero trustees: at least one is needed",
        ),
        (
            Trustees::dedicated(1).window(0),
            "window of 0 requests: 1 to 65536 are allowed",
        ),
        (
            Trustees::dedicated(1).window(65_537),
            "window of 65537 requests: 1 to 65536 are allowed",
        ),
        (
            Trustees::dedicated(1).batch(0),
            "batch of 0 requests: 1 to 65536 are allowed",
        ),
        (
            Trustees::dedicated(1).batch(65_537),
            "batch of 65537 requests: 1 to 65536 are allowed",
        ),
        (
            Trustees::dedicated(1).ring_bytes(511),
            "ring of 511 bytes: 512 to 2^30 are allowed",
        ),
        (
            Trustees::dedicated(1).ring_bytes((1 << 30) + 1),
            "ring of 1073741825 bytes: 512 to 2^30 are allowed",
        ),
    ];
    for (builder, text) in refused {
        let error = builder.start().unwrap_err();
        assert_eq!(error.to_string(), text);
        assert!(error.source().is_none());
    }
    assert!(matches!(
        Trustees::dedicated(0).start(),
        Err(StartError::NoTrustees)
    ));
    assert!(matches!(
        Trustees::dedicated(1).window(usize::MAX).start(),
        Err(StartError::Window(_))
    ));
    assert!(matches!(
        Trustees::dedicated(1).batch(usize::MAX).start(),
        Err(StartError::Batch(_))
    ));
    let error = Trustees::dedicated(1).ring_bytes(usize::MAX).start();
    assert!(matches!(error, Err(StartError::RingBytes(usize::MAX))));
}

/// Trustees before a CPU that does not exist were started and end again.
#[test]
fn a_cpu_that_does_not_exist_is_refused() {
    let _watch = watchdog();
    for trustees in [1, 3] {
        let cpus = (0..trustees - 1).map(|_| allowed_cpu()).chain([1_000_000]);
        let error = Trustees::dedicated(trustees).pin(cpus).start().unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("cannot pin a trustee to CPU 1000000: "),
            "{text}"
        );
        assert!(matches!(error, StartError::Pin { cpu: 1_000_000, .. }));
    }
}

#[test]
fn threads_get_their_names() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2).name("owner"));
    assert_eq!(trustees.len(), 2);
    assert_eq!(format!("{trustees:?}"), r#"["owner-0", "owner-1"]"#);
    for i in 0..2 {
        let t = trustees.entrust_on(i, vec![1u8]);
        let name = t.apply(|_| thread::current().name().map(str::to_owned));
        assert_eq!(name, Some(format!("owner-{i}")));
        assert_eq!(
            format!("{t:?}"),
            format!("Trust<alloc::vec::Vec<u8>> of owner-{i}")
        );
    }
}

fn allowed_cpu() -> usize {
    process_affinity().first().expect("we run on one")
}

#[test]
fn pinned_trustees_stay_where_they_are() {
    let _watch = watchdog();
    let cpu = allowed_cpu();
    // Fewer CPUs than trustees: the others are not pinned.
    let trustees = start(Trustees::dedicated(2).pin([cpu]));
    let t = trustees.entrust_on(0, ());
    for _ in 0..10 {
        assert_eq!(t.apply(|()| current_cpu()), Some(cpu));
    }
    trustees.entrust_on(1, ()).apply(|()| ());
}

/// One value after the other, and each by a trustee's number.
#[test]
fn values_go_to_the_trustees_in_turn() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(3));
    let names: Vec<String> = (0..7)
        .map(|_| {
            trustees
                .entrust(())
                .apply(|()| thread::current().name().unwrap().to_owned())
        })
        .collect();
    let expected: Vec<String> = (0..7).map(|i| format!("trustee-{}", i % 3)).collect();
    assert_eq!(names, expected);
    let text = crate::support::panic_of(|| trustees.entrust_on(3, ()));
    assert_eq!(text, "corelay: trustee 3 of 3");
    let text = crate::support::panic_of(|| trustees.entrust_with_on(usize::MAX, || ()));
    assert_eq!(text, format!("corelay: trustee {} of 3", usize::MAX));
}

/// Settings at their limits work.
#[test]
fn settings_at_their_limits_work() {
    let _watch = watchdog();
    let builders = [
        Trustees::dedicated(1)
            .window(1)
            .batch(1)
            .ring_bytes(512)
            .spin(Duration::ZERO),
        Trustees::dedicated(1)
            .window(65_536)
            .batch(65_536)
            .ring_bytes(1 << 30),
        Trustees::dedicated(1).spin(Duration::MAX),
        Trustees::dedicated(20).name(""),
        Trustees::dedicated(1).name("ü".repeat(50)),
    ];
    for builder in builders {
        let again = builder.clone();
        assert_eq!(format!("{builder:?}"), format!("{again:?}"));
        let trustees = start(builder);
        let values: Vec<_> = (0..trustees.len() * 2)
            .map(|i| trustees.entrust(i))
            .collect();
        for (i, t) in values.iter().enumerate() {
            (0..300).for_each(|_| t.post(|n| *n += 1));
            assert_eq!(t.apply(|n| *n), i + 300);
        }
        assert_eq!(trustees.metrics().len(), trustees.len());
        trustees.shutdown();
    }
}

#[test]
fn a_trust_of_any_type_has_a_debug_text() {
    let _watch = watchdog();
    struct NotDebug;
    let trustees = start(Trustees::dedicated(1));
    let t = Arc::new(trustees.entrust(NotDebug));
    assert!(format!("{t:?}").ends_with("::NotDebug> of trustee-0"));
}
