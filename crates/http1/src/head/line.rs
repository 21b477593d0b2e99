//! Reads one field line: `name ":" OWS value OWS CRLF` (RFC 9112 §5).
//!
//! Two readers with one verdict. [`read_ordinary_lines`] takes good lines in one pass over their bytes and
//! decides nothing else: a line that it does not take has not come whole, or is unusual, or bad.
//! [`judge_line`] takes a whole line and finds the first rule that it breaks, in a fixed order.

use super::cursor::LineCursor;
use super::field::{FieldSpan, FieldTable, Span};
use super::known::{FieldSet, KnownField};
use crate::byte_class::{ByteClass, ORDINARY_NAME, TOKEN};
use crate::scan::{position_of, position_of_control};
use crate::violation::FramingViolation;

/// Fields that frame or route a message (RFC 9110 §6.5.1).
pub(crate) const FRAMING: FieldSet =
    FieldSet::of(&[KnownField::ContentLength, KnownField::TransferEncoding, KnownField::Host]);

/// Lengths of the two names whose other spellings are refused.
const FRAMING_NAME_BYTES: [usize; 2] = [14, 17];

/// Reads ordinary lines, as many as there are at the cursor, into `table`; `take` judges those that framing
/// depends on. Cost: six or seven instructions for each byte.
///
/// # Errors
/// Those of `take`; [`FramingViolation::TooManyFields`].
#[inline]
pub(crate) fn read_ordinary_lines(
    bytes: &[u8],
    cursor: &mut LineCursor,
    (table, fields_max): (&mut FieldTable, usize),
    mut take: impl FnMut(KnownField, &[u8]) -> Result<(), FramingViolation>,
) -> Result<(), FramingViolation> {
    if !cursor.is_fresh() {
        return Ok(());
    }
    let mut at = cursor.at();
    while let Some((span, next)) = read_ordinary(bytes, at) {
        at = next;
        if FRAMING.contains(span.known) {
            take(span.known, span.value.of(bytes))?;
        }
        table.push(span);
        if table.len() > fields_max {
            return Err(FramingViolation::TooManyFields);
        }
    }
    cursor.go_to(at);
    Ok(())
}

/// Reads the line that begins at `at`; returns its span and the place behind it.
#[inline(always)]
fn read_ordinary(bytes: &[u8], at: usize) -> Option<(FieldSpan, usize)> {
    let rest = bytes.get(at..)?;
    let length = position_of_control(rest)?;
    let (line, line_end) = rest.split_at(length);
    if line_end.first_chunk() != Some(b"\r\n") {
        return None;
    }
    let colon = position_of(b':', line)?;
    let (name, after) = line.split_at(colon);
    let known = KnownField::of(name);
    let has_odd_name = match known {
        KnownField::Other | KnownField::Flashweir => judge_other_name(name)?,
        _ => false,
    };
    let (start, end, is_plain) = match after {
        [_, b' ', value @ ..] if is_trimmed(value) => (colon + 2, length, true),
        _ => trimmed(line, colon + 1),
    };
    let span = FieldSpan {
        name: Span::new(at, at + colon),
        value: Span::new(at + start, at + end),
        known,
        is_plain,
        has_odd_name,
    };
    Some((span, at + length + 2))
}

/// Returns whether a name without a meaning here has signs; `None` where it is to be judged with care.
fn judge_other_name(name: &[u8]) -> Option<bool> {
    let classes = ByteClass::common(name);
    let is_good = !name.is_empty() && classes.contains(TOKEN) && !FRAMING_NAME_BYTES.contains(&name.len());
    is_good.then(|| !classes.contains(ORDINARY_NAME))
}

#[inline(always)]
fn is_trimmed(value: &[u8]) -> bool {
    matches!((value.first(), value.last()), (Some(&first), Some(&last)) if !is_blank(first) && !is_blank(last))
}

/// Ends of the value that begins at `from` at the earliest.
#[cold]
fn trimmed(line: &[u8], from: usize) -> (usize, usize, bool) {
    let value = trim(&line[from..]);
    let start = from + offset_of(value, &line[from..]);
    (start, start + value.len(), false)
}

/// Judges a whole line, which is `bytes[at..end]` without its line end, by all rules in their order.
///
/// # Errors
/// The first rule that the line breaks.
pub(crate) fn judge_line(bytes: &[u8], at: usize, end: usize) -> Result<FieldSpan, FramingViolation> {
    let span = judge_line_of_response(bytes, at, end)?;
    let name = span.name.of(bytes);
    if span.known == KnownField::Other && FRAMING_NAME_BYTES.contains(&name.len()) {
        // Gateway interfaces such as CGI turn `-` into `_`, and some every other sign: such a spelling of a
        // framing field would reach some servers as that very field.
        let meant = KnownField::of_respelt(name);
        if matches!(meant, KnownField::ContentLength | KnownField::TransferEncoding) {
            return Err(FramingViolation::FieldName);
        }
    }
    Ok(span)
}

