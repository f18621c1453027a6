//! The models of this crate under loom, one process each: `cargo xtask loom`.
#![cfg(corelay_loom)]

#[path = "../model_rows/mod.rs"]
mod model_rows;

mod disk;
mod hash_index;
mod oplog;
mod ordered;
mod rlu;
mod store_log;
mod store_pins;
mod store_views;
mod tl2;

/// Private modules of the store, compiled from their shipped source.
#[allow(dead_code, unused_imports)]
#[path = "."]
mod store {
    #[path = "../../src/store/garbage.rs"]
    pub(crate) mod garbage;
    #[path = "../../src/store/index/mod.rs"]
    pub(crate) mod index;
    #[path = "../../src/store/slab.rs"]
    pub(crate) mod slab;
}
