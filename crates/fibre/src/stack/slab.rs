//! Many stacks in one mapping.
//!
//! A mapping per stack would be a system call and an entry of the kernel's list of mappings for
//! each. Slabs that lie side by side become one mapping in the kernel, too, as long as their
//! guards are marks.

use super::guard::{self, Guards};
use super::size::StackSize;
use super::{Kind, Stack};
use std::ops::Range;
use std::ptr::NonNull;
use std::{fmt, io};

/// Bytes that a slab is not made larger than, except for a single stack.
const MOST_BYTES: usize = 4 << 20;

/// Stacks that a slab is not made larger than: as many as a word has bits.
const MOST_STACKS: usize = 64;

/// Why there is no stack.
#[derive(Debug)]
#[non_exhaustive]
pub enum StackError {
    /// The system has no memory, or no address space, for it.
    Map {
        /// How large the stack was to be.
        size: StackSize,
        /// What the system says.
        source: io::Error,
    },
    /// The stack can be had, the guard below it cannot.
    Guard {
        /// How large the stack was to be.
        size: StackSize,
        /// `vm.max_map_count`, where the system has it: two mappings per guarded stack.
        most_mappings: Option<usize>,
        /// What the system says.
        source: io::Error,
    },
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map { size, source } => write!(
                f,
                "no room for another fibre's stack of {size}: memory, the address space \
                 (ulimit -v) or the number of mappings (vm.max_map_count) is at its limit: {source}"
            ),
            Self::Guard {
                size,
                most_mappings: Some(limit),
                source,
            } => write!(
                f,
                "no guard can be had for another fibre's stack of {size}: on this kernel each \
                 takes two mappings, and vm.max_map_count is {limit}: {source}"
            ),
            Self::Guard { size, source, .. } => write!(
                f,
                "no guard can be had for another fibre's stack of {size}: {source}"
            ),
        }
    }
}

impl std::error::Error for StackError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Map { source, .. } | Self::Guard { source, .. } => Some(source),
        }
    }
}

/// Owns a mapping of stacks of one kind.
#[derive(Debug)]
pub(super) struct Slab {
    low: NonNull<u8>,
    stacks: usize,
    kind: Kind,
}

// SAFETY: the mapping belongs to the process, not to the thread that made it.
unsafe impl Send for Slab {}

impl Slab {
    /// How many stacks a slab of this kind has at most.
    pub(super) fn most(kind: Kind) -> usize {
        (MOST_BYTES / kind.stride()).clamp(1, MOST_STACKS)
    }

    /// Maps stacks and guards them: all of them or none, so that a process at its limit of
    /// mappings keeps some for other things.
    pub(super) fn map(kind: Kind, stacks: usize) -> Result<Self, StackError> {
        let slab = Self::reserve(kind, stacks)?;
        match slab.guard() {
            Ok(()) => Ok(slab),
            Err(_) if kind.guards == Guards::IfPossible => {
                drop(slab);
                Self::reserve(kind, stacks)
            }
            Err(source) => Err(StackError::Guard {
                size: kind.size(),
                most_mappings: guard::most_mappings(),
                source,
            }),
        }
    }

    fn reserve(kind: Kind, stacks: usize) -> Result<Self, StackError> {
        let size = kind.size();
        match reserve(stacks * kind.stride()) {
            Ok(low) => Ok(Self { low, stacks, kind }),
            Err(source) => Err(StackError::Map { size, source }),
        }
    }

    fn guard(&self) -> io::Result<()> {
        (0..self.stacks).try_for_each(|index| {
            let low = self.at(index * self.kind.stride());
            // SAFETY: the page below a stack that nobody has yet.
            unsafe { guard::install(low) }
        })
    }

    /// How many stacks it has.
    pub(super) fn len(&self) -> usize {
        self.stacks
    }

    /// One of its stacks; the lowest is 0.
    pub(super) fn stack(&self, index: usize) -> Stack {
        Stack {
            top: self.at((index + 1) * self.kind.stride()),
            kind: self.kind,
        }
    }

    /// Which of its stacks this one is.
    pub(super) fn index_of(&self, stack: Stack) -> usize {
        (stack.bottom() - self.addresses().start) / self.kind.stride()
    }

    /// Where it lies, guards and stacks.
    pub(super) fn addresses(&self) -> Range<usize> {
        let low = self.low.addr().get();
        low..low + self.bytes()
    }

    fn bytes(&self) -> usize {
        self.stacks * self.kind.stride()
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.bytes());
        // SAFETY: in the mapping, or one past its end.
        unsafe { self.low.add(offset) }
    }
}

