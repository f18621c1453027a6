//! Recorded calls: the moments at which each began and ended, and its answer.

use crate::table::Table;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A call to make.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    Get(u64),
    Insert(u64, u64),
    Remove(u64),
}

/// A call that was made.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub ask: Ask,
    pub invoked: u64,
    pub returned: u64,
    pub answer: Option<u64>,
}

impl Ask {
    /// Returns the key.
    pub fn key(self) -> u64 {
        match self {
            Self::Get(key) | Self::Insert(key, _) | Self::Remove(key) => key,
        }
    }
}

impl Call {
    /// Makes a call, and takes its moments from a counter.
    pub fn make(table: &Table, ask: Ask, now: &AtomicU64) -> Self {
        let invoked = now.fetch_add(1, Ordering::SeqCst);
        let answer = match ask {
            Ask::Get(key) => table.get(key),
            Ask::Insert(key, value) => table.insert(key, value),
            Ask::Remove(key) => table.remove(key),
        };
        Self {
            ask,
            invoked,
            returned: now.fetch_add(1, Ordering::SeqCst),
            answer,
        }
    }
}

/// Writes the calls of each thread in the format of `corelay-history`.
pub fn write(path: &Path, all: &[Vec<Call>]) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let (threads, calls) = (all.len(), all.iter().map(Vec::len).sum::<usize>());
    writeln!(
        file,
        r#"{{"format":"corelay-history","version":1,"threads":{threads},"calls":{calls}}}"#
    )?;
    for (thread, calls) in all.iter().enumerate() {
        for Call {
            ask,
            invoked,
            returned,
            answer,
        } in calls
        {
            let operation = match ask {
                Ask::Get(key) => format!(r#"{{"Get":{key}}}"#),
                Ask::Insert(key, value) => format!(r#"{{"Insert":[{key},{value}]}}"#),
                Ask::Remove(key) => format!(r#"{{"Remove":{key}}}"#),
            };
            let answer = answer.map_or("null".to_owned(), |value| value.to_string());
            writeln!(
                file,
                r#"{{"thread":{thread},"operation":{operation},"invoked":{invoked},"returned":[{returned},{answer}]}}"#
            )?;
        }
    }
    file.flush()
}
