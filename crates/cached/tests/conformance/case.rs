//! Cases in text files.
//!
//! ```text
//! == name of the case
//! @clock
//! set a 5 0 3
//! abc
//! @wait 2
//! get a
//! ```
//! The lines that are sent are written in the notation of [`crate::escape`]. Empty lines and lines
//! that begin with `#` are skipped. Lines that begin with `@` are directives:
//! | directive | meaning |
//! |---|---|
//! | `@flags -I 2k` | the servers get these flags; the case has servers of its own |
//! | `@own` | the case has servers of its own: it changes or shows what a flush does not reset |
//! | `@users name:secret` | the servers get a file of users (`-Y`) with this line |
//! | `@wait 2` | seconds pass before the next line is sent |
//! | `@sync` | the next line is sent after the answers to those before have arrived |
//! | `@until OK` | the next line is sent after an answer that ends with this line |
//! | `@clock` | a server's clock may tick within the case: it may be tried again |
//! | `@race` | a background thread of memcached may change the answer: it may be tried again |
//! | `@open` | the server cannot answer a sentinel in the end; the client stops sending |
//! | `@closes` | the server closes the connection without being asked to |
//! | `@whole` | the answer depends on how the input is split; it is sent in one write only |
//! | `@stats NAME...` | only these lines of statistics are compared |

use crate::escape::{self, Piece};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lines that are sent without waiting for answers in between.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    /// The time that passes before.
    pub(crate) wait: Duration,
    /// The bytes.
    pub(crate) pieces: Vec<Piece>,
    /// The line that ends the answer, if no sentinel can be sent.
    pub(crate) end: Option<String>,
}

/// A case: what is sent, and to which servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    /// The name, with the file's name before it.
    pub(crate) name: String,
    /// The servers' additional flags.
    pub(crate) flags: Vec<String>,
    /// Whether the case needs servers of its own.
    pub(crate) own: bool,
    /// Whether a tick of a server's clock or a background thread may change the answer.
    pub(crate) retry: bool,
    /// Whether the server waits for more input in the end.
    pub(crate) open: bool,
    /// Whether the server closes the connection on its own.
    pub(crate) closes: bool,
    /// Whether the input is sent only whole.
    pub(crate) whole: bool,
    /// The statistics that are compared.
    pub(crate) stats: Vec<String>,
    /// The input.
    pub(crate) segments: Vec<Segment>,
}

impl Case {
    /// Whether the case waits.
    pub(crate) fn waits(&self) -> bool {
        self.segments.iter().any(|segment| !segment.wait.is_zero())
    }

    /// The length of the input: bytes, numbers that are not known yet counted as one.
    pub(crate) fn length(&self) -> usize {
        let pieces = self.segments.iter().flat_map(|segment| &segment.pieces);
        let length = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Cas(..) | Piece::Now(..) => 1,
        };
        pieces.map(length).sum()
    }

    /// The input in the notation of the files.
    pub(crate) fn shown(&self) -> String {
        let mut text = String::new();
        for (nth, segment) in self.segments.iter().enumerate() {
            if nth > 0 && segment.wait.is_zero() {
                text += "@sync\n";
            }
            if !segment.wait.is_zero() {
                text += &format!("@wait {}\n", segment.wait.as_secs());
            }
            let mut bytes = Vec::new();
            for piece in &segment.pieces {
                match piece {
                    Piece::Bytes(more) => bytes.extend_from_slice(more),
                    // As a word that no other input contains.
                    Piece::Cas(n, plus) => bytes.extend(format!("<cas {n}{plus:+}>").bytes()),
                    Piece::Now(plus) => bytes.extend(format!("<now{plus:+}>").bytes()),
                }
            }
            text += &escape::show(&bytes);
        }
        text
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let Some(directive) = line.strip_prefix('@') else {
            let pieces = escape::parse(line)?;
            let asks = pieces.iter().any(|piece| matches!(piece, Piece::Cas(..)));
            let last = self.segments.last();
            if last.is_none_or(|segment| asks && !segment.pieces.is_empty()) {
                self.segments.push(Segment::default());
            }
            self.segments
                .last_mut()
                .expect("it was added")
                .pieces
                .extend(pieces);
            return Ok(());
        };
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let words = || rest.split_whitespace().map(str::to_owned);
        match word {
            "flags" => self.flags.extend(words()),
            "users" => {
                let path = users_file(rest)?;
                self.flags.extend(["-Y".to_owned(), path]);
            }
            "own" => self.own = true,
            "clock" | "race" => self.retry = true,
            "open" => self.open = true,
            "closes" => self.closes = true,
            "whole" => self.whole = true,
            "stats" => self.stats.extend(words()),
            "until" => {
                let last = self.segments.last_mut().ok_or("@until in front")?;
                last.end = Some(format!("{rest}\r\n"));
                self.segments.push(Segment::default());
            }
            "sync" => self.segments.push(Segment::default()),
            "wait" => {
                let seconds = rest.parse().map_err(|error| format!("{line}: {error}"))?;
                let wait = Duration::from_secs(seconds);
                self.segments.push(Segment {
                    wait,
                    ..Segment::default()
                });
            }
            _ => return Err(format!("{line}: unknown directive")),
        }
        self.own |= !self.flags.is_empty() || !self.stats.is_empty();
        Ok(())
    }
}

/// Writes a file of users and returns its path.
fn users_file(line: &str) -> Result<String, String> {
    let name = line.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("users-{name}"));
    // Tests run side by side: the file is there whole or not at all.
    let new = path.with_extension(format!("{:?}", std::thread::current().id()));
    std::fs::write(&new, format!("{line}\n"))
        .and_then(|()| std::fs::rename(&new, &path))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.display().to_string())
}

/// The directory of this test's files.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// Reads all cases, or those whose names contain `CORELAY_CASE`.
pub(crate) fn all() -> Vec<Case> {
    let wanted = std::env::var("CORELAY_CASE").unwrap_or_default();
    let folder = directory().join("cases");
    let entries = std::fs::read_dir(&folder).expect("the folder of cases is there");
    let mut paths: Vec<_> = entries.map(|e| e.expect("it can be read").path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a file of cases is readable text");
        let subject = path.file_stem().expect("it has a name").to_string_lossy();
        match parse(&subject, &text) {
            Ok(more) => cases.extend(more),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
    cases.retain(|case| case.name.contains(&wanted));
    cases
}

fn parse(subject: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("== ") {
            let name = format!("{subject}: {name}");
            if cases.iter().any(|case| case.name == name) {
                return Err(format!("line {}: {name} is there already", number + 1));
            }
            cases.push(Case {
                name,
                ..Case::default()
            });
        } else if !line.is_empty() && !line.starts_with('#') {
            let case = cases.last_mut().ok_or("a line before the first case")?;
            case.add(line)
                .map_err(|error| format!("line {}: {error}", number + 1))?;
        }
    }
    match cases.iter().find(|case| case.length() == 0) {
        Some(case) => Err(format!("{} sends nothing", case.name)),
        None => Ok(cases),
    }
}
