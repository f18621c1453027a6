use super::*;
use crate::workload::operation::Operation;
use crate::workload::operation::Workload;
use crate::workload::random::Random;
use corelay_structures::seq::{ChainedMap, SearchTree, SkipList, SortedList, VecDeque};

/// Runs a generic function for each pair of a structure and its rival.
macro_rules! each {
    ($check:ident) => {
        $check::<SortedList<u64>, LazyList<u64>>();
        $check::<SortedList<u64>, HarrisList<u64>>();
        $check::<VecDeque<u64>, TwoLockQueue<u64>>();
        $check::<VecDeque<u64>, MsQueue<u64>>();
        $check::<VecDeque<u64>, SegQueue<u64>>();
        $check::<Vec<u64>, TreiberStack<u64, 0>>();
        $check::<Vec<u64>, TreiberStack<u64>>();
        $check::<ChainedMap<u64, u64>, BucketMap<u64, u64>>();
        $check::<ChainedMap<u64, u64>, DashMap<u64, u64>>();
        $check::<ChainedMap<u64, u64>, papaya::HashMap<u64, u64>>();
        $check::<ChainedMap<u64, u64>, scc::HashMap<u64, u64>>();
        $check::<SkipList<u64, u64>, OptimisticSkipList<u64, u64>>();
        $check::<SkipList<u64, u64>, SkipMap<u64, u64>>();
        $check::<SkipList<u64, u64>, scc::TreeIndex<u64, u64>>();
        $check::<SearchTree<u64, u64>, ExternalTree<u64, u64>>();
        $check::<SearchTree<u64, u64>, scc::TreeIndex<u64, u64>>();
    };
}

#[test]
fn rival_gives_the_answers_of_the_sequential_structure() {
    fn check<S: Structure, R: Rival>() {
        let workload = SharedStructure::<S>::new(30, 60);
        let rivals = Direct::<S, R>::new(workload, &Point::small(1));
        let (mut object, mut own) = (workload.object(), Ledger::default());
        let mut choices = Random::new(5);
        let all = workload.choices(1);
        let mut requests = workload.requests(all, Random::new(9));
        for _ in 0..3_000 {
            let (_, access) = requests(choices.below(all) as usize);
            let wanted = access.run(&mut object);
            let given = run(access, &rivals.variables[0].0, &mut own);
            match S::HAS_KEYS || access.kind != Kind::Read {
                true => assert_eq!(given, wanted, "{access:?}"),
                // Only whether there is anything.
                false => assert_eq!(given, u64::from(object.structure.keys().next().is_some())),
            }
        }
        rivals.ledger.lock().unwrap().add(own);
        assert_eq!(rivals.total(), Ok(3_000));
        assert_eq!(workload.check(&object), Ok(3_000));
        // Again, as the structure holds the same.
        assert_eq!(rivals.total(), Ok(3_000));
    }
    each!(check);
}

#[test]
fn lost_and_foreign_keys_are_found() {
    fn check<S: Structure, R: Rival>() {
        let workload = SharedStructure::<S>::new(10, 60);
        let rivals = || Direct::<S, R>::new(workload, &Point::small(1));
        let complaint = |rivals: &Direct<S, R>| rivals.total().unwrap_err();
        let lost = rivals();
        let key = lost.variables[0].0.keys()[0];
        assert!(lost.variables[0].0.remove(key).is_some());
        let why = complaint(&lost);
        assert!(
            why.contains("holds 9 keys") && why.contains("should hold 10"),
            "{why}"
        );
        // A call that says that it has inserted a key, but another has.
        let twice = rivals();
        twice.ledger.lock().unwrap().came(3);
        let why = complaint(&twice);
        assert!(
            why.contains("holds 10 keys") && why.contains("should hold 11"),
            "{why}"
        );
    }
    each!(check);
}
