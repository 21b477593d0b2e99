//! Finds the line of a key, so that a failed check points at it as a syntax error would. For every TOML file
//! that Flashweir reads.

use toml::de::{DeTable, DeValue};

/// The line (from 1) on which `key` (`upstream.urls[1]`, `class[1].work`) is written in `text`; for a key
/// that is not written, the line of the nearest enclosing table, and 1 when there is none. Reads the whole
/// text.
#[must_use]
pub fn line_of_key(text: &str, key: &str) -> usize {
    let Ok(document) = DeTable::parse(text) else { return 1 };
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
        table = match element.unwrap_or(value).get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        };
    }
    line_at(text, offset)
}

/// The line (from 1) that holds the byte at `offset`.
#[must_use]
pub fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1
}

/// The name and the index of one part of a key: `urls[1]` is `urls` and 1.
#[must_use]
pub fn split_index(part: &str) -> (&str, Option<usize>) {
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

    const ARRAYS: &str = "# crowd\nduration = '5s'\n[[class]]\nname = 'a'\n\n[[class]]\nname = 'b'\nwork = '5ms'\n[server]\nworkers = 3\n";

    #[test]
    fn keys_of_tables_and_of_tables_in_arrays_are_found() {
        for (key, line) in [
            ("duration", 2),
            ("class[0].name", 4),
            ("class[1].work", 8),
            ("class[1].patience", 6),
            ("server.workers", 10),
            ("server.queue", 9),
            ("network.one_way_delay", 1),
        ] {
            assert_eq!(line_of_key(ARRAYS, key), line, "{key}");
        }
    }
}
