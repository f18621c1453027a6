//! The text commands that are about the server, not about a key: statistics, its end, its certificate.

use super::reader::Reader;
use crate::protocol::text;
use crate::statistics::{Page, Sink};
use crate::tls::Tls;
use std::io::Write;

impl Reader<'_> {
    /// Tells a page of statistics, or resets them.
    #[cold]
    pub(super) fn statistics(&mut self, words: &[u8]) {
        let mut words = text::Words(words);
        let name = words.next().unwrap_or_default();
        match name {
            b"reset" => {
                self.reset_statistics();
                self.say(b"RESET\r\n");
            }
            b"cachedump" => self.say(b"CLIENT_ERROR stats cachedump not allowed\r\n"),
            name => {
                let Some(page) = Page::named(name) else {
                    return self.say(text::ERROR.as_bytes());
                };
                let mut lines = Vec::new();
                self.tell(page, &mut |name, value| {
                    // Writing to a vector cannot fail.
                    let _ = write!(lines, "STAT {name} {value}\r\n");
                });
                lines.extend_from_slice(b"END\r\n");
                self.say(&lines);
            }
        }
    }

    /// Hands a page of statistics to `sink`, as of now.
    pub(super) fn tell(&mut self, page: Page, sink: Sink<'_>) {
        self.work_limit = 0; // a page of many connections takes milliseconds
        self.shard.publish();
        page.write(self.service, self.clock, sink);
    }

    pub(super) fn reset_statistics(&self) {
        self.shard.publish();
        self.service.reset();
    }

    /// Ends the server, if clients may.
    #[cold]
    pub(super) fn shut_down(&mut self) {
        if !self.service.settings.may_shut_down {
            return self.say(b"ERROR: shutdown not enabled\r\n");
        }
        // A thread that is not woken now ends when it next wakes.
        let _ = self.service.ending.begin();
    }

    /// Reads the certificate and its key again.
    #[cold]
    pub(super) fn renew_certificates(&mut self) {
        self.work_limit = 0; // files are read and keys are checked
        let renewed = self.service.settings.tls.as_ref().map(Tls::renew);
        match renewed {
            None => self.say(b"Error TLS not enabled\r\n"),
            Some(Ok(())) => self.say(b"OK\r\n"),
            Some(Err(why)) => self.say(format!("SERVER_ERROR {why}\r\n").as_bytes()),
        }
    }
}
