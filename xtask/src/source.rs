//! Rust source as the checks see it: tokens. Comments and the contents of strings are no code.

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::path::Path;

/// The tokens of a file in a row; brackets and `::` are tokens too.
#[derive(Debug)]
pub(crate) struct Code {
    tokens: Vec<Token>,
}

#[derive(Debug)]
struct Token {
    /// A quotation mark for literals.
    text: String,
    line: usize,
}

/// A path in the code: `std::thread::spawn`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// Counted from 1.
    pub(crate) line: usize,
    /// The path without blanks and without a leading `::`.
    pub(crate) path: String,
    /// Whether a `use` declaration names it.
    pub(crate) is_import: bool,
}

impl Code {
    /// Every token of a source file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let source = crate::workspace::read(path)?;
        Self::parse(&source, true).with_context(|| path.display().to_string())
    }

    /// The tokens of a source file that are not under `#[cfg(test)]`.
    pub(crate) fn shipped(path: &Path) -> Result<Self> {
        let source = crate::workspace::read(path)?;
        Self::parse(&source, false).with_context(|| path.display().to_string())
    }

    pub(crate) fn parse(source: &str, with_tests: bool) -> Result<Self> {
        let stream: TokenStream = source.parse().map_err(|error| anyhow!("{error}"))?;
        let mut code = Self { tokens: Vec::new() };
        code.flatten(stream, with_tests);
        Ok(code)
    }

    fn flatten(&mut self, stream: TokenStream, with_tests: bool) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while let Some(tree) = trees.get(at) {
            at += 1;
            if !with_tests && is_test_attribute(tree, trees.get(at)) {
                at += trees[at..].iter().position(ends_item).map_or(0, |n| n + 1);
                continue;
            }
            let line = tree.span().start().line;
            match tree {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    self.push(open, line);
                    self.flatten(group.stream(), with_tests);
                    self.push(close, group.span_close().start().line);
                }
                TokenTree::Punct(first) if first.as_char() == ':' => {
                    let is_path = first.spacing() == Spacing::Joint;
                    at += usize::from(is_path);
                    self.push(if is_path { "::" } else { ":" }, line);
                }
                TokenTree::Literal(_) => self.push("\"", line),
                word => self.push(&word.to_string(), line),
            }
        }
    }

    fn push(&mut self, text: &str, line: usize) {
        let text = text.to_owned();
        self.tokens.push(Token { text, line });
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    /// Finds `words` standing in a row. Gives their lines, and the tokens before them.
    pub(crate) fn find(&self, words: &[&str]) -> impl Iterator<Item = (usize, &str)> + use<'_> {
        let found = |at: &usize| (0..words.len()).all(|n| self.text(at + n) == words[n]);
        let places = (0..self.tokens.len()).filter(found).collect::<Vec<_>>();
        let before = |at: usize| at.checked_sub(1).map_or("", |at| self.text(at));
        places
            .into_iter()
            .map(move |at| (self.tokens[at].line, before(at)))
    }

    /// Every path in the code. `use std::{sync::atomic::*, thread as t};` names
    /// `std::sync::atomic::*` and `std::thread`.
    pub(crate) fn mentions(&self) -> Vec<Mention> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            if self.text(at) == "use" && self.text(at + 1) != "<" {
                at = self.expand(at + 1, "", &mut found);
            } else if is_name(self.text(at)) {
                let line = self.tokens[at].line;
                let mut path = self.text(at).to_owned();
                while self.text(at + 1) == "::" && is_name(self.text(at + 2)) {
                    path = path + "::" + self.text(at + 2);
                    at += 2;
                }
                found.push(Mention {
                    line,
                    path,
                    is_import: false,
                });
            }
            at += 1;
        }
        found
    }

    /// Writes out the use tree that starts at `at` and gives the token that ends it.
    fn expand(&self, mut at: usize, prefix: &str, found: &mut Vec<Mention>) -> usize {
        let mut path = prefix.to_owned();
        let mut is_renamed = false;
        while at < self.tokens.len() {
            match self.text(at) {
                "{" => {
                    at = self.expand(at + 1, &path, found);
                    prefix.clone_into(&mut path);
                }
                end @ ("," | "}" | ";" | ")") => {
                    if path.len() > prefix.len() {
                        let path = path.strip_suffix("::self").unwrap_or(&path);
                        found.push(Mention {
                            line: self.tokens[at - 1].line,
                            path: path.to_owned(),
                            is_import: true,
                        });
                    }
                    if end != "," {
                        return at;
                    }
                    prefix.clone_into(&mut path);
                    is_renamed = false;
                }
                "as" => is_renamed = true,
                "::" if path.is_empty() => {}
                "$" => {}
                word if !is_renamed => path += word,
                _ => {}
            }
            at += 1;
        }
        at
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether `#` and what follows it say that an item exists in test builds only.
fn is_test_attribute(tree: &TokenTree, next: Option<&TokenTree>) -> bool {
    let (TokenTree::Punct(hash), Some(TokenTree::Group(group))) = (tree, next) else {
        return false;
    };
    let attribute: Vec<TokenTree> = group.stream().into_iter().collect();
    let is_cfg = attribute
        .first()
        .is_some_and(|name| name.to_string() == "cfg");
    hash.as_char() == '#' && is_cfg && is_test_only(&attribute)
}

/// Whether a condition holds in test builds only: `test`, or an `all` with it.
fn is_test_only(condition: &[TokenTree]) -> bool {
    let [name, rest @ ..] = condition else {
        return false;
    };
    let name = name.to_string();
    let [TokenTree::Group(list)] = rest else {
        return rest.is_empty() && name == "test";
    };
    let list: Vec<TokenTree> = list.stream().into_iter().collect();
    let mut parts = list.split(|tree| tree.to_string() == ",");
    match name.as_str() {
        "cfg" | "all" => parts.any(is_test_only),
        "any" => parts.all(is_test_only),
        _ => false,
    }
}

/// Whether an item ends with this tree: its body, or a semicolon.
fn ends_item(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    }
}

