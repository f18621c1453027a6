//! Histories in the notation that Elle reads, for its models `list-append` and `rw-register`.
//!
//! ```text
//! {:index 0, :type :invoke, :process 0, :f :txn, :value [[:append 1 2] [:r 1 nil]]}
//! {:index 1, :type :ok, :process 0, :f :txn, :value [[:append 1 2] [:r 1 [2]]]}
//! ```
//! A transaction is two events, in the order of their stamps: it begins by `:invoke` and ends by
//! `:ok`, by `:fail` if it has aborted, or by `:info`, at the end, if its outcome is unknown. Values
//! of reads are `nil` where they are not known. Of a process one transaction is open at a time, and
//! none follows an `:info`, so a thread may take several processes.

use super::index::Transaction;
use super::operation::{History, Operation, Outcome};
use crate::history::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

impl<K: Serialize> History<K> {
    /// Writes the history in the extensible data notation (EDN), for
    /// [elle-cli](https://github.com/ligurio/elle-cli): `--model list-append` if the keys are lists,
    /// `--model rw-register` if they are registers. Stamps become an order of events, and the places
    /// of [`CommittedAt`](Outcome::CommittedAt) are lost.
    ///
    /// ```
    /// use corelay_history::Call;
    /// use corelay_history::transactions::{History, Operation::*, Outcome::*};
    ///
    /// let mut history = History::new();
    /// history.push(0, Call::returned(vec![Write(1, 7), Read(2, None)], 3..=5, Committed));
    /// let mut edn = Vec::new();
    /// history.write_edn(&mut edn)?;
    /// assert_eq!(
    ///     String::from_utf8(edn).unwrap(),
    ///     "{:index 0, :type :invoke, :process 0, :f :txn, :value [[:w 1 7] [:r 2 nil]]}\n\
    ///      {:index 1, :type :ok, :process 0, :f :txn, :value [[:w 1 7] [:r 2 nil]]}\n"
    /// );
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of the writer; [`InvalidInput`](io::ErrorKind::InvalidInput) if there are both lists and
    /// registers, if a value is greater than `i64::MAX`, or if a key is neither a number nor a string
    /// to `serde`.
    pub fn write_edn(&self, mut to: impl Write) -> io::Result<()> {
        let mut operations = self.calls().flat_map(|(_, call)| call.operation());
        if let Some(first) = operations.next()
            && operations.any(|other| other.is_list() != first.is_list())
        {
            return Err(invalid(
                "Elle checks lists or registers, not both in one history",
            ));
        }
        // Stamp, whether it is the end, and the numbers of transaction and process.
        let mut events: Vec<(u64, bool, usize, usize)> = Vec::new();
        let calls: Vec<_> = self.calls().map(|(_, call)| call).collect();
        let (mut number, threads) = (0, self.threads());
        for thread in 0..threads {
            // For each process of the thread, the stamp at which its last transaction ended.
            let mut free: Vec<u64> = Vec::new();
            for call in self.calls_of(thread) {
                let slot = free.iter().position(|ended| *ended < call.invoked());
                let slot = slot.unwrap_or_else(|| {
                    free.push(0);
                    free.len() - 1
                });
                let ended = call.ended().unwrap_or(u64::MAX);
                free[slot] = ended;
                let process = slot * threads + thread;
                events.push((call.invoked(), false, number, process));
                events.push((ended, true, number, process));
                number += 1;
            }
        }
        // At equal stamps transactions begin first: they overlap.
        events.sort_unstable();
        for (index, (_, is_end, number, process)) in events.into_iter().enumerate() {
            let call = calls[number];
            let kind = match (is_end, call.output()) {
                (false, _) => "invoke",
                (true, None) => "info",
                (true, Some(Outcome::Aborted)) => "fail",
                (true, Some(Outcome::Committed | Outcome::CommittedAt(_))) => "ok",
            };
            let is_known = kind == "ok";
            let value: io::Result<Vec<String>> = call
                .operation()
                .iter()
                .map(|operation| micro(operation, is_known))
                .collect();
            writeln!(
                to,
                "{{:index {index}, :type :{kind}, :process {process}, :f :txn, :value [{}]}}",
                value?.join(" ")
            )?;
        }
        Ok(())
    }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}

