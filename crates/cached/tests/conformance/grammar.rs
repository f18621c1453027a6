//! Random commands of the text protocol, over a few keys so that they act on each other.
//!
//! Left out is what memcached itself answers differently from time to time: short expiry times,
//! and, in one batch, a retrieval before a count of the same item or before a key that is too long
//! (`cases/arithmetic.txt` and `cases/retrieval.txt` say why). Such commands begin a new batch.

use crate::escape::Piece;
use crate::random::Random;

/// Which answers have to be awaited before a command is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// No answer.
    #[default]
    None,
    /// The answers to retrievals.
    Values,
    /// All answers.
    All,
}

/// A command, and what has to be known to send it at the right time.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The line and the value.
    pub(crate) pieces: Vec<Piece>,
    /// Whether the answer may contain an item's value.
    pub(crate) retrieves: bool,
    /// Which answers have to be awaited first.
    pub(crate) awaits: Awaits,
}

const KEYS: &[&str] = &["a", "b", "c", "key", "YQ==", "YWJj"];

/// Keys that are odd; the last one is too long.
const ODD_KEYS: &[&str] = &["!", "\u{7f}", "noreply", "0", "-1", "\u{e4}\u{f6}", "\t"];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "9",
    "10",
    "99",
    "1000",
    "18446744073709551615",
    "9223372036854775808",
];

const ODD_NUMBERS: &[&str] = &[
    "-1",
    "x",
    "1x",
    "",
    "+1",
    "00",
    "4294967295",
    "4294967296",
    "18446744073709551616",
    "1.5",
];

/// Times that neither pass nor become due in a test.
const TIMES: &[&str] = &[
    "0",
    "0",
    "0",
    "100",
    "1000",
    "2592000",
    "-1",
    "4000000000",
    "00",
];

const INVALID_TIMES: &[&str] = &["x", "1x", "99999999999999999999", "1.5"];

/// Flags of 32 bits, also with another digit. Longer ones are refused, which memcached does not do.
const FLAGS: &[&str] = &["0", "0", "1", "5", "65535", "42949672", "+1", "00"];

const INVALID_FLAGS: &[&str] = &["x", "1x", "-1", "18446744073709551616", "1.5"];

/// A key.
fn key(random: &mut Random) -> String {
    match random.below(60) {
        0 => random.pick(ODD_KEYS).to_owned(),
        // Not 250: a byte more, and memcached would lose answers to what is before.
        1 => "k".repeat(240),
        _ => random.pick(KEYS).to_owned(),
    }
}

fn number(random: &mut Random) -> String {
    let numbers = if random.once_in(15) {
        ODD_NUMBERS
    } else {
        NUMBERS
    };
    random.pick(numbers).to_owned()
}

fn time(random: &mut Random) -> &'static str {
    let times = if random.once_in(40) {
        INVALID_TIMES
    } else {
        TIMES
    };
    random.pick(times)
}

fn client_flags(random: &mut Random) -> &'static str {
    let flags = if random.once_in(40) {
        INVALID_FLAGS
    } else {
        FLAGS
    };
    random.pick(flags)
}

/// A value: often a number, sometimes long.
fn value(random: &mut Random) -> Vec<u8> {
    let length = match random.below(40) {
        0 => 100 + random.below(5000),
        1 => random.below(200_000),
        2..20 => return random.pick(NUMBERS).as_bytes().to_vec(),
        _ => random.below(12),
    };
    let letters = b"abcdefghijklmnopqrstuvwxyz0123456789 \r\n\x00\xff";
    let letter = |_| letters[random.below(letters.len() as u64) as usize];
    let mut value: Vec<u8> = (0..length).map(letter).collect();
    // A count of white space alone would read on in memcached, after the end of the item.
    if let Some(first) = value
        .first_mut()
        .filter(|first| first.is_ascii_whitespace())
    {
        *first = b'x';
    }
    value
}

