//! The time stamp of the common log format: `17/May/2015:10:05:03 +0000`.

/// Bytes of a time stamp; the format is fixed.
pub(super) const LOG_TIME_BYTES: usize = 26;

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const DAYS_BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const MARKS: [(usize, u8); 6] = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')];
/// Days from the first of January of year 1 to that of 1970 (proleptic Gregorian calendar).
const DAYS_BEFORE_1970: i64 = 719_162;

/// Seconds since 1970 (UTC), or `None` if this is no such time stamp. A leap second counts as the next second.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    if text.len() != LOG_TIME_BYTES || MARKS.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let month = MONTHS.iter().position(|name| name.as_slice() == &text[3..6])?;
    let (day, year) = (number(&text[..2])?, number(&text[7..11])?);
    let (hour, minute, second) = (number(&text[12..14])?, number(&text[15..17])?, number(&text[18..20])?);
    let east_of_utc_s = number(&text[22..24])? * 3_600 + number(&text[24..26])? * 60;
    let is_valid = year >= 1
        && (1..=days_of_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid {
        return None;
    }
    let local = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    match text[21] {
        b'+' => Some(local - east_of_utc_s),
        b'-' => Some(local + east_of_utc_s),
        _ => None,
    }
}

/// A number of digits only, few enough not to overflow.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
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
        let check = |text: &str, wanted| assert_eq!(parse(text.as_bytes()), Some(wanted), "{text}");
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
    fn consecutive_days_are_a_day_apart() {
        let mut before = None;
        for year in 1890..2110 {
            for (month, name) in MONTHS.iter().enumerate() {
                for day in 1..=days_of_month(year, month) {
                    let name = String::from_utf8_lossy(*name);
                    let now = parse(format!("{day:02}/{name}/{year}:00:00:00 +0000").as_bytes()).unwrap();
                    assert!(before.is_none_or(|before| now - before == 86_400), "{day} {name} {year}");
                    before = Some(now);
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
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
