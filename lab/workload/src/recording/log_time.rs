//! Time stamps of logs: the common format's `17/May/2015:10:05:03 +0000`, ISO 8601's `2015-05-17T10:05:03Z`,
//! and seconds since 1970. Each may have a fraction of a second.

use std::time::Duration;

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const DAYS_BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
/// Days from the first of January of year 1 to that of 1970 (proleptic Gregorian calendar).
const DAYS_BEFORE_1970: i64 = 719_162;
const NANOSECONDS: i128 = 1_000_000_000;

/// Time of arrival that a line states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Seconds since 1970 (UTC).
    pub(super) second: i64,
    /// The fraction of a second, below 10⁹; `None` if the log has whole seconds.
    pub(super) nanosecond: Option<u32>,
}

impl Stamp {
    /// A stamp in whole seconds.
    pub(super) fn whole(second: i64) -> Self {
        Self { second, nanosecond: None }
    }

    /// The stamp of the beginning of something that took `length` and ended at this one. Whole seconds stay
    /// whole.
    pub(super) fn before(self, length: Duration) -> Self {
        let end = i128::from(self.second) * NANOSECONDS + i128::from(self.nanosecond.unwrap_or(0));
        let begin = end - length.as_nanos() as i128;
        let second = i64::try_from(begin.div_euclid(NANOSECONDS)).unwrap_or(self.second);
        // A remainder of 10⁹ fits.
        Self { second, nanosecond: self.nanosecond.map(|_| begin.rem_euclid(NANOSECONDS) as u32) }
    }
}

/// The common format's stamp, which has a time zone. A leap second counts as the next second.
pub(super) fn common(text: &[u8]) -> Option<Stamp> {
    let (local, rest) = common_date(text)?;
    Some(local.east_of_utc(zone(rest.strip_prefix(b" ")?)?))
}

/// The common format's stamp without a time zone, read as UTC: HAProxy's.
pub(super) fn common_without_zone(text: &[u8]) -> Option<Stamp> {
    let (local, rest) = common_date(text)?;
    rest.is_empty().then_some(local)
}

/// ISO 8601's stamp, of which RFC 3339 is a part: date and time with a `T` or a space between, and a time
/// zone or none, which is read as UTC. The parts of the date may be separated by `/`.
pub(super) fn iso(text: &[u8]) -> Option<Stamp> {
    let mut rest = text;
    let year =
        (text.get(4).is_some_and(|byte| matches!(byte, b'-' | b'/'))).then(|| digits(&mut rest, 4))??;
    let month = after(&mut rest, b"-/").and_then(|()| digits(&mut rest, 2))?;
    let day = after(&mut rest, b"-/").and_then(|()| digits(&mut rest, 2))?;
    after(&mut rest, b"T t")?;
    let month = usize::try_from(month).ok()?.checked_sub(1)?;
    let (local, rest) = with_clock(year, month, day, rest)?;
    match rest.strip_prefix(b" ").unwrap_or(rest) {
        [] => Some(local),
        zone_text => Some(local.east_of_utc(zone(zone_text)?)),
    }
}

/// Seconds since 1970, or milli-, micro- or nanoseconds, which have more digits.
pub(super) fn since_1970(text: &[u8]) -> Option<Stamp> {
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = text.split_at(point);
    let unit_ns: i128 = match whole.len() {
        1..=11 => NANOSECONDS,
        12..=14 => 1_000_000,
        15..=17 => 1_000,
        18..=19 => 1,
        _ => return None,
    };
    let whole_ns = i128::from(number(whole)?) * unit_ns;
    let (fraction, rest) = fraction_ns(fraction)?;
    if !rest.is_empty() {
        return None;
    }
    let ns = whole_ns + i128::from(fraction.unwrap_or(0)) * unit_ns / NANOSECONDS;
    let is_whole = fraction.is_none() && unit_ns == NANOSECONDS;
    let second = i64::try_from(ns.div_euclid(NANOSECONDS)).ok()?;
    Some(Stamp { second, nanosecond: (!is_whole).then(|| ns.rem_euclid(NANOSECONDS) as u32) })
}

/// A stamp in any of the three forms.
pub(super) fn any(text: &[u8]) -> Option<Stamp> {
    since_1970(text).or_else(|| iso(text)).or_else(|| common(text))
}

