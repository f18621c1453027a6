//! A program that pins every thread by itself, before it uses corelay: two threads on two CPUs may
//! still spin for each other.
//!
//! It is a test program of its own, because the CPUs are looked up once per process.

#![cfg(all(target_os = "linux", not(any(corelay_loom, corelay_shuttle))))]

use corelay_sync::Backoff;
use corelay_topology::{CpuSet, Topology, affinity, current_cpu};

/// Pins all threads that exist now to this CPU, without telling corelay.
fn pin_all(cpu: usize) {
    let mut words = [0_u64; 1_024];
    words[cpu / 64] = 1 << (cpu % 64);
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().file_name().into_string().unwrap();
        let task = task.parse().unwrap();
        // SAFETY: the mask has this many bytes, and the thread is one of this process.
        let done =
            unsafe { libc::sched_setaffinity(task, size_of_val(&words), words.as_ptr().cast()) };
        assert_eq!(done, 0);
    }
}

#[test]
fn threads_pinned_to_two_cpus_may_spin() {
    let all: CpuSet = affinity().unwrap();
    let quota = Topology::current().quota_cpus();
    if all.len() < 2 || quota.is_some_and(|cpus| cpus < 2.0) {
        println!("two CPUs that work at once are not to be had: nothing to be seen");
        return;
    }
    let cpus: Vec<usize> = all.iter().collect();
    pin_all(cpus[0]);
    assert_eq!(affinity().unwrap().len(), 1);
    assert!(
        Backoff::new().is_yielding(),
        "one CPU, as far as anybody knows"
    );
    let other = cpus[1];
    let apart = std::thread::spawn(move || {
        pin_all(other);
        // The thread runs there from its next time slice on.
        while current_cpu() != Some(other) {
            std::thread::yield_now();
        }
        Backoff::new().is_yielding()
    });
    assert!(!apart.join().unwrap(), "two CPUs have been seen");
    assert!(!Backoff::new().is_yielding());
}
