//! What a request asks for, from its path and query.

use flashweir_core::limits::{ORIGIN_BODY_BYTES, ORIGIN_WORK_MS};
use http::Uri;

/// What a request costs and brings unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) iterations_per_ms: f64,
    pub(crate) work_ms: f64,
    pub(crate) body_bytes: u64,
}

/// What one request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Whether the server lives.
    Health,
    /// Work, then bytes.
    Work { iterations: u64, body_bytes: u64 },
}

impl Defaults {
    /// Links of the hash chain for so many milliseconds of work.
    pub(crate) fn iterations(&self, work_ms: f64) -> u64 {
        (work_ms * self.iterations_per_ms).round() as u64
    }

    /// Reads a request's path and query; says what is wrong with them.
    pub(crate) fn read(&self, uri: &Uri) -> Result<Ask, String> {
        if uri.path() == "/healthz" {
            return Ok(Ask::Health);
        }
        let body_bytes = match uri.path().strip_prefix("/bytes/") {
            Some(bytes) => bytes
                .parse()
                .ok()
                .filter(|bytes| *bytes <= ORIGIN_BODY_BYTES)
                .ok_or_else(|| format!("expected /bytes/N with N from 0 to {ORIGIN_BODY_BYTES}"))?,
            None => self.body_bytes,
        };
        let work_ms = match parameter(uri.query().unwrap_or_default(), "ms") {
            Some(ms) => ms
                .parse()
                .ok()
                .filter(|ms| (0.0..=ORIGIN_WORK_MS).contains(ms))
                .ok_or_else(|| format!("expected ms=F with F from 0 to {ORIGIN_WORK_MS}"))?,
            None => self.work_ms,
        };
        Ok(Ask::Work { iterations: self.iterations(work_ms), body_bytes })
    }
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query
        .split('&')
        .filter_map(|part| part.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(uri: &str) -> Result<Ask, String> {
        let defaults = Defaults { iterations_per_ms: 100.0, work_ms: 5.0, body_bytes: 7 };
        defaults.read(&uri.parse().unwrap())
    }

    #[test]
    fn paths_and_parameters_change_work_and_size() {
        let work = |iterations, body_bytes| Ok(Ask::Work { iterations, body_bytes });
        assert_eq!(read("/"), work(500, 7));
        assert_eq!(read("/work?ms=2.5"), work(250, 7));
        assert_eq!(read("/bytes/1000?x=1&ms=0"), work(0, 1000));
        assert_eq!(read("/healthz"), Ok(Ask::Health));
    }

    #[test]
    fn absurd_wishes_are_refused() {
        for uri in ["/bytes/x", "/bytes/99999999999", "/work?ms=-1", "/work?ms=NaN", "/work?ms=1e9"] {
            assert!(read(uri).is_err(), "{uri}");
        }
    }
}
