//! The calls that a session may make, and its view of its own changes.

use corelay_clock::{Logical, SkewedBuilder};
use corelay_txn::oplog::OpLog;
use corelay_txn::rlu::{Domain, Rlu, RluList, Session};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Cell = Rlu<u64, Logical>;

fn domain(deferral: usize) -> Domain<Logical> {
    Domain::with_deferral(Logical::new(), deferral)
}

fn value(domain: &Domain<Logical>, cell: &Cell) -> u64 {
    domain.session().read(|section| *section.get(cell))
}

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast::<&str>().unwrap()).to_owned(),
    }
}

#[test]
fn a_section_sees_its_own_changes() {
    let domain = domain(1);
    let cell = domain.cell(1);
    domain.session().write(|section| {
        *section.try_lock(&cell)? = 2;
        assert_eq!(*section.get(&cell), 2);
        *section.try_lock(&cell)? += 1;
        assert_eq!(*section.get(&cell), 3);
        Ok(())
    });
    assert_eq!(value(&domain, &cell), 3);
}

#[test]
fn an_abort_undoes_everything() {
    for deferral in [1, 10] {
        let domain = domain(deferral);
        let (a, b) = (domain.cell(1), domain.cell(10));
        let mut session = domain.session();
        session.write(|section| {
            *section.try_lock(&a)? = 2;
            Ok(())
        });
        // `a` is locked by an earlier write set of this very session, `b` is not.
        let aborted = session.try_write(|section| {
            *section.try_lock(&a)? = 3;
            *section.try_lock(&a)? = 4;
            *section.try_lock(&b)? = 11;
            Err::<(), _>(section.abort())
        });
        assert!(aborted.is_err());
        assert_eq!(
            session.read(|section| (*section.get(&a), *section.get(&b))),
            (2, 10)
        );
        session.sync();
        assert_eq!((value(&domain, &a), value(&domain, &b)), (2, 10));
        assert_eq!(session.stats().aborts, 1);
    }
}

#[test]
fn a_panic_in_a_section_aborts_it() {
    let domain = domain(1);
    let cell = domain.cell(1);
    let mut session = domain.session();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        session.write(|section| {
            *section.try_lock(&cell)? = 2;
            panic!("in the middle");
            #[allow(unreachable_code)]
            Ok(())
        });
    }));
    assert_eq!(message(caught.unwrap_err()), "in the middle");
    // Neither this session nor another is in the way.
    session.write(|section| {
        *section.try_lock(&cell)? += 4;
        Ok(())
    });
    assert_eq!(value(&domain, &cell), 5);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        session.read(|_| panic!("while reading"))
    }));
    assert!(caught.is_err());
    session.sync();
    domain.session().write(|section| {
        *section.try_lock(&cell)? += 1;
        Ok(())
    });
    assert_eq!(value(&domain, &cell), 6);
}

#[test]
fn sections_do_not_nest() {
    let domain = domain(1);
    let mut other = domain.session();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        domain.session().read(|_| other.read(|_| ()));
    }));
    let text = message(caught.unwrap_err());
    assert!(text.contains("inside another on the same thread"), "{text}");
    other.read(|_| ());
    domain.session().read(|_| ());
}

#[test]
fn nothing_waits_in_a_section() {
    let domain = domain(1);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let token = corelay_sync::wait::Token::new();
        domain.session().read(|_| corelay_sync::wait::wait(&token));
    }));
    let text = message(caught.unwrap_err());
    assert!(text.contains("inside a section of an RLU domain"), "{text}");
}

#[test]
fn cells_and_lists_of_another_domain_are_refused() {
    let (mine, other) = (domain(1), domain(1));
    let cell = other.cell(1);
    let list: RluList<Logical> = RluList::new_in(&other);
    let mut session = mine.session();
    let caught = catch_unwind(AssertUnwindSafe(|| session.read(|s| *s.get(&cell))));
    assert!(message(caught.unwrap_err()).contains("another domain"));
    let caught = catch_unwind(AssertUnwindSafe(|| {
        session.write(|s| s.try_lock(&cell).map(|_| ()));
    }));
    assert!(message(caught.unwrap_err()).contains("another domain"));
    let caught = catch_unwind(AssertUnwindSafe(|| session.read(|s| list.contains(s, &1))));
    assert!(message(caught.unwrap_err()).contains("another domain"));
    session.read(|_| ());
}

