//! The names and passwords of clients.

use super::reader::{Body, LONGEST_LINE, Mode, Reader};
use crate::protocol::{number, text};
use memchr::memchr;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

const BAD_LOGIN: &str = "CLIENT_ERROR bad authentication token format\r\n";
const WRONG_LOGIN: &str = "CLIENT_ERROR authentication failure\r\n";
/// The most bytes of a name and a password.
const LONGEST_LOGIN: usize = 2048;

/// The names and passwords with which clients may log in.
#[derive(Clone)]
pub struct Users(Arc<[Vec<u8>]>);

impl fmt::Debug for Users {
    /// Tells no passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Users({})", self.0.len())
    }
}

/// The reasons for which a login is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no space between name and password.
    BadFormat,
    /// The name or the password is wrong.
    Wrong,
}

impl Users {
    /// Reads a file with a line `name:password` for each user.
    ///
    /// # Errors
    /// The file cannot be read, has no user, or has a line that is no `name:password`. The message names
    /// the file, and the line.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let text = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
        Self::parse(&text).map_err(|why| format!("{name}: {why}"))
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let mut users = Vec::new();
        for (n, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let colon = line.iter().position(|&byte| byte == b':');
            let colon = colon.filter(|&at| at > 0 && at + 1 < line.len());
            let Some(colon) = colon else {
                return Err(format!("line {}: `name:password` is expected", n + 1));
            };
            let mut user = line.to_vec();
            user[colon] = b' '; // as clients send it
            users.push(user);
        }
        if users.is_empty() {
            return Err("there is no user".to_owned());
        }
        Ok(Self(users.into()))
    }

    /// Checks the name and the password that a client sends, with a space between them.
    pub(crate) fn check(&self, token: &[u8]) -> Result<(), Refused> {
        if !token.contains(&b' ') {
            return Err(Refused::BadFormat);
        }
        // All are compared, and each whole, so that the time tells nothing but lengths.
        let mut is_known = false;
        for user in &*self.0 {
            is_known |= is_same(user, token);
        }
        is_known.then_some(()).ok_or(Refused::Wrong)
    }
}

fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differs = |differs: u8, (x, y): (&u8, &u8)| std::hint::black_box(differs | (x ^ y));
    a.len() == b.len() && a.iter().zip(b).fold(0, differs) == 0
}

impl Reader<'_> {
    /// Reads a line of a client that has not logged in: `set`, three words, and the length of a name and
    /// a password.
    #[cold]
    pub(super) fn read_login(&mut self, mode: &mut Mode, input: &[u8]) -> usize {
        let Some(end) = memchr(b'\n', input) else {
            if input.len() <= LONGEST_LINE {
                return 0;
            }
            *mode = Mode::End;
            return input.len();
        };
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        let mut words = text::Words(line);
        let is_set = words.next() == Some(b"set");
        let len = words.nth(3).and_then(number::u32);
        match len.filter(|&len| is_set && len as usize <= LONGEST_LOGIN) {
            Some(len) => {
                *mode = Mode::Login(Body::of_login(len as usize, self.service.arrivals.begin()));
            }
            None => self.say(b"CLIENT_ERROR unauthenticated\r\n"),
        }
        end + 1
    }

    /// Checks a name and a password.
    #[cold]
    pub(super) fn log_in(&mut self, token: &[u8]) -> Mode {
        self.counters().auth_cmds.add(1);
        let checked = match (token.strip_suffix(b"\r\n"), &self.service.settings.users) {
            (None, _) => Err(text::BAD_CHUNK),
            (Some(_), None) => Ok(()),
            (Some(token), Some(users)) => users.check(token).map_err(|refused| match refused {
                Refused::BadFormat => BAD_LOGIN,
                Refused::Wrong => WRONG_LOGIN,
            }),
        };
        match checked {
            Ok(()) => {
                self.say(b"STORED\r\n");
                Mode::Line
            }
            Err(refused) => {
                self.counters().auth_errors.add(1);
                self.say(refused.as_bytes());
                Mode::Unknown
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_log_in_with_their_own_password() {
        let users = Users::parse(b"ann:red\r\n\nbob:b:lue\n").unwrap();
        assert_eq!(users.check(b"ann red"), Ok(()));
        assert_eq!(users.check(b"bob b:lue"), Ok(()));
        for wrong in [&b"ann b:lue"[..], b"ann re", b"ann redd", b" ", b"ann "] {
            assert_eq!(users.check(wrong), Err(Refused::Wrong));
        }
        assert_eq!(users.check(b"annred"), Err(Refused::BadFormat));
        assert_eq!(format!("{users:?}"), "Users(2)");
    }

    #[test]
    fn bad_files_are_refused() {
        for (text, why) in [
            (&b""[..], "there is no user"),
            (b"ann:red\nbob\n", "line 2"),
            (b":red", "line 1"),
            (b"ann:", "line 1"),
        ] {
            let error = Users::parse(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
