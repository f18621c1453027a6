//! Messages for the lab, a line of JSON each. They go to a file, because standard output is the
//! table's.

use crate::rounds::Played;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::exit;
use std::sync::{Mutex, OnceLock};

static FILE: OnceLock<Mutex<File>> = OnceLock::new();

/// The kinds of fault that a table can have. The check reports the first that it finds.
#[derive(Clone, Copy)]
pub enum Kind {
    Duplicates,
    Lost,
    Surplus,
    Value,
    Length,
    Answer,
    Order,
    Hang,
    Panic,
}

/// Opens the message file. From here on a panic in any thread is reported and ends the program:
/// threads that wait for the one that panicked would wait for ever.
pub fn begin(path: &Path) {
    let file = File::create(path).expect("the lab's folder can be written");
    FILE.set(Mutex::new(file)).expect("it begins once");
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("no message");
        let place = info
            .location()
            .map_or(String::new(), |at| format!(" ({at})"));
        fault(Kind::Panic, &format!("`{message}`{place}"));
    }));
}

/// Reports that a part of the check begins.
pub fn stage(name: &str) {
    line(&format!("{{\"stage\":{}}}", quoted(name)));
}

/// Reports a fault, which ends the check.
pub fn fault(kind: Kind, what: &str) -> ! {
    let kind = match kind {
        Kind::Duplicates => "duplicates",
        Kind::Lost => "lost",
        Kind::Surplus => "surplus",
        Kind::Value => "value",
        Kind::Length => "length",
        Kind::Answer => "answer",
        Kind::Order => "order",
        Kind::Hang => "hang",
        Kind::Panic => "panic",
    };
    let what = quoted(what);
    line(&format!(
        "{{\"fault\":{{\"kind\":\"{kind}\",\"what\":{what}}}}}"
    ));
    exit(1)
}

/// Reports that the check has ended without a fault, and how much it has looked at.
pub fn done(recorded: (usize, usize), turns: Played, lookups: u64) {
    let (rounds, calls) = recorded;
    let Played {
        rounds: turn_rounds,
        calls: turn_calls,
    } = turns;
    let points = turns::passed();
    line(&format!(
        "{{\"done\":{{\"rounds\":{rounds},\"calls\":{calls},\"turn_rounds\":{turn_rounds},\
         \"turn_calls\":{turn_calls},\"lookups\":{lookups},\"points\":{points}}}}}"
    ));
}

fn line(text: &str) {
    // A panic of `expect` under this lock would come back here.
    if let Some(Ok(mut file)) = FILE.get().map(Mutex::lock)
        && writeln!(file, "{text}").is_err()
    {
        exit(2);
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out + "\""
}