#[test]
#[should_panic(expected = "1 is without deferral")]
fn a_deferral_of_nothing_is_refused() {
    let _ = domain(0);
}

#[test]
fn deferred_changes_are_seen_by_others_after_a_sync() {
    let domain = domain(3);
    let cell = domain.cell(0);
    let mut session = domain.session();
    let mut add = || {
        session.write(|section| {
            *section.try_lock(&cell)? += 1;
            Ok(())
        });
        session.read(|section| *section.get(&cell))
    };
    assert_eq!((add(), add()), (1, 2));
    assert_eq!(value(&domain, &cell), 0);
    assert_eq!(add(), 3);
    assert_eq!(value(&domain, &cell), 3);
    assert_eq!(add(), 4);
    assert_eq!(value(&domain, &cell), 3);
    session.sync();
    assert_eq!(value(&domain, &cell), 4);
}

#[test]
fn a_session_makes_its_changes_visible_when_it_ends() {
    let domain = domain(100);
    let cell = domain.cell(0);
    let mut session = domain.session();
    session.write(|section| {
        *section.try_lock(&cell)? = 1;
        Ok(())
    });
    // On another thread, too.
    std::thread::spawn(move || drop(session)).join().unwrap();
    assert_eq!(value(&domain, &cell), 1);
}

/// The session cannot wait there, so the slot stays as it is for the next session.
#[test]
fn a_session_may_end_inside_a_section() {
    let domain = domain(100);
    let (a, b) = (domain.cell(0), domain.cell(0));
    let mut first = domain.session();
    let mut second = domain.session();
    first.write(|section| {
        *section.try_lock(&a)? = 1;
        Ok(())
    });
    second.read(|_| drop(first));
    second.write(|section| {
        *section.try_lock(&a)? += 1;
        *section.try_lock(&b)? += 1;
        Ok(())
    });
    second.sync();
    assert_eq!((value(&domain, &a), value(&domain, &b)), (2, 1));
    assert_eq!(domain.stats().helps, 1);
}

/// After a refused sync no session owns the slot.
#[test]
fn a_refused_sync_blocks_no_session() {
    let domain = domain(100);
    let cell = domain.cell(0);
    let (mut first, mut second) = (domain.session(), domain.session());
    let add = |session: &mut Session<Logical>| {
        session.write(|section| {
            *section.try_lock(&cell)? += 1;
            Ok(())
        });
    };
    add(&mut second);
    let caught = catch_unwind(AssertUnwindSafe(|| first.read(|_| second.sync())));
    let text = message(caught.unwrap_err());
    assert!(text.contains("inside a section of an RLU domain"), "{text}");
    add(&mut second);
    second.sync();
    add(&mut first);
    first.sync();
    assert_eq!(value(&domain, &cell), 3);
}

/// Not even if another guard against waiting lies between the two.
#[test]
fn sections_do_not_nest_inside_another_guard() {
    let domain = domain(1);
    let (mut first, mut second) = (domain.session(), domain.session());
    let log = OpLog::<(), Nothing, _>::new((), Logical::new());
    let caught = catch_unwind(AssertUnwindSafe(|| {
        first.read(|_| log.read(|_| second.read(|_| ())));
    }));
    let text = message(caught.unwrap_err());
    assert!(text.contains("inside another on the same thread"), "{text}");
    let cell = domain.cell(0);
    second.write(|section| section.try_lock(&cell).map(|_| ()));
    first.read(|_| log.read(|_| drop(second)));
    // But a section may run inside another guard.
    log.read(|_| first.read(|_| ()));
}

struct Nothing;

impl corelay_txn::oplog::Operation<()> for Nothing {
    fn apply(self, (): &mut ()) {}
}

/// Also with clocks that are never wrong and give one time to several threads.
#[test]
fn a_commit_is_seen_at_the_time_that_it_has() {
    let with = SkewedBuilder {
        skew: 0,
        step: 4,
        boundary: 0,
        delay: 0,
    };
    let domain = Domain::new(with.build());
    let cell = domain.cell(0);
    let (mut writer, mut reader) = (domain.session(), domain.session());
    for n in 1..20 {
        writer.write(|section| {
            *section.try_lock(&cell)? = n;
            Ok(())
        });
        assert_eq!(reader.read(|section| *section.get(&cell)), n);
    }
}
