//! The ordered index: a B-link tree whose nodes' contents are replaced, never changed.
//!
//! After Lehman and Yao, *Efficient Locking for Concurrent Operations on B-Trees* (ACM TODS 6:4,
//! 1981): every node has a link to its right sibling and an upper bound, so that whoever comes to a
//! node that was split meanwhile goes on to the right. We depart from it:
//!
//! * Contents are immutable. A change makes new contents and exchanges one pointer, so readers need
//!   no lock and see each node as it was at one moment.
//! * Insertions need no lock either: the exchange is a compare-exchange. No code of the user (`Ord`,
//!   `Clone` of a key) runs while anything is locked.
//! * Sparse nodes are merged. Lehman and Yao leave them.
//!
//! # Layout
//! ```text
//!            root ─► Node ─► Block, level 1
//!                             prefix │  0  │  40  │  70  │
//!                             child  │  ∙  │   ∙  │   ∙  │
//!                    ┌───────────────┘     │      └──────────────┐
//!                    ▼                     ▼                     ▼
//!              Node, low −∞           Node, low 40           Node, low 70
//!                    │                     │                     │
//!              Block, level 0        Block, level 0        Block, level 0
//!              high 40, right ──►    high 70, right ──►    no right sibling
//!              10 20 30              40 50 60              70 80
//!               ∙  ∙  ∙ records       ∙  ∙  ∙               ∙  ∙
//! ```
//! A *node* has an identity, its low key, and a pointer to its contents. It covers the keys from its
//! low key on, up to (not including) the low key of its right sibling. A *block* is the contents: the
//! [prefixes](OrderedKey::prefix) of up to `N` keys, then their pointers. Separators are not stored:
//! the separator of a child is the child's low key, a clone that lives and dies with the node.
//!
//! # States of a node
//! | state | word | left by |
//! |---|---|---|
//! | fresh | contents; nobody has a pointer to the node | the exchange that splits its left sibling (or `grow`) |
//! | alive | contents | `replace`: new contents, alive. `lock`: locked |
//! | locked | contents, bit 0 set | `publish`: new contents, locked. Unlocking: alive, or dead if the contents say so |
//! | dead | contents without entries, with a pointer to the *heir* that covers the range now | nothing; the node is retired |
//!
//! Only a merge locks. It has the left node `L`, its right sibling `R` and their parent `P` locked,
//! and does, in this order: `L` := entries of both, still locked; `R` := dead, heir `L`; `P` :=
//! without `R`; unlocks.
//!
//! # Proof sketch
//! *Deadlock.* Locks are taken from left to right in a level, then from below to above: `L`, `R`,
//! `P`. The order of two nodes of a level never changes (a split adds to the right of a node, a
//! merge takes out), and a node never changes its level. `R` is locked only after it was found to be
//! the right sibling of the locked `L`, by its address. So no thread waits for a node that comes
//! before one that it holds, and whoever holds the last one in this order goes on. `shrink` locks one
//! node. Readers and insertions hold nothing while they wait.
//!
//! *A key that is present is found.* Call a node *right for k* if `k` is not below its low key. Every
//! step of a descent goes from a node that is right for `k` to one that is: a child whose low key is
//! not above `k`; the right sibling, if the upper bound is not above `k`; the heir, whose low key is
//! lower. The node where it ends covers `k` by its contents of that moment. At each moment exactly one
//! alive leaf covers `k`: a split divides the range in the exchange that publishes both halves, and a
//! merge has `R` say the same as `L` for keys of `R` until `R` is dead, as neither changes while
//! locked. A descent ends because it goes down, or to the right, except to an heir; that takes one
//! merge by another thread each time.
//!
//! *Two insertions of a key* go to the one leaf that covers it; the exchange of the second one fails,
//! or finds the first record.
//!
//! *Gaps.* A record is added to a range only by exchanging the contents of the leaf that covers the
//! key at that time. If this was not the leaf that a transaction has seen, that was split (its
//! contents are others) or is dead (likewise) since. So if all leaves that a transaction saw have
//! the contents that it saw, nothing was added. While a guard lives no block address is used again.
//! Two committers that insert and then look at each other's gaps need a `SeqCst` fence between
//! insertion and look, or neither may see the other: [`Gap`]'s user has it.
//!
//! *Reclamation.* Only the parent and the left sibling point to a node (and heirs' dead ones, which
//! are older garbage). A merge takes `R` out of both. A new node is entered into a parent once, by
//! the thread that made it, and it cannot be merged away before: the parent must have it. So no
//! pointer to `R` appears after it was retired, whatever `Ord` says: nodes are told apart by their
//! addresses.
//!
//! *Panics.* `Ord` and `Clone` of a key run with nothing locked. If they panic before the record is
//! in its leaf, or out of it, nothing has happened. If they panic afterwards, while the nodes above
//! are kept in order, the panic is caught: the caller has to know that the record is in, or out. The
//! tree stays right. A node that is in no parent is found by the link of its left sibling, and it is
//! never merged away.

mod block;
mod insert;
mod key;
mod merge;
mod node;
mod range;
mod search;
#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests;

pub use key::OrderedKey;
pub(crate) use range::Range;

use super::{Gap, Keyed};
use crate::store::garbage::{Guard, discard};
use block::Block;
use corelay_sync::facade::atomic::AtomicPtr;
use node::Node;
use search::{Aim, Place};
use std::borrow::Borrow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// A record that an ordered index can have.
pub(crate) trait Record: Keyed<Key: OrderedKey + Clone + Send + Sync> {}

