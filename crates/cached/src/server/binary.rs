//! The reader of a connection that speaks the binary protocol.

use super::arriving::Arriving;
use super::reader::{Mode, Reader};
use crate::protocol::binary::{
    Answer, Command, HEADER, Head, Header, KeyCommand, REQUEST, Refused, Status, write_error,
};
use crate::server::VERSION;
use crate::shard::Operation;
use crate::statistics::Page;

/// The groups of statistics that memcached knows beside the pages that there are here, by the beginning of
/// their names. They are empty.
const EMPTY_GROUPS: [&[u8]; 5] = [
    b"detail dump",
    b"detail on",
    b"detail off",
    b"sizes_enable",
    b"sizes_disable",
];

/// The state of a connection between two reads.
#[derive(Default)]
pub(crate) enum State {
    /// A request begins.
    #[default]
    Header,
    /// A value is to come.
    Value(Box<Value>),
    /// The body of a refused request is to come.
    Refused(Box<(Header, Refused)>),
}

/// A value that has not come whole yet.
pub(crate) struct Value {
    operation: Operation,
    /// The header and the extras.
    head: Vec<u8>,
    key: Vec<u8>,
    /// The bytes that have come. Nothing is reserved for the rest, which may never come.
    value: Vec<u8>,
    len: usize,
    arriving: Arriving,
    header: Header,
}

