//! Histories in files: a line of JSON for each call.
//!
//! ```text
//! {"format":"corelay-history","version":1,"threads":2,"calls":3}
//! {"thread":0,"operation":{"Write":1},"invoked":17,"returned":[42,"Written"]}
//! {"thread":1,"operation":"Read","invoked":23,"returned":[31,{"Value":1}]}
//! {"thread":1,"operation":{"Write":2},"invoked":40}
//! ```
//! The first line says what follows. `returned` is the stamp and the output; it is missing if a
//! call never returned. The calls of a thread come in the order of their invocations. `serde`
//! decides how operations and outputs are written.

use crate::history::{Call, History};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

const FORMAT: &str = "corelay-history";
const VERSION: u64 = 1;
/// The most threads in a file; Linux has no more in one process. The limit keeps a damaged number
/// from asking for all memory.
const THREADS: usize = 1 << 22;

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u64,
    threads: usize,
    calls: usize,
}

/// The part of a header that identifies the format.
#[derive(Deserialize)]
struct Name {
    format: String,
    version: u64,
}

#[derive(Serialize)]
struct Written<'a, O, R> {
    thread: usize,
    operation: &'a O,
    invoked: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    returned: &'a Option<(u64, R)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound = "O: DeserializeOwned, R: DeserializeOwned")]
struct Read<O, R> {
    thread: usize,
    operation: O,
    invoked: u64,
    returned: Option<(u64, R)>,
}

/// The reason why a file is no history, with the line at fault.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    Io {
        /// The line, counted from 1; 0 if the file cannot be opened.
        line: usize,
        /// The reason.
        source: io::Error,
    },
    /// The first line is not that of a history.
    Foreign,
    /// The file was written by another version of the format.
    Version(u64),
    /// The file ends too early.
    Cut {
        /// The line that is missing, or is not whole; counted from 1.
        line: usize,
        /// The number of lines that there should be.
        expected: usize,
    },
    /// A line is not a call of that structure, or contradicts another.
    Line {
        /// The line, counted from 1.
        line: usize,
        /// The fault.
        what: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { line: 0, source } => source.fmt(f),
            Self::Io { line, source } => write!(f, "line {line}: {source}"),
            Self::Foreign => write!(
                f,
                "line 1: this is no history: it should begin with {{\"format\":\"{FORMAT}\""
            ),
            Self::Version(version) => write!(
                f,
                "line 1: the history is of version {version}, this program reads {VERSION}"
            ),
            Self::Cut { line, expected } => write!(
                f,
                "line {line}: the file is cut off here; it should have {expected} lines"
            ),
            Self::Line { line, what } => write!(f, "line {line}: {what}"),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl<O: Serialize, R: Serialize> History<O, R> {
    /// Writes the history to a file, replacing its content.
    ///
    /// # Errors
    /// Errors of the file system or of `serde`.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        self.write(&mut file)?;
        file.flush()
    }

    /// Writes the history as lines of JSON: a header that gives format, version, and the
    /// numbers of threads and calls, then a line for each call.
    ///
    /// ```
    /// use corelay_history::{Call, History};
    ///
    /// let mut history = History::new();
    /// history.push(0, Call::returned("pop".to_owned(), 3..=5, Some(7)));
    /// let mut file = Vec::new();
    /// history.write(&mut file)?;
    /// assert_eq!(History::read(&file[..])?, history);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Errors of the writer or of `serde`.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            threads: self.threads(),
            calls: self.len(),
        };
        serde_json::to_writer(&mut to, &header)?;
        to.write_all(b"\n")?;
        for (thread, call) in self.calls() {
            let line = Written {
                thread,
                operation: &call.operation,
                invoked: call.invoked,
                returned: &call.answer,
            };
            serde_json::to_writer(&mut to, &line)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    }
}

impl<O: DeserializeOwned, R: DeserializeOwned> History<O, R> {
    /// Reads a history from a file that [`save`](Self::save) has written.
    ///
    /// # Errors
    /// [`ReadError`] with the line at fault.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|source| ReadError::Io { line: 0, source })?;
        Self::read(BufReader::new(file))
    }

    /// Reads a history that [`write`](Self::write) has written.
    ///
    /// # Errors
    /// [`ReadError`] with the line at fault.
    pub fn read(from: impl BufRead) -> Result<Self, ReadError> {
        let mut lines = Lines { from, line: 0 };
        let first = lines.next()?.ok_or(ReadError::Foreign)?;
        let name: Name = serde_json::from_slice(&first.bytes).map_err(|_| ReadError::Foreign)?;
        if name.format != FORMAT {
            return Err(ReadError::Foreign);
        }
        if name.version != VERSION {
            return Err(ReadError::Version(name.version));
        }
        let header: Header = serde_json::from_slice(&first.bytes).map_err(|e| lines.wrong(&e))?;
        if header.threads > THREADS {
            return Err(lines.wrong(&format!("there are no more than {THREADS} threads")));
        }
        let expected = header.calls.saturating_add(1);
        let mut history = Self::new();
        while lines.line < expected {
            let line = lines.line + 1;
            let cut = ReadError::Cut { line, expected };
            let Some(text) = lines.next()? else {
                return Err(cut);
            };
            let read = match serde_json::from_slice(&text.bytes) {
                Ok(read) => read,
                Err(_) if !text.whole => return Err(cut),
                Err(error) => return Err(lines.wrong(&error)),
            };
            add(&mut history, read, header.threads).map_err(|what| lines.wrong(&what))?;
        }
        if lines.next()?.is_some() {
            let what = format!("there should be no more than {expected} lines");
            return Err(lines.wrong(&what));
        }
        // Threads without calls.
        history.widen(header.threads);
        Ok(history)
    }
}

/// Adds a call; the error says what is wrong with it.
fn add<O, R>(history: &mut History<O, R>, read: Read<O, R>, threads: usize) -> Result<(), String> {
    let Read {
        thread,
        operation,
        invoked,
        returned,
    } = read;
    if thread >= threads {
        return Err(format!("thread {thread} is not one of {threads}"));
    }
    let call = Call::checked(operation, invoked, returned)?;
    history.push_checked(thread, call)
}

struct Lines<B> {
    from: B,
    /// The number of the last line that was read.
    line: usize,
}

/// A line of a file.
struct Text {
    bytes: Vec<u8>,
    /// Whether the line ends in a line feed. If it does not, the file may have been cut off in it.
    whole: bool,
}

impl<B: BufRead> Lines<B> {
    /// The next line, if there is one.
    fn next(&mut self) -> Result<Option<Text>, ReadError> {
        self.line += 1;
        let mut bytes = Vec::new();
        let read = self.from.read_until(b'\n', &mut bytes);
        read.map_err(|source| ReadError::Io {
            line: self.line,
            source,
        })?;
        let whole = bytes.ends_with(b"\n");
        Ok((!bytes.is_empty()).then_some(Text { bytes, whole }))
    }

    /// The error that the last line is wrong.
    fn wrong(&self, what: &impl ToString) -> ReadError {
        let what = what.to_string();
        // `serde_json` counts lines too, in its own text of one line.
        let what = what.split(" at line ").next().unwrap_or(&what);
        ReadError::Line {
            line: self.line,
            what: what.to_owned(),
        }
    }
}
