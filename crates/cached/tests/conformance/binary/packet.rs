//! Requests and responses of the binary protocol.

use crate::normal::Numbers;

/// Operations by their codes. Those that end in `Q` are quiet.
pub(crate) mod op {
    #![allow(missing_docs, reason = "the names are the protocol's")]
    pub(crate) const GET: u8 = 0x00;
    pub(crate) const SET: u8 = 0x01;
    pub(crate) const ADD: u8 = 0x02;
    pub(crate) const REPLACE: u8 = 0x03;
    pub(crate) const DELETE: u8 = 0x04;
    pub(crate) const INCREMENT: u8 = 0x05;
    pub(crate) const DECREMENT: u8 = 0x06;
    pub(crate) const QUIT: u8 = 0x07;
    pub(crate) const FLUSH: u8 = 0x08;
    pub(crate) const GETQ: u8 = 0x09;
    pub(crate) const NOOP: u8 = 0x0a;
    pub(crate) const VERSION: u8 = 0x0b;
    pub(crate) const GETK: u8 = 0x0c;
    pub(crate) const GETKQ: u8 = 0x0d;
    pub(crate) const APPEND: u8 = 0x0e;
    pub(crate) const PREPEND: u8 = 0x0f;
    pub(crate) const STAT: u8 = 0x10;
    pub(crate) const SETQ: u8 = 0x11;
    pub(crate) const ADDQ: u8 = 0x12;
    pub(crate) const REPLACEQ: u8 = 0x13;
    pub(crate) const DELETEQ: u8 = 0x14;
    pub(crate) const INCREMENTQ: u8 = 0x15;
    pub(crate) const DECREMENTQ: u8 = 0x16;
    pub(crate) const QUITQ: u8 = 0x17;
    pub(crate) const FLUSHQ: u8 = 0x18;
    pub(crate) const APPENDQ: u8 = 0x19;
    pub(crate) const PREPENDQ: u8 = 0x1a;
    pub(crate) const VERBOSITY: u8 = 0x1b;
    pub(crate) const TOUCH: u8 = 0x1c;
    pub(crate) const GAT: u8 = 0x1d;
    pub(crate) const GATQ: u8 = 0x1e;
    pub(crate) const SASL_MECHS: u8 = 0x20;
    pub(crate) const SASL_AUTH: u8 = 0x21;
    pub(crate) const SASL_STEP: u8 = 0x22;
    pub(crate) const GATK: u8 = 0x23;
    pub(crate) const GATKQ: u8 = 0x24;
}

/// The length of a header: bytes.
const HEADER: usize = 24;

/// The cas number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cas {
    /// This number.
    Is(u64),
    /// The n-th distinct one that was answered, plus a number.
    Nth(usize, i64),
    /// None, and the request is sent after the answers to those before have arrived.
    AfterAnswers,
}

/// A request. Lengths are those of the parts unless they are set.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    magic: u8,
    pub(crate) code: u8,
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
    pub(crate) cas: Cas,
    opaque: u32,
    data_type: u8,
    vbucket: u16,
    lengths: (Option<u16>, Option<u8>, Option<u32>),
    /// Bytes that follow, which are no packet.
    tail: Vec<u8>,
}

impl Packet {
    /// A request without parts.
    pub(crate) fn new(code: u8) -> Self {
        Self {
            magic: 0x80,
            code,
            extras: Vec::new(),
            key: Vec::new(),
            value: Vec::new(),
            cas: Cas::Is(0),
            opaque: 0x0102_0304,
            data_type: 0,
            vbucket: 0,
            lengths: (None, None, None),
            tail: Vec::new(),
        }
    }

