//! The answers of memcached 1.6.18, kept in files: the cases run where it is not installed, too.

use crate::case;
use crate::escape::{self, Piece};
use crate::exchange::Answer;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Answers by the names of their cases.
pub(crate) type Answers = BTreeMap<String, Answer>;

fn file(subject: &str) -> PathBuf {
    case::directory()
        .join("recorded")
        .join(format!("{subject}.txt"))
}

/// Whether the answers are to be recorded anew.
pub(crate) fn is_wanted() -> bool {
    std::env::var("CORELAY_RECORD").is_ok_and(|value| value == "1")
}

/// Writes the answers, a file for each subject.
pub(crate) fn write(answers: &Answers) {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for (name, answer) in answers {
        let (subject, case) = name.split_once(": ").expect("a name has a subject");
        let text = files.entry(subject).or_insert_with(|| {
            "# Answers of memcached 1.6.18, written by this test with CORELAY_RECORD=1.\n"
                .to_owned()
        });
        *text += &format!("\n== {case}\n{}", shown(answer));
    }
    for (subject, text) in files {
        std::fs::write(file(subject), text).expect("the file can be written");
    }
}

/// An answer in the notation of the files.
pub(crate) fn shown(answer: &Answer) -> String {
    let end = if answer.closed { "@closed\n" } else { "" };
    format!("{}{end}", escape::show(&answer.bytes))
}

/// Reads the recorded answers of a subject.
pub(crate) fn read(subject: &str) -> Answers {
    let path = file(subject);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut answers = Answers::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(case) = line.strip_prefix("== ") {
            let name = format!("{subject}: {case}");
            let empty = Answer {
                bytes: Vec::new(),
                closed: false,
            };
            current = Some(answers.entry(name).insert_entry(empty));
        } else if let Some(entry) = &mut current {
            let answer = entry.get_mut();
            match line {
                "" => {}
                "@closed" => answer.closed = true,
                _ => {
                    for piece in escape::parse(line).expect("it was written by this test") {
                        let Piece::Bytes(bytes) = piece else {
                            panic!("{}: a number in an answer", path.display())
                        };
                        answer.bytes.extend(bytes);
                    }
                }
            }
        }
    }
    answers
}
