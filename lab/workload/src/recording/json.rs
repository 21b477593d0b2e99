//! Values of JSON, lexed by `hifijson` from a line or from a stream, in bounded memory and without recursion.

use flashweir_core::limits::LOG_LINE_BYTES;
use hifijson::escape::Lex as _;
use hifijson::{Error, Expect, Lex, Read as _, SliceLexer};

/// Passes over a value. Brackets and braces are counted, not matched, so that depth costs nothing.
pub(super) fn skip<L: Lex>(lexer: &mut L) -> Result<(), Error> {
    let mut depth = 0_u64;
    loop {
        match lexer.ws_peek().ok_or(Expect::Value)? {
            b'"' => lexer.discarded().str_ignore()?,
            b'[' | b'{' => {
                lexer.take_next();
                depth += 1;
            }
            b']' | b'}' => {
                lexer.take_next();
                depth = depth.checked_sub(1).ok_or(Expect::Value)?;
            }
            b',' | b':' if depth > 0 => {
                lexer.take_next();
            }
            b'0'..=b'9' | b'-' => lexer.num_ignore().validate().map(drop)?,
            _ => lexer.null_or_bool().map(drop).ok_or(Expect::Value)?,
        }
        if depth == 0 {
            return Ok(());
        }
    }
}

/// Calls `visit` for each key of the object that comes next, with the lexer at the key's value, which it has
/// to take.
pub(super) fn object<L: Lex>(
    lexer: &mut L,
    mut visit: impl FnMut(&[u8], &mut L) -> Result<(), Error>,
) -> Result<(), Error> {
    lexer.expect(L::ws_peek, b'{').ok_or(Expect::Value)?;
    let mut key = Vec::new();
    lexer.seq(b'}', L::ws_peek, |next, lexer| {
        lexer.expect(|_| Some(next), b'"').ok_or(Expect::String)?;
        raw_string(lexer, &mut key)?;
        lexer.expect(L::ws_peek, b':').ok_or(Expect::Colon)?;
        visit(&key, lexer)
    })
}

/// The same for a value that may be something else than an object, which is passed over.
pub(super) fn object_or_other<L: Lex>(
    lexer: &mut L,
    visit: impl FnMut(&[u8], &mut L) -> Result<(), Error>,
) -> Result<(), Error> {
    if lexer.ws_peek() == Some(b'{') { object(lexer, visit) } else { skip(lexer) }
}

/// Calls `visit` for each value of the array that comes next, with the lexer at the value, which it has to
/// take.
pub(super) fn array<L: Lex>(
    lexer: &mut L,
    mut visit: impl FnMut(&mut L) -> Result<(), Error>,
) -> Result<(), Error> {
    lexer.expect(L::ws_peek, b'[').ok_or(Expect::Value)?;
    lexer.seq(b']', L::ws_peek, |_, lexer| visit(lexer))
}

/// Takes a string or a number as text; another value is passed over.
pub(super) fn scalar<L: Lex>(lexer: &mut L) -> Result<Option<Vec<u8>>, Error> {
    let mut text = Vec::new();
    match lexer.ws_peek().ok_or(Expect::Value)? {
        b'"' => {
            raw_string(lexer.discarded(), &mut text)?;
            Ok(Some(if text.contains(&b'\\') { unescaped(&text) } else { text }))
        }
        b'0'..=b'9' | b'-' => {
            lexer.foreach_until(
                |byte| push_bounded(byte, &mut text),
                |byte| !byte.is_ascii_digit() && !matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'),
            );
            Ok(Some(text))
        }
        _ => skip(lexer).map(|()| None),
    }
}

/// Takes the rest of a string whose first quote has been taken, with its escapes.
fn raw_string<L: Lex>(lexer: &mut L, raw: &mut Vec<u8>) -> Result<(), Error> {
    raw.clear();
    Ok(lexer.str_foreach(|byte| push_bounded(byte, raw))?)
}

/// A string of a stream may have gigabytes; what is longer than a line may be is cut off.
fn push_bounded(byte: u8, text: &mut Vec<u8>) {
    if text.len() < LOG_LINE_BYTES {
        text.push(byte);
    }
}

/// The text without its escapes. An escape for no character (half of a surrogate pair) becomes U+FFFD.
fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut lexer = SliceLexer::new(raw);
    let mut text = Vec::with_capacity(raw.len());
    loop {
        lexer.foreach_until(|byte| text.push(byte), |byte| byte == b'\\');
        lexer.take_next();
        let Some(next) = lexer.take_next() else { return text };
        let character = lexer.escape(next).unwrap_or(char::REPLACEMENT_CHARACTER);
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hifijson::IterLexer;
    use std::convert::Infallible;

    /// The value of the key `a` of an object, read from a slice and from a stream.
    fn value(text: &str) -> Result<Option<String>, Error> {
        fn found<L: Lex>(lexer: &mut L) -> Result<Option<Vec<u8>>, Error> {
            let mut found = None;
            object(lexer, |key, lexer| match key {
                b"a" => scalar(lexer).map(|value| found = value),
                _ => skip(lexer),
            })?;
            Ok(found)
        }
        let of_slice = found(&mut SliceLexer::new(text.as_bytes()));
        let of_stream = found(&mut IterLexer::new(text.bytes().map(Ok::<u8, Infallible>)));
        assert_eq!(of_slice, of_stream, "{text}");
        of_slice.map(|value| value.map(|value| String::from_utf8(value).unwrap()))
    }

    #[test]
    fn strings_and_numbers_and_what_is_passed_over() {
        let check = |text: &str, wanted: &str| assert_eq!(value(text), Ok(Some(wanted.to_owned())), "{text}");
        check(r#"{"a":"b"}"#, "b");
        check(r#" { "x" : [1, {"a": null}, "]"] , "a" : -1.5e3 } "#, "-1.5e3");
        check(r#"{"a":"\"\u0022\\\/\u00e9\ud83d\ude00"}"#, "\"\"\\/é😀");
        check(r#"{"a":"\ud83d!"}"#, "\u{fffd}!");
        assert_eq!(value(r#"{"a":{"b":[true]}}"#), Ok(None));
        assert_eq!(value("{}"), Ok(None));
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        for text in ["", "[]", "{", r#"{"a"}"#, r#"{"a":}"#, r#"{"a":"b}"#, r#"{"a":"\x22"}"#, r#"{"b":tru}"#]
        {
            assert!(value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn depth_and_length_are_no_burden() {
        let deep = format!("{{\"b\":{}1{},\"a\":2}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(value(&deep), Ok(Some("2".to_owned())));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1_000_000));
        assert_eq!(value(&long).map(|value| value.map(|value| value.len())), Ok(Some(LOG_LINE_BYTES)));
    }
}
