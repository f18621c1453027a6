//! The counted types have the same layout as the shipped ones.

/// Compares the size and alignment of both forms of some types.
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
    pub(crate) use corelay_delegate as delegate;
    pub(crate) use corelay_literature as literature;
    pub(crate) use corelay_locks as locks;
    pub(crate) use corelay_sync as sync;
    pub(crate) type PaddedFutex = sync::CachePadded<sync::Futex>;
}

mod shipped {
    pub(crate) use shipped_delegate as delegate;
    pub(crate) use shipped_literature as literature;
    pub(crate) use shipped_locks as locks;
    pub(crate) use shipped_sync as sync;
    pub(crate) type PaddedFutex = sync::CachePadded<sync::Futex>;
}

#[test]
fn sizes_are_the_shipped_ones() {
    same!(
        sync::facade::atomic::AtomicBool,
        sync::facade::atomic::AtomicU8,
        sync::facade::atomic::AtomicU32,
        sync::facade::atomic::AtomicU64,
        sync::facade::atomic::AtomicUsize,
        sync::facade::atomic::AtomicPtr<u8>,
        sync::facade::cell::UnsafeCell<[u64; 6]>,
        sync::facade::Shadow,
        // Another means of sleeping stands beside the word here, inside the padding.
        PaddedFutex,
        sync::wait::Sleeper,
        sync::wait::Token,
        locks::Tas<u64>,
        locks::Ttas<u64>,
        locks::Ticket<u64>,
        locks::Mcs<u64>,
        locks::Clh<[u64; 7]>,
        locks::FlatCombining<u64>,
        locks::CcSynch<u64>,
        locks::DsmSynch<u64>,
        literature::FfwdLines,
        literature::RclLines,
        literature::PairLines<fn(u64)>,
        delegate::Trust<u64>,
        delegate::Trustees,
    );
}

/// The memory behind the handles: the channel with its rings, and the lines of a pair.
#[test]
fn a_pair_takes_the_shipped_memory() {
    macro_rules! footprints {
        ($of:ident) => {{
            let channel = $of::delegate::report::Footprint::first();
            let ffwd = $of::literature::Ffwd::new(1, 16, 1, |_| 0_u64)
                .0
                .footprint();
            let rcl = $of::literature::Rcl::new(1, 16, 1, |_| 0_u64).0.footprint();
            let lines = $of::literature::AsyncLines::<u64, fn(u64)>::new(1, 16, 1, |_| 0);
            format!("{channel:?} {ffwd:?} {rcl:?} {:?}", lines.0.footprint())
        }};
    }
    assert_eq!(footprints!(counted), footprints!(shipped));
}