/// An operation in Elle's notation; `nil` for what was read, unless it is known.
fn micro<K: Serialize>(operation: &Operation<K>, is_known: bool) -> io::Result<String> {
    let key = match serde_json::to_value(operation.key())? {
        key @ (Value::Number(_) | Value::String(_)) => key,
        key => {
            let what = format!("key {key} is neither a number nor a string");
            return Err(invalid(what));
        }
    };
    let number = |value: &u64| match i64::try_from(*value) {
        Ok(_) => Ok(value.to_string()),
        Err(_) => Err(invalid(format!(
            "value {value} is greater than {}",
            i64::MAX
        ))),
    };
    let (name, value) = match operation {
        Operation::Write(_, value) => (":w", number(value)?),
        Operation::Append(_, value) => (":append", number(value)?),
        Operation::Read(_, Some(value)) if is_known => (":r", number(value)?),
        Operation::ReadList(_, values) if is_known => {
            let values: io::Result<Vec<String>> = values.iter().map(number).collect();
            (":r", format!("[{}]", values?.join(" ")))
        }
        Operation::Read(..) | Operation::ReadList(..) => (":r", "nil".to_owned()),
    };
    Ok(format!("[{name} {key} {value}]"))
}

impl<K: DeserializeOwned> History<K> {
    /// Reads a history that Jepsen or [`write_edn`](Self::write_edn) has written for Elle: events one
    /// after the other, or in one vector. Each process becomes a thread, and the place of an event
    /// its stamp. Keywords are read as strings; a transaction without an end, or with `:info`, has an
    /// unknown outcome.
    ///
    /// ```
    /// use corelay_history::transactions::{History, Kind, Level, check};
    ///
    /// let history: History<String> = History::read_edn(
    ///     "{:type :invoke, :process 0, :value [[:w :x 1] [:r :y nil]]}
    ///      {:type :invoke, :process 1, :value [[:w :y 1] [:r :x nil]]}
    ///      {:type :ok, :process 0, :value [[:w :x 1] [:r :y 1]]}
    ///      {:type :ok, :process 1, :value [[:w :y 1] [:r :x 1]]}",
    /// )?;
    /// let anomalies = check(&history, Level::ReadCommitted).unwrap_err();
    /// assert_eq!(anomalies.worst().kind(), Kind::G1c);
    /// # Ok::<(), corelay_history::transactions::EdnError>(())
    /// ```
    ///
    /// # Errors
    /// [`EdnError`] if the text is not such a history.
    pub fn read_edn(text: &str) -> Result<Self, EdnError> {
        let mut events = Vec::new();
        let mut parser = Parser { text, at: 0 };
        while let Some(event) = parser.next()? {
            match event {
                Value::Array(all) => events.extend(all.into_iter().map(|event| (0, event))),
                event => events.push((parser.at, event)),
            }
        }
        let is_list = events.iter().any(|(_, event)| {
            let operations = event["value"].as_array().into_iter().flatten();
            operations
                .into_iter()
                .any(|it| it[0] == ":append" || it[2].is_array())
        });
        let mut threads: BTreeMap<String, Vec<Transaction<K>>> = BTreeMap::new();
        for (at, (end, event)) in events.iter().enumerate() {
            // Counted only for an error: a file may have many lines.
            let wrong = |what: String| EdnError {
                line: line(text, *end),
                what,
            };
            let operations = event["value"].as_array().ok_or_else(|| {
                wrong(format!(
                    "the event {event} has no vector of operations as its :value"
                ))
            })?;
            let operations: Result<Vec<_>, _> =
                operations.iter().map(|it| operation(it, is_list)).collect();
            let operations = operations.map_err(wrong)?;
            let calls = threads.entry(event["process"].to_string()).or_default();
            let open = calls.last_mut().filter(|call| call.answer.is_none());
            let outcome = match event["type"].as_str() {
                Some(":invoke") => {
                    calls.push(Call::pending(operations, at as u64));
                    continue;
                }
                Some(":info") => continue,
                Some(":ok") => Outcome::Committed,
                Some(":fail") => Outcome::Aborted,
                _ => return Err(wrong(format!("{} is no :type of event", event["type"]))),
            };
            let open = open.ok_or_else(|| {
                wrong(format!(
                    "process {} ends what it has not begun",
                    event["process"]
                ))
            })?;
            open.operation = operations;
            open.answer = Some((at as u64, outcome));
        }
        let mut history = Self::new();
        for (thread, calls) in threads.into_values().enumerate() {
            for call in calls {
                history.push(thread, call);
            }
        }
        Ok(history)
    }
}

