//! `Server-Timing: cpu;dur=12.5, db;desc="a, b";dur=3`.

use super::{Useless, number};
use flashweir_core::limits::LOAD_REPORT_METRICS;

/// An hour: no request takes longer.
const MOST_MS: f64 = 3_600_000.0;
/// The metrics that say what a request took, the best first.
const NAMES: [&str; 2] = ["cpu", "app"];

/// Service time of the request, from all lines of the field together; the first metric of a name counts.
pub(super) fn service_time_us<'a>(lines: impl Iterator<Item = &'a str>) -> Result<u32, Useless> {
    let mut found = [None; NAMES.len()];
    let mut metrics = 0;
    for line in lines {
        let mut rest = line;
        while !rest.is_empty() {
            metrics += 1;
            if metrics > LOAD_REPORT_METRICS {
                return Err(Useless::OutOfRange);
            }
            let (name, duration, after) = metric(rest)?;
            rest = after;
            if let Some(place) = NAMES.iter().position(|known| name.eq_ignore_ascii_case(known)) {
                found[place] = found[place].or(duration);
            }
        }
    }
    let text = found.into_iter().flatten().next().ok_or(Useless::Other)?;
    let ms = number(text, MOST_MS)?;
    // Below an hour, so below 2³² microseconds.
    Ok((ms * 1_000.0) as u32)
}

/// One metric: its name, its duration, and what comes after the comma.
fn metric(text: &str) -> Result<(&str, Option<&str>, &str), Useless> {
    let (name, mut rest) = token(text.trim_start_matches([' ', '\t', ',']));
    let mut duration = None;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        match rest.bytes().next() {
            None => return Ok((name, duration, "")),
            Some(b',') => return Ok((name, duration, &rest[1..])),
            Some(b';') if !name.is_empty() => {}
            Some(_) => return Err(Useless::Malformed),
        }
        let (parameter, after) = token(rest[1..].trim_start_matches([' ', '\t']));
        rest = after.trim_start_matches([' ', '\t']);
        let Some(value) = rest.strip_prefix('=') else { continue };
        let (value, after) = value_of(value.trim_start_matches([' ', '\t']))?;
        rest = after;
        if parameter.eq_ignore_ascii_case("dur") {
            duration = duration.or(Some(value));
        }
    }
}

/// A token or a quoted string, without its quotes (escapes stay: no number has any).
fn value_of(text: &str) -> Result<(&str, &str), Useless> {
    let Some(quoted) = text.strip_prefix('"') else { return Ok(token(text)) };
    let mut is_escaped = false;
    for (at, byte) in quoted.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Ok((&quoted[..at], &quoted[at + 1..])),
            _ => {}
        }
    }
    Err(Useless::Malformed)
}

/// As many characters of a token (RFC 9110 §5.6.2) as there are.
fn token(text: &str) -> (&str, &str) {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    text.split_at(text.bytes().position(|byte| !is_token(&byte)).unwrap_or(text.len()))
}