impl Drop for Slab {
    /// Whoever drops a slab has all of its stacks.
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody has a stack of it: see above.
        let done = unsafe { libc::munmap(self.low.as_ptr().cast(), self.bytes()) };
        // It fails where cutting a hole into a larger mapping would make one too many. Then
        // address space is lost; the memory is not.
        if done != 0 {
            // SAFETY: as above.
            unsafe { libc::madvise(self.low.as_ptr().cast(), self.bytes(), libc::MADV_DONTNEED) };
        }
    }
}

/// Address space of `bytes`, without memory yet.
fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
    // Not reserved: most stacks use a page of theirs, and the promise of all would be refused.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let kind = libc::MAP_NORESERVE | libc::MAP_STACK;
    // It runs on nothing else.
    #[cfg(target_os = "openbsd")]
    let kind = libc::MAP_STACK;
    // FreeBSD's MAP_STACK is memory that grows downwards.
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "openbsd")))]
    let kind = 0;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | kind;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, where the system likes; it covers nothing that exists.
    let low = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if low == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // A huge page would be given to thirty stacks of which one is touched. Newer kernels take
    // MAP_STACK for that; one without huge pages refuses, and means the same.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: the mapping is ours; the advice does not change what it holds.
    unsafe {
        libc::madvise(low, bytes, libc::MADV_NOHUGEPAGE)
    };
    Ok(NonNull::new(low.cast()).expect("nothing is mapped at address 0"))
}

/// Gives the memory of a stack back to the system.
///
/// # Safety
///
/// Nobody uses the stack, and its slab is mapped.
pub(super) unsafe fn release(stack: Stack) {
    let bytes = stack.kind().size().bytes();
    // SAFETY: the stack is `bytes` long.
    let bottom = unsafe { stack.top().sub(bytes) };
    // SAFETY: the range is part of a private mapping of ours, and what it holds is not needed.
    let done = unsafe { libc::madvise(bottom.as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
    // Locked memory cannot be given back, and then it stays.
    debug_assert!(done == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL));
}

#[cfg(test)]
mod tests {
    use super::super::pool::LocalStacks;
    use super::super::testing::*;
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    #[cfg_attr(
        any(corelay_tsan, corelay_asan),
        ignore = "the sanitizer maps memory itself"
    )]
    #[cfg_attr(
        corelay_emulated,
        ignore = "an emulator keeps memory and processes otherwise"
    )]
    fn no_room_is_an_error_and_not_the_end() {
        if role().is_none() {
            let output = child(
                module_path!(),
                "no_room_is_an_error_and_not_the_end",
                "full",
                &[],
            );
            assert!(output.status.success(), "{}", errors(&output));
            return;
        }
        let most = libc::rlimit {
            rlim_cur: 4 << 30,
            rlim_max: 4 << 30,
        };
        // SAFETY: it reads the limit.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const most) };
        let stacks = stacks();
        let mut local = LocalStacks::new(stacks.clone());
        let large = kind(1 << 30);
        let mut taken = Vec::new();
        let error = loop {
            match local.take(large) {
                Ok(stack) => taken.push(stack),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StackError::Map { .. }), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains("1048576 KiB") && text.contains("ulimit -v"),
            "{text}"
        );
        assert!((1..4).contains(&taken.len()));
        // What is there serves on.
        local.take(kind(DEFAULT)).unwrap();
        // SAFETY: taken above.
        unsafe { local.give(taken.pop().unwrap()) };
        local.take(large).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[cfg_attr(
        any(corelay_tsan, corelay_asan),
        ignore = "the sanitizer maps memory itself"
    )]
    #[cfg_attr(
        corelay_emulated,
        ignore = "an emulator keeps memory and processes otherwise"
    )]
    fn where_mappings_are_scarce_the_limit_is_named() {
        let limit = guard::most_mappings().unwrap();
        // Half as many stacks, of 12 KiB of address space each; 65,530 is usual.
        if limit > 200_000 {
            println!("vm.max_map_count is {limit}, too many to be used up in a test");
            return;
        }
        if role().is_none() {
            let test = "where_mappings_are_scarce_the_limit_is_named";
            let output = child(module_path!(), test, "scarce", &[HATCH]);
            assert!(output.status.success(), "{}", errors(&output));
            return;
        }
        let stacks = stacks();
        let mut local = LocalStacks::new(stacks.clone());
        let smallest = StackSize::MIN.bytes();
        let mut count = 0;
        let error = loop {
            match local.take(kind(smallest)) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StackError::Guard { .. }), "{error:?}");
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
        assert!((limit / 2 - 200..=limit / 2).contains(&count), "{count}");
        // Who does not insist on guards still gets stacks.
        let size = StackSize::new(smallest).unwrap();
        let unguarded = Kind::new(size, Guards::IfPossible);
        for _ in 0..1_000 {
            let stack = local.take(unguarded).unwrap();
            write(stack.bottom(), 1);
        }
    }
}
