//! Helpers for the tests of stacks. A test that ends a process, or measures one, has a process of
//! its own.

use super::pool::Stacks;
use super::size::page_size;
use super::*;
use corosensei::stack::StackPointer;
use std::process::{Command, Output};
use std::sync::Arc;

/// A pool without stacks, and a cluster, so that stacks given back are kept.
pub(super) fn stacks() -> Arc<Stacks> {
    let stacks = Stacks::new();
    stacks.begin_cluster();
    stacks
}

pub(super) fn kind(bytes: usize) -> Kind {
    Kind::new(StackSize::new(bytes).unwrap(), Guards::Required)
}

/// The part of a stack below `base`.
pub(super) struct Frames {
    base: StackPointer,
    stack: Stack,
}

impl Frames {
    pub(super) fn below(base: NonNull<u8>, stack: Stack) -> Self {
        let base = base.addr();
        Self { base, stack }
    }
}

// SAFETY: the tests take aligned places in stacks of their own, with a guard below.
unsafe impl corosensei::stack::Stack for Frames {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        StackPointer::new(self.stack.limit()).expect("no stack lies at address 0")
    }
}

pub(super) const DEFAULT: usize = 64 << 10;

/// Writes to a stack as its owner.
pub(super) fn write(address: usize, value: u8) {
    let place = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the tests write to stacks that they have taken; a fault on purpose ends the process.
    unsafe { place.write_volatile(value) };
}

/// Reads from a stack as its owner.
pub(super) fn read(address: usize) -> u8 {
    let place = std::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: the tests read from stacks that they have taken; a fault on purpose ends the process.
    unsafe { place.read_volatile() }
}

/// Whether memory can be read. Asks the kernel to read it, so there is no fault.
pub(super) fn is_readable(address: usize) -> bool {
    let mut ends = [0; 2];
    // SAFETY: the array has room for the two numbers.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let place = std::ptr::without_provenance::<libc::c_void>(address);
    // SAFETY: the kernel checks the address.
    let read = unsafe { libc::write(ends[1], place, 1) };
    let error = io_error();
    for end in ends {
        // SAFETY: this function made the pipe, and nobody else has its ends.
        unsafe { libc::close(end) };
    }
    assert!(read == 1 || error == Some(libc::EFAULT), "{error:?}");
    read == 1
}

pub(super) fn io_error() -> Option<i32> {
    std::io::Error::last_os_error().raw_os_error()
}

/// Bytes of a stack that have memory: 0 if the stack is no longer mapped.
pub(super) fn resident(stack: Stack) -> usize {
    let bytes = stack.kind().size().bytes();
    let mut pages = vec![0_u8; bytes / page_size()];
    let bottom = std::ptr::without_provenance_mut(stack.bottom());
    // SAFETY: `pages` has a byte for each page; the kernel checks the addresses.
    let done = unsafe { libc::mincore(bottom, bytes, pages.as_mut_ptr().cast()) };
    assert!(done == 0 || io_error() == Some(libc::ENOMEM));
    pages.iter().filter(|page| **page & 1 == 1).count() * page_size()
}

pub(super) const CHILD: &str = "CORELAY_STACK_CHILD";

/// Runs `test` of `module` again, in a process that is told to be `role`.
pub(super) fn child(module: &str, test: &str, role: &str, environment: &[(&str, &str)]) -> Output {
    let (_, module) = module.split_once("::").expect("the crate comes first");
    let output = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{module}::{test}"), "--exact"])
        .args(["--nocapture", "--include-ignored", "--test-threads=1"])
        .env(CHILD, role)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("running 1 test"), "{test} is called otherwise");
    output
}

/// The role that this process has as a child. It leaves no core file.
pub(super) fn role() -> Option<String> {
    let role = std::env::var(CHILD).ok()?;
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `setrlimit` reads the limit, which outlives the call.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    Some(role)
}

pub(super) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The environment in which guards are made by protection.
pub(super) const HATCH: (&str, &str) = ("CORELAY_NO_GUARD_INSTALL", "1");
