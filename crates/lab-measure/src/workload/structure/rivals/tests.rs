use super::*;
use crate::method::rwlock::ReadWrite;
use crate::workload::operation::Operation;
use crate::workload::operation::Workload;
use crate::workload::random::{Choice, Distribution, Random};
use corelay_structures::seq::{BinaryHeap, ChainedMap, SearchTree, SkipList, SortedList, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

/// Runs a generic function for each pair of a structure and its rival.
macro_rules! each {
    ($check:ident) => {
        each_lock!($check);
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

/// Runs a generic function for each pair of a structure and a lock around it.
macro_rules! each_lock {
    ($check:ident) => {
        each_lock!($check, SortedList<u64>);
        each_lock!($check, VecDeque<u64>);
        each_lock!($check, Vec<u64>);
        each_lock!($check, ChainedMap<u64, u64>);
        each_lock!($check, SkipList<u64, u64>);
        each_lock!($check, SearchTree<u64, u64>);
        each_lock!($check, BinaryHeap<u64>);
        $check::<SortedList<u64>, Sharded<SortedList<u64>>>();
        $check::<ChainedMap<u64, u64>, Sharded<ChainedMap<u64, u64>>>();
        $check::<SkipList<u64, u64>, Sharded<SkipList<u64, u64>>>();
        $check::<SearchTree<u64, u64>, Sharded<SearchTree<u64, u64>>>();
    };
    ($check:ident, $structure:ty) => {
        $check::<$structure, Locked<RwLock<$structure>>>();
        $check::<$structure, Locked<parking_lot::RwLock<$structure>>>();
        $check::<$structure, Copies<$structure>>();
        $check::<$structure, TwoCopies<$structure>>();
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
                // A lock gives the key; most rivals only whether there is anything.
                false => {
                    let is_some = u64::from(object.structure.keys().next().is_some());
                    assert!([wanted, is_some].contains(&given), "{access:?}: {given}");
                }
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

#[test]
fn readers_of_a_locked_structure_share_the_lock() {
    fn check<L: ReadWrite<Value = SortedList<u64>>>() {
        let list = Locked::<L>::empty(4);
        Rival::insert(&list, 7);
        list.0.read(|_| {
            let other = std::thread::scope(|s| s.spawn(|| list.read(7)).join().unwrap());
            assert_eq!(other, Some(7));
        });
    }
    check::<RwLock<SortedList<u64>>>();
    check::<parking_lot::RwLock<SortedList<u64>>>();
}

#[test]
fn every_shard_gets_about_its_share_of_the_keys() {
    let workload = SharedStructure::<ChainedMap<u64, u64>>::new(10_000, 0);
    type Shards = Sharded<ChainedMap<u64, u64>>;
    let direct = Direct::<_, Shards>::new(workload, &Point::small(1));
    let shards: Vec<usize> = direct.variables[0].0.parts().iter().map(Vec::len).collect();
    assert!(shards.len() >= 4 && shards.len().is_power_of_two());
    let even = 10_000 / shards.len();
    let fair = |&len: &usize| (even / 2..=even * 2).contains(&len);
    assert!(shards.iter().all(fair), "{shards:?}");
}

/// A structure whose readers wait a while for each other.
struct Meeting {
    keys: Vec<u64>,
}

/// Readers that are inside, and the most that ever were.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

impl Structure for Meeting {
    const NAME: &'static str = "meeting";
    const BYTES_PER_KEY: u64 = 8;

    fn empty(_: usize) -> Self {
        Self { keys: Vec::new() }
    }

    fn methods() -> Vec<Entry<SharedStructure<Self>>> {
        super::super::methods()
    }

    fn look(&self, _: u64) -> Option<u64> {
        let inside = INSIDE.fetch_add(1, Ordering::SeqCst) + 1;
        MOST.fetch_max(inside, Ordering::SeqCst);
        // Long enough for another reader to come in, also on one CPU.
        for _ in 0..1_000 {
            if MOST.load(Ordering::SeqCst) > 1 {
                break;
            }
            std::thread::yield_now();
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        None
    }

    fn insert(&mut self, key: u64, ledger: &mut Ledger) -> bool {
        ledger.came(key);
        self.keys.push(key);
        true
    }

    fn remove(&mut self, _: u64, _: &mut Ledger) -> Option<u64> {
        None
    }

    fn keys(&self) -> impl Iterator<Item = u64> {
        self.keys.iter().copied()
    }
}

/// The catalogue's methods, not only the rivals behind them.
#[test]
fn readers_meet_inside_where_the_catalogue_says_that_they_share() {
    let workload = SharedStructure::<Meeting>::new(1, 0);
    let methods = SharedStructure::<Meeting>::methods();
    for (name, most) in [
        ("mutex", 1),
        ("rwlock", 2),
        ("parking-lot-rwlock", 2),
        ("node-replication", 2),
    ] {
        MOST.store(0, Ordering::SeqCst);
        let method = method::named(&methods, name).unwrap().unwrap();
        let contender = method
            .build(workload, &Point::small(2), &Default::default())
            .unwrap();
        let draw = Distribution::new(Choice::Uniform, Workload::choices(workload, 1), 1);
        // Each client runs one block of reads.
        let stop = Arc::new(AtomicBool::new(true));
        std::thread::scope(|scope| {
            for client in 0..2 {
                let client = Client::new(client, draw.stream(client, 0), Arc::clone(&stop));
                let contender = &contender;
                scope.spawn(move || contender.client(client));
            }
        });
        assert_eq!(MOST.load(Ordering::SeqCst), most, "{name}");
    }
}
