//! Members that sleep in event loops of their own, under shuttle: see `channel` for how. All threads
//! make requests to all members, which sleep whenever they may.

use crate::schedules::{asked_or, model};
use corelay_delegate::{ClientGuard, Member, Trust, Trustees, barrier};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::cell::Cell;
use std::rc::Rc;

/// Schedules per test, unless the environment says.
const SCHEDULES: usize = 500;

/// Makes one request, of a kind chosen at random. `heard` counts the answers that callbacks bring.
fn ask(object: &Trust<u64>, heard: &Rc<Cell<u64>>) {
    match thread_rng().gen_range(0..3) {
        0 => object.post(|n| *n += 1),
        1 => object.apply(|n| *n += 1),
        _ => {
            heard.set(heard.get() + 1);
            let note = Rc::clone(heard);
            object.apply_then(|n| *n += 1, move |()| note.set(note.get() - 1));
        }
    }
}

/// The member's event loop: it makes its own requests, and goes on until each member has had all
/// requests of all, and its own callbacks have run.
fn event_loop(me: &Member, objects: &[Trust<u64>], mut own: u64, all: u64) {
    let owed: Rc<Cell<u64>> = Rc::default();
    let has_all = || objects[me.number()].apply(|n| *n) == all;
    while own > 0 || owed.get() > 0 || !has_all() {
        if own > 0 {
            own -= 1;
            objects.iter().for_each(|object| ask(object, &owed));
            // What has been asked may have changed what the loop waits for.
            drop(me.doze().unwrap());
        } else if let Some(dozing) = me.doze().unwrap() {
            me.wait_in_loop();
            drop(dozing);
        }
    }
}

#[test]
fn all_requests_are_answered_though_members_sleep_in_event_loops() {
    const REQUESTS: u64 = 3;
    model(asked_or(SCHEDULES), || {
        let team = Trustees::flat(2).window(2).start().unwrap();
        let objects = team.entrust_all([0u64, 0]);
        let outside: Vec<_> = (0..2)
            .map(|_| {
                let objects: Vec<_> = objects.to_vec();
                thread::spawn(move || {
                    let owed: Rc<Cell<u64>> = Rc::default();
                    for _ in 0..REQUESTS {
                        objects.iter().for_each(|object| ask(object, &owed));
                    }
                    barrier().unwrap();
                    assert_eq!(owed.get(), 0);
                    drop(objects);
                    drop(ClientGuard::new());
                })
            })
            .collect();
        team.run(|me| event_loop(me, &objects, REQUESTS, 4 * REQUESTS));
        for client in outside {
            client.join().unwrap();
        }
        drop(objects);
        drop(ClientGuard::new());
        team.shutdown();
    });
}
