//! The transactional store.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod store {
    mod bank;
    mod basics;
    mod hermitage;
    mod histories;
    mod model;
    mod sleepers;
    mod views;
}
