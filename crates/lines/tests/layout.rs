//! What is counted lies as what is shipped does.

/// Size and alignment of types of both forms.
macro_rules! same {
    ($($($path:ident)::+ $(<$p:ty>)?),+ $(,)?) => {
        $({
            type Counted = counted::$($path)::+ $(<$p>)?;
            type Shipped = shipped::$($path)::+ $(<$p>)?;
            let of = |size, align| (stringify!($($path)::+), size, align);
            assert_eq!(
                of(size_of::<Counted>(), align_of::<Counted>()),
                of(size_of::<Shipped>(), align_of::<Shipped>()),
            );
        })+
    };
}

mod counted {
    pub(crate) use corelay_locks as locks;
    pub(crate) use corelay_sync as sync;
    pub(crate) type PaddedFutex = sync::CachePadded<sync::Futex>;
}

mod shipped {
    pub(crate) use shipped_locks as locks;
    pub(crate) use shipped_sync as sync;
    pub(crate) type PaddedFutex = sync::CachePadded<sync::Futex>;
}

#[test]
fn sizes_are_those_that_are_shipped() {
    same!(
        sync::facade::atomic::AtomicBool,
        sync::facade::atomic::AtomicU8,
        sync::facade::atomic::AtomicU32,
        sync::facade::atomic::AtomicU64,
        sync::facade::atomic::AtomicUsize,
        sync::facade::atomic::AtomicPtr<u8>,
        sync::facade::cell::UnsafeCell<[u64; 6]>,
        sync::facade::Shadow,
        // Another way to sleep stands beside the word here, inside the padding.
        PaddedFutex,
        sync::wait::Sleeper,
        sync::wait::Token,
        locks::Ttas<u64>,
        locks::Ticket<u64>,
        locks::Mcs<u64>,
        locks::Clh<[u64; 7]>,
    );
}
