//! Sequences of operations, against a `BTreeMap`.

use super::{Bound, OrderedKey, Rows, pin};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Debug;

#[derive(Debug, Clone)]
enum Step<K> {
    Insert(K),
    Remove(K),
    Get(K),
    Range(Bound<K>, Bound<K>),
}

fn steps<K: Debug + Clone + 'static>(
    key: impl Strategy<Value = K> + Clone + 'static,
) -> impl Strategy<Value = Vec<Step<K>>> {
    let bound = prop_oneof![
        4 => key.clone().prop_map(Bound::Included),
        4 => key.clone().prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ];
    let step = prop_oneof![
        5 => key.clone().prop_map(Step::Insert),
        4 => key.clone().prop_map(Step::Remove),
        1 => key.clone().prop_map(Step::Get),
        1 => (bound.clone(), bound).prop_map(|(from, to)| Step::Range(from, to)),
    ];
    prop::collection::vec(step, 0..400)
}

fn is_between<K: Ord>(key: &K, from: &Bound<K>, to: &Bound<K>) -> bool {
    use std::ops::RangeBounds;
    (from.as_ref(), to.as_ref()).contains(key)
}

fn agree<K, const N: usize>(steps: &[Step<K>])
where
    K: OrderedKey + Clone + Debug + Send + Sync + 'static,
{
    let (rows, mut set) = (Rows::<K, N>::new(), BTreeSet::new());
    for (at, step) in steps.iter().enumerate() {
        let guard = pin();
        match step {
            Step::Insert(key) => {
                assert_eq!(rows.insert(key.clone(), &guard), set.insert(key.clone()));
            }
            Step::Remove(key) => assert_eq!(rows.remove(key, &guard), set.remove(key)),
            Step::Get(key) => assert_eq!(rows.has(key, &guard), set.contains(key)),
            Step::Range(from, to) => {
                let wanted = set.iter().filter(|key| is_between(*key, from, to)).cloned();
                let found = rows.range(from.as_ref(), to.as_ref(), &guard);
                assert_eq!(found, wanted.collect::<Vec<_>>());
            }
        }
        if at % 16 == 0 {
            rows.check(&guard);
        }
    }
    let guard = pin();
    assert!(rows.all(&guard).iter().eq(set.iter()));
    for key in &set {
        assert!(rows.remove(key, &guard));
    }
    assert_eq!(rows.all(&guard), []);
    let counts = rows.check(&guard);
    assert!(
        counts.iter().sum::<usize>() <= 2 * counts.len() + 2,
        "{counts:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn numbers_are_as_in_a_set(steps in steps(0..150_i64)) {
        agree::<_, 2>(&steps);
        agree::<_, 3>(&steps);
        agree::<_, 4>(&steps);
        agree::<_, 32>(&steps);
    }

    #[test]
    fn strings_are_as_in_a_set(steps in steps("(common-prefix)?[a-c\0]{0,9}")) {
        agree::<_, 3>(&steps);
        agree::<_, 8>(&steps);
    }

    #[test]
    fn numbers_at_the_ends_are_as_in_a_set(
        steps in steps(prop_oneof![0..4_u64, u64::MAX - 3..=u64::MAX])
    ) {
        agree::<_, 2>(&steps);
    }

    #[test]
    fn pairs_are_as_in_a_set(steps in steps((0..3_u32, 0..50_u64))) {
        agree::<_, 4>(&steps);
    }
}

/// Inserting at the right and removing at the left leaves no nodes behind.
#[test]
fn a_queue_does_not_grow() {
    fn queue<const N: usize>(length: u64) {
        let rows = Rows::<u64, N>::new();
        let mut most = 0;
        for key in 0..20_000 {
            let guard = pin();
            assert!(rows.insert(key, &guard));
            if key >= length {
                assert!(rows.remove(&(key - length), &guard));
            }
            if key % 97 == 0 {
                let counts = rows.check(&guard);
                if key > 2 * length {
                    let nodes = counts.iter().sum::<usize>() as u64;
                    let needed = length / N as u64 + 1;
                    most = most.max(nodes * 100 / needed);
                    // Sparse nodes at the left, and the nodes above the leaves.
                    assert!(nodes <= 3 * needed + 20, "{counts:?} for {length}");
                }
            }
        }
    }
    for length in [0, 1, 10, 100, 1_000] {
        queue::<2>(length);
        queue::<4>(length);
        queue::<32>(length);
    }
}

#[test]
fn ascending_and_descending_keys_fill_nodes() {
    let guard = pin();
    let (up, down) = (Rows::<u64, 32>::new(), Rows::<u64, 32>::new());
    for key in 0..32 * 32 {
        up.insert(key, &guard);
        down.insert(u64::MAX - key, &guard);
    }
    assert_eq!(up.check(&guard), [1, 32]);
    assert_eq!(down.check(&guard), [1, 32]);
}

/// A gap is changed by an insertion into it, and by no insertion elsewhere. The insertions of the
/// transaction itself are patched.
#[test]
fn gaps_notice_insertions() {
    let is_unchanged = |gap: &super::Gap| {
        // SAFETY: the test's only guard lives on.
        unsafe { (gap.is_unchanged)(gap, &|_| false) }
    };
    let guard = pin();
    let rows = Rows::<u64, 4>::new();
    for key in 0..100 {
        rows.insert(key * 10, &guard);
    }
    let near = rows.0.get(&15, &guard).unwrap_err();
    let far = rows.0.get(&985, &guard).unwrap_err();
    let mut own = vec![rows.0.get(&16, &guard).unwrap_err()];
    for key in [14, 16, 17, 18, 19] {
        let changed = rows.change(key, &guard).unwrap();
        let split: Vec<_> = own
            .iter_mut()
            .filter_map(|gap| changed.patch(gap))
            .collect();
        own.extend(split);
    }
    assert!(!is_unchanged(&near));
    assert!(is_unchanged(&far));
    assert!(own.len() > 1);
    assert!(own.iter().all(is_unchanged));
    rows.insert(15, &guard);
    assert_eq!(own.iter().filter(|gap| !is_unchanged(gap)).count(), 1);
}