/// Whether corelay-cached answers some of these commands differently on purpose: client flags of more than 32
/// bits, which memcached cuts; keys with characters that base64 has not, or not there, which it skips; and
/// opaque tokens that are too long, which it refuses after it has done what was asked.
pub(crate) fn differs(commands: &[Command]) -> bool {
    let is_long = |word: &[u8]| {
        let word = word.strip_prefix(b"F").unwrap_or(word);
        let number = std::str::from_utf8(word)
            .ok()
            .and_then(|word| word.parse().ok());
        number.is_some_and(|number: u64| number > u64::from(u32::MAX))
    };
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    // Signs that fill a key up stand at its end.
    let is_good = |key: &[u8]| {
        let end = key
            .iter()
            .position(|&byte| byte == b'=')
            .unwrap_or(key.len());
        let (digits, signs) = key.split_at(end);
        digits.iter().all(is_base64) && signs.iter().all(|&byte| byte == b'=')
    };
    let is_loose = |line: &[u8]| {
        let words: Vec<&[u8]> = line.trim_ascii_end().split(|&byte| byte == b' ').collect();
        words.contains(&&b"b"[..]) && words.get(1).is_some_and(|key| !is_good(key))
    };
    let is_refused_late = |line: &[u8]| {
        let mut words = line.split(u8::is_ascii_whitespace);
        let is_long = |word: &[u8]| word.starts_with(b"O") && word.len() > 32;
        matches!(words.next(), Some(b"mg" | b"ma")) && words.any(is_long)
    };
    // Together, since a damaged line may end in the next command.
    let mut bytes = Vec::new();
    for piece in commands.iter().flat_map(|command| &command.pieces) {
        match piece {
            Piece::Bytes(more) => bytes.extend_from_slice(more),
            Piece::Cas(..) | Piece::Now(..) => bytes.push(b'1'),
        }
    }
    let mut lines = bytes.split(|&byte| byte == b'\n');
    bytes.split(u8::is_ascii_whitespace).any(is_long)
        || lines.any(|line| is_loose(line) || is_refused_late(line))
}

/// A number that is appended to a line: a cas number, which may not exist.
fn cas(random: &mut Random) -> Piece {
    Piece::Cas(
        1 + random.below(8) as usize,
        random.pick(&[&0, &0, &0, &1, &-1]).to_owned(),
    )
}

fn noreply(random: &mut Random) -> &'static str {
    match random.below(30) {
        0..5 => " noreply",
        5 => " other",
        6 => "  ",
        _ => "",
    }
}

/// A random command.
pub(crate) fn command(random: &mut Random) -> Command {
    let mut line = Line::default();
    match random.below(100) {
        0..22 => storage(random, &mut line),
        22..40 => retrieval(random, &mut line),
        40..48 => {
            line.text(random.pick(&["incr ", "decr "]));
            line.text(&format!(
                "{} {}{}",
                key(random),
                number(random),
                noreply(random)
            ));
            line.awaits = Awaits::Values;
        }
        48..52 => line.text(&format!("delete {}{}", key(random), noreply(random))),
        52..56 => {
            line.text(&format!(
                "touch {} {}{}",
                key(random),
                time(random),
                noreply(random)
            ));
        }
        56..70 => meta(random, "mg", &mut line),
        70..82 => meta_set(random, &mut line),
        82..88 => meta(random, "md", &mut line),
        88..94 => meta(random, "ma", &mut line),
        94 => line.text(&format!("me {}", key(random))),
        95 => line.text(random.pick(&["flush_all", "flush_all 0", "flush_all noreply"])),
        96 => line.text(random.pick(&["version", "verbosity 0", "mn", "mn x", "verbosity"])),
        97 => line.text(random.pick(&["", " ", "bogus", "get", "GET a", "set a", "incr a", "gat"])),
        98 => {
            // A key before it would have been asked for in memcached, and not here.
            line.text(&format!("get {}", "k".repeat(251)));
            line.awaits = Awaits::All;
        }
        _ => line.text("mn"),
    }
    line.finish()
}

fn storage(random: &mut Random, line: &mut Line) {
    let word = random.pick(&[
        "set", "set", "set", "add", "replace", "append", "prepend", "cas",
    ]);
    let (key, flags, time) = (key(random), client_flags(random), time(random));
    let value = value(random);
    line.text(&format!("{word} {key} {flags} {time} {}", value.len()));
    if word == "cas" {
        line.text(" ");
        line.piece(cas(random));
    }
    line.text(noreply(random));
    // With an invalid line, the value would be taken for commands.
    if !INVALID_FLAGS.contains(&flags) && !INVALID_TIMES.contains(&time) {
        line.value = Some(value);
    }
}

fn retrieval(random: &mut Random, line: &mut Line) {
    match random.below(8) {
        0 => line.text(&format!("gat {}", time(random))),
        1 => line.text(&format!("gats {}", time(random))),
        2..5 => line.text("gets"),
        _ => line.text("get"),
    }
    let count = match random.below(20) {
        0 => 30,
        1..8 => 1 + random.below(5),
        _ => 1,
    };
    for _ in 0..count {
        line.text(&format!(" {}", key(random)));
    }
    line.retrieves = true;
}

