//! The binary protocol, which older clients speak.

mod cases;
mod packet;
mod sequences;

use crate::exchange::{Answer, Connection, Delivery, Until};
use crate::normal::Numbers;
use crate::random::Random;
use crate::recorded::{self, Answers};
use crate::run::{self, Fleet};
use crate::server::Program;
use crate::suite::{self, Failures};
use cases::BinaryCase;
use packet::{Cas, Packet, op};
use std::net::SocketAddr;

/// Cases up to this length, in bytes, are split at each byte; longer ones at so many places.
const SPLITS: u64 = 24;

/// The opaque number of the sentinel.
const SENTINEL: u32 = 0xc0de_c0de;

/// Sends the requests of a case and returns the normal form of the answer.
fn run(address: SocketAddr, case: &BinaryCase, delivery: Delivery) -> Result<Answer, String> {
    let ask = Packet::new(op::NOOP)
        .opaque(SENTINEL)
        .bytes(&Numbers::default());
    let mut end = ask.clone();
    end[0] = 0x81;
    let mut connection = Connection::open(address)?;
    let mut numbers = Numbers::default();
    let mut answer = Answer {
        bytes: Vec::new(),
        closed: false,
    };
    let mut left = case.packets.as_slice();
    while let Some((first, rest)) = left.split_first() {
        // A cas number is known when the answers before it are.
        let asks = |packet: &Packet| !matches!(packet.cas, Cas::Is(_));
        let count = 1 + rest.iter().take_while(|packet| !asks(packet)).count();
        let mut bytes = first.bytes(&numbers);
        for packet in &left[1..count] {
            bytes.extend(packet.bytes(&numbers));
        }
        left = &left[count..];
        let more = if case.open && left.is_empty() {
            connection.exchange(&bytes, b"", delivery, Until::Closed)?
        } else {
            connection.exchange(&bytes, &ask, delivery, Until::Sentinel(&end))?
        };
        answer
            .bytes
            .extend(packet::normal(&more.bytes, &mut numbers));
        answer.closed = more.closed;
        if more.closed {
            break;
        }
    }
    Ok(answer)
}

fn length(case: &BinaryCase) -> usize {
    let numbers = Numbers::default();
    case.packets
        .iter()
        .map(|packet| packet.bytes(&numbers).len())
        .sum()
}

/// Each request of a case as the bytes of its header and the start of its body.
fn shown(case: &BinaryCase) -> String {
    let mut text = String::new();
    for packet in &case.packets {
        let bytes = packet.bytes(&Numbers::default());
        text += &format!("\n    {:02x?}", &bytes[..bytes.len().min(64)]);
    }
    text
}

/// Runs a case on an empty server.
fn run_on(fleet: &mut Fleet, case: &BinaryCase, delivery: Delivery) -> Result<Answer, String> {
    fleet.reset()?;
    run(fleet.address(), case, delivery).map_err(|error| fleet.explain(error))
}

/// Checks a program's answers to all cases, each delivered in these ways.
fn check(fleet: &mut Fleet, wanted: &Answers, deliveries: impl Fn(&BinaryCase) -> Vec<Delivery>) {
    let only = std::env::var("CORELAY_CASE").unwrap_or_default();
    let mut failures = Failures::default();
    for case in cases::all().iter().filter(|case| case.name.contains(&only)) {
        for delivery in deliveries(case) {
            let error = match (run_on(fleet, case, delivery), wanted.get(&case.name)) {
                (Ok(answer), Some(wanted)) if answer == *wanted => continue,
                (Ok(answer), Some(wanted)) => run::differ(wanted, &answer),
                (Ok(_), None) => "no answer is recorded".to_owned(),
                (Err(error), _) => error,
            };
            let text = format!(
                "{} ({delivery:?}): {error}\n  sent:{}",
                case.name,
                shown(case)
            );
            if failures.add(text) {
                return failures.report();
            }
            break;
        }
    }
    failures.report();
}

fn check_subject(deliveries: impl Fn(&BinaryCase) -> Vec<Delivery>) {
    check_program(suite::subject(), deliveries);
}

fn check_program(program: Program, deliveries: impl Fn(&BinaryCase) -> Vec<Delivery>) {
    let mut fleet = Fleet::start(program).expect("the server starts");
    check(&mut fleet, &recorded::read("binary"), deliveries);
}

fn split(case: &BinaryCase) -> Vec<Delivery> {
    let (length, places) = (length(case), suite::scaled(SPLITS));
    if length as u64 <= places {
        return (1..length).map(Delivery::SplitAt).collect();
    }
    let mut random = Random::new(length as u64);
    let place = |_| Delivery::SplitAt(1 + random.below(length as u64 - 1) as usize);
    (0..places).map(place).collect()
}

#[test]
fn binary_cases_in_one_write() {
    check_subject(|_| vec![Delivery::Whole]);
}

/// Keys lie in several shards, so that most answers come from other threads.
#[test]
fn binary_cases_in_one_write_on_three_threads() {
    let program = suite::subject().with(&["-t", "3"]);
    check_program(program, |_| vec![Delivery::Whole]);
}

#[test]
fn binary_cases_split_at_each_byte() {
    check_subject(split);
}

#[test]
fn binary_cases_byte_by_byte() {
    check_subject(|_| vec![Delivery::Bytes]);
}

#[test]
fn binary_recorded_answers_are_the_references() {
    let Some(program) = suite::reference() else {
        return;
    };
    let mut fleet = Fleet::start(program).expect("the reference starts");
    if recorded::is_wanted() {
        let mut answers = Answers::new();
        for case in cases::all() {
            let answer = run_on(&mut fleet, &case, Delivery::Whole);
            let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", case.name));
            answers.insert(case.name, answer);
        }
        recorded::write(&answers);
    }
    let recorded = recorded::read("binary");
    check(&mut fleet, &recorded, |_| vec![Delivery::Whole]);
    if suite::scaled(1) > 1 || recorded::is_wanted() {
        check(&mut fleet, &recorded, split);
        check(&mut fleet, &recorded, |_| vec![Delivery::Bytes]);
    }
}
