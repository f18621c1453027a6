//! Rows that were found on disk, put into their table.

use crate::store::claim::{Claim, Pinned};
use crate::store::commit::retire_versions;
use crate::store::disk::{Codec, RecoveredTable};
use crate::store::garbage::Guard;
use crate::store::protocol::Protocol;
use crate::store::record::{Record, Row, Word};
use crate::store::store::Store;
use crate::store::table::{Index, Inner};
use std::ops::ControlFlow::Continue;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// The rows after which a thread ends its pin.
const PART: usize = 256;

/// The bytes of a thread's stack: those of most programs' first thread, which may have written rows of
/// rows of rows.
const STACK: usize = 8 << 20;

/// Puts all `rows` into a table that nobody else has yet. An error is a sentence that says which
/// row cannot be read; the table is empty again then.
pub(super) fn load<P, K, V, I>(
    store: &Store<P>,
    table: &Inner<K, V, I>,
    rows: &RecoveredTable,
    codec: Codec<K, V>,
) -> Result<(), String>
where
    P: Protocol,
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    I: Index<K, V>,
{
    let load = |number: usize| {
        let mut part = rows.parts().nth(number).into_iter().flatten();
        loop {
            let pinned = Pinned::new(&store.pins);
            for _ in 0..PART {
                let Some((key, value)) = part.next() else {
                    return Ok(());
                };
                let key = (codec.decode_key)(key);
                let key = key.map_err(|error| format!("a key: {error}"))?;
                let value = (codec.decode_value)(value);
                let value = value.map_err(|error| format!("a row: {error}"))?;
                put(store.protocol(), &pinned, table, key, value)?;
            }
        }
    };
    // All of them, before one's error is returned.
    let ended: Vec<_> = thread::scope(|scope| {
        let start = |number| {
            let builder = thread::Builder::new().name("corelay-load".to_owned());
            let builder = builder.stack_size(STACK);
            builder.spawn_scoped(scope, move || load(number))
        };
        let threads: Vec<_> = (0..rows.parts().count()).map(start).collect();
        let ended = threads.into_iter().enumerate();
        let ended = ended.map(|(number, thread)| match thread {
            Ok(thread) => thread.join(),
            // The system has no more threads.
            Err(_) => catch_unwind(AssertUnwindSafe(|| load(number))),
        });
        ended.collect()
    });
    if !ended.iter().all(|ended| matches!(ended, Ok(Ok(())))) {
        unload(store, table);
    }
    ended
        .into_iter()
        .try_for_each(|ended| ended.unwrap_or_else(|payload| resume_unwind(payload)))
}

/// Takes all rows out of a table that nobody else has, so that the store has their memory again.
#[cold]
fn unload<P, K, V, I>(store: &Store<P>, table: &Inner<K, V, I>)
where
    P: Protocol,
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    I: Index<K, V>,
{
    let mut place = I::Place::default();
    loop {
        let pinned = Pinned::new(&store.pins);
        let mut take = |record: &Record<K, V>| {
            let version = record.head().load().version();
            if let Some(record) = table.index.unlink(record, &pinned) {
                retire_versions(&pinned, version, Inner::<K, V, I>::OPS);
                // SAFETY: the record has left its index, and nobody else has the table.
                pinned.retire(unsafe { Record::<K, V>::garbage(record.cast()) });
            }
            Continue(())
        };
        if table.index.walk(&mut place, &pinned, &mut take).is_break() {
            return;
        }
    }
}

fn put<P, K, V, I>(
    protocol: &P,
    claim: &Claim<'_>,
    table: &Inner<K, V, I>,
    key: K,
    value: V,
) -> Result<(), String>
where
    P: Protocol,
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    I: Index<K, V>,
{
    let hash = table.index.hash(&key);
    let record = claim.place(Record::<K, V>::locked(key, hash, &raw const table.meta));
    // SAFETY: the record was made just now. It is retired after it was unlinked, or goes with the
    // table.
    let is_new = unsafe { table.index.enter(record, claim, &mut Vec::new()) };
    if !is_new {
        // SAFETY: the record is in no index, and this thread's own.
        claim.retire(unsafe { Record::<K, V>::garbage(record.cast()) });
        return Err("two keys are equal, but their bytes are not".to_owned());
    }
    let version = claim.place(Row::new(value)).cast();
    // SAFETY: the version was made just now, and is this thread's own.
    protocol.sign(unsafe { &*version }, 0, 0);
    // SAFETY: the record lives: nobody removes it while it is locked.
    unsafe { &*record }
        .head()
        .unlock(Word::EMPTY.replaced(version));
    Ok(())
}
