//! Random sequences of the binary protocol.

use super::cases::BinaryCase;
use super::packet::{Cas, Packet, op};
use super::{run_on, shown};
use crate::exchange::{Answer, Delivery};
use crate::random::Random;
use crate::run::{self, Fleet};
use crate::sequences::{QUIET, TRIES};
use crate::server::Program;
use crate::suite::{self, Failures};

/// Sequences, times what `CORELAY_STRESS` says.
const SEQUENCES: u64 = 200;

const KEYS: &[&str] = &["a", "b", "c", "key"];

const VALUES: &[&str] = &[
    "",
    "0",
    "9",
    "10",
    "abc",
    "18446744073709551615",
    "get a\r\n",
];

/// Operations, the frequent ones more than once.
const CODES: &[u8] = &[
    op::GET,
    op::GET,
    op::GETQ,
    op::GETK,
    op::GETKQ,
    op::SET,
    op::SET,
    op::SET,
    op::SETQ,
    op::ADD,
    op::ADDQ,
    op::REPLACE,
    op::REPLACEQ,
    op::DELETE,
    op::DELETEQ,
    op::APPEND,
    op::APPENDQ,
    op::PREPEND,
    op::PREPENDQ,
    op::TOUCH,
    op::GAT,
    op::GATQ,
    op::GATK,
    op::GATKQ,
    op::NOOP,
    op::FLUSH,
    op::FLUSHQ,
    op::VERSION,
    op::INCREMENT,
    op::INCREMENTQ,
    op::DECREMENT,
    op::DECREMENTQ,
];

/// Times that neither pass nor become due in a test.
const TIMES: &[u32] = &[0, 0, 0, 100, 2_592_000, 2_592_001, u32::MAX];

fn packet(random: &mut Random) -> Packet {
    let code = CODES[random.below(CODES.len() as u64) as usize];
    let time = TIMES[random.below(TIMES.len() as u64) as usize];
    let packet = Packet::new(code).opaque(random.next() as u32);
    let packet = match code {
        op::NOOP | op::VERSION | op::FLUSH | op::FLUSHQ => return packet,
        _ => packet.key(random.pick(KEYS)),
    };
    let value = match random.below(20) {
        0 => "x".repeat(random.below(20_000) as usize),
        _ => random.pick(VALUES).to_owned(),
    };
    let packet = match code {
        op::SET | op::SETQ | op::ADD | op::ADDQ | op::REPLACE | op::REPLACEQ => {
            packet.stored(random.next() as u32, time).value(value)
        }
        op::APPEND | op::APPENDQ | op::PREPEND | op::PREPENDQ => packet.value(value),
        op::INCREMENT | op::INCREMENTQ | op::DECREMENT | op::DECREMENTQ => {
            packet.counted(random.below(20), random.below(20), time)
        }
        op::TOUCH | op::GAT | op::GATQ | op::GATK | op::GATKQ => packet.timed(time),
        _ => packet,
    };
    let counts = [op::INCREMENT, op::INCREMENTQ, op::DECREMENT, op::DECREMENTQ].contains(&code);
    match random.below(6) {
        0 => packet.cas(Cas::Nth(1 + random.below(6) as usize, 0)),
        // A count awaits the answers to retrievals: `cases/arithmetic.txt` says why.
        _ if counts => packet.cas(Cas::AfterAnswers),
        _ => packet,
    }
}

/// A request with a length that is wrong, or more after it than it says.
fn damage(random: &mut Random, packet: Packet) -> Packet {
    let packet = packet.cas(Cas::AfterAnswers);
    match random.below(5) {
        0 => packet.key_length(random.below(300) as u16),
        1 => packet.extras_length(random.below(40) as u8),
        2 => packet.body_length(random.below(60) as u32),
        3 => packet.magic(random.next() as u8),
        _ => packet.tail(b"\x80get a\r\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    }
}

fn sequence(seed: u64) -> (BinaryCase, Delivery) {
    let mut random = Random::new(seed);
    let count = 1 + random.below(25);
    let mut packets: Vec<_> = (0..count).map(|_| packet(&mut random)).collect();
    let open = random.once_in(3);
    if open {
        let last = packet(&mut random);
        packets.push(damage(&mut random, last));
    }
    let delivery = match random.below(10) {
        0 => Delivery::Bytes,
        1..5 => Delivery::Random(random.next()),
        _ => Delivery::Whole,
    };
    let name = format!("binary sequence {seed}");
    (
        BinaryCase {
            name,
            packets,
            open,
        },
        delivery,
    )
}

/// Sends a sequence to both servers. Returns how the answers differ, if they do.
fn compare(
    reference: &mut Fleet,
    subject: &mut Fleet,
    case: &BinaryCase,
    delivery: Delivery,
) -> Option<String> {
    let answer = match run_on(subject, case, delivery) {
        Ok(answer) => answer,
        Err(error) => return Some(error),
    };
    let mut difference = String::new();
    for _ in 0..TRIES {
        match run_on(reference, case, delivery) {
            Ok(wanted) if wanted == answer || is_cut(case, &wanted, &answer) => return None,
            Ok(wanted) => difference = run::differ(&wanted, &answer),
            Err(error) => return Some(format!("the reference: {error}")),
        }
    }
    Some(difference)
}

/// Whether one answer is the start of the other, and the input ends in damage.
fn is_cut(case: &BinaryCase, a: &Answer, b: &Answer) -> bool {
    let (a, b) = (&a.bytes, &b.bytes);
    case.open && (a.starts_with(b) || b.starts_with(a))
}

#[test]
fn binary_random_sequences() {
    check(suite::subject());
}

#[test]
fn binary_random_sequences_on_three_threads() {
    check(suite::subject().with(&["-t", "3"]));
}

fn check(subject: Program) {
    let Some(reference) = suite::reference() else {
        return;
    };
    let quiet: Vec<String> = QUIET.iter().map(|&flag| flag.to_owned()).collect();
    let mut reference = Fleet::start_with(reference, &quiet).expect("the reference starts");
    let mut subject = Fleet::start(subject).expect("the server starts");
    let mut failures = Failures::default();
    let first = suite::first_seed();
    for seed in first..first + suite::scaled(SEQUENCES) {
        let (mut case, delivery) = sequence(seed);
        let Some(mut error) = compare(&mut reference, &mut subject, &case, delivery) else {
            continue;
        };
        // Requests are left out while the answers still differ.
        let mut at = 0;
        while at < case.packets.len() && case.packets.len() > 1 {
            let packet = case.packets.remove(at);
            match compare(&mut reference, &mut subject, &case, delivery) {
                Some(difference) => error = difference,
                None => {
                    case.packets.insert(at, packet);
                    at += 1;
                }
            }
        }
        let name = &case.name;
        let text = format!("{name} ({delivery:?}): {error}\n  sent:{}", shown(&case));
        if failures.add(text) {
            break;
        }
    }
    failures.report();
}