/// Reads an operation such as `[:r 1 nil]`.
fn operation<K: DeserializeOwned>(value: &Value, is_list: bool) -> Result<Operation<K>, String> {
    let wrong = || format!("{value} is no operation of a list or register");
    let [Value::String(name), key, seen] = value.as_array().ok_or_else(wrong)?.as_slice() else {
        return Err(wrong());
    };
    let key = match key {
        Value::String(key) => Value::from(key.trim_start_matches(':')),
        key => key.clone(),
    };
    let key = serde_json::from_value(key).map_err(|error| error.to_string())?;
    let number = |value: &Value| value.as_u64().ok_or_else(wrong);
    Ok(match (name.as_str(), seen) {
        (":append", value) => Operation::Append(key, number(value)?),
        (":w", value) => Operation::Write(key, number(value)?),
        (":r", Value::Null) if is_list => Operation::ReadList(key, Vec::new()),
        (":r", Value::Array(values)) => {
            let values: Result<Vec<u64>, String> = values.iter().map(number).collect();
            Operation::ReadList(key, values?)
        }
        (":r", Value::Null) => Operation::Read(key, None),
        (":r", value) => Operation::Read(key, Some(number(value)?)),
        _ => return Err(wrong()),
    })
}

/// The reason why a text is no history in Elle's notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdnError {
    /// The line, counted from 1, at which the event at fault ends; 1 if all are in one vector.
    pub line: usize,
    what: String,
}

impl fmt::Display for EdnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for EdnError {}

/// The deepest nesting that is read.
const DEPTH: usize = 16;

/// The number of the line in which a place lies, from 1.
fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Reads the part of EDN that histories use, as the values of JSON. A keyword is a string that
/// begins with a colon; as the key of a map it loses that.
struct Parser<'a> {
    text: &'a str,
    /// The place of the next byte.
    at: usize,
}

impl Parser<'_> {
    /// The next value, if there is one.
    fn next(&mut self) -> Result<Option<Value>, EdnError> {
        self.skip();
        match self.text[self.at..].is_empty() {
            true => Ok(None),
            false => self.value(DEPTH).map(Some),
        }
    }

    fn wrong(&self, what: impl Into<String>) -> EdnError {
        EdnError {
            line: line(self.text, self.at),
            what: what.into(),
        }
    }

    /// Skips white space, to which commas belong, and comments.
    fn skip(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            self.at = self.text.len() - trimmed.len();
            if !trimmed.starts_with(';') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, EdnError> {
        self.skip();
        let rest = &self.text[self.at..];
        let first = rest.chars().next().unwrap_or(' ');
        if depth == 0 {
            return Err(self.wrong("the text is nested too deeply"));
        }
        match first {
            '[' | '(' => self
                .until(if first == '[' { ']' } else { ')' }, depth)
                .map(Value::from),
            '{' => {
                let all = self.until('}', depth)?;
                let pairs = all.chunks_exact(2).map(|pair| {
                    let key = pair[0].as_str().map_or(pair[0].to_string(), str::to_owned);
                    (key.trim_start_matches(':').to_owned(), pair[1].clone())
                });
                Ok(Value::Object(pairs.collect()))
            }
            '"' => {
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                match values.next() {
                    Some(Ok(text)) => {
                        self.at += values.byte_offset();
                        Ok(Value::from(text))
                    }
                    _ => Err(self.wrong("a string does not end, or has an unknown escape")),
                }
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || ",;[](){}\"".contains(c);
                let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
                self.at += word.len();
                match word {
                    "nil" => Ok(Value::Null),
                    "true" | "false" => Ok(Value::Bool(word == "true")),
                    _ if word.starts_with(':') => Ok(Value::from(word)),
                    _ => word
                        .parse()
                        .map(|n: serde_json::Number| n.into())
                        .map_err(|_| {
                            let found = if word.is_empty() {
                                &rest[..first.len_utf8().min(rest.len())]
                            } else {
                                word
                            };
                            self.wrong(format!("`{found}` is no value that a history has"))
                        }),
                }
            }
        }
    }

    /// The values up to a closing bracket.
    fn until(&mut self, close: char, depth: usize) -> Result<Vec<Value>, EdnError> {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.skip();
            if self.text[self.at..].starts_with(close) {
                self.at += 1;
                return Ok(values);
            }
            if self.at == self.text.len() {
                return Err(self.wrong(format!("the text ends before `{close}`")));
            }
            values.push(self.value(depth - 1)?);
        }
    }
}
