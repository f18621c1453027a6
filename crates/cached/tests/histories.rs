//! Requests for each key are linearizable, over connections and threads: recorded and checked call by
//! call.
//!
//! `CORELAY_STRESS=10 cargo test …` records ten times as many calls.

mod support;

use corelay_history::{History, Model, Recorder, check};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Barrier;
use support::{Client, Server};

/// A key's number.
type Key = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Get,
    Set(u64),
    Add(u64),
    Replace(u64),
    Delete,
    Increment(u64),
    Decrement(u64),
    /// A cas with the number that was seen beside the first value.
    Exchange(u64, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The item's value, if there is one.
    Value(Option<u64>),
    /// Whether it was done.
    Done(bool),
    /// A cas found another value.
    Differs,
}

/// Items by key, whose values are numbers.
struct Items;

impl Model for Items {
    type Operation = (Key, Call);
    type Output = Answer;
    type State = Option<u64>;
    type Key = Key;

    fn initial(&self) -> Option<u64> {
        None
    }

    fn key(&self, (key, _): &(Key, Call)) -> Key {
        *key
    }

    fn step(&self, item: &mut Option<u64>, (_, call): &(Key, Call)) -> Answer {
        match *call {
            Call::Get => Answer::Value(*item),
            Call::Set(value) => {
                *item = Some(value);
                Answer::Done(true)
            }
            Call::Add(value) => {
                let is_new = item.is_none();
                item.get_or_insert(value);
                Answer::Done(is_new)
            }
            Call::Replace(value) => {
                *item = item.map(|_| value);
                Answer::Done(item.is_some())
            }
            Call::Delete => Answer::Done(item.take().is_some()),
            Call::Increment(by) => {
                *item = item.map(|value| value.wrapping_add(by));
                Answer::Value(*item)
            }
            Call::Decrement(by) => {
                *item = item.map(|value| value.saturating_sub(by));
                Answer::Value(*item)
            }
            Call::Exchange(seen, new) => match *item {
                None => Answer::Done(false),
                Some(value) if value != seen => Answer::Differs,
                Some(_) => {
                    *item = Some(new);
                    Answer::Done(true)
                }
            },
        }
    }

    fn observes(&self, (_, call): &(Key, Call), answer: &Answer) -> bool {
        *call == Call::Get || matches!(answer, Answer::Differs | Answer::Done(false))
    }
}

/// The calls of a thread, and the cas numbers that it has seen.
type Calls = (Recorder<(Key, Call), Answer>, Vec<(Key, u64, u64)>);

