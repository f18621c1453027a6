//! What sanitizers have to be told of coroutines; elsewhere there is nothing here.
//!
//! ThreadSanitizer keeps what each thread has seen of the others, and would take a coroutine that
//! goes on on another thread for a race: each is a context of its own. AddressSanitizer marks
//! what on a stack may be used, and has to know on which one a panic unwinds. The calls are
//! those of `sanitizer/tsan_interface.h` and `sanitizer/common_interface_defs.h`.

#[cfg(corelay_asan)]
pub(super) use address::{Context, forget_frames};
#[cfg(not(any(corelay_tsan, corelay_asan)))]
pub(super) use none::Context;
#[cfg(corelay_tsan)]
pub(super) use thread::Context;

/// Frames that were left by a switch lie no more on the `size` bytes at `bottom`.
#[cfg(not(corelay_asan))]
#[inline(always)]
pub(super) fn forget_frames(_: (usize, usize)) {}

/// Of a coroutine, on its scheduler's side and on its own.
#[cfg(not(any(corelay_tsan, corelay_asan)))]
mod none {
    #[derive(Debug)]
    pub(crate) struct Context;

    impl Context {
        pub(crate) fn new() -> Self {
            Self
        }

        /// Runs `switch`, which goes to the coroutine, on `size` bytes at `bottom`, and comes back.
        #[inline(always)]
        pub(crate) fn during<R>(&self, _: (usize, usize), switch: impl FnOnce() -> R) -> R {
            switch()
        }

        /// It runs for the first time.
        #[inline(always)]
        pub(crate) fn begin(&self) {}

        /// Runs `stop`, which goes to the scheduler and comes back.
        #[inline(always)]
        pub(crate) fn outside(&self, stop: impl FnOnce()) {
            stop();
        }

        /// It runs no more, but for the switch to its scheduler.
        #[inline(always)]
        pub(crate) fn end(&self) {}

        /// It has ended; said by the scheduler.
        #[inline(always)]
        pub(crate) fn ended(&self) {}
    }
}

#[cfg(corelay_tsan)]
mod thread {
    use std::cell::Cell;
    use std::ffi::{c_uint, c_void};
    use std::ptr;

    unsafe extern "C" {
        fn __tsan_get_current_fiber() -> *mut c_void;
        fn __tsan_create_fiber(flags: c_uint) -> *mut c_void;
        fn __tsan_destroy_fiber(fiber: *mut c_void);
        fn __tsan_switch_to_fiber(fiber: *mut c_void, flags: c_uint);
    }

    /// What comes before a switch on a thread comes before what is behind it.
    const ORDERED: c_uint = 0;

    #[derive(Debug)]
    pub(crate) struct Context(Cell<*mut c_void>);

    impl Context {
        pub(crate) fn new() -> Self {
            // SAFETY: of the runtime, which this configuration is linked with.
            Self(Cell::new(unsafe { __tsan_create_fiber(0) }))
        }

        #[inline(always)]
        pub(crate) fn during<R>(&self, _: (usize, usize), switch: impl FnOnce() -> R) -> R {
            // SAFETY: as in `new`.
            let own = unsafe { __tsan_get_current_fiber() };
            // SAFETY: created above, and not destroyed: it has not ended.
            unsafe { __tsan_switch_to_fiber(self.0.get(), ORDERED) };
            let result = switch();
            // SAFETY: this thread's own.
            unsafe { __tsan_switch_to_fiber(own, ORDERED) };
            result
        }

        pub(crate) fn begin(&self) {}

        #[inline(always)]
        pub(crate) fn outside(&self, stop: impl FnOnce()) {
            stop();
        }

        pub(crate) fn end(&self) {}

        pub(crate) fn ended(&self) {
            // SAFETY: created above, once destroyed; it does not run.
            unsafe { __tsan_destroy_fiber(self.0.replace(ptr::null_mut())) };
        }
    }
}

#[cfg(corelay_asan)]
mod address {
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::ptr;

    unsafe extern "C" {
        fn __sanitizer_start_switch_fiber(
            fake_stack: *mut *mut c_void,
            bottom: *const c_void,
            size: usize,
        );
        fn __sanitizer_finish_switch_fiber(
            fake_stack: *mut c_void,
            old_bottom: *mut *const c_void,
            old_size: *mut usize,
        );
        fn __asan_unpoison_memory_region(address: *const c_void, size: usize);
    }

    /// The stack of who has resumed it.
    #[derive(Debug)]
    pub(crate) struct Context(Cell<(*const c_void, usize)>);

    impl Context {
        pub(crate) fn new() -> Self {
            Self(Cell::new((ptr::null(), 0)))
        }

        #[inline(always)]
        pub(crate) fn during<R>(
            &self,
            (bottom, size): (usize, usize),
            switch: impl FnOnce() -> R,
        ) -> R {
            let mut fake_stack = ptr::null_mut();
            let bottom = ptr::with_exposed_provenance(bottom);
            // SAFETY: the runtime keeps its own of this stack here, until the finish below.
            unsafe { __sanitizer_start_switch_fiber(&mut fake_stack, bottom, size) };
            let result = switch();
            // SAFETY: this stack's, from above.
            unsafe {
                __sanitizer_finish_switch_fiber(fake_stack, ptr::null_mut(), ptr::null_mut());
            };
            result
        }

        #[inline(always)]
        fn arrive(&self, fake_stack: *mut c_void) {
            let (mut bottom, mut size) = (ptr::null(), 0);
            // SAFETY: this stack's own; null where it is new.
            unsafe { __sanitizer_finish_switch_fiber(fake_stack, &mut bottom, &mut size) };
            self.0.set((bottom, size));
        }

        #[inline(always)]
        pub(crate) fn begin(&self) {
            self.arrive(ptr::null_mut());
        }

        #[inline(always)]
        pub(crate) fn outside(&self, stop: impl FnOnce()) {
            let mut fake_stack = ptr::null_mut();
            let (bottom, size) = self.0.get();
            // SAFETY: as in `during`; the scheduler's stack, which waits for this one.
            unsafe { __sanitizer_start_switch_fiber(&mut fake_stack, bottom, size) };
            stop();
            self.arrive(fake_stack);
        }

        pub(crate) fn end(&self) {
            let (bottom, size) = self.0.get();
            // SAFETY: null: this stack is not returned to.
            unsafe { __sanitizer_start_switch_fiber(ptr::null_mut(), bottom, size) };
        }

        pub(crate) fn ended(&self) {}
    }

    /// Frames that were left by a switch lie no more on the `size` bytes at `bottom`.
    pub(crate) fn forget_frames((bottom, size): (usize, usize)) {
        // SAFETY: only marks.
        unsafe { __asan_unpoison_memory_region(ptr::with_exposed_provenance(bottom), size) };
    }
}
