//! Starts a trustee's thread: named, pinned, and known to have succeeded.

use crate::dedicated::StartError;
use crate::trustee::Settings;
use corelay_sync::facade::thread::JoinHandle;
use corelay_sync::wait::Host;
use std::cell::Cell;
use std::rc::Rc;

/// Starts `run` on a thread named `name`, pinned and with such a stack as `settings` say.
#[cfg(not(any(corelay_loom, corelay_shuttle, corelay_lines)))]
pub(crate) fn spawn(
    name: String,
    settings: &Settings,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    use std::sync::mpsc::sync_channel;
    let &Settings {
        cpu, stack_size, ..
    } = settings;
    let (tell, told) = sync_channel(1);
    let body = move || {
        if let Some(cpu) = cpu
            && let Err(error) = corelay_topology::pin_current_thread(cpu)
        {
            let _ = tell.send(Err(StartError::Pin {
                cpu,
                reason: error.to_string(),
            }));
            return;
        }
        let _ = tell.send(Ok(()));
        // Requests may borrow from their callers' frames: a trustee that unwound would
        // leave them unanswered.
        let bomb = AbortOnUnwind;
        run();
        std::mem::forget(bomb);
    };
    let mut builder = std::thread::Builder::new().name(name);
    if let Some(bytes) = stack_size {
        builder = builder.stack_size(bytes);
    }
    let thread = builder.spawn(body).map_err(StartError::Thread)?;
    match told.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => {
            let _ = thread.join();
            Err(error)
        }
        Err(_) => unreachable!("the thread tells before it runs"),
    }
}

/// The models neither name nor pin.
#[cfg(any(corelay_loom, corelay_shuttle, corelay_lines))]
pub(crate) fn spawn(
    _name: String,
    _settings: &Settings,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    Ok(corelay_sync::facade::thread::spawn(run))
}

/// Runs a trustee as a coroutine of `host`, on stacks of so many bytes.
pub(crate) fn host(host: Host, stack: Option<usize>, run: impl FnOnce() + 'static) {
    let has_ended = Rc::new(Cell::new(false));
    let end = Rc::clone(&has_ended);
    let body = Box::new(move || {
        run();
        end.set(true);
    });
    host.run(body, stack);
    // Whatever becomes of a panic there: see above.
    if !has_ended.get() {
        eprintln!("corelay: a trustee's host has not run it to its end");
        std::process::abort();
    }
}

#[cfg(not(any(corelay_loom, corelay_shuttle, corelay_lines)))]
struct AbortOnUnwind;

#[cfg(not(any(corelay_loom, corelay_shuttle, corelay_lines)))]
impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        eprintln!("corelay: a trustee has unwound outside a delegated closure");
        std::process::abort();
    }
}
