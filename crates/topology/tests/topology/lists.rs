//! The grammar of CPU lists, and the orders written in it.

use corelay_topology::{CpuListError, CpuSet, MAX_CPUS, Order, OrderError};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn as_the_kernel_prints_them() {
    let members = |text: &str| {
        text.parse::<CpuSet>()
            .expect("a list")
            .iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(members("0-3,8\n"), [0, 1, 2, 3, 8]);
    assert_eq!(members("\n"), [] as [usize; 0]);
    assert_eq!(members("63-65"), [63, 64, 65]);
    assert_eq!(members(" 7 , 1-2,2"), [1, 2, 7]);
    assert_eq!(members("65535"), [65_535]);
}

#[test]
fn malformed_lists_are_refused() {
    let error = |text: &str| text.parse::<CpuSet>().expect_err(text).to_string();
    for text in [
        "x", "1-x", "-", "1-", "-1", "+1", "1-2-3", "0x1", "0-31:2/8", "１",
    ] {
        assert_eq!(
            error(text),
            format!("`{text}` is neither a CPU number nor a range such as 2-5")
        );
    }
    assert_eq!(error("1,,2"), "the list has an empty entry");
    assert_eq!(error("1,"), "the list has an empty entry");
    assert_eq!(error("5-2"), "the range `5-2` runs backwards");
    assert_eq!(
        error("65536"),
        "`65536` is beyond the largest CPU number supported, 65535"
    );
    assert_eq!(
        error("0-99999999999999999999999"),
        "`0-9999999999999999999999…` is beyond the largest CPU number supported, 65535"
    );
}

#[test]
fn orders_by_name() {
    for name in Order::NAMES {
        assert_eq!(name.parse::<Order>().expect("an order").to_string(), name);
    }
    let error = "spread".parse::<Order>().unwrap_err();
    let expected = "`spread` is no order of placement; there are none, cores-first, fill-node, sockets, \
                    and lists of CPUs such as 0,2-5";
    assert_eq!(error.to_string(), expected);
    assert_eq!(
        "".parse::<Order>(),
        Err(OrderError::List(CpuListError::Empty))
    );
    assert_eq!(
        "5-2".parse::<Order>().unwrap_err().to_string(),
        "the range `5-2` runs backwards"
    );
    let long = ["0-65535"; 2].join(",");
    assert_eq!(
        long.parse::<Order>(),
        Err(OrderError::List(CpuListError::TooLong))
    );
}

#[test]
fn sets_one_by_one() {
    let mut set = CpuSet::new();
    assert!(set.insert(64) && !set.insert(64) && set.insert(3));
    assert_eq!((set.len(), set.first()), (2, Some(3)));
    assert!(set.remove(64) && !set.remove(64) && !set.remove(900));
    assert_eq!(
        set,
        CpuSet::from_iter([3]),
        "no trace of the removed member is left"
    );
    assert_eq!(format!("{set:?}"), "{3}");
}

#[test]
#[should_panic(expected = "CPU 65536 is beyond the largest number supported, 65535")]
fn a_set_has_an_end() {
    CpuSet::new().insert(MAX_CPUS);
}

fn members() -> impl Strategy<Value = BTreeSet<usize>> {
    prop_oneof![
        proptest::collection::btree_set(0..200usize, 0..60),
        proptest::collection::btree_set(0..MAX_CPUS, 0..20),
    ]
}

proptest! {
    #[test]
    fn a_set_survives_being_written(members in members()) {
        let set: CpuSet = members.iter().copied().collect();
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), members.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(set.len(), members.len());
        prop_assert_eq!(set.to_string().parse::<CpuSet>(), Ok(set));
    }

    #[test]
    fn set_operations_agree_with_the_standard_set(a in members(), b in members()) {
        let set = |members: BTreeSet<usize>| members.into_iter().collect::<CpuSet>();
        let (left, right) = (set(a.clone()), set(b.clone()));
        prop_assert_eq!(left.union(&right), set(&a | &b));
        prop_assert_eq!(left.intersection(&right), set(&a & &b));
        prop_assert_eq!(left.difference(&right), set(&a - &b));
        prop_assert_eq!(left.is_subset(&right), a.is_subset(&b));
        prop_assert_eq!(left.first(), a.first().copied());
    }

    #[test]
    fn an_explicit_order_survives_being_written(cpus in proptest::collection::vec(0..40usize, 1..40)) {
        let order = Order::Explicit(cpus);
        prop_assert_eq!(order.to_string().parse::<Order>(), Ok(order));
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in ".{0,40}") {
        let _ = text.parse::<CpuSet>();
        let _ = text.parse::<Order>();
    }

    /// Near misses: texts of the grammar's own characters. Both parsers agree on them.
    #[test]
    fn no_list_makes_the_parsers_panic(text in "[0-9,-]{1,20}") {
        let set = text.parse::<CpuSet>();
        match text.parse::<Order>() {
            Ok(Order::Explicit(cpus)) => prop_assert_eq!(set, Ok(cpus.into_iter().collect())),
            Err(OrderError::List(CpuListError::TooLong)) => prop_assert!(set.is_ok()),
            Err(OrderError::List(error)) => prop_assert_eq!(set, Err(error)),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
