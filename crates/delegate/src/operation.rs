//! Operations: the closures of requests, as trustees run them, and the names that they have in
//! reports and messages.
//!
//! A name is part of the operation's type, so it lies in the request's vtable: it costs no word of
//! the record and no instruction of the request. `docs/design/0021-names-of-requests.md` has the
//! other ways that were considered.

use std::any::type_name;
use std::marker::PhantomData;

/// A name that requests have in reports and messages, as a type: see
/// [`Trust::request`](crate::Trust::request). The macro [`name!`](crate::name) makes one from a
/// string.
///
/// ```
/// use corelay_delegate::{RequestName, Trustees};
///
/// struct Checkout;
/// impl RequestName for Checkout {
///     const NAME: &'static str = "checkout";
/// }
/// let trustees = Trustees::dedicated(1).start()?;
/// let stock = trustees.entrust(3u32);
/// assert_eq!(stock.request(Checkout).apply(|s| { *s -= 1; *s }), 2);
/// # Ok::<(), corelay_delegate::StartError>(())
/// ```
pub trait RequestName: 'static {
    /// The name. If it is empty, requests have the name of their closure's type.
    const NAME: &'static str;
}

/// The [`RequestName`] of requests that have been given none: reports show the type of the closure.
#[derive(Clone, Copy, Debug)]
pub struct TypeName;

impl RequestName for TypeName {
    const NAME: &'static str = "";
}

/// Makes a [`RequestName`] from a string that is known when the program is compiled.
///
/// ```
/// # use corelay_delegate::{Trustees, name};
/// # let trustees = Trustees::dedicated(1).start()?;
/// let stock = trustees.entrust(3u32);
/// stock.request(name!("checkout")).post(|s| *s -= 1);
/// # Ok::<(), corelay_delegate::StartError>(())
/// ```
#[macro_export]
macro_rules! name {
    ($name:expr) => {{
        struct Name;
        impl $crate::RequestName for Name {
            const NAME: &'static str = $name;
        }
        Name
    }};
}

/// An operation that a trustee runs on a `T`, giving `R`: a closure, or one with something added,
/// such as a name.
pub(crate) trait Operation<T, R>: Sized {
    /// Runs the operation.
    fn run(self, value: &mut T) -> R;

    /// Runs the operation in its box, without moving it to the stack.
    fn run_boxed(self: Box<Self>, value: &mut T) -> R;

    /// The name of the operation in reports and messages.
    fn name() -> &'static str;
}

impl<T, R, F: FnOnce(&mut T) -> R> Operation<T, R> for F {
    #[inline(always)]
    fn run(self, value: &mut T) -> R {
        self(value)
    }

    fn run_boxed(self: Box<Self>, value: &mut T) -> R {
        let f: Box<dyn FnOnce(&mut T) -> R + '_> = self;
        f(value)
    }

    fn name() -> &'static str {
        type_name::<F>()
    }
}

/// A closure that has the name `N`.
#[repr(transparent)]
pub(crate) struct Named<N, F> {
    pub(crate) f: F,
    name: PhantomData<fn() -> N>,
}

impl<N: RequestName, F> Named<N, F> {
    #[inline(always)]
    pub(crate) fn new(f: F) -> Self {
        let name = PhantomData;
        Self { f, name }
    }

    /// The name of such operations, whatever they run on.
    pub(crate) fn name() -> &'static str {
        if N::NAME.is_empty() {
            type_name::<F>()
        } else {
            N::NAME
        }
    }
}

impl<T, R, N: RequestName, F: FnOnce(&mut T) -> R> Operation<T, R> for Named<N, F> {
    #[inline(always)]
    fn run(self, value: &mut T) -> R {
        (self.f)(value)
    }

    fn run_boxed(self: Box<Self>, value: &mut T) -> R {
        let closure = Box::into_raw(self).cast::<F>();
        // SAFETY: `Named` is transparent, so its box is one of its closure.
        unsafe { Box::from_raw(closure) }.run_boxed(value)
    }

    fn name() -> &'static str {
        Self::name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of<T, R, O: Operation<T, R>>(_: &O) -> &'static str {
        O::name()
    }

    #[test]
    fn an_operation_has_its_given_name_or_that_of_its_type() {
        struct Add;
        impl RequestName for Add {
            const NAME: &'static str = "add";
        }
        fn add(n: &mut u8) -> u8 {
            *n += 1;
            *n
        }
        assert!(name_of(&add).ends_with("::add"));
        assert_eq!(name_of(&Named::<TypeName, _>::new(add)), name_of(&add));
        assert_eq!(name_of(&Named::<Add, _>::new(add)), "add");
    }

    #[test]
    fn a_named_closure_runs_in_its_box_and_out_of_it() {
        let mut n = 1;
        let text = String::from("owned");
        let f = |n: &mut usize| {
            *n += text.len();
            text
        };
        let boxed = Box::new(Named::<TypeName, _>::new(f));
        assert_eq!(boxed.run_boxed(&mut n), "owned");
        assert_eq!(Named::<TypeName, _>::new(|n: &mut usize| *n).run(&mut n), 6);
    }
}
