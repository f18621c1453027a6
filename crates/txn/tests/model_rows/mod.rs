//! Tables of the models, loom's and shuttle's, whose hashes are the same in each execution.

use corelay_txn::store::{Hashed, Protocol, Store, Table};
use std::hash::{BuildHasherDefault, Hasher};

/// The same hashes in each execution.
#[derive(Default)]
pub(crate) struct Fixed(u64);

impl Hasher for Fixed {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }
}

pub(crate) type Rows<V> = Table<u64, V, Hashed<u64, V, BuildHasherDefault<Fixed>>>;

pub(crate) fn rows<P: Protocol, V: Send + Sync + 'static>(store: &Store<P>) -> Rows<V> {
    store.table_with("rows", 4, Default::default()).unwrap()
}
