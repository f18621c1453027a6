//! Rust source as the checks see it: without comments, strings and test code.
//!
//! Each blanked byte becomes a space, so that offsets and line numbers stay those of the
//! file. This is a lexer for well-formed, rustfmt-ed source, not a parser.

/// A view of a source file in which only code is left.
#[derive(Debug)]
pub(crate) struct Code {
    text: String,
}

impl Code {
    /// `source` without comments and without the contents of strings and characters.
    pub(crate) fn new(source: &str) -> Self {
        Self {
            text: blank_text(source),
        }
    }

    /// The same, also without items under `#[cfg(test)]`.
    pub(crate) fn without_tests(source: &str) -> Self {
        let mut text = blank_text(source).into_bytes();
        while let Some((from, to)) = next_test_item(&text) {
            blank(&mut text, from, to);
        }
        // Only whole characters were blanked, so what is left is text.
        Self {
            text: String::from_utf8_lossy(&text).into_owned(),
        }
    }

    /// The code.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The lines, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// Every path that a `use` declaration brings in, written out in full, and its line.
    ///
    /// `use std::{sync::atomic::*, thread as t};` gives `std::sync::atomic::*` and
    /// `std::thread`.
    pub(crate) fn imports(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut rest = 0;
        while let Some(at) = find_word(&self.text[rest..], "use").map(|at| rest + at) {
            let start = at + "use".len();
            let Some(end) = self.text[start..].find(';').map(|n| start + n) else {
                break;
            };
            expand(self.text[start..end].trim(), "", &mut |path| {
                found.push((line_of(&self.text, at), path));
            });
            rest = end;
        }
        found
    }
}

/// The line of an offset, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}

