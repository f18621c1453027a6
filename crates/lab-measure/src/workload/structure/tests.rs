use super::*;
use crate::measure::plan::Item;
use crate::measure::rig::Rig;
use crate::measure::session::{Session, Timing};
use crate::method::{SetupLimit, named};
use crate::workload::point::Point;
use crate::workload::random::Choice;
use corelay_structures::seq::SortedList;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Runs a generic function for each structure.
macro_rules! each {
    ($check:ident($($name:ident: $type:ty = $value:expr),*)) => {{
        struct Each($($type),*);
        impl Visitor for Each {
            fn visit<S: Structure>(&mut self) {
                let Self($($name),*) = self;
                $check::<S>($(*$name),*);
            }
        }
        visit(&mut Each($($value),*));
    }};
}

/// The requests of one client to one structure.
fn requests<S: Structure>(workload: SharedStructure<S>) -> impl FnMut() -> Access {
    let mut choices = Random::new(3);
    let all = workload.choices(1);
    let mut next = workload.requests(all, Random::new(7));
    move || next(choices.below(all) as usize).1
}

#[test]
fn each_structure_holds_what_its_ledger_says() {
    fn check<S: Structure>(size: u64, updates: u64) {
        let workload = SharedStructure::<S>::new(size, updates);
        let mut object = workload.object();
        assert_eq!(workload.check(&object), Ok(0), "{workload:?}");
        assert_eq!(object.structure.keys().count() as u64, size);
        let mut next = requests(workload);
        let mut answers = HashSet::new();
        for done in 1..=2_000 {
            answers.insert(next().run(&mut object) != 0);
            if done % 100 == 0 {
                assert_eq!(workload.check(&object), Ok(done), "{workload:?}");
            }
        }
        // Some operations succeed; with keys, some fail.
        assert!(answers.contains(&true), "{workload:?}");
        assert!(
            size == 1 || !S::HAS_KEYS || answers.len() == 2,
            "{workload:?}"
        );
        let changed = object.structure.keys().map(u128::from).sum::<u128>();
        let before = workload.object().structure.keys().map(u128::from).sum();
        assert_eq!(updates == 0, changed == before, "{workload:?}");
    }
    for (size, updates) in [(64, 0), (64, 30), (50, 100), (7, 50)] {
        each!(check(size: u64 = size, updates: u64 = updates));
    }
}

#[test]
fn lost_and_foreign_keys_are_found() {
    fn check<S: Structure>() {
        let workload = SharedStructure::<S>::new(10, 50);
        let mut object = workload.object();
        let key = object.structure.keys().next().unwrap();
        let ledger = object.ledger;
        assert!(object.structure.remove(key, &mut object.ledger).is_some());
        object.ledger = ledger;
        let why = workload.check(&object).unwrap_err();
        assert!(
            why.contains("holds 9 keys") && why.contains("should hold 10"),
            "{why}"
        );

        let mut object = workload.object();
        let removed = object.structure.remove(key, &mut object.ledger).unwrap();
        assert!(object.structure.insert(removed + 1, &mut object.ledger));
        object.ledger = ledger;
        let why = workload.check(&object).unwrap_err();
        assert!(why.contains("holds 10 keys"), "{why}");
    }
    each!(check());
}

#[test]
fn updates_are_the_share_that_was_asked_for_and_alternate() {
    fn check<S: Structure>() {
        for updates in [0, 30, 100] {
            let mut next = requests(SharedStructure::<S>::new(10, updates));
            let kinds: Vec<Kind> = (0..10_000).map(|_| next().kind).collect();
            let of = |wanted| kinds.iter().filter(|&&kind| kind == wanted).count();
            let (inserts, removes) = (of(Kind::Insert), of(Kind::Remove));
            let share = (inserts + removes) as f64 / 10_000.0;
            assert!((share - updates as f64 / 100.0).abs() < 0.02, "{share}");
            match S::EVICTS {
                true => assert_eq!(removes, 0),
                false => assert!(inserts.abs_diff(removes) <= 1),
            }
        }
    }
    each!(check());
}