impl Reader<'_> {
    /// Does the request at the beginning of `input`, or takes more of the one that has begun. Returns the
    /// bytes that are done with.
    pub(super) fn read_binary(&mut self, mode: &mut Mode, input: &[u8]) -> usize {
        let Mode::Binary(state) = mode else {
            return 0;
        };
        match state {
            State::Header => self.read_request(mode, input),
            State::Value(value) => {
                let done = input.len().min(value.len - value.value.len());
                value.value.extend_from_slice(&input[..done]);
                if !value.arriving.grow_to(value.value.len()) {
                    let refused = Refused {
                        status: Status::NoMemory,
                        left: (value.len - value.value.len()) as u64,
                        ends: false,
                    };
                    let header = value.header;
                    self.forget_without_memory(value.operation, &value.key);
                    self.refuse(mode, header, refused);
                    return done;
                }
                if value.value.len() == value.len
                    && let State::Value(value) = std::mem::take(state)
                {
                    self.request_with(value.operation, &value.key, &value.value, &value.head);
                }
                done
            }
            State::Refused(request) => {
                let (header, refused) = &mut **request;
                let done = refused.left.min(input.len() as u64);
                refused.left -= done;
                let (header, refused) = (*header, *refused);
                if refused.left == 0 {
                    self.refuse(mode, header, refused);
                }
                done as usize
            }
        }
    }

    fn read_request(&mut self, mode: &mut Mode, input: &[u8]) -> usize {
        if input.first() != Some(&REQUEST) {
            *mode = Mode::End;
            return input.len();
        }
        let Some(header) = input.first_chunk() else {
            return 0;
        };
        let header = Header::read(header);
        let command = match header.command() {
            Ok(command) => command,
            Err(refused) => {
                self.refuse(mode, header, refused);
                return HEADER;
            }
        };
        let after = HEADER + header.before_value();
        let Some(request) = input.get(..after) else {
            return 0;
        };
        let (head, key) = request.split_at(HEADER + usize::from(header.extras));
        match command {
            Command::Key { command, is_quiet } => {
                let operation = Operation::Binary { command, is_quiet };
                if let KeyCommand::Store(_) = command {
                    let flags = Head::read(head).map_or(0, |head| head.stored().0);
                    if self.is_too_large(key, header.value(), flags) {
                        self.forget_replaced(operation, key);
                        let refused = Refused {
                            status: Status::TooLarge,
                            left: header.value() as u64,
                            ends: false,
                        };
                        self.refuse(mode, header, refused);
                        return after;
                    }
                    let input = &input[after..];
                    return after + self.begin_value(mode, operation, head, key, input, &header);
                }
                self.request_with(operation, key, &[], head);
            }
            Command::Flush { .. } if !self.service.settings.may_flush => {
                self.write(|out| write_error(Status::Forbidden, &header, out));
            }
            Command::Flush { is_quiet } => {
                let at = match Head::read(head).map_or(0, |head| head.time()) {
                    0 => self.clock.now(),
                    delay => self.clock.unsigned_expiry(delay),
                };
                self.flush(at);
                self.answer_unless(is_quiet, &header, &[]);
            }
            // They tell what all commands before have done, at other shards, too.
            Command::Stat if self.turn.is_some() => return 0,
            Command::Stat => self.answer_statistics(&header, key),
            Command::Noop => self.answer_unless(false, &header, &[]),
            Command::Version => self.answer_unless(false, &header, VERSION.as_bytes()),
            Command::Quit { is_quiet } => {
                self.answer_unless(is_quiet, &header, &[]);
                *mode = Mode::End;
            }
        }
        if header.value() > 0 {
            // The command wants no value. memcached would read it as the next request.
            *mode = Mode::End;
        }
        after
    }

    /// Writes a value if it is there. If not, keeps what is there of it. Returns the bytes of `input`
    /// that are done with.
    fn begin_value(
        &mut self,
        mode: &mut Mode,
        operation: Operation,
        head: &[u8],
        key: &[u8],
        input: &[u8],
        header: &Header,
    ) -> usize {
        let len = header.value();
        if let Some(value) = input.get(..len) {
            self.request_with(operation, key, value, head);
            return len;
        }
        *mode = Mode::Binary(State::Value(Box::new(Value {
            operation,
            head: head.to_vec(),
            key: key.to_vec(),
            value: input.to_vec(),
            len,
            arriving: self.service.arrivals.begin(),
            header: *header,
        })));
        input.len()
    }

    /// Answers a request with an error when the rest of its body has come, which is thrown away. As in
    /// memcached, a body that never comes is never answered.
    #[cold]
    fn refuse(&mut self, mode: &mut Mode, header: Header, refused: Refused) {
        if refused.left > 0 {
            *mode = Mode::Binary(State::Refused(Box::new((header, refused))));
            return;
        }
        self.write(|out| write_error(refused.status, &header, out));
        *mode = if refused.ends {
            Mode::End
        } else {
            Mode::Binary(State::Header)
        };
    }

    /// Answers `stat`: a packet for each statistic of the group, with its name as the key, and an empty
    /// one.
    #[cold]
    fn answer_statistics(&mut self, header: &Header, group: &[u8]) {
        let mut packets = Vec::new();
        if group.starts_with(b"reset") {
            self.reset_statistics();
        } else if let Some(page) = Page::named(group) {
            self.tell(page, &mut |name, value| {
                let (name, value) = (name.to_string(), value.to_string());
                let answer = Answer {
                    key: name.as_bytes(),
                    value: value.as_bytes(),
                    ..Answer::default()
                };
                answer.write(header, &mut packets);
            });
        } else if !EMPTY_GROUPS.iter().any(|name| group.starts_with(name)) {
            return self.write(|out| write_error(Status::NotFound, header, out));
        }
        Answer::default().write(header, &mut packets);
        self.write(|out| out.extend_from_slice(&packets));
    }

    fn answer_unless(&mut self, is_quiet: bool, header: &Header, value: &[u8]) {
        if !is_quiet {
            let answer = Answer {
                value,
                ..Answer::default()
            };
            self.write(|out| answer.write(header, out));
        }
    }

    /// Adds what `write` appends to the answers.
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match self.turn {
            None => write(self.out),
            Some(turn) => turn.add(write),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Settings;
    use crate::server::clock::Clock;
    use crate::server::ending::Ending;
    use crate::server::service::Service;
    use crate::shard::Shard;
    use crate::store::Hasher;
    use proptest::prelude::*;
    use std::sync::Arc;

    const LARGEST: usize = 64 << 10;

    /// A connection to a server with one shard.
    struct Client {
        shard: Shard,
        service: Service,
        mode: Mode,
        /// The bytes that have come and are not done with.
        input: Vec<u8>,
        out: Vec<u8>,
    }

    impl Client {
        fn new() -> Self {
            let settings = Settings {
                threads: 1,
                memory: 1 << 20,
                largest_item: LARGEST,
                ..Settings::default()
            };
            let (hasher, ending) = (Hasher::default(), Arc::new(Ending::new(1)));
            let service = Service::new(settings.clone(), hasher, ending);
            let (hasher, counters) = (service.hasher.clone(), Arc::clone(&service.counters[0]));
            let shard = Shard::new(0, hasher, 1 << 20, &settings, counters);
            Self {
                shard: shard.expect("there is memory"),
                service,
                mode: Mode::Start,
                input: Vec::new(),
                out: Vec::new(),
            }
        }

        fn send(&mut self, bytes: &[u8]) {
            self.input.extend_from_slice(bytes);
            let mut reader = Reader {
                shard: &mut self.shard,
                work_limit: u64::MAX,
                own: 0,
                shards: 1,
                hasher: &self.service.hasher,
                clock: &Clock::start(),
                service: &self.service,
                out: &mut self.out,
                turn: &mut None,
                spare: &mut Vec::new(),
            };
            let done = reader.read(&mut self.mode, &self.input);
            self.input.drain(..done);
        }

        /// The statuses of the answers.
        fn statuses(&self) -> Vec<u16> {
            let mut statuses = Vec::new();
            let mut rest = self.out.as_slice();
            while let Some(header) = rest.first_chunk::<HEADER>() {
                assert_eq!(header[0], 0x81);
                statuses.push(u16::from_be_bytes([header[6], header[7]]));
                let body = u32::from_be_bytes([8, 9, 10, 11].map(|at| header[at]));
                rest = &rest[HEADER + body as usize..];
            }
            assert!(rest.is_empty());
            statuses
        }

        fn is_ended(&self) -> bool {
            matches!(self.mode, Mode::End)
        }

        /// The bytes that the connection keeps.
        fn kept(&self) -> usize {
            let value = match &self.mode {
                Mode::Binary(State::Value(value)) => value.value.capacity(),
                _ => 0,
            };
            self.input.len() + value
        }
    }

    fn header(code: u8, key: u16, extras: u8, body: u32) -> Vec<u8> {
        let mut bytes = vec![REQUEST, code];
        bytes.extend(key.to_be_bytes());
        bytes.extend([extras, 0, 0, 0]);
        bytes.extend(body.to_be_bytes());
        bytes.resize(HEADER, 0);
        bytes
    }

    fn set(key: &[u8], len: u32) -> Vec<u8> {
        let mut bytes = header(0x01, key.len() as u16, 8, key.len() as u32 + 8 + len);
        bytes.extend([0; 8]);
        bytes.extend(key);
        bytes
    }

    fn noop() -> Vec<u8> {
        header(0x0a, 0, 0, 0)
    }

    #[test]
    fn a_body_that_never_comes_is_not_answered() {
        for claimed in [1, 1000, LARGEST as u32 * 2, u32::MAX - 9] {
            let mut client = Client::new();
            client.send(&noop());
            client.send(&set(b"a", claimed));
            assert_eq!(client.statuses(), [0], "{claimed} bytes");
            assert!(!client.is_ended());
            assert_eq!(client.kept(), 0, "{claimed} bytes");
        }
    }

    #[test]
    fn a_value_takes_memory_as_it_comes() {
        let mut client = Client::new();
        let len = LARGEST - 100;
        client.send(&set(b"a", len as u32));
        let mut sent = 0;
        for piece in vec![b'x'; len].chunks(1000) {
            assert!(client.kept() <= 2 * sent, "after {sent} bytes");
            assert!(client.out.is_empty());
            client.send(piece);
            sent += piece.len();
        }
        assert_eq!(client.kept(), 0);
        client.send(&[header(0, 1, 0, 1), b"a".to_vec()].concat());
        assert_eq!(client.statuses(), [0, 0]);
        assert!(client.out.ends_with(&vec![b'x'; len]));
    }

    #[test]
    fn a_value_beyond_the_limit_is_swallowed_and_answered() {
        let mut client = Client::new();
        client.send(&[set(b"a", 3), b"old".to_vec()].concat());
        let len = LARGEST + 1;
        client.send(&set(b"a", len as u32));
        for piece in vec![0x80; len].chunks(1000) {
            assert_eq!(client.statuses(), [0]);
            client.send(piece);
            assert_eq!(client.kept(), 0);
        }
        assert_eq!(client.statuses(), [0, 3]);
        client.send(&[header(0, 1, 0, 1), b"a".to_vec(), noop()].concat());
        assert_eq!(client.statuses(), [0, 3, 1, 0]);
    }

    #[test]
    fn the_largest_body_is_swallowed_without_memory() {
        let mut client = Client::new();
        client.send(&set(b"a", u32::MAX - 9));
        for _ in 0..1000 {
            client.send(&[0x80; 60_000]);
            assert_eq!(client.kept(), 0);
        }
        assert!(client.out.is_empty());
        let Mode::Binary(State::Refused(request)) = &client.mode else {
            panic!("the body has an end")
        };
        assert_eq!(request.1.left, u64::from(u32::MAX) - 9 - 60_000_000);
    }

    #[test]
    fn hostile_lengths_end_the_connection() {
        let lengths = [
            (0x00, 100, 0, 1, 0x81),
            (0x00, 1, 255, 1, 0x81),
            (0x01, 1, 9, 9, 0x81),
            (0x01, u16::MAX, u8::MAX, u32::MAX, 0x04),
            (0x00, 1, 0, u32::MAX, 0x04),
            (0x05, 1, 20, 22, 0x04),
            (0x77, 1, 0, 1, 0x81),
        ];
        for (code, key, extras, body, status) in lengths {
            let mut client = Client::new();
            client.send(&header(code, key, extras, body));
            assert!(client.out.is_empty() && !client.is_ended());
            // The key and the extras that the header tells of are waited for, not kept.
            let left = u32::from(key) + u32::from(extras);
            let left = if code == 0x77 { left + body } else { left };
            for piece in vec![0; left as usize].chunks(50) {
                assert_eq!((client.kept(), client.is_ended()), (0, false));
                client.send(piece);
            }
            assert_eq!(client.statuses(), [status], "{code:#x}");
            assert!(client.is_ended());
            client.send(&noop());
            assert_eq!(client.statuses(), [status], "{code:#x}");
        }
    }

    #[test]
    fn a_value_that_its_command_does_not_want_is_no_request() {
        for (code, extras) in [(0x1c, 4), (0x1d, 4), (0x10, 0)] {
            let mut client = Client::new();
            let mut request = header(code, 1, extras, 1 + u32::from(extras) + 24);
            request.resize(HEADER + usize::from(extras), 0);
            client.send(&[request, b"a".to_vec(), noop()].concat());
            assert_eq!(client.statuses(), [1], "{code:#x}");
            assert!(client.is_ended());
        }
    }

    #[test]
    fn the_first_byte_decides_the_protocol() {
        let mut client = Client::new();
        client.send(b"mn\r\n");
        client.send(b"\x80\r\n");
        assert_eq!(client.out, b"MN\r\nERROR\r\n");
        let mut client = Client::new();
        client.send(&[REQUEST]);
        assert!(client.out.is_empty() && !client.is_ended());
        client.send(&noop()[1..]);
        assert_eq!(client.statuses(), [0]);
        client.send(b"m");
        assert!(client.is_ended());
    }

    /// Requests, most of which are good, and the bytes that they are cut to.
    fn requests() -> impl Strategy<Value = Vec<u8>> {
        let request = (
            prop_oneof![9 => 0u8..0x26, 1 => any::<u8>()],
            prop_oneof![30 => Just(1usize), 2 => Just(250), 1 => Just(251), 1 => Just(0)],
            prop_oneof![20 => Just(None), 1 => prop::sample::select(&[Some(0usize), Some(4), Some(8)])],
            prop_oneof![9 => 0usize..3, 1 => 0usize..LARGEST + 100],
            prop_oneof![20 => Just(0i32), 1 => -3i32..300],
        );
        let bytes = request.prop_map(|(code, key, extras, value, wrong)| {
            let (wanted, has_value) = match code {
                0x01..=0x03 | 0x11..=0x13 => (8, true),
                0x0e | 0x0f | 0x19 | 0x1a => (0, true),
                0x05 | 0x06 | 0x15 | 0x16 => (20, false),
                0x1c..=0x1e | 0x23 | 0x24 => (4, false),
                _ => (0, false),
            };
            // All statistics would tell other times at each run.
            let key = if code == 0x10 { key.max(1) } else { key };
            let extras = extras.unwrap_or(wanted);
            let value = if has_value { value } else { value / 3 };
            let body = (key + extras + value) as i32 + wrong;
            let mut bytes = header(code, key as u16, extras as u8, body.max(0) as u32);
            bytes.resize(HEADER + extras + key + value, b'1');
            bytes
        });
        prop::collection::vec(bytes, 1..8).prop_map(|requests| requests.concat())
    }

    proptest! {
        #[test]
        fn pieces_are_answered_as_the_whole(
            bytes in requests(),
            ends in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut whole = Client::new();
            whole.send(&bytes);
            let mut ends: Vec<_> = ends.iter().map(|end| end.index(bytes.len())).collect();
            ends.extend([0, bytes.len()]);
            ends.sort_unstable();
            let mut pieces = Client::new();
            for piece in ends.windows(2) {
                pieces.send(&bytes[piece[0]..piece[1]]);
                prop_assert!(pieces.kept() <= 2 * LARGEST);
            }
            prop_assert_eq!(whole.out, pieces.out);
            prop_assert_eq!(matches!(whole.mode, Mode::End), matches!(pieces.mode, Mode::End));
        }
    }
}
