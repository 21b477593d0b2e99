//! Finds the line of a key, so that a failed check points at it as a syntax error would.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The line (from 1) on which `key` (`bounds.max_fields`, `upstream.urls[1]`) is written in `text`; for a key
/// that is not written, the line of the nearest enclosing section, and 1 when there is none.
pub(crate) fn line_of_key(text: &str, key: &str) -> usize {
    let Ok(document) = DeTable::parse(text) else { return 1 };
    line_at(text, offset_of_key(&document, key))
}

/// The line (from 1) that holds the byte at `offset`.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|&&byte| byte == b'\n').count() + 1
}

fn offset_of_key(document: &Spanned<DeTable<'_>>, key: &str) -> usize {
    let mut table = Some(document.get_ref());
    let mut offset = 0;
    for part in key.split('.') {
        let (name, index) = split_index(part);
        let Some((written, value)) = table.and_then(|table| table.get_key_value(name)) else { break };
        offset = written.span().start;
        let element = index.and_then(|index| value.get_ref().as_array()?.get(index));
        if let Some(element) = element {
            offset = element.span().start;
        }
        table = match value.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        };
    }
    offset
}

/// `urls[1]` is `urls` and 1.
fn split_index(part: &str) -> (&str, Option<usize>) {
    match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
        Some((name, index)) => (name, index.parse().ok()),
        None => (part, None),
    }
}

#[cfg(test)]
mod tests {
    use super::line_of_key;

    const TEXT: &str =
        "# shop\n[upstream]\nurls = [\n  'http://a',\n  'http://b',\n]\nhealth.path = '/'\n\n[bounds]\n";

    #[test]
    fn a_key_an_element_a_dotted_key_and_an_absent_key_are_found() {
        for (key, line) in [
            ("upstream.urls", 3),
            ("upstream.urls[1]", 5),
            ("upstream.health.path", 7),
            ("bounds.max_fields", 9),
            ("listen.address", 1),
        ] {
            assert_eq!(line_of_key(TEXT, key), line, "{key}");
        }
    }
}
