//! `Surrogate-Control` (Edge Architecture Specification, W3C note of 4 August 2001, §2.2): the older word of
//! origins to caches before them, which applications that know Varnish, Fastly or Akamai send.
//!
//! Where it names a lifetime, it counts in place of `Cache-Control` and `Expires`, as `CDN-Cache-Control`
//! does, and behind that; but `private` in `Cache-Control` counts beside it. The note has no words of
//! `Cache-Control` but `no-store`: origins write them all the same, and they restrict. A lifetime that is for
//! another surrogate by name is not ours, for this one has no name; a restriction counts whomever it names.
//! The lifetime's extension (`max-age=60+30`) is not used.

use crate::directives::{Directives, put};
use http::{HeaderMap, HeaderName};

const SURROGATE_CONTROL: HeaderName = HeaderName::from_static("surrogate-control");

/// The field's directives; none where it has none that is known here.
pub(crate) fn read(fields: &HeaderMap) -> Option<Directives> {
    let mut all = Directives::default();
    let mut is_any = false;
    for line in fields.get_all(SURROGATE_CONTROL) {
        for element in line.as_bytes().split(|&byte| byte == b',') {
            let mut parts = element.split(|&byte| byte == b';');
            let directive = parts.next().unwrap_or_default().trim_ascii();
            let is_for_another = parts.next().is_some();
            let mut sides = directive.splitn(2, |&byte| byte == b'=');
            let (name, argument) = (sides.next().unwrap_or_default(), sides.next());
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            // A body that is to be processed (`content`) is of use to a cache that does so.
            if is("no-store") || is("no-store-remote") || is("content") {
                all.no_store = true;
                is_any = true;
            } else if is("private") {
                all.private = true;
                is_any = true;
            } else if is("no-cache") {
                all.no_cache = true;
                is_any = true;
            } else if is("must-revalidate") || is("proxy-revalidate") {
                all.must_revalidate = true;
                is_any = true;
            } else if is("max-age") && !is_for_another {
                let seconds = |argument: &[u8]| argument.iter().position(|&byte| byte == b'+');
                let argument = argument.map(|all| &all[..seconds(all).unwrap_or(all.len())]);
                put(&mut all.max_age, argument);
                is_any = true;
            }
        }
    }
    is_any.then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use http::HeaderValue;

    fn of(lines: &[&str]) -> Option<(Option<u64>, bool)> {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(SURROGATE_CONTROL, HeaderValue::from_str(line).expect("a value"));
        }
        read(&fields).map(|all| (all.max_age.as_ref().map(Duration::as_secs), all.no_store))
    }

    #[test]
    fn a_lifetime_is_for_all_surrogates_or_for_another() {
        for line in ["max-age=60", "MaX-aGe=60", "foobar, max-age=60", " max-age=60 ", "max-age=60+30"] {
            assert_eq!(of(&[line]), Some((Some(60), false)), "{line}");
        }
        for line in ["", "foo", "max-age=60;other", "max-age =60", "content-type=a"] {
            assert_eq!(of(&[line]), None, "{line}");
        }
        assert_eq!(of(&["max-age=60;other, max-age=30"]), Some((Some(30), false)));
        for line in ["max-age", "max-age=", "max-age= 60", "max-age=-1", "max-age=60, max-age=61"] {
            assert_eq!(of(&[line]), Some((Some(0), false)), "{line}");
        }
    }

    #[test]
    fn words_of_cache_control_restrict() {
        let all = |line: &'static str| {
            read(&HeaderMap::from_iter([(SURROGATE_CONTROL, HeaderValue::from_static(line))]))
                .expect("known words")
        };
        assert!(all("max-age=60, Private").private);
        assert!(all("max-age=60, no-cache").no_cache);
        assert!(
            all("max-age=60, proxy-revalidate").must_revalidate && all("must-revalidate").must_revalidate
        );
    }

    #[test]
    fn a_restriction_counts_whomever_it_names() {
        for line in ["no-store", "No-Store;other", "no-store-remote", "content=\"ESI/1.0, x\"", "content"] {
            assert_eq!(of(&["max-age=60", line]), Some((Some(60), true)), "{line}");
        }
    }
}
