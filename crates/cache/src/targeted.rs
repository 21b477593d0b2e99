//! `CDN-Cache-Control` (RFC 9213): what an origin says to shared caches near it, in place of `Cache-Control`
//! and `Expires`.
//!
//! The field is a dictionary of structured fields (RFC 9651), which `sfv` reads. A field that is empty or
//! cannot be read is ignored, so that `Cache-Control` counts (§2.1). Two rules go beyond the standard, for
//! storing less is always allowed: a restriction counts with any value, and also in a field that cannot be
//! read.

use crate::directives::Directives;
use crate::surrogate;
use core::time::Duration;
use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The field of the one target that this cache is: a shared cache before an origin.
const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

impl Directives {
    /// The directives in force: those of the targeted field where it can be read (§2.2), else of
    /// `Surrogate-Control`, else of `Cache-Control`.
    #[must_use]
    pub fn of_response(fields: &HeaderMap) -> Self {
        let general = Self::of_cache_control(fields);
        let general = match surrogate::read(fields) {
            // Not a standard: what is for one user stays so.
            Some(surrogate) => {
                Self { private: surrogate.private || general.private, ..surrogate.in_place_of(&general) }
            }
            None => general,
        };
        if !fields.contains_key(CDN_CACHE_CONTROL) {
            return general;
        }
        match read(fields) {
            Some(targeted) => targeted.in_place_of(&general),
            None => {
                let names = |word| fields.get_all(CDN_CACHE_CONTROL).iter().any(|line| names(line, word));
                Self {
                    no_store: general.no_store || names("no-store"),
                    no_cache: general.no_cache || names("no-cache"),
                    private: general.private || names("private"),
                    must_revalidate: general.must_revalidate
                        || names("must-revalidate")
                        || names("proxy-revalidate"),
                    ..general
                }
            }
        }
    }
}

impl Directives {
    /// These, said to caches before the origin alone, with what those said to all forbid.
    fn in_place_of(self, general: &Self) -> Self {
        let is_restricted =
            general.no_store || general.private || general.must_revalidate || general.is_doubtful;
        Self {
            is_targeted: true,
            is_general_restricted: is_restricted || general.is_general_restricted,
            ..self
        }
    }
}

/// Returns whether a directive of this name may be meant anywhere in a line that cannot be read: in any case,
/// with any value.
fn names(line: &HeaderValue, word: &str) -> bool {
    let mut elements = line.as_bytes().split(|&byte| byte == b',');
    elements.any(|element| {
        let name = element.split(|byte| b"=;".contains(byte)).next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(word.as_bytes())
    })
}

/// The field's directives; none where it is empty or cannot be read.
fn read(fields: &HeaderMap) -> Option<Directives> {
    // Lines are joined before they are read (RFC 9651 §4.2).
    let lines: Vec<&[u8]> = fields.get_all(CDN_CACHE_CONTROL).iter().map(|line| line.as_bytes()).collect();
    let dictionary = Parser::new(&lines.join(&b", "[..])).parse::<Dictionary>().ok()?;
    if dictionary.is_empty() {
        return None;
    }
    let mut directives = Directives::default();
    for (name, entry) in &dictionary {
        let value = match entry {
            ListEntry::Item(item) => Some(&item.bare_item),
            ListEntry::InnerList(_) => None,
        };
        match name.as_str() {
            "no-store" => directives.no_store = true,
            // With names of fields they are taken for the whole, as in `Cache-Control`.
            "no-cache" => directives.no_cache = true,
            "private" => directives.private = true,
            "must-revalidate" | "proxy-revalidate" => directives.must_revalidate = true,
            "public" => directives.public = matches!(value, Some(BareItem::Boolean(true))),
            "max-age" => directives.max_age = Some(seconds(value)),
            "s-maxage" => directives.s_maxage = Some(seconds(value)),
            "stale-while-revalidate" => directives.stale_while_revalidate = Some(seconds(value)),
            "stale-if-error" => directives.stale_if_error = Some(seconds(value)),
            _ => {}
        }
    }
    Some(directives)
}

