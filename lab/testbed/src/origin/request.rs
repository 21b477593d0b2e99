//! Demand of a request, from its path and query.

use crate::origin::workers::Cost;
use flashweir_core::limits::{ORIGIN_BODY_BYTES, ORIGIN_WORK_MS};
use http::{Method, Uri};
use std::time::Duration;

/// Cost and size of a request unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) iterations_per_ms: f64,
    pub(crate) work_ms: f64,
    pub(crate) wait: Duration,
    pub(crate) body_bytes: u64,
}

/// Path of the number of completed requests.
pub(crate) const COMPLETED_PATH: &str = "/completed";

/// Demand of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Health check of the server.
    Health,
    /// Number of requests that it has completed.
    Completed,
    /// Work, then bytes.
    Work { cost: Cost, body_bytes: u64, max_age_s: Option<u32> },
    /// Set the number of threads that work from now on.
    Employ { workers: usize },
    /// Make the next requests slow, as after a restart.
    Cool { requests: u64 },
}

impl Defaults {
    /// Links of the hash chain for a given work in milliseconds.
    pub(crate) fn iterations(&self, work_ms: f64) -> u64 {
        (work_ms * self.iterations_per_ms).round() as u64
    }

    /// Reads a request's method, path and query; says what is wrong with them.
    pub(crate) fn read(&self, method: &Method, uri: &Uri) -> Result<Ask, String> {
        if uri.path() == "/healthz" {
            return Ok(Ask::Health);
        }
        if uri.path() == COMPLETED_PATH {
            return Ok(Ask::Completed);
        }
        if method == Method::POST
            && let Some(workers) = uri.path().strip_prefix("/workers/")
        {
            let workers = workers.parse().map_err(|_| "expected /workers/N with a number".to_owned())?;
            return Ok(Ask::Employ { workers });
        }
        if method == Method::POST
            && let Some(requests) = uri.path().strip_prefix("/cold/")
        {
            let requests = requests.parse().map_err(|_| "expected /cold/N with a number".to_owned())?;
            return Ok(Ask::Cool { requests });
        }
        let body_bytes = match uri.path().strip_prefix("/bytes/") {
            Some(bytes) => bytes
                .parse()
                .ok()
                .filter(|bytes| *bytes <= ORIGIN_BODY_BYTES)
                .ok_or_else(|| format!("expected /bytes/N with N from 0 to {ORIGIN_BODY_BYTES}"))?,
            None => self.body_bytes,
        };
        let milliseconds = |name: &str| {
            let text = parameter(uri.query().unwrap_or_default(), name);
            text.map(|ms| {
                ms.parse()
                    .ok()
                    .filter(|ms| (0.0..=ORIGIN_WORK_MS).contains(ms))
                    .ok_or_else(|| format!("expected {name}=F with F from 0 to {ORIGIN_WORK_MS}"))
            })
            .transpose()
        };
        let work_ms = milliseconds("ms")?.unwrap_or(self.work_ms);
        let wait = milliseconds("wait")?.map_or(self.wait, |ms| Duration::from_secs_f64(ms / 1e3));
        let max_age_s = parameter(uri.query().unwrap_or_default(), "max_age").map(|seconds| {
            seconds.parse().map_err(|_| "expected max_age=N with a number of seconds".to_owned())
        });
        let cost = Cost { iterations: self.iterations(work_ms), wait };
        Ok(Ask::Work { cost, body_bytes, max_age_s: max_age_s.transpose()? })
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

    fn ask(method: Method, uri: &str) -> Result<Ask, String> {
        let wait = Duration::from_millis(3);
        let defaults = Defaults { iterations_per_ms: 100.0, work_ms: 5.0, wait, body_bytes: 7 };
        defaults.read(&method, &uri.parse().unwrap())
    }

    fn read(uri: &str) -> Result<Ask, String> {
        ask(Method::GET, uri)
    }

    #[test]
    fn paths_and_parameters_change_work_and_size() {
        let wait = Duration::from_millis(3);
        let aged = |iterations, body_bytes, max_age_s| {
            Ok(Ask::Work { cost: Cost { iterations, wait }, body_bytes, max_age_s })
        };
        let work = |iterations, body_bytes| aged(iterations, body_bytes, None);
        assert_eq!(read("/work?max_age=60"), aged(500, 7, Some(60)));
        assert!(read("/work?max_age=x").is_err());
        assert_eq!(read("/"), work(500, 7));
        assert_eq!(read("/work?ms=2.5"), work(250, 7));
        assert_eq!(read("/bytes/1000?x=1&ms=0"), work(0, 1000));
        let waiting = Cost { iterations: 500, wait: Duration::from_secs(4) };
        assert_eq!(read("/poll?wait=4000"), Ok(Ask::Work { cost: waiting, body_bytes: 7, max_age_s: None }));
        assert_eq!(read("/healthz"), Ok(Ask::Health));
        assert_eq!(read("/completed"), Ok(Ask::Completed));
    }

    #[test]
    fn only_a_post_changes_threads_and_cold_requests() {
        assert_eq!(ask(Method::POST, "/cold/40"), Ok(Ask::Cool { requests: 40 }));
        assert!(ask(Method::POST, "/cold/-1").is_err());
        assert!(matches!(read("/cold/40"), Ok(Ask::Work { .. })));
        assert_eq!(ask(Method::POST, "/workers/2"), Ok(Ask::Employ { workers: 2 }));
        assert!(ask(Method::POST, "/workers/two").is_err());
        assert!(matches!(read("/workers/2"), Ok(Ask::Work { .. })));
    }

    #[test]
    fn absurd_wishes_are_refused() {
        for uri in
            ["/bytes/x", "/bytes/99999999999", "/work?ms=-1", "/work?ms=NaN", "/work?ms=1e9", "/?wait=-1"]
        {
            assert!(read(uri).is_err(), "{uri}");
        }
    }
}
