//! The atomic variables: each operation of the real one, after a point. Operations that are not
//! named here are those of the real one, without a point.

use ::std::fmt;
use ::std::ops::Deref;
use ::std::panic::Location;
use ::std::sync::atomic::{self, Ordering};
use turns::Kind;

/// Writes methods that pass a point and then call the method of the same name.
macro_rules! pass {
    ($value:ty: $($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(#[doc = concat!("`", stringify!($name), "` of the real one, after a point.")]
        #[allow(clippy::missing_errors_doc)]
        #[track_caller]
        pub fn $name(&self, $($arg: $type),*) -> $out {
            self.point(Location::caller());
            self.inner.$name($($arg),*)
        })*
    };
}

/// The operations that all atomic variables have.
macro_rules! common {
    ($value:ty) => {
        /// Makes a variable.
        pub const fn new(value: $value) -> Self {
            Self {
                inner: Inner::new(value),
            }
        }

        fn point(&self, place: &Location<'_>) {
            turns::point(Kind::Atomic, place, (&raw const self.inner) as usize);
        }

        /// Returns the value; no other thread can see it.
        pub fn get_mut(&mut self) -> &mut $value {
            self.inner.get_mut()
        }

        /// Returns the value.
        pub const fn into_inner(self) -> $value {
            self.inner.into_inner()
        }

        /// Returns where the value is.
        pub const fn as_ptr(&self) -> *mut $value {
            self.inner.as_ptr()
        }

        pass! { $value:
            load(order: Ordering) -> $value;
            swap(value: $value, order: Ordering) -> $value;
            compare_exchange(current: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value>;
            compare_exchange_weak(current: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value>;
        }

        /// `store` of the real one, after a point.
        #[track_caller]
        pub fn store(&self, value: $value, order: Ordering) {
            self.point(Location::caller());
            self.inner.store(value, order);
        }

        /// `compare_and_swap` of the real one, after a point.
        #[track_caller]
        #[deprecated = "Use `compare_exchange` or `compare_exchange_weak` instead"]
        pub fn compare_and_swap(&self, current: $value, new: $value, order: Ordering) -> $value {
            self.point(Location::caller());
            let failure = match order {
                Ordering::Release => Ordering::Relaxed,
                Ordering::AcqRel => Ordering::Acquire,
                order => order,
            };
            match self.inner.compare_exchange(current, new, order, failure) {
                Ok(old) | Err(old) => old,
            }
        }

        /// `fetch_update` of the real one, with a point between its load and its exchange.
        ///
        /// # Errors
        /// The value for which `update` has returned `None`.
        #[track_caller]
        pub fn fetch_update(
            &self,
            set: Ordering,
            fetch: Ordering,
            mut update: impl FnMut($value) -> Option<$value>,
        ) -> Result<$value, $value> {
            let place = Location::caller();
            self.point(place);
            let mut old = self.inner.load(fetch);
            while let Some(new) = update(old) {
                self.point(place);
                match self.inner.compare_exchange_weak(old, new, set, fetch) {
                    Ok(old) => return Ok(old),
                    Err(now) => old = now,
                }
            }
            Err(old)
        }
    };
}

macro_rules! numbers {
    ($($name:ident $module:ident $value:ty;)*) => {
        $(mod $module {
            use super::*;
            use atomic::$name as Inner;

            #[doc = concat!("`", stringify!($name), "` with points.")]
            #[derive(Default)]
            #[repr(transparent)]
            pub struct $name {
                inner: Inner,
            }

            impl $name {
                common!($value);

                pass! { $value:
                    fetch_add(value: $value, order: Ordering) -> $value;
                    fetch_sub(value: $value, order: Ordering) -> $value;
                    fetch_and(value: $value, order: Ordering) -> $value;
                    fetch_nand(value: $value, order: Ordering) -> $value;
                    fetch_or(value: $value, order: Ordering) -> $value;
                    fetch_xor(value: $value, order: Ordering) -> $value;
                    fetch_max(value: $value, order: Ordering) -> $value;
                    fetch_min(value: $value, order: Ordering) -> $value;
                }
            }

            impl Deref for $name {
                type Target = Inner;

                fn deref(&self) -> &Inner {
                    &self.inner
                }
            }

            impl From<$value> for $name {
                fn from(value: $value) -> Self {
                    Self::new(value)
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.inner.fmt(f)
                }
            }
        }
        pub use $module::$name;)*
    };
}

numbers! {
    AtomicU8 u8s u8;
    AtomicU16 u16s u16;
    AtomicU32 u32s u32;
    AtomicU64 u64s u64;
    AtomicUsize usizes usize;
    AtomicI8 i8s i8;
    AtomicI16 i16s i16;
    AtomicI32 i32s i32;
    AtomicI64 i64s i64;
    AtomicIsize isizes isize;
}

mod bools {
    use super::*;
    use atomic::AtomicBool as Inner;

    /// `AtomicBool` with points.
    #[derive(Default)]
    #[repr(transparent)]
    pub struct AtomicBool {
        inner: Inner,
    }

    impl AtomicBool {
        common!(bool);

        pass! { bool:
            fetch_and(value: bool, order: Ordering) -> bool;
            fetch_nand(value: bool, order: Ordering) -> bool;
            fetch_or(value: bool, order: Ordering) -> bool;
            fetch_xor(value: bool, order: Ordering) -> bool;
            fetch_not(order: Ordering) -> bool;
        }
    }

    impl Deref for AtomicBool {
        type Target = Inner;

        fn deref(&self) -> &Inner {
            &self.inner
        }
    }

    impl From<bool> for AtomicBool {
        fn from(value: bool) -> Self {
            Self::new(value)
        }
    }

    impl fmt::Debug for AtomicBool {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.inner.fmt(f)
        }
    }
}
pub use bools::AtomicBool;

mod pointers {
    use super::*;
    use atomic::AtomicPtr as Inner;

    /// `AtomicPtr` with points.
    #[repr(transparent)]
    pub struct AtomicPtr<T> {
        inner: Inner<T>,
    }

    impl<T> AtomicPtr<T> {
        common!(*mut T);
    }

    impl<T> Deref for AtomicPtr<T> {
        type Target = Inner<T>;

        fn deref(&self) -> &Inner<T> {
            &self.inner
        }
    }

    impl<T> Default for AtomicPtr<T> {
        fn default() -> Self {
            Self {
                inner: Inner::default(),
            }
        }
    }

    impl<T> From<*mut T> for AtomicPtr<T> {
        fn from(value: *mut T) -> Self {
            Self::new(value)
        }
    }

    impl<T> fmt::Debug for AtomicPtr<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.inner.fmt(f)
        }
    }
}
pub use pointers::AtomicPtr;