#[test]
fn each_choice_is_a_key_of_its_own() {
    for (vars, size) in [(1, 1), (1, 512), (3, 5), (16, 100)] {
        let workload = SharedStructure::<SortedList<u64>>::new(size, 30);
        let choices = workload.choices(vars);
        assert_eq!(choices, vars * 2 * size);
        let mut next = workload.requests(choices, Random::new(1));
        let mut seen = HashSet::new();
        for choice in 0..choices {
            let (var, access) = next(choice as usize);
            assert!((var as u64) < vars && access.key < 2 * size);
            assert!(seen.insert((var, access.key)), "{var} {}", access.key);
        }
    }
}

#[test]
fn a_tree_is_not_filled_in_order() {
    let mut keys = Vec::new();
    struct Order(Vec<u64>);
    impl Structure for Order {
        const NAME: &'static str = "order";
        const BYTES_PER_KEY: u64 = 8;
        fn empty(_: usize) -> Self {
            Self(Vec::new())
        }
        fn methods() -> Vec<Entry<SharedStructure<Self>>> {
            Vec::new()
        }
        fn look(&self, _: u64) -> Option<u64> {
            None
        }
        fn insert(&mut self, key: u64, ledger: &mut Ledger) -> bool {
            self.0.push(key);
            ledger.came(key);
            true
        }
        fn remove(&mut self, _: u64, _: &mut Ledger) -> Option<u64> {
            None
        }
        fn keys(&self) -> impl Iterator<Item = u64> {
            self.0.iter().copied()
        }
    }
    keys.extend(
        SharedStructure::<Order>::new(1_000, 0)
            .object()
            .structure
            .keys(),
    );
    let ascents = keys.windows(2).filter(|two| two[0] < two[1]).count();
    assert!((400..600).contains(&ascents), "{ascents} ascents");
    keys.sort_unstable();
    assert!(keys.into_iter().eq((0..1_000).map(|n| 2 * n)));
}

#[test]
fn each_structure_is_right_behind_a_lock_on_a_trustee_and_beside_its_rivals() {
    fn check<S: Structure>(choice: Choice) {
        let workload = SharedStructure::<S>::new(20, 50);
        let mut rig = Rig::new(&[None; 3], &[], "test", Arc::default()).unwrap();
        let mut session = Session::of(workload);
        let methods = SharedStructure::<S>::methods();
        let shared = [
            "mutex",
            "rwlock",
            "parking-lot-rwlock",
            "trust-then",
            "async-lines",
        ];
        let shared = shared.map(|name| named(&methods, name).unwrap().unwrap());
        let rivals = S::rivals().into_iter().map(|rival| rival.method);
        for method in shared.into_iter().chain(rivals) {
            let point = Point {
                vars: 2,
                choice,
                ..Point::small(3)
            };
            let item = Item {
                method,
                point,
                notes: vec![],
            };
            session.add(item, &SetupLimit::default()).unwrap();
        }
        let timing = Timing::of(Duration::from_millis(2));
        session.round(&mut rig, timing, None, || {});
        session.round(&mut rig, timing, None, || {});
        for run in session.finish(&rig, timing) {
            assert!(run.correct && run.median_mops > 0.0, "{run:?}");
            assert_eq!(run.workload, S::NAME);
            assert_eq!(run.params.extra.size, Some(Size::Keys(20)));
            assert_eq!(run.params.extra.updates, Some(50));
        }
    }
    each!(check(choice: Choice = Choice::Uniform));
    each!(check(choice: Choice = Choice::Zipf { theta: 0.99 }));
}

#[test]
fn rivals_have_names_and_looks_of_their_own() {
    fn check<S: Structure>() {
        let methods = SharedStructure::<S>::methods();
        for (i, a) in methods.iter().enumerate() {
            for b in &methods[..i] {
                assert_ne!(a.name(), b.name());
                let looks = a.compared.zip(b.compared).filter(|_| a.form == b.form);
                let alike = looks.is_some_and(|(a, b)| a.marker == b.marker && a.dash == b.dash);
                assert!(!alike, "{} and {} look alike", a.name(), b.name());
            }
        }
    }
    each!(check());
}
