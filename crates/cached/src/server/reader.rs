//! The reader of a connection: it does the commands that have come, as far as that goes without
//! waiting.

use super::arriving::Arriving;
use super::binary;
use crate::protocol::binary::REQUEST;
use crate::protocol::meta;
use crate::protocol::text::{self, Command};
use crate::server::VERSION;
use crate::server::clock::Clock;
use crate::server::service::Service;
use crate::server::turn::{Spare, Turn};
use crate::shard::{Meta, NO_MEMORY, Operation, Request, Shard, item_size};
use crate::statistics::Counters;
use crate::store::Hasher;
use memchr::memchr;

/// The bytes of answers from which on nothing more of a connection is done before they are sent.
pub(crate) const MOST_OUTPUT: usize = 256 << 10;
/// The work of writes ([`Counts::work`](crate::store::Counts)) from which on others have their turn: about a
/// millisecond.
pub(crate) const MOST_WORK: u64 = 1 << 20;
/// The bytes of requests to other shards from which on they are sent.
const MOST_REQUESTS: usize = 1 << 20;
/// The most bytes of a line, but for the keys of a retrieval. memcached has the same number.
pub(super) const LONGEST_LINE: usize = 2048;

const NO_FLUSH: &str = "CLIENT_ERROR flush_all not allowed\r\n";
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache\r\n";

/// The state of a connection between two reads.
#[derive(Default)]
pub(crate) enum Mode {
    /// Nothing has come. The first byte says which protocol it is.
    Start,
    /// A line begins.
    #[default]
    Line,
    /// A retrieval goes on.
    Keys { with_cas: bool, expiry: Option<u32> },
    /// A value is to come.
    Body(Box<Body>),
    /// Bytes are to come that nobody wants.
    Swallow(usize),
    /// The client is to log in: a line that begins to.
    Unknown,
    /// A name and a password are to come.
    Login(Box<Body>),
    /// The client speaks the binary protocol.
    Binary(binary::State),
    /// Nothing more is read.
    End,
}

impl Mode {
    /// The state of a new connection. Clients that are to log in speak text, as in memcached.
    pub(crate) fn of_new_connection(service: &Service) -> Self {
        match service.settings.users {
            Some(_) => Self::Unknown,
            None => Self::Start,
        }
    }

    /// Whether no command has come in part.
    pub(crate) fn is_between_commands(&self) -> bool {
        matches!(
            self,
            Self::Start
                | Self::Line
                | Self::Unknown
                | Self::Binary(binary::State::Header)
                | Self::End
        )
    }

    /// Whether the rest of a value is to come.
    pub(crate) fn has_value_to_come(&self) -> bool {
        match self {
            Self::Body(_) | Self::Login(_) | Self::Swallow(_) => true,
            Self::Binary(state) => !matches!(state, binary::State::Header),
            _ => false,
        }
    }
}

/// A value that has not come whole yet.
pub(crate) struct Body {
    operation: Operation,
    key: Vec<u8>,
    words: Vec<u8>,
    value: Vec<u8>,
    /// The bytes of the value with its end of line.
    len: usize,
    arriving: Arriving,
}

impl Body {
    /// A name and a password of `len` bytes, which are no operation.
    pub(super) fn of_login(len: usize, arriving: Arriving) -> Box<Self> {
        Box::new(Self {
            operation: Operation::Flush { at: 0 },
            key: Vec::new(),
            words: Vec::new(),
            value: Vec::new(),
            len: len + 2,
            arriving,
        })
    }

    /// Adds what has come, and returns the number of those bytes.
    fn fill(&mut self, input: &[u8]) -> usize {
        let done = input.len().min(self.len - self.value.len());
        self.value.extend_from_slice(&input[..done]);
        done
    }

    fn is_whole(&self) -> bool {
        self.value.len() == self.len
    }
}