/// A length of time, written in units of `unit_ns` nanoseconds; `None` for text that is none, such as `-`.
pub(super) fn length(text: &[u8], unit_ns: u32) -> Option<Duration> {
    let number: f64 = str::from_utf8(text).ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(number * f64::from(unit_ns) / 1e9).ok()
}

impl Stamp {
    fn east_of_utc(self, seconds: i64) -> Self {
        Self { second: self.second - seconds, ..self }
    }
}

/// `17/May/2015:10:05:03`, a fraction, and what follows.
fn common_date(text: &[u8]) -> Option<(Stamp, &[u8])> {
    let [_, _, b'/', name @ .., b'/', _, _, _, _, b':'] = text.get(..12)? else { return None };
    let month = MONTHS.iter().position(|month| month.as_slice() == name)?;
    with_clock(number(&text[7..11])?, month, number(&text[..2])?, &text[12..])
}

/// The stamp of a date (month 0 is January) and of the `10:05:03` or `10:05:03.25` at the beginning of
/// `clock`, and what follows that.
fn with_clock(year: i64, month: usize, day: i64, clock: &[u8]) -> Option<(Stamp, &[u8])> {
    let (&[h1, h2, b':', m1, m2, b':', s1, s2], rest) = clock.split_first_chunk::<8>()? else { return None };
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    let is_valid = year >= 1
        && month < MONTHS.len()
        && (1..=days_of_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid {
        return None;
    }
    let (nanosecond, rest) = fraction_ns(rest)?;
    let second = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((Stamp { second, nanosecond }, rest))
}

/// Nanoseconds of `.25` or `,25` (`None` if there is no fraction), and what follows.
fn fraction_ns(text: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let [b'.' | b',', rest @ ..] = text else { return Some((None, text)) };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at(length);
    // Digits beyond nanoseconds are left out.
    let digits = digits.iter().map(|digit| u32::from(digit - b'0')).chain(std::iter::repeat(0)).take(9);
    let nanoseconds = digits.fold(0, |sum, digit| sum * 10 + digit);
    (length > 0).then_some((Some(nanoseconds), rest))
}

/// Seconds that `Z`, `+0530` or `+05:30` are east of UTC.
fn zone(text: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match text {
        b"Z" | b"z" => return Some(0),
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => (sign, [*h1, *h2], [*m1, *m2]),
        _ => return None,
    };
    let seconds = number(&hours)? * 3_600 + number(&minutes)? * 60;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// Takes one of these bytes.
fn after(rest: &mut &[u8], one_of: &[u8]) -> Option<()> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    one_of.contains(first).then_some(())
}

/// Takes a number of one digit up to `most`.
fn digits(rest: &mut &[u8], most: usize) -> Option<i64> {
    let length = rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(length);
    *rest = after;
    number(digits)
}

/// A number of one to eighteen digits and nothing else, or of nineteen that fit.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    digits.iter().try_fold(0_i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
}

