//! Sources of answers for a thread, which are polled while the thread waits.

use crate::facade::thread_local;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// A source of answers for this thread that has to be polled, such as a client's channel.
pub trait Source {
    /// Takes what has arrived, without waiting: runs callbacks, sets tokens and suspension points.
    /// Returns whether more will arrive.
    ///
    /// The process ends if this unwinds, or if the source's destructor does because its last owner
    /// goes away meanwhile: waits that poll it have tokens in their frames.
    fn poll(&self) -> bool;
}

thread_local! {
    static SOURCES: RefCell<Vec<Weak<dyn Source>>> = RefCell::new(Vec::new());
}

/// The registration of a source. Dropping it ends the polling.
pub struct Registration {
    source: Weak<dyn Source>,
}

/// Registers `source` to be polled by this thread's waits, as long as it and the registration live.
/// `None` if the thread is so near its end that it has no sources any more.
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

/// Whether this thread has sources, so that its waits may run callbacks.
pub fn has_sources() -> bool {
    SOURCES
        .try_with(|sources| !sources.borrow().is_empty())
        .unwrap_or(false)
}

/// Polls every source of this thread once. Returns whether more will arrive. Schedulers call it
/// when they are idle, and now and then when they are not.
pub fn poll_sources() -> bool {
    let (mut next, mut more) = (0, false);
    loop {
        // The list is not borrowed while a source runs callbacks, which may register other sources.
        let source = SOURCES.try_with(|sources| sources.borrow().get(next).cloned());
        let Ok(Some(source)) = source else {
            return more;
        };
        if let Some(source) = source.upgrade() {
            let bomb = AbortOnUnwind;
            more |= source.poll();
            // This may be the last owner: the destructor must not unwind either.
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
