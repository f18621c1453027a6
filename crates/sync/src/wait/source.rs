//! What has to be polled on a thread while nothing else runs there.

use crate::facade::thread_local;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Something on this thread that gets answers and has to be looked at: a client's channel.
pub trait Source {
    /// Takes what there is, without waiting: runs callbacks, sets tokens and spots. True where
    /// more is to come.
    ///
    /// One that unwinds ends the process, and so does its destructor if its last owner goes away
    /// meanwhile: waits whose tokens lie in their frames poll it.
    fn poll(&self) -> bool;
}

thread_local! {
    static SOURCES: RefCell<Vec<Weak<dyn Source>>> = RefCell::new(Vec::new());
}

/// Ends a source's registration when dropped.
pub struct Registration {
    source: Weak<dyn Source>,
}

/// Has `source` polled by this thread's waits, for as long as it and the registration live.
/// `None` where the thread is so near its end that it has no sources any more.
pub fn register(source: &Rc<impl Source + 'static>) -> Option<Registration> {
    let source: Rc<dyn Source> = Rc::clone(source) as _;
    let source = Rc::downgrade(&source);
    SOURCES
        .try_with(|sources| sources.borrow_mut().push(Weak::clone(&source)))
        .ok()?;
    Some(Registration { source })
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _ = SOURCES.try_with(|sources| {
            sources
                .borrow_mut()
                .retain(|other| !Weak::ptr_eq(other, &self.source));
        });
    }
}

/// Polls every source of this thread once; true where more is to come. Schedulers call it when
/// they are idle, and now and then when they are not.
pub fn poll_sources() -> bool {
    let (mut next, mut more) = (0, false);
    loop {
        // Not borrowed while a source runs callbacks: they may register others.
        let source = SOURCES.try_with(|sources| sources.borrow().get(next).cloned());
        let Ok(Some(source)) = source else {
            return more;
        };
        if let Some(source) = source.upgrade() {
            let bomb = AbortOnUnwind;
            more |= source.poll();
            // Perhaps the last owner's: its destructor must not unwind either.
            drop(source);
            std::mem::forget(bomb);
        }
        next += 1;
    }
}

struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        eprintln!("corelay: a source has unwound out of its poll, or its destructor has");
        std::process::abort();
    }
}