/// A thread's client.
struct Caller {
    stream: BufReader<Client>,
    recorder: Recorder<(Key, Call), Answer>,
    /// Keys, cas numbers and the values beside them.
    seen: Vec<(Key, u64, u64)>,
    /// The cas number and the value that was seen last, by key.
    last: HashMap<Key, (u64, u64)>,
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Caller {
    fn new(server: &Server) -> Self {
        Self {
            stream: BufReader::new(server.connect()),
            recorder: Recorder::new(),
            seen: Vec::new(),
            last: HashMap::new(),
        }
    }

    /// Sends several calls at once, and reads their answers. Every other time they are meta commands.
    fn run(&mut self, calls: &[(Key, Call)], is_meta: bool) {
        let mut text = String::new();
        for &(key, call) in calls {
            text += &self.command(key, call, is_meta);
        }
        let begun: Vec<_> = calls.iter().map(|&c| self.recorder.invoke(c)).collect();
        let stream = &mut self.stream.get_mut().0;
        stream.write_all(text.as_bytes()).expect("the server reads");
        for (&(key, call), begun) in calls.iter().zip(begun) {
            let answer = match call {
                Call::Get => Answer::Value(self.read_value(key, is_meta)),
                Call::Increment(_) | Call::Decrement(_) => {
                    let line = self.line();
                    match line.split(' ').next() {
                        Some("NOT_FOUND" | "NF") => Answer::Value(None),
                        Some("VA") => Answer::Value(Some(number(&self.line()))),
                        _ => Answer::Value(Some(number(&line))),
                    }
                }
                _ => match self.line().as_str() {
                    "STORED" | "DELETED" | "HD" => Answer::Done(true),
                    "NOT_STORED" | "NOT_FOUND" | "NS" | "NF" => Answer::Done(false),
                    "EXISTS" | "EX" => Answer::Differs,
                    other => panic!("{call:?} is answered with {other}"),
                },
            };
            self.recorder.respond(begun, answer);
        }
    }

    fn command(&self, key: Key, call: Call, is_meta: bool) -> String {
        let store = |name: &str, mode: char, value: u64| {
            let value = value.to_string();
            let len = value.len();
            match is_meta {
                true => format!("ms k{key} {len} M{mode}\r\n{value}\r\n"),
                false => format!("{name} k{key} 0 0 {len}\r\n{value}\r\n"),
            }
        };
        match (call, is_meta) {
            (Call::Get, false) => format!("gets k{key}\r\n"),
            (Call::Get, true) => format!("mg k{key} c v\r\n"),
            (Call::Set(value), _) => store("set", 'S', value),
            (Call::Add(value), _) => store("add", 'E', value),
            (Call::Replace(value), _) => store("replace", 'R', value),
            (Call::Delete, false) => format!("delete k{key}\r\n"),
            (Call::Delete, true) => format!("md k{key}\r\n"),
            (Call::Increment(by), false) => format!("incr k{key} {by}\r\n"),
            (Call::Increment(by), true) => format!("ma k{key} MI D{by} v\r\n"),
            (Call::Decrement(by), false) => format!("decr k{key} {by}\r\n"),
            (Call::Decrement(by), true) => format!("ma k{key} MD D{by} v\r\n"),
            (Call::Exchange(_, new), _) => {
                let (cas, _) = self.last[&key];
                let new = new.to_string();
                let len = new.len();
                match is_meta {
                    true => format!("ms k{key} {len} C{cas}\r\n{new}\r\n"),
                    false => format!("cas k{key} 0 0 {len} {cas}\r\n{new}\r\n"),
                }
            }
        }
    }

    /// Reads the answer of a retrieval.
    fn read_value(&mut self, key: Key, is_meta: bool) -> Option<u64> {
        let line = self.line();
        if line == "END" || line == "EN" {
            return None;
        }
        let cas = line.rsplit(' ').next().expect("there is one");
        let cas = number(cas.trim_start_matches('c'));
        let value = number(&self.line());
        if !is_meta {
            assert_eq!(self.line(), "END");
        }
        self.seen.push((key, cas, value));
        self.last.insert(key, (cas, value));
        Some(value)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream
            .read_line(&mut line)
            .expect("the server answers");
        let line = line.strip_suffix("\r\n");
        line.expect("the server does not close").to_owned()
    }
}

/// A number, after which there may be spaces: of a longer one that was counted down.
fn number(text: &str) -> u64 {
    let number = text.trim_end().parse();
    number.unwrap_or_else(|_| panic!("{text} is no number"))
}

/// Records what several threads do to a few keys, each by a connection of its own, and checks it.
/// `choose` makes a call for a key and a random number, with a value that no other call has.
fn record(
    threads: &str,
    keys: usize,
    choose: impl Fn(&Caller, Key, u64, u64) -> Call + Sync,
) -> Vec<(Key, u64, u64)> {
    const CLIENTS: u64 = 4;
    let server = Server::start(&["-t", threads]);
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    let rounds = ((1000.0 * factor) as u64).max(1);
    let all = Barrier::new(CLIENTS as usize);
    let work = |client: u64, mut caller: Caller| -> Calls {
        let mut state = 0x9e37_79b9_7f4a_7c15u64.rotate_left(7 * client as u32);
        all.wait();
        for round in 0..rounds {
            let mut calls = Vec::new();
            // Marsaglia's xorshift.
            let mut random = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state >> 8
            };
            // Mostly one call; sometimes several in one packet, each for a key of its own.
            let first = random() as usize;
            let several = if random() % 4 == 0 { keys.min(3) } else { 1 };
            for nth in 0..several {
                let key = (first + nth) % keys;
                let unique = (round * CLIENTS + client) * 4 + nth as u64 + 1;
                calls.push((key, choose(&caller, key, random(), unique << 24)));
            }
            caller.run(&calls, random() % 2 == 0);
        }
        (caller.recorder, caller.seen)
    };
    let results: Vec<Calls> = std::thread::scope(|scope| {
        let work = &work;
        let callers: Vec<_> = (0..CLIENTS)
            .map(|client| (client, Caller::new(&server)))
            .collect();
        let clients = callers.into_iter();
        let clients: Vec<_> = clients
            .map(|(client, caller)| scope.spawn(move || work(client, caller)))
            .collect();
        let results = clients.into_iter().map(|client| client.join());
        results
            .map(|result| result.expect("no client fails"))
            .collect()
    });
    let (recorders, seen): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let history: History<_, _> = recorders.into_iter().collect();
    assert!(history.len() as u64 >= rounds * CLIENTS);
    check(&Items, &history).unwrap();
    seen.concat()
}

#[test]
fn plain_calls_are_linearizable() {
    for (threads, keys) in [("3", 1), ("3", 5), ("1", 1)] {
        record(threads, keys, |_, _, random, unique| match random % 10 {
            0..3 => Call::Get,
            3 => Call::Set(random / 10 % 1000),
            4 => Call::Add(unique),
            5 => Call::Replace(unique),
            6 => Call::Delete,
            7 | 8 => Call::Increment(random / 10 % 100),
            _ => Call::Decrement(random / 10 % 1000),
        });
    }
}

/// Every value is there once at most, so a cas number stands for a value.
#[test]
fn cas_is_linearizable() {
    for (threads, keys) in [("3", 1), ("3", 5), ("1", 1)] {
        let seen = record(threads, keys, |caller, key, random, unique| {
            let last = caller.last.get(&key);
            match random % 12 {
                0..4 => Call::Get,
                4..9 if last.is_some() => Call::Exchange(last.expect("it was seen").1, unique),
                9 => Call::Set(unique),
                10 if random / 12 % 3 == 0 => Call::Delete,
                10 => Call::Increment(1),
                _ => Call::Add(unique),
            }
        });
        let (mut values, mut numbers) = (HashMap::new(), HashMap::new());
        for (key, cas, value) in seen {
            let other = *values.entry((key, cas)).or_insert(value);
            assert_eq!(
                other, value,
                "key {key}: two values with the cas number {cas}"
            );
            let other = *numbers.entry((key, value)).or_insert(cas);
            assert_eq!(other, cas, "key {key}: two cas numbers of {value}");
        }
    }
}
