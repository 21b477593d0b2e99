//! `Date` of responses that come without it (RFC 9110 §6.6.1).
//!
//! hyper adds the field, too, but renders it again only when the clock has passed the second it shows: after
//! the clock was set back by three hours, it would be three hours ahead for as long. Here any other second is
//! rendered.

use http::HeaderValue;
use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The present date.
pub(super) fn now() -> HeaderValue {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    at(now.as_secs())
}

/// One rendering serves for all responses of its second.
fn at(unix_s: u64) -> HeaderValue {
    thread_local!(static LATEST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) });
    LATEST.with_borrow_mut(|latest| match latest {
        Some((second, date)) if *second == unix_s => date.clone(),
        _ => {
            let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(unix_s));
            let date = HeaderValue::try_from(text).expect("a date is visible ASCII");
            latest.insert((unix_s, date)).1.clone()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// haproxy/haproxy#2704: the clock is set forward, and back.
    #[test]
    fn the_date_follows_a_clock_that_is_set_back() {
        assert_eq!(at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(at(784_122_577), "Sun, 06 Nov 1994 11:49:37 GMT");
        assert_eq!(at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