    pub(crate) fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = key.as_ref().to_vec();
        self
    }

    pub(crate) fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.value = value.as_ref().to_vec();
        self
    }

    pub(crate) fn extras(mut self, extras: impl AsRef<[u8]>) -> Self {
        self.extras = extras.as_ref().to_vec();
        self
    }

    /// The extras of a storage command.
    pub(crate) fn stored(self, flags: u32, time: u32) -> Self {
        self.extras([flags.to_be_bytes(), time.to_be_bytes()].concat())
    }

    /// The extras of increment and decrement.
    pub(crate) fn counted(self, delta: u64, initial: u64, time: u32) -> Self {
        let numbers = [delta.to_be_bytes(), initial.to_be_bytes()].concat();
        self.extras([numbers.as_slice(), &time.to_be_bytes()].concat())
    }

    /// The extras of touch, gat and flush.
    pub(crate) fn timed(self, time: u32) -> Self {
        self.extras(time.to_be_bytes())
    }

    pub(crate) fn cas(mut self, cas: Cas) -> Self {
        self.cas = cas;
        self
    }

    pub(crate) fn opaque(mut self, opaque: u32) -> Self {
        self.opaque = opaque;
        self
    }

    pub(crate) fn magic(mut self, magic: u8) -> Self {
        self.magic = magic;
        self
    }

    pub(crate) fn data_type(mut self, data_type: u8) -> Self {
        self.data_type = data_type;
        self
    }

    pub(crate) fn vbucket(mut self, vbucket: u16) -> Self {
        self.vbucket = vbucket;
        self
    }

    pub(crate) fn key_length(mut self, length: u16) -> Self {
        self.lengths.0 = Some(length);
        self
    }

    pub(crate) fn extras_length(mut self, length: u8) -> Self {
        self.lengths.1 = Some(length);
        self
    }

    pub(crate) fn body_length(mut self, length: u32) -> Self {
        self.lengths.2 = Some(length);
        self
    }

    pub(crate) fn tail(mut self, tail: &[u8]) -> Self {
        self.tail = tail.to_vec();
        self
    }

    /// The bytes of the request.
    pub(crate) fn bytes(&self, numbers: &Numbers) -> Vec<u8> {
        let cas = match self.cas {
            Cas::Is(cas) => cas,
            Cas::AfterAnswers => 0,
            Cas::Nth(n, plus) => numbers.nth(n).unwrap_or(999_999).wrapping_add_signed(plus),
        };
        let body = self.extras.len() + self.key.len() + self.value.len();
        let mut bytes = vec![self.magic, self.code];
        let key = self.lengths.0.unwrap_or(self.key.len() as u16);
        bytes.extend(key.to_be_bytes());
        bytes.push(self.lengths.1.unwrap_or(self.extras.len() as u8));
        bytes.push(self.data_type);
        bytes.extend(self.vbucket.to_be_bytes());
        bytes.extend(self.lengths.2.unwrap_or(body as u32).to_be_bytes());
        bytes.extend(self.opaque.to_be_bytes());
        bytes.extend(cas.to_be_bytes());
        for part in [&self.extras, &self.key, &self.value, &self.tail] {
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

/// Writes the responses of an answer, a line for each. What is no response is written as it is.
pub(crate) fn normal(answer: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = answer;
    while let Some(header) = rest.get(..HEADER) {
        let length = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let cas = u64::from(word(16)) << 32 | u64::from(word(20));
        let (key, extras, body) = (length(2), usize::from(header[4]), word(8) as usize);
        let Some(parts) = rest.get(HEADER..HEADER + body) else {
            break;
        };
        if header[0] != 0x81 || key + extras > body {
            break;
        }
        rest = &rest[HEADER + body..];
        let line = format!(
            "code {:02x} status {:04x} type {:02x} opaque {:08x} cas {} extras {:02x?} key ",
            header[1],
            length(6),
            header[5],
            word(12),
            numbers.name(cas),
            &parts[..extras],
        );
        text.extend(line.bytes());
        text.extend_from_slice(&parts[extras..extras + key]);
        text.extend_from_slice(b" value ");
        match header[1] {
            op::VERSION if length(6) == 0 => text.push(b'?'),
            _ => text.extend_from_slice(&parts[extras + key..]),
        }
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(rest);
    text
}
