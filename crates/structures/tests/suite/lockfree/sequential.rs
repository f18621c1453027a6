//! One thread alone: the structures against those of std.

use crate::cases;
use corelay_structures::lockfree::{BlockQueue, HarrisList, MsQueue, TreiberStack};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

/// Some pushes, `None` for a pop.
fn pushes_and_pops() -> impl Strategy<Value = Vec<Option<u8>>> {
    prop::collection::vec(prop::option::of(any::<u8>()), 0..100)
}

/// A queue with the values of `first`, after some calls and `more` values, against a deque.
fn is_a_deque<Q>(
    (first, calls, more): &(Vec<u8>, Vec<Option<u8>>, Vec<u8>),
    push: fn(&Q, u8),
    pop: fn(&Q) -> Option<u8>,
    is_empty: fn(&Q) -> bool,
) -> Result<(), TestCaseError>
where
    Q: FromIterator<u8> + Extend<u8> + IntoIterator<Item = u8>,
{
    let mut queue = Q::from_iter(first.clone());
    let mut model = VecDeque::from(first.clone());
    for call in calls {
        match *call {
            Some(value) => {
                push(&queue, value);
                model.push_back(value);
            }
            None => prop_assert_eq!(pop(&queue), model.pop_front()),
        }
        prop_assert_eq!(is_empty(&queue), model.is_empty());
    }
    queue.extend(more.clone());
    model.extend(more);
    prop_assert!(queue.into_iter().eq(model));
    Ok(())
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_queue_is_a_deque(first: Vec<u8>, calls in pushes_and_pops(), more: Vec<u8>) {
        type Blocks = BlockQueue<u8, 3>;
        let values = (first, calls, more);
        is_a_deque(&values, MsQueue::push, MsQueue::pop, MsQueue::is_empty)?;
        is_a_deque(&values, Blocks::push, Blocks::pop, Blocks::is_empty)?;
    }

    #[test]
    fn a_stack_is_a_vector(first: Vec<u8>, calls in pushes_and_pops(), more: Vec<u8>) {
        let mut stack = TreiberStack::<_, 4>::from_iter(first.clone());
        let mut model = first;
        for call in calls {
            match call {
                Some(value) => {
                    stack.push(value);
                    model.push(value);
                }
                None => prop_assert_eq!(stack.pop(), model.pop()),
            }
            prop_assert_eq!(stack.is_empty(), model.is_empty());
        }
        stack.extend(more.clone());
        model.extend(more);
        prop_assert!(stack.into_iter().eq(model.into_iter().rev()));
    }

    #[test]
    fn a_list_is_a_set(
        first in prop::collection::vec(0_u8..20, 0..10),
        calls in prop::collection::vec((0_u8..4, 0_u8..20), 0..100),
        more in prop::collection::vec(0_u8..20, 0..10),
    ) {
        let mut list = HarrisList::from_iter(first.clone());
        let mut model = BTreeSet::from_iter(first);
        for (call, key) in calls {
            match call {
                0 => prop_assert_eq!(list.insert(key), model.insert(key)),
                1 => prop_assert_eq!(list.remove(&key), model.remove(&key)),
                2 => prop_assert_eq!(list.contains(&key), model.contains(&key)),
                _ => prop_assert_eq!(list.get(&key), model.get(&key).copied()),
            }
            prop_assert_eq!((list.len(), list.is_empty()), (model.len(), model.is_empty()));
        }
        list.extend(more.clone());
        model.extend(more);
        prop_assert_eq!(format!("{list:?}"), format!("{model:?}"));
        let mut seen = Vec::new();
        list.for_each(|key| seen.push(*key));
        prop_assert!(seen.iter().eq(&model));
        prop_assert!(list.into_iter().eq(model));
    }
}

#[test]
fn keys_are_found_by_what_they_borrow() {
    let list: HarrisList<String> = ["b", "a"].map(String::from).into_iter().collect();
    assert_eq!(list.get("a").as_deref(), Some("a"));
    assert!(list.contains("b") && list.remove("b") && !list.contains("b"));
}

#[test]
fn shared_structures_show_their_names() {
    assert_eq!(format!("{:?}", MsQueue::<u8>::default()), "MsQueue { .. }");
    let queue = BlockQueue::<u8>::default();
    assert_eq!(format!("{queue:?}"), "BlockQueue { .. }");
    assert_eq!(format!("{:?}", queue.into_iter()), "IntoValues { .. }");
    let stack = TreiberStack::<u8, 2>::default();
    assert_eq!(format!("{stack:?}"), "TreiberStack { .. }");
    assert_eq!(format!("{:?}", stack.into_iter()), "IntoIter { .. }");
    let keys = HarrisList::from_iter([1]).into_iter();
    assert_eq!(format!("{keys:?}"), "IntoKeys { .. }");
}

/// What can stand in a static does.
#[test]
fn stacks_and_lists_are_made_by_constants() {
    static STACK: TreiberStack<u8> = TreiberStack::new();
    static LIST: HarrisList<u8> = HarrisList::new();
    STACK.push(1);
    LIST.insert(1);
    assert_eq!((STACK.pop(), LIST.len()), (Some(1), 1));
}
