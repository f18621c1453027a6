//! The kernel's counts of the calling thread: page faults, and switches to other threads.
//!
//! They are read from `/proc/thread-self`, which costs some system calls and no unsafe code. They
//! are read before and after the timed phase, never in it.

use serde::Serialize;
use std::ops::{AddAssign, Sub};

/// Counts of a thread, or of some threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Usage {
    /// Page faults that were served from memory.
    pub(crate) minor_faults: u64,
    /// Page faults that were served from a disk.
    pub(crate) major_faults: u64,
    /// Switches to another thread because this one had to wait.
    pub(crate) voluntary: u64,
    /// Switches to another thread although this one could have gone on.
    pub(crate) involuntary: u64,
}

impl Usage {
    /// Returns the counts of the calling thread since it began; `None` if the system does not
    /// say.
    pub(crate) fn own() -> Option<Self> {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/{name}")).ok();
        Self::parse(&read("stat")?, &read("status")?)
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The thread's name stands in parentheses and may contain anything. Field 3 comes after
        // it.
        let (_, fields) = stat.rsplit_once(')')?;
        let field = |number: usize| fields.split_whitespace().nth(number - 3)?.parse().ok();
        let line = |name: &str| {
            let mut lines = status.lines();
            lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        Some(Self {
            minor_faults: field(10)?,
            major_faults: field(12)?,
            voluntary: line("voluntary_ctxt_switches:")?,
            involuntary: line("nonvoluntary_ctxt_switches:")?,
        })
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.minor_faults += more.minor_faults;
        self.major_faults += more.major_faults;
        self.voluntary += more.voluntary;
        self.involuntary += more.involuntary;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_after_any_thread_name() {
        let stat = "7 (a ) 3 (b) R 1 2 3 4 5 6 107 8 9 10 11 12 13 14";
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t20\nnonvoluntary_ctxt_switches:\t30\n";
        let usage = Usage {
            minor_faults: 107,
            major_faults: 9,
            voluntary: 20,
            involuntary: 30,
        };
        assert_eq!(Usage::parse(stat, status), Some(usage));
        assert_eq!(Usage::parse("7 (a) R 1", status), None);
        assert_eq!(Usage::parse(stat, ""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn touching_pages_and_sleeping_are_counted() {
        let Some(before) = Usage::own() else {
            return; // no /proc here
        };
        let mut pages = vec![0_u8; 8 << 20];
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&pages);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let counted = Usage::own().unwrap() - before;
        // A huge page takes one fault instead of 512.
        assert!(counted.minor_faults >= 4, "{counted:?}");
        assert!(counted.voluntary >= 1, "{counted:?}");
    }
}
