//! Who waits: a fibre or a thread, in one word.

use crate::header::Header;
use crate::processor;
use crate::switch::Runnable;
use corelay_sync::wait::Token;
use std::ptr::NonNull;

/// One that waits, to be woken exactly once. One word, never 0, 2 or 4: so that it fits beside a
/// state.
#[must_use = "a waiter that nobody wakes waits for ever"]
#[derive(Debug)]
pub(crate) struct Waiter(NonNull<u8>);

/// Set where it is a thread's token.
const THREAD: usize = 1;

// SAFETY: it is woken by whoever has it.
unsafe impl Send for Waiter {}

impl Waiter {
    pub(crate) fn fibre(fibre: Runnable) -> Self {
        Self(fibre.into_raw().cast())
    }

    /// The word of the waiter that this fibre is while it waits.
    pub(crate) fn word_of(fibre: NonNull<Header>) -> *mut u8 {
        fibre.as_ptr().cast()
    }

    /// The waiter's fibre, if it was made of one.
    pub(crate) fn as_fibre(&self) -> NonNull<Header> {
        debug_assert_eq!(self.0.addr().get() & THREAD, 0);
        self.0.cast()
    }

    pub(crate) fn thread(token: &Token) -> Self {
        Self(NonNull::from(token).cast().map_addr(|a| a | THREAD))
    }

    pub(crate) fn as_word(&self) -> *mut u8 {
        self.0.as_ptr()
    }

    #[inline(always)]
    pub(crate) fn into_word(self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// # Safety
    /// From [`into_word`](Self::into_word), once.
    #[inline(always)]
    pub(crate) unsafe fn from_word(word: *mut u8) -> Self {
        // SAFETY: never null.
        Self(unsafe { NonNull::new_unchecked(word) })
    }

    pub(crate) fn into_fibre(self) -> Result<Runnable, NonNull<Token>> {
        if self.0.addr().get() & THREAD == 0 {
            // SAFETY: made of one.
            Ok(unsafe { Runnable::new(self.0.cast::<Header>()) })
        } else {
            let address = self.0.as_ptr().map_addr(|a| a & !THREAD);
            // SAFETY: made of a reference.
            Err(unsafe { NonNull::new_unchecked(address).cast() })
        }
    }

    /// Lets it go on.
    #[inline(always)]
    pub(crate) fn wake(self) {
        match self.into_fibre() {
            Ok(fibre) => processor::ready(fibre),
            // SAFETY: the thread keeps it until it is set.
            Err(token) => unsafe { token.as_ref() }.notify(),
        }
    }
}
