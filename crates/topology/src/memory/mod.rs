//! The memory node of an address: not where its thread runs, but where its page lies.

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "linux.rs")]
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    path = "other.rs"
)]
mod system;

use std::sync::OnceLock;

/// The number of the memory node on which the page of `address` lies.
///
/// `None` if the kernel cannot tell: the page has not been touched yet or is not this process's,
/// the system does not say (it needs Linux's `move_pages`, which containers may forbid), or there
/// is only one node and its kernel does not number it.
///
/// Asking the kernel takes about a microsecond. The kernel may move the page afterwards, if it
/// balances nodes. The address is not followed: any will do.
///
/// ```
/// let here = 7u64;
/// match corelay_topology::node_of(&here) {
///     Some(node) => println!("on node {node} of {:?}", corelay_topology::memory_nodes()),
///     None => println!("nobody knows"),
/// }
/// ```
pub fn node_of<T>(address: *const T) -> Option<usize> {
    system::node_of(address.addr())
}

/// The number of the memory node of a CPU, whether or not this thread may run there. `None` if
/// there is no such CPU, or if the system does not say.
///
/// It reads a folder of the kernel's, which takes some microseconds.
///
/// ```
/// use corelay_topology::{current_cpu, node_of_cpu};
///
/// if let Some(node) = current_cpu().and_then(node_of_cpu) {
///     println!("this runs near the memory of node {node}");
/// }
/// assert_eq!(node_of_cpu(usize::MAX), None);
/// ```
pub fn node_of_cpu(cpu: usize) -> Option<usize> {
    system::node_of_cpu(cpu)
}

/// The number of nodes of this machine that have memory, as of the first call: at least 1. `None`
/// if the system does not say.
///
/// ```
/// assert_ne!(corelay_topology::memory_nodes(), Some(0));
/// ```
pub fn memory_nodes() -> Option<usize> {
    static NODES: OnceLock<Option<usize>> = OnceLock::new();
    *NODES.get_or_init(|| count(&system::has_memory()?))
}

/// Counts the nodes of a list in the kernel's format. `None` if it is empty or no list.
fn count(list: &str) -> Option<usize> {
    let nodes: crate::CpuSet = list.trim().parse().ok()?;
    (!nodes.is_empty()).then_some(nodes.len())
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn nodes_are_counted() {
        assert_eq!(count("0\n"), Some(1));
        assert_eq!(count("0-3,8\n"), Some(5));
        for nonsense in ["", "\n", "none", "3-1"] {
            assert_eq!(count(nonsense), None, "{nonsense:?}");
        }
    }
}
