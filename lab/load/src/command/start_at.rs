//! The moment at which several machines begin together.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads `2026-11-21T20:00:00Z` (RFC 3339, UTC, with or without a fraction) or seconds since 1970.
pub(crate) fn start_at(text: &str) -> Result<SystemTime, String> {
    let since_1970 = match text.strip_suffix('Z') {
        Some(stamp) => utc(stamp),
        None => text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    };
    since_1970
        .and_then(|since| UNIX_EPOCH.checked_add(since))
        .ok_or_else(|| "expected a time in UTC like 2026-11-21T20:00:00Z, or seconds since 1970".to_owned())
}

fn utc(stamp: &str) -> Option<Duration> {
    let (date, time) = stamp.split_once('T')?;
    let (time, fraction) = match time.split_once('.') {
        Some((time, digits)) if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            (time, format!("0.{digits}").parse::<f64>().ok()?)
        }
        Some(_) => return None,
        None => (time, 0.0),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days_since_1970(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second;
    Some(Duration::from_secs(seconds) + Duration::from_secs_f64(fraction))
}

/// Three numbers with the given numbers of digits.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; 3];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|digit| digit.is_ascii_digit());
        *number = is_number.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
}

fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let february = if is_leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = usize::try_from(month.checked_sub(1)?).ok()?;
    let is_date = year >= 1970 && (1..=*months.get(month)?).contains(&day);
    let years: u64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    is_date.then(|| years + months[..month].iter().sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_utc_or_seconds() {
        let check = |text: &str, seconds: f64| {
            assert_eq!(start_at(text), Ok(UNIX_EPOCH + Duration::from_secs_f64(seconds)), "{text}");
        };
        check("1970-01-01T00:00:00Z", 0.0);
        check("2000-02-29T12:34:56Z", 951_827_696.0);
        check("2026-11-21T20:00:00Z", 1_795_291_200.0);
        check("2026-11-21T20:00:00.5Z", 1_795_291_200.5);
        check("2100-03-01T00:00:00Z", 4_107_542_400.0);
        check("1795291200", 1_795_291_200.0);
        check("1795291200.25", 1_795_291_200.25);
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [
            "",
            "Z",
            "soon",
            "-5",
            "inf",
            "NaN",
            "2026-11-21",
            "2026-11-21T20:00:00",
            "2026-11-21T20:00:00+01:00",
            "2026-11-21 20:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T20:60:00Z",
            "2026-11-21T20:00:00.Z",
            "2026-11-21T20:00:00.xZ",
            "2026-11-21T2:00:00Z",
            "1969-12-31T23:59:59Z",
            "99999999999999999999999Z",
        ] {
            assert!(start_at(wrong).is_err(), "{wrong}");
        }
    }
}
