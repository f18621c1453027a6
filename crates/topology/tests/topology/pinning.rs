//! Pinning on this machine, whatever it has. Each test pins threads of its own.

#![cfg(target_os = "linux")]

use corelay_topology::{
    CpuSet, MAX_CPUS, Order, PinGuard, Pinning, Topology, affinity, current_cpu, pin_current_thread,
};
use std::error::Error;

/// Runs in a thread of its own, so that no other test is moved.
fn apart<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(body).join().expect("no panic"))
}

#[test]
fn a_thread_runs_where_it_is_pinned() {
    let machine = Topology::current();
    for cpu in machine.usable().iter() {
        apart(|| {
            pin_current_thread(cpu).expect("a usable CPU");
            assert_eq!(current_cpu(), Some(cpu));
            assert_eq!(affinity().expect("a mask"), CpuSet::from_iter([cpu]));
            assert_eq!(Topology::current().usable(), &CpuSet::from_iter([cpu]));
        });
    }
}

#[test]
fn pinning_to_a_missing_cpu_fails() {
    let before = affinity().expect("a mask");
    for cpu in [MAX_CPUS - 1, MAX_CPUS, usize::MAX] {
        let error = pin_current_thread(cpu).expect_err("no machine has it");
        assert_eq!(error.cpu(), cpu);
        let expected = format!(
            "cannot pin to CPU {cpu}: it does not exist, is offline, or lies outside this process's cpuset"
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.source().is_some());
        assert!(PinGuard::pin(cpu).is_err());
    }
    assert_eq!(
        affinity().expect("a mask"),
        before,
        "a failure changes nothing"
    );
}

#[test]
fn a_guard_gives_the_affinity_back() {
    apart(|| {
        let before = affinity().expect("a mask");
        let (first, last) = (
            before.first().expect("a CPU"),
            before.iter().last().expect("a CPU"),
        );
        let outer = PinGuard::pin(first).expect("a usable CPU");
        {
            let inner = PinGuard::pin(last).expect("a usable CPU");
            assert_eq!((inner.cpu(), current_cpu()), (last, Some(last)));
        }
        assert_eq!((outer.cpu(), current_cpu()), (first, Some(first)));
        assert_eq!(affinity().expect("a mask"), CpuSet::from_iter([first]));
        drop(outer);
        assert_eq!(affinity().expect("a mask"), before);
    });
}

#[test]
fn a_guard_gives_the_affinity_back_after_a_panic() {
    apart(|| {
        let before = affinity().expect("a mask");
        let first = before.first().expect("a CPU");
        let panic = std::panic::catch_unwind(|| {
            let _guard = PinGuard::pin(first).expect("a usable CPU");
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panic.is_err());
        assert_eq!(affinity().expect("a mask"), before);
    });
}

#[test]
fn threads_go_where_the_placement_says() {
    let machine = Topology::current();
    for order in [Order::CoresFirst, Order::FillNode, Order::Sockets] {
        let placement = machine
            .place(&order, 1, machine.cpus().len())
            .expect("an order that fits");
        assert_eq!(placement.shared(), 1);
        for (thread, &cpu) in placement.cpus().iter().enumerate() {
            let (pinning, actual) = apart(|| (placement.pin_current_thread(thread), current_cpu()));
            assert_eq!(
                Pinning::Pinned(cpu.expect("a CPU")),
                pinning.expect("a usable CPU")
            );
            assert_eq!(actual, cpu);
        }
    }
}

#[test]
fn an_unpinned_thread_is_reported() {
    let placement = Topology::current()
        .place(&Order::None, 1, 0)
        .expect("an order that fits");
    apart(|| {
        let before = affinity().expect("a mask");
        let pinning = placement.pin_current_thread(0).expect("nothing to fail");
        assert_eq!(
            (pinning, pinning.to_string().as_str()),
            (Pinning::Unpinned, "not pinned")
        );
        assert_eq!(affinity().expect("a mask"), before);
    });
}

#[test]
#[should_panic(expected = "thread 2 of a placement of 2 threads")]
fn a_thread_that_was_not_placed() {
    let placement = Topology::current()
        .place(&Order::None, 1, 1)
        .expect("an order that fits");
    let _ = placement.pin_current_thread(2);
}