impl<R: Keyed<Key: OrderedKey + Clone + Send + Sync>> Record for R {}

/// Entries that a node has at most: of 16, 32, 48 and 64 the best compromise of lookups and inserts.
pub(crate) const ENTRIES: usize = 48;

/// An ordered index of records. It does not own them.
///
/// `N` is the number of entries that a node has at most. Wide nodes make lookups and scans faster;
/// but what is inserted into a leaf changes the gaps of all transactions that have seen the leaf, so
/// they abort more.
#[derive(Debug)]
pub(crate) struct Ordered<R: Record, const N: usize = ENTRIES> {
    root: AtomicPtr<Node<R, N>>,
}

// SAFETY: the nodes are the index's own, and any thread may free them, as keys are `Send`. Records
// are only referred to, and `Keyed` demands `Sync`.
unsafe impl<R: Record, const N: usize> Send for Ordered<R, N> {}
// SAFETY: as above; what is shared changes by atomic operations alone, and keys are `Sync`.
unsafe impl<R: Record, const N: usize> Sync for Ordered<R, N> {}

/// The outcome of an insertion.
#[derive(Debug)]
pub(crate) enum Inserted<'g, R> {
    Done(Changed),
    /// A record with this key is there already.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare it"))]
    Exists(&'g R),
}

/// The contents that an insertion has replaced.
#[derive(Debug)]
pub(crate) struct Changed {
    /// The leaf.
    place: *const (),
    before: usize,
    after: usize,
    /// A leaf that has taken a part of the range, and its contents.
    split: Option<(*const (), usize)>,
}

impl Changed {
    /// Changes `gap`, of the transaction that has inserted, so that its own insertion does not count
    /// as a change. Returns the gap of a new leaf, which the transaction has to look at, too.
    pub(crate) fn patch(&self, gap: &mut Gap) -> Option<Gap> {
        if (gap.place, gap.seen) != (self.place, self.before) {
            return None;
        }
        gap.seen = self.after;
        let (place, seen) = self.split?;
        Some(Gap {
            place,
            seen,
            ..*gap
        })
    }
}

impl<R: Record, const N: usize> Ordered<R, N> {
    /// An empty index.
    ///
    /// # Safety
    /// The guards that are given to one index belong to one domain: each keeps what any of them
    /// retires.
    pub(crate) unsafe fn new() -> Self {
        let root = Box::new(Node::new(None, Block::alone(0)));
        Self {
            root: AtomicPtr::new(Box::into_raw(root)),
        }
    }

    /// The record of a key, or the gap where it would be.
    #[inline]
    pub(crate) fn get<'g, Q, G>(&'g self, key: &Q, _guard: &'g G) -> Result<&'g R, Gap>
    where
        R::Key: Borrow<Q>,
        Q: OrderedKey + ?Sized,
        G: Guard,
    {
        let aim = Aim::above(key);
        let (node, block) = self.leaf(aim);
        match block.find(aim) {
            Ok(at) => Ok(block.record(at)),
            Err(_) => Err(Gap {
                hash: key.prefix(),
                ..Self::gap((node, block))
            }),
        }
    }

    fn gap((node, block): Place<'_, R, N>) -> Gap {
        Gap {
            place: ptr::from_ref(node).cast(),
            seen: ptr::from_ref(block).addr(),
            hash: 0,
            is_unchanged: Self::is_unchanged,
        }
    }

    /// Whether a leaf has the contents that were seen. Removals and merges count as changes, too.
    ///
    /// # Safety
    /// The guard lives under which the gap was made.
    unsafe fn is_unchanged(gap: &Gap, _is_own: &dyn Fn(*const ()) -> bool) -> bool {
        // SAFETY: `gap` has made the pointer from a node, which the guard keeps.
        let node = unsafe { &*gap.place.cast::<Node<R, N>>() };
        node.has(gap.seen)
    }
}

/// Keeps nodes in order after an operation has taken effect. A panic of the user's `Ord` or `Clone`
/// ends that, and nothing else.
fn upkeep(run: impl FnOnce()) {
    if cfg!(corelay_loom) {
        // No model has keys that panic; a panic is the checker's.
        return run();
    }
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        discard(payload);
    }
}

/// Frees the nodes.
impl<R: Record, const N: usize> Drop for Ordered<R, N> {
    fn drop(&mut self) {
        // Relaxed: the index is this thread's own.
        let mut first = self
            .root
            .load(corelay_sync::facade::atomic::Ordering::Relaxed);
        while !first.is_null() {
            // SAFETY: the leftmost node of a level, which is not freed yet.
            let block = unsafe { &*first }.block();
            let below = match block.is_leaf() {
                true => ptr::null_mut(),
                false => ptr::from_ref(block.child(0)).cast_mut(),
            };
            // Nodes that are in no parent are found, too, by the links.
            let mut node = first;
            while !node.is_null() {
                // SAFETY: the nodes of a level that are alive are linked to each other once each.
                let owned = unsafe { Box::from_raw(node) };
                node = owned
                    .block()
                    .right()
                    .map_or(ptr::null_mut(), |right| ptr::from_ref(right).cast_mut());
            }
            first = below;
        }
    }
}
