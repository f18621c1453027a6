//! Which CPUs this process may use, how they share cores, caches and memory, and where to
//! put its threads.
//!
//! What it costs to share data between two threads depends on where they run: on one core,
//! under one cache, in one package or across the machine. This crate reads the machine
//! from Linux's `sys` and `proc` (of this machine, or of a copy of another's), leaves out
//! what affinity and control group do not permit, and lays threads out in the orders that
//! the literature measures.
//!
//! ```
//! use corelay_topology::{Order, Topology};
//!
//! let machine = Topology::current();
//! println!("{machine}");
//! let placement = machine.place(&Order::CoresFirst, 1, 2)?; // one server, two clients
//! println!("{placement}; {:?}", placement.notes());
//! std::thread::scope(|scope| {
//!     for thread in 0..placement.cpus().len() {
//!         let placement = &placement;
//!         scope.spawn(move || println!("{:?}", placement.pin_current_thread(thread)));
//!     }
//! });
//! # Ok::<(), corelay_topology::PlaceError>(())
//! ```
//!
//! # When not to use it
//!
//! * A program that only wants a number of threads has
//!   [`std::thread::available_parallelism`].
//! * Outside Linux there are no folders to read and no masks to set: the topology is flat,
//!   pinning fails with an error, and both say so.
//! * Devices, memory sizes, huge pages and power states are not read.
//!
//! # Guarantees
//!
//! * **Never a panic, never empty.** Files may be missing or hold garbage. Each gap has one
//!   stated assumption, noted in [`Topology::unavailable`] with the CPUs it concerns; at
//!   the least there is one CPU. (Asking for things that are not there, such as
//!   [`Placement::pin_current_thread`] of a thread beyond the last, does panic.)
//! * **Nothing silent.** A thread that is not pinned is [`Pinning::Unpinned`]. A CPU that cannot be
//!   used is a [`PinError`] that names it. Shared CPUs, SMT siblings, cores of different speed and
//!   quotas are in [`Placement::notes`].
//! * **A snapshot.** CPUs that go offline later, and masks that change, are not noticed. The
//!   same files give the same topology and the same placement.
//! * **Any numbering.** Holes, CPUs switched off and more than 1,024 CPUs are ordinary;
//!   numbers end at [`MAX_CPUS`].
//!
//! # How it works
//!
//! | module | idea |
//! |---|---|
//! | `cpulist`, [`CpuSet`] | the kernel's list format, and masks of any length |
//! | `sysfs` | files below a root, and notes on what is wrong with them |
//! | `read` | CPUs, cores, packages; beside it `nodes`, `caches`, `tiers` (kinds of cores) |
//! | `cgroup` | quota and cpuset of control groups, versions 1 and 2 |
//! | [`Topology`] | what was found |
//! | [`Order`], `place` | the orders of placement |
//! | [`Placement`] | a CPU for each thread |
//! | `affinity`, `pin` | the thread's mask: asking, setting, giving back |
//! | [`node_of`], [`node_of_cpu`] | where a page lies, and which node a CPU belongs to, as the kernel says |
//! | [`Facts`] | model, kernel, hypervisor, clock source |
//! | `render` | a topology as text |

#![deny(unsafe_code)]

mod affinity;
mod cgroup;
mod cpulist;
mod cpuset;
mod facts;
mod memory;
mod order;
mod pin;
mod place;
mod placement;
mod read;
mod regular;
mod render;
mod sysfs;
mod topology;

pub use affinity::{affinity, current_cpu, process_affinity};
pub use cgroup::{ControlGroup, Quota};
pub use cpulist::{CpuListError, MAX_CPUS};
pub use cpuset::CpuSet;
pub use facts::Facts;
pub use memory::{memory_nodes, node_of, node_of_cpu};
pub use order::{Order, OrderError};
pub use pin::{
    PinError, PinGuard, Pinning, confine_current_thread, is_pinned_beyond, pin_current_thread,
};
pub use placement::{PlaceError, Placement};
pub use topology::{Cache, CacheKind, CacheLevel, Core, Cpu, Node, Package, Topology};
