//! Random sequences of commands, sent to the server under test and to the reference.

use crate::case::{Case, Segment};
use crate::exchange::{Answer, Delivery};
use crate::grammar::{self, Awaits, Command};
use crate::random::Random;
use crate::run::{self, Fleet};
use crate::suite::{self, Failures};
use std::time::{Duration, Instant};

/// Sequences, times what `CORELAY_STRESS` says: the long run is 100,000 of them at 250.
const SEQUENCES: u64 = 400;

/// memcached without its background threads. They hold items for a moment now and then, and the
/// answers to counts depend on it.
pub(crate) const QUIET: &[&str] = &["-o", "no_lru_maintainer,no_lru_crawler"];

/// How long a sequence that fails is made shorter.
const MINIMISE: Duration = Duration::from_secs(15);

/// How often the reference is asked before the subject's answer counts as wrong.
pub(crate) const TRIES: usize = 6;

/// Seconds by which times to live may differ: the servers' clocks tick at different moments.
const CLOCKS: u64 = 3;

/// Commands in a row. After the sound ones come those that may be damaged, in one batch: a server
/// may take anything for a value then, and a sentinel, too.
#[derive(Clone)]
struct Sequence {
    sound: Vec<Command>,
    damaged: Vec<Command>,
    delivery: Delivery,
}

impl Sequence {
    /// The sequence of a seed.
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = 1 + random.below(30);
        let sound = (0..count).map(|_| grammar::command(&mut random)).collect();
        let count = random.below(12).saturating_sub(5);
        let mut damaged = Vec::new();
        for _ in 0..count {
            let command = grammar::command(&mut random);
            if command.awaits != Awaits::None {
                continue;
            }
            let command = match random.below(3) {
                0 => command,
                _ => grammar::damage(&mut random, &command),
            };
            damaged.push(command);
            if grammar::differs(&damaged) {
                damaged.pop();
            }
        }
        let delivery = match random.below(10) {
            0 => Delivery::Bytes,
            1..5 => Delivery::Random(random.next()),
            _ => Delivery::Whole,
        };
        Self {
            sound,
            damaged,
            delivery,
        }
    }

    fn case(&self, seed: u64) -> Case {
        let mut segments = vec![Segment::default()];
        let mut retrieved = false;
        for command in &self.sound {
            let awaits = match command.awaits {
                Awaits::None => false,
                Awaits::Values => retrieved,
                Awaits::All => true,
            };
            if awaits {
                segments.push(Segment::default());
                retrieved = false;
            }
            retrieved |= command.retrieves;
            let last = segments.last_mut().expect("there is one");
            last.pieces.extend(command.pieces.iter().cloned());
        }
        let damaged = self
            .damaged
            .iter()
            .flat_map(|command| command.pieces.clone());
        segments.push(Segment {
            pieces: damaged.collect(),
            ..Segment::default()
        });
        Case {
            name: format!("sequence {seed}"),
            open: true,
            segments,
            ..Case::default()
        }
    }

    /// The sequence without some of its commands.
    fn without(&self, from: usize, count: usize) -> Self {
        let keeps = |&at: &usize| !(from..from + count).contains(&at);
        let sound = (0..self.sound.len())
            .filter(keeps)
            .map(|at| self.sound[at].clone());
        let start = self.sound.len();
        let damaged = (0..self.damaged.len())
            .filter(|at| keeps(&(at + start)))
            .map(|at| self.damaged[at].clone());
        Self {
            sound: sound.collect(),
            damaged: damaged.collect(),
            delivery: self.delivery,
        }
    }

    fn len(&self) -> usize {
        self.sound.len() + self.damaged.len()
    }
}

/// The two servers.
struct Pair {
    reference: Fleet,
    subject: Fleet,
}

