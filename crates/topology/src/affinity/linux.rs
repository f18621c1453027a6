//! Linux: `sched_getaffinity` and `sched_setaffinity` with masks of any length.
//!
//! The kernel refuses a buffer shorter than its own mask with `EINVAL` and does not say
//! how long that is, so the buffer doubles until it fits. Setting takes any length.

#![allow(unsafe_code)]

use crate::CpuSet;
use crate::cpulist::MAX_CPUS;
use std::io;

/// The kernel's mask is an array of these, least significant bit first in each.
type Word = libc::c_ulong;
const BITS: usize = Word::BITS as usize;

/// The calling thread.
const THIS: libc::pid_t = 0;

pub(super) fn affinity() -> io::Result<CpuSet> {
    affinity_from(1024 / BITS)
}

/// Reads the mask, starting with a buffer of so many words.
fn affinity_from(words: usize) -> io::Result<CpuSet> {
    let mut words: Vec<Word> = vec![0; words];
    loop {
        let bytes = size_of_val(words.as_slice());
        // SAFETY: the pointer and the length in bytes are those of `words`, which this frame keeps.
        let failed =
            unsafe { libc::sched_getaffinity(THIS, bytes, words.as_mut_ptr().cast()) } != 0;
        if !failed {
            break;
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || words.len() * BITS >= MAX_CPUS {
            return Err(error);
        }
        words.resize((words.len() * 2).max(1), 0);
    }
    let set = |(index, word): (usize, &Word)| {
        let word = *word;
        (0..BITS)
            .filter(move |bit| word >> bit & 1 == 1)
            .map(move |bit| index * BITS + bit)
    };
    Ok(words.iter().enumerate().flat_map(set).collect())
}

pub(super) fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    let mut words: Vec<Word> = Vec::new();
    for cpu in cpus.iter() {
        words.resize(words.len().max(cpu / BITS + 1), 0);
        words[cpu / BITS] |= 1 << (cpu % BITS);
    }
    let bytes = size_of_val(words.as_slice());
    // SAFETY: the pointer and the length in bytes are those of `words`, which the call only reads.
    let failed = unsafe { libc::sched_setaffinity(THIS, bytes, words.as_ptr().cast()) } != 0;
    if failed {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

pub(super) fn current_cpu() -> Option<usize> {
    // SAFETY: the call takes nothing and touches no memory of this program.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No kernel's mask fits an empty buffer, so this takes the way of machines with more
    /// than 1,024 CPUs.
    #[test]
    fn a_buffer_too_short_grows() {
        let grown = affinity_from(0).expect("a mask");
        assert_eq!(grown, affinity().expect("a mask"));
        assert!(!grown.is_empty());
    }

    #[test]
    fn a_mask_longer_than_the_kernels_is_taken() {
        let before = affinity().expect("a mask");
        let beyond = before.union(&CpuSet::from_iter([MAX_CPUS - 1]));
        // In a thread of its own, so that no other test is moved.
        let set = std::thread::spawn(move || set_affinity(&beyond).and_then(|()| affinity()));
        assert_eq!(set.join().expect("no panic").expect("a mask"), before);
    }
}
