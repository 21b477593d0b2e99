//! Moments as the access log writes them, in UTC.

use std::time::{Duration, UNIX_EPOCH};

/// Months in the order of the year.
const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";

/// One second in two forms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Second {
    unix_s: u64,
    /// As Apache has it: `06/Nov/1994:08:49:37 +0000`.
    pub(super) combined: String,
    /// RFC 3339 up to the seconds: `1994-11-06T08:49:37`.
    pub(super) rfc3339: String,
}

impl Second {
    pub(super) fn at(unix_s: u64) -> Self {
        // The library's form has fixed places: "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 §5.6.7).
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(unix_s));
        let (day, month, year, time) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
        let number = MONTHS.find(month).map_or(0, |place| place / 3 + 1);
        Self {
            unix_s,
            combined: format!("{day}/{month}/{year}:{time} +0000"),
            rfc3339: format!("{year}-{number:02}-{day}T{time}"),
        }
    }

    pub(super) fn is(&self, unix_s: u64) -> bool {
        self.unix_s == unix_s && !self.combined.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_the_forms_of_apache_and_of_rfc_3339() {
        let second = Second::at(784_111_777);
        assert_eq!(second.combined, "06/Nov/1994:08:49:37 +0000");
        assert_eq!(second.rfc3339, "1994-11-06T08:49:37");
        assert_eq!(Second::at(1_735_689_599).rfc3339, "2024-12-31T23:59:59");
        assert!(second.is(784_111_777) && !second.is(0) && !Second::default().is(0));
    }
}
