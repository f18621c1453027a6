//! Members that sleep in event loops of their own, under loom: see `flat` for how. The event loop is
//! a wait for the member's alarm.

use crate::model::{Flag, explored, long_excerpt, trustees};
use corelay_delegate::{ClientGuard, Member, Team, Trustees};
use corelay_sync::facade::thread;
use std::cell::Cell;
use std::rc::Rc;

fn team() -> Team {
    Trustees::flat(1).window(2).start().unwrap()
}

/// Runs the member's event loop until `is_done`.
fn event_loop(me: &Member, is_done: impl Fn() -> bool) {
    while !is_done() {
        if let Some(dozing) = me.doze().unwrap() {
            me.wait_in_loop();
            drop(dozing);
        }
    }
}

/// The client waits for its answer, and nobody else wakes the member: a wake-up that is lost is a
/// deadlock.
#[test]
fn a_member_in_its_event_loop_is_woken_by_a_request() {
    long_excerpt(|| {
        let team = team();
        let object = team.entrust(0u64);
        let met = Flag::new();
        let (ask, meet) = (object.clone(), met.clone());
        let outside = thread::spawn(move || {
            ask.post(|_| ());
            meet.wait();
            assert_eq!(ask.apply(|n| std::mem::replace(n, 1)), 0);
            drop(ask);
            drop(ClientGuard::new());
        });
        team.run(|me| {
            explored(|| {
                met.raise();
                event_loop(me, || object.apply(|n| *n) == 1);
            });
        });
        outside.join().unwrap();
        drop(object);
        drop(ClientGuard::new());
        team.shutdown();
    });
}

/// The trustee that is asked answers when the member sleeps, or shortly before.
#[test]
fn a_member_in_its_event_loop_is_woken_by_an_answer() {
    long_excerpt(|| {
        let (team, dedicated) = (team(), trustees());
        let far = dedicated.entrust(1u64);
        team.run(|me| {
            far.apply(|_| ());
            let heard = Rc::new(Cell::new(0));
            explored(|| {
                let note = Rc::clone(&heard);
                far.apply_then(|n| *n, move |n| note.set(n));
                event_loop(me, || heard.get() == 1);
            });
        });
        drop(far);
        drop(ClientGuard::new());
        dedicated.shutdown();
        team.shutdown();
    });
}