/// A value of another type is none (§2.1): the response counts as stale.
fn seconds(value: Option<&BareItem>) -> Duration {
    let Some(BareItem::Integer(seconds)) = value else { return Duration::ZERO };
    let seconds = u64::try_from(i64::from(*seconds)).unwrap_or(0);
    Duration::from_secs(seconds.min(crate::directives::SECONDS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::CACHE_CONTROL;
    use proptest::prelude::*;

    fn of(general: &str, targeted: &[&str]) -> Directives {
        let mut fields = HeaderMap::new();
        fields.insert(CACHE_CONTROL, HeaderValue::from_str(general).expect("a value"));
        for line in targeted {
            fields.append(CDN_CACHE_CONTROL, HeaderValue::from_bytes(line.as_bytes()).expect("a value"));
        }
        Directives::of_response(&fields)
    }

    const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

    /// RFC 9213 §2.2.
    #[test]
    fn a_targeted_field_takes_the_place_of_cache_control() {
        let targeted = of("no-store", &["max-age=60"]);
        assert!(targeted.is_targeted && !targeted.no_store);
        assert_eq!((targeted.max_age, targeted.s_maxage), (MINUTE, None));
        let shorter = of("public, max-age=90, s-maxage=90", &["max-age=60"]);
        assert_eq!((shorter.max_age, shorter.s_maxage, shorter.public), (MINUTE, None, false));
        for restriction in ["private", "no-store", "no-cache", "must-revalidate", "private=\"a, b\""] {
            let all = of("public, max-age=90", &["max-age=60", restriction]);
            let flags = [all.private, all.no_store, all.no_cache, all.must_revalidate];
            assert_eq!(flags.iter().filter(|&&flag| flag).count(), 1, "{restriction}");
        }
        let others = of("", &["stale-while-revalidate=60;a=1, stale-if-error=60, foo, public, s-maxage=60"]);
        assert_eq!(
            (others.stale_while_revalidate, others.stale_if_error, others.s_maxage, others.public),
            (MINUTE, MINUTE, MINUTE, true)
        );
    }

    /// RFC 9213 §2.1.
    #[test]
    fn a_targeted_field_that_is_empty_or_cannot_be_read_is_ignored() {
        for targeted in
            ["", " ", "max-age=60, &&&&", "Max-Age=60", "max-age =60", "max-age= 60", "max-age=60,"]
        {
            let all = of("max-age=90", &[targeted]);
            assert!(!all.is_targeted, "{targeted}");
            assert_eq!(all.max_age, Some(Duration::from_secs(90)), "{targeted}");
        }
    }

    /// RFC 9111 §3: storing less is allowed, and what an origin meant by a word that cannot be read is not to
    /// share.
    #[test]
    fn a_restriction_counts_in_a_field_that_cannot_be_read() {
        assert!(of("max-age=90", &["Private"]).private);
        assert!(of("max-age=90", &["no-store, &&"]).no_store);
        assert!(of("max-age=90", &["max-age=60,no-cache,"]).no_cache);
        assert!(of("max-age=90", &["Private=\"a"]).private);
        assert!(of("max-age=90", &["private=?0"]).private);
    }

    /// RFC 9213 §2.1: values of another type are not used.
    #[test]
    fn a_time_of_another_type_is_none() {
        for targeted in
            ["max-age=\"60\"", "max-age", "max-age=60.0", "max-age=(60)", "max-age=-60", "max-age=a60"]
        {
            let all = of("max-age=90", &[targeted]);
            assert_eq!((all.is_targeted, all.max_age), (true, Some(Duration::ZERO)), "{targeted}");
        }
        let long = of("", &["max-age=99999999999"]).max_age;
        assert_eq!(long, Some(Duration::from_secs(crate::directives::SECONDS_MAX)));
    }

    /// The order of RFC 9213, with the older field in the middle.
    #[test]
    fn surrogate_control_counts_before_cache_control_and_behind_the_targeted_field() {
        let mut fields = HeaderMap::new();
        let mut with = |name: &'static str, value: &'static str| {
            fields.insert(name, HeaderValue::from_static(value));
            Directives::of_response(&fields)
        };
        assert!(with("cache-control", "private, max-age=90").private);
        assert!(with("surrogate-control", "max-age=60").private, "for one user");
        let surrogate = with("cache-control", "no-store, max-age=0");
        assert!(surrogate.is_targeted && surrogate.is_general_restricted && !surrogate.no_store);
        assert_eq!(surrogate.max_age, MINUTE);
        assert!(with("surrogate-control", "no-store").no_store);
        let targeted = with("cdn-cache-control", "max-age=60");
        assert!(!targeted.no_store && targeted.is_general_restricted);
        assert!(with("cdn-cache-control", "max-age=60,").no_store, "it cannot be read");
    }

    #[test]
    fn what_cache_control_forbids_is_known_beside_it() {
        assert!(of("private", &["max-age=60"]).is_general_restricted);
        assert!(!of("max-age=0", &["max-age=60"]).is_general_restricted);
    }

    proptest! {
        /// Goal: `private` keeps a response for its client, with anything but a string beside it.
        #[test]
        fn private_is_found_beside_anything(before in "[ -!#-~]{0,20}", behind in "[ -!#-~]{0,20}") {
            let line = format!("{before}, private, {behind}");
            let all = of("max-age=90", &[&line]);
            prop_assert!(all.private, "{}", line);
        }
    }
}
