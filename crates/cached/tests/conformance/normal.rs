//! Answers in a form that two servers can agree on.
//!
//! These numbers are a server's own, and replaced: cas numbers (the n-th distinct one becomes
//! `#n`), the version, and of `me` and `lru_crawler metadump` the size class, the size in memory
//! and the time of the last access.

/// The cas numbers that one connection has seen, in the order of their first appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Vec<u64>);

impl Numbers {
    /// The n-th distinct cas number, from 1.
    pub(crate) fn nth(&self, n: usize) -> Option<u64> {
        self.0.get(n.checked_sub(1)?).copied()
    }

    /// The name of a cas number. 0 means none and keeps its value.
    pub(crate) fn name(&mut self, cas: u64) -> String {
        if cas == 0 {
            return "0".to_owned();
        }
        let at = self.0.iter().position(|&seen| seen == cas);
        let at = at.unwrap_or_else(|| {
            self.0.push(cas);
            self.0.len() - 1
        });
        format!("#{}", at + 1)
    }

    /// Replaces a server's own numbers in an answer of the text protocol. Of statistics, keeps
    /// those in `stats`; all if it is empty.
    pub(crate) fn text(&mut self, answer: &[u8], stats: &[String]) -> Vec<u8> {
        let mut normal = Vec::new();
        let mut rest = answer;
        while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
            let (line, after) = (&rest[..end], &rest[end + 2..]);
            rest = after;
            let tokens: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
            if !is_wanted(&tokens, stats) {
                continue;
            }
            let (length, written) = self.line(&tokens);
            normal.extend(written);
            normal.extend_from_slice(b"\r\n");
            if let Some(length) = length
                && let Some(value) = rest.get(..length.saturating_add(2))
            {
                normal.extend_from_slice(value);
                rest = &rest[value.len()..];
            }
        }
        normal.extend_from_slice(rest);
        normal
    }

    /// Returns the length of the value that follows a line, and the line's normal form.
    fn line(&mut self, tokens: &[&[u8]]) -> (Option<usize>, Vec<u8>) {
        let mut tokens: Vec<Vec<u8>> = tokens.iter().map(|token| token.to_vec()).collect();
        let mut length = None;
        match tokens[0].as_slice() {
            b"VALUE" if tokens.len() >= 4 => {
                length = number(&tokens[3]);
                if let Some(token) = tokens.get_mut(4) {
                    self.replace(token, b"");
                }
            }
            word @ (b"VA" | b"HD" | b"EN" | b"NF" | b"NS" | b"EX") => {
                let has_value = word == b"VA" && tokens.len() >= 2;
                length = if has_value { number(&tokens[1]) } else { None };
                for token in &mut tokens[1..] {
                    self.replace(token, b"c");
                }
            }
            word if word == b"ME" || word.starts_with(b"key=") => {
                for token in &mut tokens {
                    self.replace(token, b"cas=");
                    for own in [&b"cls="[..], b"size=", b"la="] {
                        if token.starts_with(own) {
                            *token = [own, b"?"].concat();
                        }
                    }
                }
            }
            b"VERSION" if tokens.len() == 2 => tokens[1] = b"?".to_vec(),
            _ => {}
        }
        (length.map(|length| length as usize), tokens.join(&b' '))
    }

    /// Replaces the cas number after `prefix`, if the token is that.
    fn replace(&mut self, token: &mut Vec<u8>, prefix: &[u8]) {
        if let Some(cas) = token.strip_prefix(prefix).and_then(number) {
            *token = [prefix, self.name(cas).as_bytes()].concat();
        }
    }
}

fn is_wanted(tokens: &[&[u8]], stats: &[String]) -> bool {
    let is_stat = tokens.len() >= 2 && tokens[0] == b"STAT" && !stats.is_empty();
    !is_stat || stats.iter().any(|name| name.as_bytes() == tokens[1])
}

fn number<T: AsRef<[u8]> + ?Sized>(token: &T) -> Option<u64> {
    let text = std::str::from_utf8(token.as_ref()).ok()?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok())?
}

#[test]
fn own_numbers_are_replaced_outside_of_values() {
    let mut numbers = Numbers::default();
    let answer = b"VALUE a 0 11 77\r\nHD c5\r\nabcd\r\nHD c78 kc5 Oc6\r\nVA 2 c77 t5\r\nxy\r\n\
                   VERSION 1\r\nME a la=3 cas=78 cls=1\r\nHD c0 cx\r\nSTAT a 1\r\nSTAT b 2\r\nend";
    let wanted = "VALUE a 0 11 #1\r\nHD c5\r\nabcd\r\nHD c#2 kc5 Oc6\r\nVA 2 c#1 t5\r\nxy\r\n\
                  VERSION ?\r\nME a la=? cas=#2 cls=?\r\nHD c0 cx\r\nSTAT a 1\r\nend";
    let normal = numbers.text(answer, &["a".to_owned()]);
    assert_eq!(String::from_utf8_lossy(&normal), wanted);
    assert_eq!(numbers.nth(2), Some(78));
}