/// A meta command without a value.
fn meta(random: &mut Random, word: &str, line: &mut Line) {
    line.text(&format!("{word} {}", key(random)));
    let known: &[&str] = match word {
        "mg" => &[
            "b", "c", "f", "h", "k", "O", "q", "s", "t", "u", "v", "v", "N", "R", "T",
        ],
        "md" => &["b", "C", "k", "O", "q", "I", "I", "T"],
        _ => &[
            "b", "N", "J", "D", "T", "M", "q", "t", "c", "v", "v", "k", "O", "C",
        ],
    };
    meta_flags(random, known, line);
    line.retrieves = true;
    if word == "ma" && line.awaits == Awaits::None {
        line.awaits = Awaits::Values;
    }
}

fn meta_set(random: &mut Random, line: &mut Line) {
    let value = value(random);
    line.text(&format!("ms {} {}", key(random), value.len()));
    let known = &[
        "b", "c", "C", "F", "I", "k", "O", "q", "s", "T", "M", "M", "N",
    ];
    meta_flags(random, known, line);
    line.value = Some(value);
}

fn meta_flags(random: &mut Random, known: &[&str], line: &mut Line) {
    let mut left = known.to_vec();
    // The same flag twice is an error: it should be rare.
    left.dedup();
    for _ in 0..random.below(7) {
        if random.once_in(100) {
            let odd = random.pick(&["!", "x", "E1", "S1", "Z", "v", "k", "", "Lx", "P", "-"]);
            line.text(&format!(" {odd}"));
            continue;
        }
        if left.is_empty() {
            break;
        }
        let flag = left.swap_remove(random.below(left.len() as u64) as usize);
        // Without it most keys would be rejected.
        if flag == "b" && !random.once_in(4) {
            continue;
        }
        line.text(&format!(" {flag}"));
        match flag {
            "O" => line.text(random.pick(&["1", "abc", "0123456789012345678901234567890"])),
            "T" | "N" => line.text(time(random)),
            "R" => line.text(random.pick(&["30", "500", "0", "x"])),
            "F" => line.text(client_flags(random)),
            "D" | "J" => line.text(&number(random)),
            "M" if known.contains(&"D") => {
                line.text(random.pick(&["I", "D", "i", "d", "+", "-", "incr", "decr", "", "x"]));
            }
            "M" => line.text(random.pick(&["S", "E", "A", "P", "R", "s", "e", "a", "", "x"])),
            "C" => line.piece(cas(random)),
            _ => {}
        }
    }
}

/// A command that is being written.
#[derive(Default)]
struct Line {
    pieces: Vec<Piece>,
    value: Option<Vec<u8>>,
    retrieves: bool,
    awaits: Awaits,
}

impl Line {
    fn text(&mut self, text: &str) {
        self.pieces.push(Piece::Bytes(text.as_bytes().to_vec()));
    }

    fn piece(&mut self, piece: Piece) {
        // The number is known when the answers before it are.
        self.awaits = Awaits::All;
        self.pieces.push(piece);
    }

    fn finish(mut self) -> Command {
        self.text("\r\n");
        if let Some(mut value) = self.value {
            value.extend_from_slice(b"\r\n");
            self.pieces.push(Piece::Bytes(value));
        }
        Command {
            pieces: self.pieces,
            retrieves: self.retrieves,
            awaits: self.awaits,
        }
    }
}

/// Damages a command.
pub(crate) fn damage(random: &mut Random, command: &Command) -> Command {
    let mut bytes = Vec::new();
    for piece in &command.pieces {
        if let Piece::Bytes(more) = piece {
            bytes.extend_from_slice(more);
        }
    }
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(7) {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << random.below(8),
        2 => {
            bytes.remove(at);
        }
        3 => bytes.insert(at, random.next() as u8),
        4 => bytes.insert(at, b' '),
        5 => {
            // One digit of the line is changed: a length, often.
            if let Some(digit) = bytes.iter().rposition(u8::is_ascii_digit) {
                bytes[digit] = b'0' + random.below(10) as u8;
            }
        }
        _ => {
            bytes.splice(at..at, *b"\r\n");
        }
    }
    Command {
        pieces: vec![Piece::Bytes(bytes)],
        ..command.clone()
    }
}
