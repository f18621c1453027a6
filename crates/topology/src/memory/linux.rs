//! Linux: `move_pages`, which moves nothing if it is given no target nodes.

#![allow(unsafe_code)]

/// This process.
const SELF: libc::c_int = 0;

pub(super) fn node_of(address: usize) -> Option<usize> {
    let pages: [usize; 1] = [address];
    let mut status: [libc::c_int; 1] = [-libc::ENOENT];
    // SAFETY: one page and one status, both of which this frame keeps. Without nodes the kernel
    // only looks the page up, and does not follow the address itself.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            SELF,
            pages.len(),
            pages.as_ptr(),
            std::ptr::null::<libc::c_int>(),
            status.as_mut_ptr(),
            0,
        )
    } != 0;
    // A status below zero says why the page has no node: not touched yet, not mapped.
    (!failed).then(|| usize::try_from(status[0]).ok()).flatten()
}

/// The folder of a CPU has a link to that of its node.
pub(super) fn node_of_cpu(cpu: usize) -> Option<usize> {
    let entries = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")).ok()?;
    entries.flatten().find_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("node")?.parse().ok()
    })
}

pub(super) fn has_memory() -> Option<String> {
    std::fs::read_to_string("/sys/devices/system/node/has_memory").ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_nodes;

    const PAGE: usize = 4096;
    const PAGES: usize = 64;

    /// Whether the kernel answers the question at all.
    fn is_answered() -> bool {
        let (none, nowhere) = (0usize, std::ptr::null::<usize>());
        // SAFETY: with no pages, the call reads and writes nothing.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                SELF,
                none,
                nowhere,
                nowhere,
                nowhere,
                0,
            )
        };
        answer == 0
    }

    #[test]
    fn a_page_lies_somewhere_once_it_is_touched() {
        // SAFETY: a new private mapping, at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGES * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(memory, libc::MAP_FAILED);
        let page = memory.cast::<u8>().wrapping_add((PAGES - 1) * PAGE);
        assert_eq!(node_of(page.addr()), None, "nobody has touched it");
        // SAFETY: the page lies inside the mapping, which is this test's own.
        unsafe { page.write(1) };
        let node = node_of(page.addr());
        // SAFETY: the mapping is this test's own, and not used any more.
        unsafe { libc::munmap(memory, PAGES * PAGE) };
        assert_eq!(node.is_some(), is_answered());
        if memory_nodes() == Some(1) {
            assert!(node.is_none_or(|node| node == the_only_node()));
        }
    }

    fn the_only_node() -> usize {
        let list = has_memory().expect("read before");
        list.trim().parse().expect("one number")
    }

    #[test]
    fn addresses_of_nothing_lie_nowhere() {
        for address in [0, 8, usize::MAX, usize::MAX / 2 + 1] {
            assert_eq!(node_of(address), None);
        }
    }
}
