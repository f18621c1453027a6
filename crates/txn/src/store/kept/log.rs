//! A transaction's way into the log: its rows are encoded before it locks anything, and handed over
//! after it has installed them.

use crate::store::disk::{Durable, EncodeError, Records, Writer};
use crate::store::protocol::Protocol;
use crate::store::stats::Reason;
use crate::store::tx::{Result, Tx};

/// A slot's part of the log. The slot's transactions use it one after the other.
#[derive(Debug)]
pub(crate) struct Log {
    writer: Writer,
    /// The running transaction's writes to kept tables, as bytes.
    records: Records,
    /// The handle of the running transaction, once it has committed.
    durable: Option<Durable>,
}

impl Log {
    fn new(writer: Writer) -> Self {
        Self {
            writer,
            records: Records::new(),
            durable: None,
        }
    }
}

impl<P: Protocol> Tx<'_, P> {
    /// Prepares the log for a transaction. Waits while the disk is too far behind. The transaction has
    /// not begun yet, so it keeps nobody waiting.
    #[track_caller]
    pub(in crate::store) fn open_log(&mut self) {
        let Some(writers) = &self.store.writers else {
            return;
        };
        let new = || Box::new(Log::new(writers.writer()));
        let log = self.work.log.get_or_insert_with(new);
        if !self.is_read_only {
            // A disk that has failed refuses the commit.
            let _ = log.writer.admit();
        }
    }

    /// Encodes what the transaction writes to kept tables. Code of the types runs here, so this is
    /// not a part of the commit.
    #[inline(always)]
    pub(in crate::store) fn encode(&mut self) -> Result<()> {
        if self.work.log.is_none() || self.doom.is_some() {
            return Ok(());
        }
        self.encode_writes()
    }

    #[inline(never)]
    fn encode_writes(&mut self) -> Result<()> {
        let operation = self.operation()?;
        let work = &mut *operation.tx.work;
        let Some(log) = &mut work.log else {
            return Ok(());
        };
        log.durable = None;
        log.records.clear();
        let mut failed = None;
        for write in &work.writes {
            // SAFETY: the transaction is pinned, and has the record.
            let meta = unsafe { &*write.head }.meta();
            let Some(kept) = meta.kept() else { continue };
            // SAFETY: a record and a version of this table, which live: as above, and the new
            // version is the transaction's own.
            let encoded = unsafe { kept.log(write.head, write.new, &mut log.records) };
            if let Err(error) = encoded {
                failed = Some((error, write.head));
                break;
            }
        }
        drop(operation);
        let Some((error, head)) = failed else {
            return Ok(());
        };
        // The rows may come of a mixture of moments.
        let reason = self.mixed().unwrap_or(match error {
            EncodeError::TooLarge { .. } => Reason::TooLarge,
            EncodeError::Refused(_) => Reason::Encoding,
        });
        // SAFETY: as above.
        Err(self.doom(reason, Some(unsafe { &*head }.meta())))
    }

    /// Commits what the transaction has written, in memory and to the log.
    #[inline(never)]
    pub(in crate::store) fn commit_logged(&mut self) -> Result<u64, Reason> {
        let Some(mut log) = self.work.log.take_if(|log| !log.records.is_empty()) else {
            return Ok(self.install(|| Ok(()))?.stamp);
        };
        let Log {
            writer,
            records,
            durable,
        } = &mut *log;
        let done = self.install(|| writer.enter().map_err(|_| Reason::Disk));
        let stamp = done.map(|done| {
            *durable = Some(done.held.commit(done.order, records));
            records.clear();
            done.stamp
        });
        self.work.log = Some(log);
        stamp
    }

    /// The durability of the transaction, which has committed; or, if it has written nothing, of all
    /// that it may have seen.
    pub(in crate::store) fn durable(&mut self) -> Durable {
        let log = self.work.log.as_mut();
        let log = log.expect("`transact_durable` has asked whether there is a log");
        log.durable.take().unwrap_or_else(|| log.writer.seen())
    }
}
