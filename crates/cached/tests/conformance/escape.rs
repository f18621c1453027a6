//! The notation in which bytes are written in cases and in recorded answers.
//!
//! A line stands for its bytes and `\r\n`. A line that ends in a single `\` has no `\r\n`.
//! | written | stands for |
//! |---|---|
//! | `\r` `\n` `\t` `\0` `\\` `\s` | carriage return, line feed, tab, byte 0, backslash, space |
//! | `\xNN` | the byte with this hexadecimal value |
//! | `\e` | nothing; for an empty line |
//! | `\{12*ab}` | `ab` twelve times |
//! | `\{cas 2}` | the second distinct cas number that the server has answered in this case |
//! | `\{cas 2+1}` | that number plus 1; also with `-` |
//! | `\{now+100}` | the Unix time in 100 seconds; also with `-` |

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes that are sent as they are.
    Bytes(Vec<u8>),
    /// A number that depends on earlier answers: which cas number, and what is added to it.
    Cas(usize, i64),
    /// The Unix time plus so many seconds.
    Now(i64),
}

/// Reads a line.
pub(crate) fn parse(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut bytes = Vec::new();
    let mut rest = text;
    let mut ends = true;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else {
            ends = false;
            break;
        };
        rest = &rest[kind.len_utf8()..];
        match kind {
            'r' => bytes.push(b'\r'),
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            '0' => bytes.push(0),
            's' => bytes.push(b' '),
            '\\' => bytes.push(b'\\'),
            'e' => {}
            'x' => {
                let digits = rest.get(..2).ok_or("\\x needs two digits")?;
                bytes
                    .push(u8::from_str_radix(digits, 16).map_err(|e| format!("\\x{digits}: {e}"))?);
                rest = &rest[2..];
            }
            '{' => {
                let end = rest.find('}').ok_or("\\{ without }")?;
                let inside = &rest[..end];
                rest = &rest[end + 1..];
                let piece = braces(inside).ok_or_else(|| format!("\\{{{inside}}}: unknown"))?;
                if let Piece::Bytes(more) = piece {
                    bytes.extend(more);
                } else {
                    pieces.push(Piece::Bytes(std::mem::take(&mut bytes)));
                    pieces.push(piece);
                }
            }
            _ => return Err(format!("\\{kind}: unknown")),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    if ends {
        bytes.extend_from_slice(b"\r\n");
    }
    pieces.push(Piece::Bytes(bytes));
    pieces.retain(|piece| *piece != Piece::Bytes(Vec::new()));
    Ok(pieces)
}

/// Reads what stands between `\{` and `}`.
fn braces(inside: &str) -> Option<Piece> {
    if let Some(which) = inside.strip_prefix("cas ") {
        let at = which.find(['+', '-']).unwrap_or(which.len());
        let plus = if at == which.len() {
            0
        } else {
            which[at..].parse().ok()?
        };
        return Some(Piece::Cas(which[..at].parse().ok()?, plus));
    }
    if let Some(offset) = inside.strip_prefix("now") {
        return Some(Piece::Now(offset.parse().ok()?));
    }
    let (count, what) = inside.split_once('*')?;
    let mut unit = Vec::new();
    for piece in parse(&format!("{what}\\")).ok()? {
        let Piece::Bytes(bytes) = piece else {
            return None;
        };
        unit.extend(bytes);
    }
    Some(Piece::Bytes(unit.repeat(count.parse().ok()?)))
}

/// The Unix time: seconds.
pub(crate) fn unix_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("the clock is past 1970").as_secs() as i64
}

/// Repeated bytes from which on a repetition is written, and the longest unit that is looked for.
const LONG: usize = 24;
const UNIT: usize = 16;

/// Lines that repeat from which on a repetition is written, and the largest group of lines.
const MANY: usize = 12;
const GROUP: usize = 6;

/// Writes bytes, a line for each line or for each repetition of a group of lines.
pub(crate) fn show(bytes: &[u8]) -> String {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        lines.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    let mut text = String::new();
    let mut at = 0;
    while at < lines.len() {
        let (group, count) = repetition(&lines[at..], GROUP);
        let shown: Vec<_> = lines[at..at + group]
            .iter()
            .map(|line| show_line(line))
            .collect();
        if group * count >= MANY && !shown.iter().any(|line| line.contains("\\{")) {
            let _ = writeln!(text, "\\{{{count}*{}\\r\\n}}\\", shown.join("\\r\\n"));
            at += group * count;
        } else {
            let _ = writeln!(text, "{}", shown[0]);
            at += 1;
        }
    }
    if !rest.is_empty() {
        let _ = writeln!(text, "{}\\", show_line(rest));
    }
    text
}

/// The unit of at most `longest` elements that is repeated most at the start of `list`, and how
/// often it is there.
fn repetition<T: PartialEq>(list: &[T], longest: usize) -> (usize, usize) {
    let units = 1..=longest.min(list.len());
    let counted = units.map(|unit| {
        let equal = list.iter().zip(&list[unit..]).take_while(|(a, b)| a == b);
        (unit, equal.count() / unit + 1)
    });
    let best = counted
        .max_by_key(|&(unit, count)| (if count > 1 { unit * count } else { 0 }, usize::MAX - unit));
    best.unwrap_or((1, 1))
}

fn show_line(line: &[u8]) -> String {
    if line.is_empty() {
        return "\\e".to_owned();
    }
    let mut text = String::new();
    let mut at = 0;
    while at < line.len() {
        let (unit, count) = repetition(&line[at..], UNIT);
        if unit * count >= LONG {
            let _ = write!(text, "\\{{{count}*");
            for &byte in &line[at..at + unit] {
                show_byte(byte, true, &mut text);
            }
            text.push('}');
            at += unit * count;
        } else {
            let is_edge = at == 0 || at + 1 == line.len();
            show_byte(line[at], is_edge, &mut text);
            at += 1;
        }
    }
    text
}

/// Writes a byte. At an edge, what has a meaning in a file of cases is escaped.
fn show_byte(byte: u8, is_edge: bool, text: &mut String) {
    match byte {
        b'\r' => text.push_str("\\r"),
        b'\n' => text.push_str("\\n"),
        b'\t' => text.push_str("\\t"),
        b'\\' => text.push_str("\\\\"),
        b' ' if is_edge => text.push_str("\\s"),
        b'@' | b'#' | b'=' | b'}' if is_edge => {
            let _ = write!(text, "\\x{byte:02x}");
        }
        b' '..=b'~' => text.push(char::from(byte)),
        _ => {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
}

#[test]
fn notation_round_trips() {
    let all: Vec<u8> = (0..=255).collect();
    for bytes in [
        &b""[..],
        b"\r\n",
        b"a\r\n\r\nb",
        b"= \r\n@\r\n#\r\n\\\r\n \r\n",
        &[b'}'; 100],
        &[b'a'; 100],
        &b"ab c}".repeat(99),
        &b"x\r\n=\r\n".repeat(99),
        &all,
    ] {
        let mut read = Vec::new();
        for line in show(bytes).lines() {
            for piece in parse(line).expect("it was written by show") {
                let Piece::Bytes(more) = piece else {
                    panic!("no number was written")
                };
                read.extend(more);
            }
        }
        assert_eq!(read, bytes);
    }
    let numbers = parse("cas k \\{cas 2-1} \\{now+7}\\").expect("both are known");
    assert_eq!(numbers[1], Piece::Cas(2, -1));
    assert_eq!(numbers[3], Piece::Now(7));
    assert!(parse("\\q").is_err() && parse("\\{x}").is_err());
}
