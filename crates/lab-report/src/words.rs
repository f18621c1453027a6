//! Numbers and lists as words, and the small markup of sentences: `code` in backticks.

use crate::method;
use crate::plot::{grouped, trimmed};
use corelay_lab_measure::schema::Mode;
use maud::{Markup, html};

/// Formats a ratio: `3.9 ×`, `0.034 ×`, `1.04 ×` near one, `120 ×`.
pub fn times(ratio: f64) -> String {
    format!("{}\u{a0}×", ratio_digits(ratio))
}

/// Formats the number of [`times`]: two significant digits, three near one.
pub(super) fn ratio_digits(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "–".to_owned(),
        r if r >= 9.95 => grouped(r.round() as u64),
        r if (0.895..1.195).contains(&r) => format!("{r:.2}"),
        r if r >= 0.995 => format!("{r:.1}"),
        r if r >= 0.0995 => format!("{r:.2}"),
        r if r >= 0.00995 => format!("{r:.3}"),
        r => format!("{r:.1e}"),
    }
}

/// Formats ascending counts as a range: `1`, `1–4`, `64–65,536`.
pub(crate) fn range(counts: &[u64]) -> String {
    match counts {
        [] => String::new(),
        [one] => grouped(*one),
        [first, .., last] => format!("{}–{}", grouped(*first), grouped(*last)),
    }
}

/// Formats operations per second, short: `350`, `10 k`, `2.5 M`.
pub(super) fn rate(per_second: f64) -> String {
    for (unit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if per_second >= unit {
            return format!("{}\u{a0}{name}", trimmed(per_second / unit));
        }
    }
    trimmed(per_second)
}

/// Formats a count of things: `1 variable`, `1,024 variables`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// Joins items: `a`, `a and b`, `a, b and c`.
pub fn and<S: AsRef<str>>(items: &[S]) -> String {
    joined(items, "and")
}

/// Joins items: `a`, `a or b`, `a, b or c`.
pub(super) fn or<S: AsRef<str>>(items: &[S]) -> String {
    joined(items, "or")
}

fn joined<S: AsRef<str>>(items: &[S], word: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} {word} {}", most.join(", "), last.as_ref())
        }
    }
}

/// Formats a name as code in a sentence. Backticks in it would end the code early, so they become
/// apostrophes.
pub fn code(name: &str) -> String {
    format!("`{}`", name.replace('`', "'"))
}

/// Returns the mode's name for a sentence.
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Near => "near",
        Mode::Far => "far",
        Mode::Discarded => "discarded",
        Mode::Unknown => "mode unknown",
    }
}

/// Renders a sentence as HTML: escaped, with backticks turned into code. The name of a method is
/// explained where one points at it.
pub fn prose(sentence: &str) -> Markup {
    let what = |name| method::find(name).map(|method| method.what);
    html! {
        @for (i, part) in sentence.split('`').enumerate() {
            @if i % 2 == 0 { (part) } @else { code title=[what(part)] { (part) } }
        }
    }
}

/// Formats a sentence for the terminal: without backticks, in lines of at most `width` letters.
/// The first line begins with `first`, the others with as many spaces.
pub fn wrap(sentence: &str, first: &str, width: usize) -> String {
    let indent = " ".repeat(first.chars().count());
    let mut out = first.to_owned();
    let mut column = indent.len();
    let mut fresh = true;
    // A no-break space keeps a number and its unit on one line.
    for word in sentence
        .replace('`', "")
        .split(' ')
        .filter(|w| !w.is_empty())
    {
        let letters = word.chars().count();
        if !fresh && column + 1 + letters > width {
            out.push('\n');
            out.push_str(&indent);
            column = indent.len();
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += letters;
        fresh = false;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_the_digits_they_deserve() {
        let cases = [
            (3.94, "3.9 ×"),
            (0.2134, "0.21 ×"),
            (0.0342, "0.034 ×"),
            (1.042, "1.04 ×"),
            (119.6, "120 ×"),
            (12.3, "12 ×"),
            (0.97, "0.97 ×"),
            (1.3, "1.3 ×"),
            (0.0012, "1.2e-3 ×"),
        ];
        for (ratio, text) in cases {
            assert_eq!(times(ratio).replace('\u{a0}', " "), text);
        }
    }

    #[test]
    fn rates_are_short() {
        let told = [350.0, 1e4, 2.5e6, 1e9].map(rate).join(", ");
        assert_eq!(told.replace('\u{a0}', " "), "350, 10 k, 2.5 M, 1 G");
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(range(&[1]), "1");
        assert_eq!(range(&[64, 1024, 65_536]), "64–65,536");
        assert_eq!(and(&["a"]), "a");
        assert_eq!(or(&["a", "b", "c"]), "a, b or c");
        assert_eq!(count(1, "variable", "variables"), "1 variable");
    }

    #[test]
    fn sentences_become_html_and_lines() {
        assert_eq!(
            prose("`a<b` beats c & d").into_string(),
            "<code>a&lt;b</code> beats c &amp; d"
        );
        assert_eq!(wrap("one two three", "- ", 9), "- one two\n  three");
        assert_eq!(
            wrap("`x` unbreakablelongword y", "", 5),
            "x\nunbreakablelongword\ny"
        );
        assert_eq!(code("a`b"), "`a'b`");
    }
}