impl Pair {
    /// Sends a sequence to both. Returns how the answers differ, if they do: the reference never
    /// gives the subject's answer, although its own may vary with the moment.
    fn compare(&mut self, sequence: &Sequence, seed: u64) -> Option<String> {
        let case = sequence.case(seed);
        let answer = match self.subject.run(&case, sequence.delivery) {
            Ok(answer) => answer,
            Err(error) => return Some(error),
        };
        let mut difference = String::new();
        for _ in 0..TRIES {
            match self.reference.run(&case, sequence.delivery) {
                Ok(wanted) if is_alike(&wanted, &answer, !sequence.damaged.is_empty()) => {
                    return None;
                }
                Ok(wanted) => difference = run::differ(&wanted, &answer),
                Err(error) => return Some(format!("the reference: {error}")),
            }
        }
        Some(difference)
    }

    /// Removes commands while the answers still differ.
    fn minimise(&mut self, mut sequence: Sequence, seed: u64) -> Sequence {
        let whole = Sequence {
            delivery: Delivery::Whole,
            ..sequence.clone()
        };
        if self.compare(&whole, seed).is_some() {
            sequence = whole;
        }
        let start = Instant::now();
        let mut count = sequence.len() / 2;
        while count > 0 {
            let mut from = 0;
            while from < sequence.len() && start.elapsed() < MINIMISE {
                let shorter = sequence.without(from, count);
                if shorter.len() > 0 && self.compare(&shorter, seed).is_some() {
                    sequence = shorter;
                } else {
                    from += count;
                }
            }
            count /= 2;
        }
        sequence
    }
}

/// Whether two answers are equal, up to times to live that differ by a tick. After damaged
/// commands, the last answers may be missing: memcached does not send them when the input ends
/// within a value.
fn is_alike(wanted: &Answer, answer: &Answer, is_damaged: bool) -> bool {
    if wanted.closed != answer.closed {
        return false;
    }
    let words = |answer: &Answer| -> Vec<Vec<u8>> {
        let split = answer
            .bytes
            .split(|&byte| byte == b' ' || byte == b'\n' || byte == b'\r');
        split.map(<[u8]>::to_vec).collect()
    };
    let (mut a, mut b) = (words(wanted), words(answer));
    if is_damaged {
        // The word after the last line end is empty.
        a.pop();
        b.pop();
    }
    let mut pairs = a.iter().zip(&b);
    pairs.all(|(a, b)| a == b || are_times(a, b)) && (is_damaged || a.len() == b.len())
}

/// Whether two words are times to live that differ by no more than clocks do.
fn are_times(a: &[u8], b: &[u8]) -> bool {
    let time = |word: &[u8]| -> Option<u64> {
        let digits = word
            .strip_prefix(b"t")
            .or_else(|| word.strip_prefix(b"exp=-"))?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    matches!((time(a), time(b)), (Some(a), Some(b)) if a.abs_diff(b) <= CLOCKS)
}

#[test]
fn random_sequences() {
    let Some(reference) = suite::reference() else {
        return;
    };
    let subject = suite::subject();
    let quiet: Vec<String> = QUIET.iter().map(|&flag| flag.to_owned()).collect();
    let mut pair = Pair {
        reference: Fleet::start_with(reference, &quiet).expect("the reference starts"),
        subject: Fleet::start(subject).expect("the server starts"),
    };
    let first = suite::first_seed();
    let mut failures = Failures::default();
    for seed in first..first + suite::scaled(SEQUENCES) {
        let sequence = Sequence::new(seed);
        let Some(difference) = pair.compare(&sequence, seed) else {
            continue;
        };
        let (shortest, error) = if pair.compare(&sequence, seed).is_some() {
            let shortest = pair.minimise(sequence, seed);
            let error = pair.compare(&shortest, seed).unwrap_or(difference);
            (shortest, error)
        } else {
            (sequence, format!("not at the second try: {difference}"))
        };
        let case = shortest.case(seed);
        if failures.add(suite::failure(&case, shortest.delivery, &error)) {
            break;
        }
    }
    failures.report();
}