/// The same of a response, whose framing no other spelling changes.
///
/// # Errors
/// The first rule that the line breaks.
pub(crate) fn judge_line_of_response(
    bytes: &[u8],
    at: usize,
    end: usize,
) -> Result<FieldSpan, FramingViolation> {
    let line = bytes.get(at..end).unwrap_or_default();
    check_bytes(line)?;
    if line.first().is_some_and(|&byte| is_blank(byte)) {
        return Err(FramingViolation::ObsFold);
    }
    let colon = memchr::memchr(b':', line).ok_or(FramingViolation::FieldName)?;
    let name = &line[..colon];
    match name.last() {
        None => return Err(FramingViolation::EmptyFieldName),
        Some(&byte) if is_blank(byte) => return Err(FramingViolation::SpaceBeforeColon),
        Some(_) if !TOKEN.has_all(name) => return Err(FramingViolation::FieldName),
        Some(_) => {}
    }
    let known = KnownField::of(name);
    let value = trim(&line[colon + 1..]);
    let start = at + colon + 1 + offset_of(value, &line[colon + 1..]);
    Ok(FieldSpan {
        name: Span::new(at, at + colon),
        value: Span::new(start, start + value.len()),
        known,
        // Copying is for lines that end in CRLF, which is not known here.
        is_plain: false,
        has_odd_name: !ORDINARY_NAME.has_all(name),
    })
}

/// Optional white space is SP and HTAB only (RFC 9110 §5.6.3).
#[inline]
pub(crate) const fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Takes optional white space off both ends.
pub(crate) fn trim(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !is_blank(*byte);
    match (value.iter().position(is_text), value.iter().rposition(is_text)) {
        (Some(first), Some(last)) => &value[first..=last],
        _ => &[],
    }
}

/// Finds the first control byte: a CR that ends no line, or any other.
pub(crate) fn check_bytes(line: &[u8]) -> Result<(), FramingViolation> {
    match position_of_control(line).and_then(|at| line.get(at)) {
        None => Ok(()),
        Some(b'\r') => Err(FramingViolation::BareCr),
        Some(_) => Err(FramingViolation::ControlByte),
    }
}

/// Place of the trimmed `part` in `whole`.
fn offset_of(part: &[u8], whole: &[u8]) -> usize {
    if part.is_empty() { 0 } else { whole.iter().position(|&byte| !is_blank(byte)).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rng;

    fn judged(line: &[u8]) -> Result<FieldSpan, FramingViolation> {
        judge_line(line, 0, line.len())
    }

    #[test]
    fn both_readers_find_the_same() {
        let parts: [&[u8]; 18] = [
            b"Host",
            b"X",
            b":",
            b": ",
            b" ",
            b"\t",
            b"a",
            b"\r",
            b"\n",
            b"\0",
            b"\xff",
            b"x_y",
            b"Content-Length",
            b"content_length",
            b"transfer!encoding",
            b"Transfer-Encoding",
            b"v",
            b"",
        ];
        let mut rng = Rng::new(7);
        let mut taken = 0;
        for _ in 0..200_000 {
            let line: Vec<u8> = (0..rng.below(7))
                .flat_map(|_| parts[rng.below(parts.len() as u64) as usize].iter().copied())
                .collect();
            let whole = [&line[..], b"\r\n"].concat();
            let Some((span, next)) = read_ordinary(&whole, 0) else { continue };
            taken += 1;
            let line_feed = whole.iter().position(|&byte| byte == b'\n').expect("a line end");
            assert_eq!(next, line_feed + 1, "{}", whole.escape_ascii());
            let line = &whole[..line_feed - 1];
            let careful = judged(line).unwrap_or_else(|fault| panic!("{fault}: {}", line.escape_ascii()));
            assert_eq!(span.of(line), careful.of(line), "{}", line.escape_ascii());
            let plain = [span.name.of(line), b": ", span.value.of(line)].concat();
            let is_plain = line == plain && !careful.of(line).value.is_empty();
            assert_eq!(span.is_plain, is_plain, "{}", line.escape_ascii());
        }
        assert!(taken > 5_000, "{taken} good lines");
    }

    #[test]
    fn a_line_that_has_not_ended_is_left() {
        let line = b"Host: a\r\n";
        for end in 0..line.len() {
            assert_eq!(read_ordinary(&line[..end], 0), None, "{end}");
        }
        assert!(read_ordinary(line, 0).is_some());
    }

    #[test]
    fn the_first_broken_rule_is_named() {
        for (line, violation) in [
            ("a: \rb", FramingViolation::BareCr),
            ("a: \0b\r", FramingViolation::ControlByte),
            (" a: b", FramingViolation::ObsFold),
            ("a b", FramingViolation::FieldName),
            (": b", FramingViolation::EmptyFieldName),
            ("a : b", FramingViolation::SpaceBeforeColon),
            ("a b: c", FramingViolation::FieldName),
            ("content.length: 1", FramingViolation::FieldName),
            ("transfer_encoding: chunked", FramingViolation::FieldName),
        ] {
            assert_eq!(judged(line.as_bytes()), Err(violation), "{line}");
        }
        let padded = judged(b"a:\t b c \t").expect("a good line");
        assert_eq!(padded.of(b"a:\t b c \t").value, b"b c");
    }
}