/// The line of an offset, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str, with_tests: bool) -> String {
        let code = Code::parse(source, with_tests).unwrap();
        let words: Vec<_> = code.tokens.iter().map(|t| t.text.as_str()).collect();
        words.join(" ")
    }

    #[test]
    fn comments_and_literals_have_no_words() {
        let source = "a // x\n/* b /* c */ d */ e(\"f\\\" // g\", r#\"h \"i\" \"#, br\"j\", 'k')";
        assert_eq!(words(source, true), "a e ( \" , \" , \" , \" )");
        assert_eq!(words("x: a::<B>", true), "x : a :: < B >");
    }

    #[test]
    fn items_of_tests_are_left_out() {
        let source = "\
fn kept() {}
#[cfg(test)]
#[allow(dead_code)]
mod tests { fn gone() { [0; 3]; } }
#[cfg(all(unix, test))]
use gone::too;
#[cfg(any(test, corelay_loom))]
fn kept() {}
#[cfg(not(test))]
fn kept() { #[cfg(test)] gone(); }
#[cfg(all(any(test, unix), not(test)))]
fn kept() {}
#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
fn gone() {}
";
        let words = words(source, false);
        assert!(!words.contains("gone"), "{words}");
        assert_eq!(words.matches("kept").count(), 4, "{words}");
    }

    #[test]
    fn paths_and_imports_are_written_out() {
        let source = "use std::{sync::atomic::{self, AtomicBool}, thread as t,};\nuse ::a::b;\n\
                      fn f() -> impl Fn() + use<> { a ::\n b::<C>() }\n";
        let code = Code::parse(source, true).unwrap();
        let found: Vec<_> = code.mentions();
        let of = |is_import| {
            let chosen = found.iter().filter(move |m| m.is_import == is_import);
            chosen.map(|m| (m.line, m.path.as_str()))
        };
        let imports = [
            (1, "std::sync::atomic"),
            (1, "std::sync::atomic::AtomicBool"),
            (1, "std::thread"),
            (2, "a::b"),
        ];
        assert_eq!(of(true).collect::<Vec<_>>(), imports);
        assert!(of(false).any(|mention| mention == (3, "a::b")));
    }

    #[test]
    fn words_are_found_in_a_row() {
        let code = Code::parse("fn f() {}\nx.f();", true).unwrap();
        let found: Vec<_> = code.find(&["f", "("]).collect();
        assert_eq!(found, [(1, "fn"), (2, ".")]);
    }
}
