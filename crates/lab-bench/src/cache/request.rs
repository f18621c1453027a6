//! Requests as bytes: `get` and `set` of memcached's text protocol.

use super::draw::{Kind, Request};
use super::keys::{Sizes, Values, write_key};
use std::io::Write;

/// The writer of requests. It also knows what their answers must say.
#[derive(Debug)]
pub(super) struct Requests {
    /// `get kkkk\r\n`, whose key is overwritten.
    get: Box<[u8]>,
    /// `set kkkk 0 0 `, whose key is overwritten.
    set: Box<[u8]>,
    key_size: usize,
    sizes: Sizes,
    /// The digits of the length of all values, if they have one.
    length: Option<Box<[u8]>>,
    pub(super) values: Values,
}

/// The place of the key in a request: after `get ` or `set `.
const KEY_AT: usize = 4;

/// The place of the key in a line `VALUE key flags bytes`.
const KEY_IN_ANSWER: usize = 6;

impl Requests {
    pub(super) fn new(key_size: usize, sizes: Sizes) -> Self {
        let key = vec![b'k'; key_size];
        Self {
            get: [b"get ", &key[..], b"\r\n"].concat().into(),
            set: [b"set ", &key[..], b" 0 0 "].concat().into(),
            key_size,
            sizes,
            length: sizes
                .only()
                .map(|size| size.to_string().into_bytes().into()),
            values: Values::new(sizes.high()),
        }
    }

    /// Appends a request to `out`.
    #[inline]
    pub(super) fn write(&self, request: Request, out: &mut Vec<u8>) {
        match request.kind {
            Kind::Get | Kind::Scan => self.line(&self.get, request.key, out),
            Kind::Set | Kind::Refill => {
                self.line(&self.set, request.key, out);
                let size = self.sizes.size(request.key);
                match &self.length {
                    Some(digits) => out.extend_from_slice(digits),
                    None => write!(out, "{size}").expect("a Vec takes everything"),
                }
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(self.values.content(request.key, 0, size));
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    #[inline]
    fn line(&self, template: &[u8], key: u64, out: &mut Vec<u8>) {
        let at = out.len() + KEY_AT;
        out.extend_from_slice(template);
        write_key(key, &mut out[at..at + self.key_size]);
    }

    /// Bytes of the longest request.
    pub(super) fn longest(&self) -> usize {
        self.set.len() + self.sizes.high() + 24
    }

    /// Whether `line`, which begins with `VALUE `, names `key`.
    #[inline]
    pub(super) fn names(&self, line: &[u8], key: u64) -> bool {
        let mut name = [b'k'; 250];
        let name = &mut name[..self.key_size];
        write_key(key, name);
        let end = KEY_IN_ANSWER + self.key_size;
        line.get(KEY_IN_ANSWER..end) == Some(name) && line.get(end) == Some(&b' ')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(requests: &Requests, kind: Kind, key: u64) -> Vec<u8> {
        let mut out = b"before ".to_vec();
        requests.write(Request { kind, key }, &mut out);
        out.split_off(7)
    }

    #[test]
    fn requests_are_of_the_protocol() {
        let requests = Requests::new(12, Sizes::of(5));
        assert_eq!(written(&requests, Kind::Get, 0x2a), b"get 00000000002a\r\n");
        let set = written(&requests, Kind::Refill, 7);
        let value = requests.values.content(7, 0, 5);
        let expected = [b"set 000000000007 0 0 5\r\n", value, b"\r\n"].concat();
        assert_eq!(set, expected);
        assert!(set.len() <= requests.longest());
        let long = Requests::new(250, Sizes::between(0, 0).unwrap());
        let get = written(&long, Kind::Scan, 0xabc);
        assert_eq!(get.len(), 256);
        assert!(get.ends_with(b"k0000000000000abc\r\n"));
        assert!(written(&long, Kind::Set, 1).ends_with(b" 0 0 0\r\n\r\n"));
    }

    #[test]
    fn a_line_names_one_key() {
        let requests = Requests::new(4, Sizes::of(5));
        assert!(requests.names(b"VALUE 00ff 0 5\r\n", 0xff));
        for other in [
            &b"VALUE 00fe 0 5\r\n"[..],
            b"VALUE 00ff0 5\r\n",
            b"VALUE 00ff",
            b"VALUE ",
        ] {
            assert!(!requests.names(other, 0xff));
        }
    }
}
