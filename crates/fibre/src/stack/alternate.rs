//! The stack on which a thread takes signals.

use super::size::page_size;
use std::ptr::NonNull;
use std::{io, ptr};

/// Bytes for the handler, and for those before it, beside what the kernel saves. Memory is taken
/// as it is used.
const FOR_HANDLERS: usize = 64 << 10;

/// While it lives, signals of this thread are taken here, if their handlers ask for that. Of two,
/// the later goes first.
///
/// `std` gives its threads such a stack too, but one that may have no room beside the registers
/// of a large processor.
#[derive(Debug)]
pub(super) struct AlternateStack {
    low: NonNull<u8>,
    bytes: usize,
    before: libc::stack_t,
}

impl AlternateStack {
    /// For the calling thread, which also has to drop it.
    pub(super) fn install() -> io::Result<Self> {
        let bytes = (saved_bytes() + FOR_HANDLERS).next_multiple_of(page_size()) + page_size();
        // SAFETY: a new mapping, where the system likes.
        let low = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANON,
                -1,
                0,
            )
        };
        if low == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut stack = Self {
            low: NonNull::new(low.cast()).expect("nothing is mapped at address 0"),
            bytes,
            before: disabled(),
        };
        // A handler that overflows ends the process rather than write over its neighbour.
        // SAFETY: the page is the mapping's lowest, and nobody uses it.
        if unsafe { libc::mprotect(low, page_size(), libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: in the mapping.
        let usable = unsafe { stack.low.add(page_size()) };
        let new = libc::stack_t {
            ss_sp: usable.as_ptr().cast(),
            ss_flags: 0,
            ss_size: bytes - page_size(),
        };
        // SAFETY: the mapping is for this alone until `drop` has taken it back.
        if unsafe { libc::sigaltstack(&raw const new, &raw mut stack.before) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stack)
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        let mut now = disabled();
        // SAFETY: it only tells.
        unsafe { libc::sigaltstack(ptr::null(), &raw mut now) };
        let low = self.low.addr().get();
        // Not where it was never installed.
        if (low..low + self.bytes).contains(&now.ss_sp.addr()) {
            // SAFETY: it was this thread's before, and whoever made it took it to be so still.
            unsafe { libc::sigaltstack(&raw const self.before, ptr::null_mut()) };
        }
        // SAFETY: the mapping is ours, and no signal comes here any more. Its neighbours have
        // other protections on one side, so that no hole is cut.
        unsafe { libc::munmap(self.low.as_ptr().cast(), self.bytes) };
    }
}

fn disabled() -> libc::stack_t {
    libc::stack_t {
        ss_sp: ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        // Some systems look at it even so.
        ss_size: libc::SIGSTKSZ,
    }
}

/// Bytes that the kernel writes when a signal comes.
fn saved_bytes() -> usize {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        /// Of `asm/auxvec.h`; libc names it for some systems only.
        const AT_MINSIGSTKSZ: libc::c_ulong = 51;

        // SAFETY: it takes a number; 0 where the kernel does not say.
        let answer = unsafe { libc::getauxval(AT_MINSIGSTKSZ) } as usize;
        answer.max(libc::MINSIGSTKSZ)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    libc::MINSIGSTKSZ
}
