//! Writing SVG (and HTML) text: escaping, and the frame around a picture.

use super::{CSS, Medium};
use std::borrow::Cow;
use std::fmt::Write;

/// Makes `text` safe between tags and inside quoted attributes, in HTML and in XML. Control
/// characters, which XML forbids, become replacement characters.
///
/// ```
/// assert_eq!(corelay_lab_report::plot::escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || forbidden(c);
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if forbidden(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether XML 1.0, section 2.2, forbids the character in a document.
fn forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Replaces the characters that XML forbids by replacement characters.
pub(crate) fn without_forbidden(document: String) -> String {
    match document.contains(forbidden) {
        true => document.replace(forbidden, "\u{fffd}"),
        false => document,
    }
}

/// The frame of a picture: its name and size.
pub(super) struct Frame<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Frame<'_> {
    /// Puts the frame around `body`.
    pub(super) fn around(&self, body: &str, medium: Medium) -> String {
        let Frame { width, height, .. } = *self;
        let (id, title) = (escape(self.id), escape(self.title));
        let description = escape(self.description);
        let mut out = String::with_capacity(body.len() + 512);
        // A page keeps the picture so wide that its letters stay legible.
        let (namespace, units) = match medium {
            Medium::Page => ("", format!(r#" style="--units:{width:.0}""#)),
            Medium::File => (r#" xmlns="http://www.w3.org/2000/svg""#, String::new()),
        };
        let _ = write!(
            out,
            r#"<svg{namespace} class="plot" id="{id}"{units} viewBox="0 0 {width:.0} {height:.0}" role="img" aria-labelledby="{id}-title" aria-describedby="{id}-desc"><title id="{id}-title">{title}</title><desc id="{id}-desc">{description}</desc>"#
        );
        if medium == Medium::File {
            let _ = write!(
                out,
                r#"<style>{CSS}</style><rect class="ground" width="{width:.0}" height="{height:.0}" rx="10"/>"#
            );
        }
        out.push_str(body);
        out.push_str("</svg>");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn everything_special_is_escaped_and_nothing_else() {
        assert_eq!(escape("plain µ ×"), "plain µ ×");
        assert_eq!(
            escape("<script>'&\"</script>"),
            "&lt;script&gt;&#39;&amp;&quot;&lt;/script&gt;"
        );
        assert_eq!(escape("a\0b\u{1b}c\nd"), "a\u{fffd}b\u{fffd}c\nd");
    }
}