/// Month 0 is January; so it is below.
fn days_of_month(year: i64, month: usize) -> i64 {
    match month {
        1 => 28 + i64::from(is_leap(year)),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: usize, day: i64) -> i64 {
    let years = year - 1;
    let leap_day = i64::from(month > 1 && is_leap(year));
    years * 365 + years / 4 - years / 100 + years / 400 + DAYS_BEFORE_MONTH[month] + leap_day + day
        - 1
        - DAYS_BEFORE_1970
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from `date -u -d ... +%s`.
    #[test]
    fn known_moments() {
        let check =
            |text: &str, wanted| assert_eq!(common(text.as_bytes()), Some(Stamp::whole(wanted)), "{text}");
        check("01/Jan/1970:00:00:00 +0000", 0);
        check("17/May/2015:10:05:03 +0000", 1_431_857_103);
        check("29/Feb/2000:23:59:59 +0000", 951_868_799);
        check("01/Aug/1995:00:00:01 -0400", 807_249_601);
        check("01/Mar/2024:05:15:00 +0530", 1_709_250_300);
        check("31/Dec/2016:23:59:60 +0000", 1_483_228_800);
        check("31/Dec/1969:23:59:59 +0000", -1);
        check("31/Dec/9999:23:59:59 +0000", 253_402_300_799);
    }

    #[test]
    fn the_same_moment_in_every_form() {
        let stamp = |nanosecond| Stamp { second: 1_431_857_103, nanosecond };
        let check =
            |text: &str, nanosecond| assert_eq!(any(text.as_bytes()), Some(stamp(nanosecond)), "{text}");
        check("17/May/2015:10:05:03.25 +0000", Some(250_000_000));
        check("17/May/2015:06:05:03.250001 -0400", Some(250_001_000));
        check("2015-05-17T10:05:03Z", None);
        check("2015-05-17T10:05:03.000Z", Some(0));
        check("2015-05-17T12:05:03.25+02:00", Some(250_000_000));
        check("2015-05-17T12:05:03,25+0200", Some(250_000_000));
        check("2015-05-17 10:05:03", None);
        check("2015/05/17 10:05:03.250", Some(250_000_000));
        check("2015-5-17 10:05:03 +00:00", None);
        check("1431857103", None);
        check("1431857103.0", Some(0));
        check("1431857103.2500000004", Some(250_000_000));
        check("1431857103250", Some(250_000_000));
        check("1431857103250.5", Some(250_500_000));
        check("1431857103250000", Some(250_000_000));
        check("1431857103250000007", Some(250_000_007));
        assert_eq!(common_without_zone(b"17/May/2015:10:05:03.250"), Some(stamp(Some(250_000_000))));
        assert_eq!(common_without_zone(b"17/May/2015:10:05:03.250 +0000"), None);
    }

    #[test]
    fn a_beginning_is_its_end_less_its_length() {
        let length = Duration::from_millis(1_250);
        assert_eq!(Stamp::whole(10).before(length), Stamp::whole(8));
        let exact = |second, nanosecond| Stamp { second, nanosecond: Some(nanosecond) };
        assert_eq!(exact(10, 0).before(length), exact(8, 750_000_000));
        assert_eq!(exact(0, 0).before(length), exact(-2, 750_000_000));
        assert_eq!(Stamp::whole(i64::MIN).before(Duration::MAX).second, i64::MIN);
        assert_eq!(self::length(b"0.001", 1_000_000_000), Some(Duration::from_millis(1)));
        assert_eq!(self::length(b"15", 1_000_000), Some(Duration::from_millis(15)));
        for wrong in [&b"-"[..], b"-1", b"", b"soon", b"nan", b"inf", b"\xff"] {
            assert_eq!(self::length(wrong, 1), None);
        }
    }

    #[test]
    fn consecutive_days_are_a_day_apart() {
        let mut before = None;
        for year in 1890..2110 {
            for (month, name) in MONTHS.iter().enumerate() {
                for day in 1..=days_of_month(year, month) {
                    let name = String::from_utf8_lossy(*name);
                    let now = common(format!("{day:02}/{name}/{year}:00:00:00 +0000").as_bytes()).unwrap();
                    let written = format!("{year}-{:02}-{day:02}T00:00:00Z", month + 1);
                    assert_eq!(iso(written.as_bytes()), Some(now), "{written}");
                    assert!(before.is_none_or(|before| now.second - before == 86_400), "{written}");
                    before = Some(now.second);
                }
            }
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "17/May/2015:10:05:03",
            "17/May/2015:10:05:03 00000",
            "17/may/2015:10:05:03 +0000",
            "17/Mai/2015:10:05:03 +0000",
            "00/May/2015:10:05:03 +0000",
            "31/Apr/2015:10:05:03 +0000",
            "29/Feb/2015:10:05:03 +0000",
            "29/Feb/1900:10:05:03 +0000",
            "17/May/0000:10:05:03 +0000",
            "17/May/2015:24:05:03 +0000",
            "17/May/2015:10:60:03 +0000",
            "17/May/2015:10:05:61 +0000",
            "+7/May/2015:10:05:03 +0000",
            "17/May/2015:10:05:03 +0x00",
            "17/May/2015 10:05:03 +0000",
            "17/May/2015:10:05:03. +0000",
            "2015-05-17",
            "2015-00-17T10:05:03Z",
            "2015-13-17T10:05:03Z",
            "2015-05-17T10:05Z",
            "2015-05-17T10:05:03Zulu",
            "2015-05-17x10:05:03Z",
            "123456789012345678901",
            "1431857103.",
            "1431857103.5s",
            "-5",
        ] {
            assert_eq!(any(text.as_bytes()), None, "{text}");
        }
    }
}
