//! Cache lines that an operation moves on larger machines, for the page of a comparison.
//!
//! The counts are those of `corelay model lines --machine 4x16x2` for fetch-add on one number, with
//! as many threads as CPUs: a trustee and 7, 31 or 127 clients, or 8, 32 or 128 clients of a lock.
//! They are stored, because a page is made from results alone and the simulator is no part of
//! reporting. A test of the command compares them with what it counts.

/// Request lines of a pair that have a count in [`BY_REQUEST_LINES`].
pub const REQUEST_LINES: [usize; 5] = [1, 4, 16, 64, 256];

/// Cache lines moved per operation by the thesis's lines, with a queue of twice as many, for each of
/// [`REQUEST_LINES`]: one server and eight clients on a machine of 2 sockets of 14 cores.
pub const BY_REQUEST_LINES: [f64; 5] = [2.0; 5];

/// The simulated machine of [`BY_REQUEST_LINES`], as `--machine` takes it, and its clients.
pub const REQUEST_LINES_MACHINE: (&str, usize) = ("2x14x2", 8);

/// The numbers of CPUs that have counts.
pub const CPUS: [usize; 3] = [8, 32, 128];

/// The simulated machine, as `--machine` takes it.
pub const MACHINE: &str = "4x16x2";

/// Cache lines moved per operation by each method, at each of [`CPUS`].
pub const MOVED: [(&str, [f64; 3]); 10] = [
    ("atomic", [1.0, 1.0, 1.0]),
    ("ttas", [2.71, 2.55, 2.51]),
    ("ticket", [4.21, 14.78, 66.32]),
    ("mcs", [6.0, 6.0, 6.0]),
    ("clh", [5.0, 3.54, 5.0]),
    ("flat-combining", [7.0, 9.97, 11.89]),
    ("cc-synch", [5.98, 8.0, 10.0]),
    ("trust", [3.0, 3.0, 4.0]),
    ("trust-then", [0.29, 0.29, 0.29]),
    ("trust-post", [0.16, 0.16, 0.16]),
];