/// The reader of a connection's input, with all that commands need.
pub(crate) struct Reader<'a> {
    pub(crate) shard: &'a mut Shard,
    /// The shard's work at which others have their turn.
    pub(crate) work_limit: u64,
    /// The number of that shard, and of all.
    pub(crate) own: usize,
    pub(crate) shards: usize,
    pub(crate) hasher: &'a Hasher,
    pub(crate) clock: &'a Clock,
    pub(crate) service: &'a Service,
    /// Answers, if there is no `turn`.
    pub(crate) out: &'a mut Vec<u8>,
    /// Requests to other shards, and all answers since the first of them.
    pub(crate) turn: &'a mut Option<Box<Turn>>,
    /// Turns that are over, whose memory new ones take.
    pub(crate) spare: &'a mut Spare,
}

/// The number of the shard of a hash.
#[inline]
pub(crate) fn shard_of(hash: u64, shards: usize) -> usize {
    // By bits of a product, since the index uses the hash's own.
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((mixed * shards as u64) >> 32) as usize
}

impl Reader<'_> {
    /// Whether so many answers or requests are to be sent, or so much has been done, that nothing more is done
    /// before.
    pub(crate) fn is_full(&self) -> bool {
        if self.shard.store.counts().work >= self.work_limit {
            return true;
        }
        match &*self.turn {
            None => self.out.len() >= MOST_OUTPUT,
            Some(turn) => turn.len() >= MOST_OUTPUT || turn.requests() >= MOST_REQUESTS,
        }
    }

    pub(super) fn say(&mut self, text: &[u8]) {
        match self.turn {
            None => self.out.extend_from_slice(text),
            Some(turn) => turn.add(|out| out.extend_from_slice(text)),
        }
    }

    fn say_unless(&mut self, is_quiet: bool, text: &[u8]) {
        if !is_quiet {
            self.say(text);
        }
    }

    #[inline]
    pub(super) fn request(&mut self, operation: Operation, key: &[u8], value: &[u8]) {
        self.request_with(operation, key, value, &[]);
    }

    #[inline]
    pub(super) fn request_with(
        &mut self,
        operation: Operation,
        key: &[u8],
        value: &[u8],
        words: &[u8],
    ) {
        let request = Request {
            operation,
            hash: self.hasher.hash(key),
            key,
            value,
            words,
        };
        self.send(shard_of(request.hash, self.shards), &request);
    }

    #[inline]
    fn send(&mut self, shard: usize, request: &Request<'_>) {
        let clock = self.clock;
        if shard != self.own {
            let (spare, shards) = (&mut *self.spare, self.shards);
            let turn = self
                .turn
                .get_or_insert_with(|| spare.pop().unwrap_or_else(|| Turn::new(shards)));
            turn.batch(shard).push(request);
            return;
        }
        match self.turn {
            None => self.shard.run(request, clock, self.out),
            Some(turn) => turn.add(|out| self.shard.run(request, clock, out)),
        }
    }

    /// Does what `input` asks for, and returns how many bytes of it are done with.
    pub(crate) fn read(&mut self, mode: &mut Mode, input: &[u8]) -> usize {
        let mut at = 0;
        if self.shards == 1 {
            self.prefetch(mode, input);
        }
        while at < input.len() && !self.is_full() {
            let rest = &input[at..];
            let done = match mode {
                Mode::Line => self.read_line(mode, rest),
                Mode::Keys { with_cas, expiry } => {
                    let (with_cas, expiry) = (*with_cas, *expiry);
                    self.read_keys(mode, rest, with_cas, expiry)
                }
                Mode::Body(_) => self.read_body(mode, rest),
                Mode::Unknown => self.read_login(mode, rest),
                Mode::Login(body) => {
                    let done = body.fill(rest);
                    if body.is_whole() {
                        *mode = self.log_in(&body.value);
                    }
                    done
                }
                Mode::Swallow(left) => {
                    let done = rest.len().min(*left);
                    *left -= done;
                    if *left == 0 {
                        *mode = Mode::Line;
                    }
                    done
                }
                Mode::Binary(_) => self.read_binary(mode, rest),
                Mode::End => rest.len(),
                Mode::Start => {
                    *mode = match rest[0] {
                        REQUEST => Mode::Binary(binary::State::default()),
                        _ => Mode::Line,
                    };
                    continue;
                }
            };
            if done == 0 {
                break;
            }
            at += done;
        }
        at
    }

    /// Begins to load the items of pipelined retrievals into the cache.
    fn prefetch(&self, mode: &Mode, input: &[u8]) {
        const MOST: usize = 32;
        let Mode::Line = mode else { return };
        let mut hashes = [0; MOST];
        let (mut n, mut rest) = (0, input);
        while n < MOST
            && let Some(line) = rest.strip_prefix(b"get ")
            && let Some(end) = memchr(b'\n', line)
        {
            let key = &line[..end];
            let key = key.strip_suffix(b"\r").unwrap_or(key);
            hashes[n] = self.hasher.hash(key);
            self.shard.store.prefetch_index(hashes[n]);
            n += 1;
            rest = &line[end + 1..];
        }
        if n > 1 {
            for &hash in &hashes[..n] {
                self.shard.store.prefetch_item(hash);
            }
        }
    }

    #[inline]
    fn read_line(&mut self, mode: &mut Mode, input: &[u8]) -> usize {
        let Some(end) = memchr(b'\n', input) else {
            return self.read_part_of_line(mode, input);
        };
        let line = &input[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match text::read(line) {
            Ok(command) => self.command(mode, command, input, end + 1),
            Err(refused) => {
                // As memcached does, in case a browser is led to send something here.
                if refused == text::ERROR && text::is_http(line) {
                    *mode = Mode::End;
                } else {
                    self.say(refused.as_bytes());
                }
                end + 1
            }
        }
    }

    /// Begins a retrieval before its line has come whole, if the line is long. Other long lines end
    /// the connection.
    #[cold]
    fn read_part_of_line(&mut self, mode: &mut Mode, input: &[u8]) -> usize {
        if input.len() <= LONGEST_LINE {
            return 0;
        }
        for (name, with_cas) in [(&b"get "[..], false), (b"gets ", true)] {
            if input.starts_with(name) {
                *mode = Mode::Keys {
                    with_cas,
                    expiry: None,
                };
                return name.len();
            }
        }
        *mode = Mode::End;
        input.len()
    }

    #[inline]
    fn command(
        &mut self,
        mode: &mut Mode,
        command: Command<'_>,
        input: &[u8],
        after: usize,
    ) -> usize {
        match command {
            Command::Get {
                keys,
                with_cas,
                expiry,
            } => {
                let expiry = expiry.map(|expiry| self.clock.expiry(expiry));
                let begin = keys.as_ptr().addr() - input.as_ptr().addr();
                return begin + self.read_keys(mode, &input[begin..], with_cas, expiry);
            }
            Command::Store {
                verb,
                key,
                flags,
                expiry,
                len,
                is_quiet,
            } => {
                let operation = Operation::Store {
                    verb,
                    flags,
                    expiry: self.clock.expiry(expiry),
                    is_quiet,
                };
                if self.is_too_large(key, len, flags) {
                    self.forget_replaced(operation, key);
                    let refused = if is_quiet { "" } else { TOO_LARGE };
                    return self.swallow(mode, refused, len) + after;
                }
                return after + self.begin_store(mode, operation, key, &[], &input[after..], len);
            }
            Command::Meta {
                command,
                key,
                words,
            } => match meta::check(command, key, words) {
                Ok(key) => self.request_with(Operation::Meta(command), &key, &[], words),
                Err(refused) => self.say(refused.as_bytes()),
            },
            Command::MetaSet { key, words, len } => {
                let key = match meta::check(Meta::Set, key, words) {
                    Ok(key) => key,
                    Err(refused) => return self.swallow(mode, refused, len) + after,
                };
                let flags = meta::read(words).map_or(0, |flags| flags.flags);
                let operation = Operation::Meta(Meta::Set);
                if self.is_too_large(&key, len, flags) {
                    self.forget_replaced(operation, &key);
                    return self.swallow(mode, TOO_LARGE, len) + after;
                }
                return after
                    + self.begin_store(mode, operation, &key, words, &input[after..], len);
            }
            Command::Arithmetic {
                key,
                delta,
                is_increment,
                is_quiet,
            } => {
                let operation = Operation::Arithmetic {
                    delta,
                    is_increment,
                    is_quiet,
                };
                self.request(operation, key, &[]);
            }
            Command::Touch {
                key,
                expiry,
                is_quiet,
            } => {
                let expiry = self.clock.expiry(expiry);
                self.request(Operation::Touch { expiry, is_quiet }, key, &[]);
            }
            Command::Delete { key, is_quiet } => {
                self.request(Operation::Delete { is_quiet }, key, &[]);
            }
            Command::FlushAll { is_quiet, .. } if !self.service.settings.may_flush => {
                self.say_unless(is_quiet, NO_FLUSH.as_bytes());
            }
            Command::FlushAll {
                delay: None,
                is_quiet,
            } => {
                self.say_unless(is_quiet, text::BAD_EXPIRY.as_bytes());
            }
            Command::FlushAll {
                delay: Some(delay),
                is_quiet,
            } => {
                let at = match delay {
                    ..=0 => self.clock.now(),
                    delay => self.clock.expiry(delay),
                };
                self.flush(at);
                self.say_unless(is_quiet, b"OK\r\n");
            }
            Command::Verbosity { is_quiet } => self.say_unless(is_quiet, b"OK\r\n"),
            // They tell what all commands before have done, at other shards, too.
            Command::Stats(_) if self.turn.is_some() => return 0,
            Command::Stats(page) => self.statistics(page),
            Command::Version => self.say(format!("VERSION {VERSION}\r\n").as_bytes()),
            Command::ShutDown => self.shut_down(),
            Command::RenewCertificates => self.renew_certificates(),
            Command::Noop => self.say(b"MN\r\n"),
            Command::Quit => {
                *mode = Mode::End;
                return input.len();
            }
        }
        after
    }

    /// Has all shards remove their items at that second. As in memcached, they do a second earlier.
    pub(super) fn flush(&mut self, at: u32) {
        self.counters().cmd_flush.add(1);
        let at = at.saturating_sub(1);
        for shard in 0..self.shards {
            let request = Request {
                operation: Operation::Flush { at },
                hash: 0,
                key: &[],
                value: &[],
                words: &[],
            };
            self.send(shard, &request);
        }
    }

    /// Whether an item is too large, which is counted.
    pub(super) fn is_too_large(&self, key: &[u8], len: usize, flags: u32) -> bool {
        let is_too_large = item_size(key, len, flags) > self.service.settings.largest_item;
        if is_too_large {
            self.counters().store_too_large.add(1);
        }
        is_too_large
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.service.counters[self.own]
    }

    /// Refuses a command with a value, which is read and thrown away.
    #[cold]
    fn swallow(&mut self, mode: &mut Mode, refused: &str, len: usize) -> usize {
        self.say(refused.as_bytes());
        *mode = Mode::Swallow(len + 2);
        0
    }

    /// Writes a value of `len` bytes if it is there with its end of line. If not, keeps what is there
    /// of it. Returns the bytes of `input` that are done with.
    #[inline]
    fn begin_store(
        &mut self,
        mode: &mut Mode,
        operation: Operation,
        key: &[u8],
        words: &[u8],
        input: &[u8],
        len: usize,
    ) -> usize {
        if let Some(value) = input.get(..len + 2) {
            self.store(operation, key, words, value);
            return len + 2;
        }
        *mode = Mode::Body(Box::new(Body {
            operation,
            key: key.to_vec(),
            words: words.to_vec(),
            value: input.to_vec(),
            len: len + 2,
            arriving: self.service.arrivals.begin(),
        }));
        input.len()
    }

    /// Counts an operation for whose value there is no memory, and removes the item that it was to replace.
    #[cold]
    pub(super) fn forget_without_memory(&mut self, operation: Operation, key: &[u8]) {
        self.counters().store_no_memory.add(1);
        self.forget_replaced(operation, key);
    }

    /// Removes the item that a refused operation was to replace: it is out of date.
    #[cold]
    pub(super) fn forget_replaced(&mut self, operation: Operation, key: &[u8]) {
        if operation.replaces() {
            self.request(Operation::Forget, key, &[]);
        }
    }

    /// Retrieves the keys at the beginning of `input`, up to the end of the line or as far as they
    /// have come. Returns the bytes that are done with.
    #[inline]
    fn read_keys(
        &mut self,
        mode: &mut Mode,
        input: &[u8],
        with_cas: bool,
        expiry: Option<u32>,
    ) -> usize {
        let operation = Operation::Get { with_cas, expiry };
        let mut at = 0;
        // One key that is too long refuses all of the line, if the line has come whole.
        if let Some(end) = memchr(b'\n', input)
            && end > text::LONGEST_KEY
            && text::has_long_key(&input[..end])
        {
            return self.refuse_keys(mode, input);
        }
        loop {
            at += input[at..].iter().take_while(|&&byte| byte == b' ').count();
            let rest = &input[at..];
            let len = rest
                .iter()
                .position(|&byte| matches!(byte, b' ' | b'\n' | 0));
            let is_long = len.unwrap_or(rest.len()) > text::LONGEST_KEY + 1;
            let Some(len) = len.filter(|_| !is_long) else {
                if is_long {
                    return at + self.refuse_keys(mode, rest);
                }
                *mode = Mode::Keys { with_cas, expiry };
                return at;
            };
            let (key, end) = (&rest[..len], rest[len]);
            let key = if end == b'\n' {
                key.strip_suffix(b"\r").unwrap_or(key)
            } else {
                key
            };
            if key.len() > text::LONGEST_KEY {
                return at + self.refuse_keys(mode, rest);
            }
            if !key.is_empty() {
                self.request(operation, key, &[]);
            }
            at += len;
            if end != b' ' {
                self.say(b"END\r\n");
                // What follows a zero is no part of the line, as C's strings end.
                let line = memchr(b'\n', &input[at..]);
                *mode = line.map_or(Mode::End, |_| Mode::Line);
                return line.map_or(input.len(), |rest| at + rest + 1);
            }
            if self.is_full() {
                *mode = Mode::Keys { with_cas, expiry };
                return at;
            }
        }
    }

    /// Refuses what is left of a retrieval, which has a key that is too long.
    #[cold]
    fn refuse_keys(&mut self, mode: &mut Mode, input: &[u8]) -> usize {
        self.say(text::BAD_FORMAT.as_bytes());
        match memchr(b'\n', input) {
            Some(end) => {
                *mode = Mode::Line;
                end + 1
            }
            None => {
                *mode = Mode::End;
                input.len()
            }
        }
    }

    fn read_body(&mut self, mode: &mut Mode, input: &[u8]) -> usize {
        let Mode::Body(body) = mode else {
            return 0;
        };
        let done = body.fill(input);
        if !body.arriving.grow_to(body.value.len()) {
            let Body {
                operation,
                key,
                value,
                len,
                ..
            } = &**body;
            let left = len - value.len();
            self.forget_without_memory(*operation, key);
            self.say(NO_MEMORY.as_bytes());
            *mode = match left {
                0 => Mode::Line,
                left => Mode::Swallow(left),
            };
            return done;
        }
        if body.is_whole() {
            let Mode::Body(body) = std::mem::take(mode) else {
                return done;
            };
            let Body {
                operation,
                key,
                words,
                value,
                ..
            } = *body;
            self.store(operation, &key, &words, &value);
        }
        done
    }

    /// Writes a value, whose end of line comes with it.
    #[inline]
    fn store(&mut self, operation: Operation, key: &[u8], words: &[u8], value: &[u8]) {
        match value.strip_suffix(b"\r\n") {
            Some(value) => self.request_with(operation, key, value, words),
            None => {
                let is_quiet = matches!(operation, Operation::Store { is_quiet: true, .. });
                self.say_unless(is_quiet, text::BAD_CHUNK.as_bytes());
            }
        }
    }
}