/// Where `word` stands in `text` by itself, not as a part of a longer name.
pub(crate) fn find_word(text: &str, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = at.checked_sub(1).map(|i| bytes[i]);
        let after = bytes.get(at + word.len()).copied();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Writes out a use tree: `a::{b, c as d}` becomes `a::b` and `a::c`.
fn expand(tree: &str, prefix: &str, found: &mut dyn FnMut(String)) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let prefix = format!("{prefix}{}", tree[..open].trim());
        let inner = tree[open + 1..]
            .strip_suffix('}')
            .unwrap_or(&tree[open + 1..]);
        let mut depth = 0;
        let mut start = 0;
        for (at, byte) in inner.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b',' if depth == 0 => {
                    expand(&inner[start..at], &prefix, found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        expand(&inner[start..], &prefix, found);
    } else if !tree.is_empty() {
        let name = tree.split_whitespace().next().unwrap_or(tree);
        let path = format!("{prefix}{name}");
        found(path.strip_suffix("::self").unwrap_or(&path).to_owned());
    }
}

fn blank(bytes: &mut [u8], from: usize, to: usize) {
    for byte in &mut bytes[from..to] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn blank_text(source: &str) -> String {
    let mut bytes = source.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source.as_bytes()[at..];
        let length = if rest.starts_with(b"//") {
            rest.iter()
                .position(|&byte| byte == b'\n')
                .unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            block_comment(rest)
        } else if let Some(length) = string(source.as_bytes(), at) {
            length
        } else if let Some(length) = character(rest) {
            length
        } else {
            at += 1;
            continue;
        };
        blank(&mut bytes, at, at + length);
        at += length;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Length of the block comment, nested ones included.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Length of the string literal that starts at `at`, raw ones included.
fn string(source: &[u8], at: usize) -> Option<usize> {
    let rest = &source[at..];
    if rest[0] == b'"' {
        let mut end = 1;
        while end < rest.len() && rest[end] != b'"' {
            end += if rest[end] == b'\\' { 2 } else { 1 };
        }
        return Some((end + 1).min(rest.len()));
    }
    let in_name = at
        .checked_sub(1)
        .is_some_and(|i| is_name(source[i]) && source[i] != b'b');
    if rest[0] != b'r' || in_name {
        return None;
    }
    let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', hashes))
        .collect();
    let body = 2 + hashes;
    let end = rest[body..]
        .windows(close.len())
        .position(|window| window == close);
    Some(end.map_or(rest.len(), |end| body + end + close.len()))
}

/// Length of the character literal that starts here; a lifetime is none.
fn character(rest: &[u8]) -> Option<usize> {
    if rest[0] != b'\'' {
        return None;
    }
    if rest.get(1) == Some(&b'\\') {
        let end = rest[3..].iter().position(|&byte| byte == b'\'');
        return Some(end.map_or(rest.len(), |end| end + 4));
    }
    // One character of one to four bytes, then the closing quote.
    let text = std::str::from_utf8(&rest[1..]).unwrap_or("");
    let length = text.chars().next()?.len_utf8();
    (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
}

/// The next item under a `#[cfg(test)]`, attribute included.
fn next_test_item(code: &[u8]) -> Option<(usize, usize)> {
    let text = std::str::from_utf8(code).ok()?;
    let mut from = 0;
    while let Some(at) = text[from..].find("#[cfg(").map(|at| from + at) {
        let end = at + attribute(&code[at..]);
        if is_test_only(&text[at + "#[cfg(".len()..end]) {
            return Some((at, item_end(code, end)));
        }
        from = end;
    }
    None
}

/// True where the condition holds in test builds only: `test` alone or in an `all`.
fn is_test_only(condition: &str) -> bool {
    let condition = condition.trim();
    let names_test = find_word(condition, "test").is_some();
    names_test
        && (condition.starts_with("test") || condition.starts_with("all"))
        && !condition.replace(' ', "").contains("not(test")
}

/// Length of the attribute that starts here.
fn attribute(code: &[u8]) -> usize {
    let mut depth = 0;
    for (at, byte) in code.iter().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Where the item that starts after its attribute ends: at its closing brace, at a `;`,
/// or, for a field or an argument, at a `,`.
fn item_end(code: &[u8], start: usize) -> usize {
    let mut depth = 0_i32;
    let mut at = start;
    while at < code.len() {
        match code[at] {
            b'#' if depth == 0 => {
                at += attribute(&code[at..]);
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' => depth -= 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
        if depth < 0 {
            return at;
        }
        at += 1;
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> String {
        Code::new(source).text().to_owned()
    }

    #[test]
    fn comments_and_strings_are_blank_and_lines_stay() {
        let source = "a // x\n/* b /* c */ d */ e \"f\\\" // g\" h\n";
        let text = code(source);
        assert_eq!(text.len(), source.len());
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["a", "e", "h"]);
        assert_eq!(line_of(&text, text.find('h').unwrap()), 2);
    }

    #[test]
    fn raw_strings_and_bytes_are_blank() {
        let text =
            code("x(r#\"a \" todo!() \"#, br\"b\", b'c', var, 'd', '\\'', '\\u{1F600}', 'é')");
        let kept: String = text.split_whitespace().collect();
        assert_eq!(kept, "x(,b,b,var,,,,)");
    }

    #[test]
    fn lifetimes_are_no_characters() {
        assert_eq!(
            code("fn f<'a>(x: &'a str) -> &'a str"),
            "fn f<'a>(x: &'a str) -> &'a str"
        );
    }

    #[test]
    fn test_items_are_blank() {
        let source = "\
fn kept() {}
#[cfg(test)]
#[allow(dead_code)]
mod tests { fn gone() { [0; 3]; } }
#[cfg(all(test, unix))]
use gone::too;
#[cfg(any(test, corelay_loom))]
fn kept_as_well() {}
#[cfg(not(test))]
fn kept_too() {}
";
        let code = Code::without_tests(source);
        assert!(!code.text().contains("gone"), "{}", code.text());
        for kept in ["kept()", "kept_as_well", "kept_too"] {
            assert!(code.text().contains(kept), "{kept}");
        }
    }

    #[test]
    fn imports_are_written_out() {
        let code =
            Code::new("use std::{sync::atomic::{self, AtomicBool}, thread as t};\nuse a::b;\n");
        let found: Vec<_> = code.imports();
        let paths: Vec<_> = found
            .iter()
            .map(|(line, path)| (*line, path.as_str()))
            .collect();
        assert_eq!(
            paths,
            [
                (1, "std::sync::atomic"),
                (1, "std::sync::atomic::AtomicBool"),
                (1, "std::thread"),
                (2, "a::b")
            ]
        );
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(find_word("refuse use", "use"), Some(7));
        assert_eq!(find_word("reuse used", "use"), None);
    }
}
