//! Values as people write them on the command line, where no library reads them already.

use crate::CrowdWindow;
use flashweir_core::limits::LOAD_RATE_PER_S;
use flashweir_workload::{Part, duration_text};
use hyper::header::{HeaderName, HeaderValue};
use std::time::Duration;

/// A rate and the time that goes with it, written `500@10s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateAt {
    pub(crate) rate_per_s: f64,
    pub(crate) at: Duration,
}

/// Reads people per second, zero included.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > LOAD_RATE_PER_S => Err(absurd(rate)),
        Ok(rate) if rate >= 0.0 => Ok(rate),
        _ => Err("expected a number of people a second, zero or more".to_owned()),
    }
}

/// Message about an absurd rate.
pub(crate) fn absurd(rate_per_s: f64) -> String {
    format!("{rate_per_s:e} people a second is absurd: expected at most {LOAD_RATE_PER_S:.0}")
}

/// Reads `500@10s`; the rate may be zero.
pub(crate) fn rate_at(text: &str) -> Result<RateAt, String> {
    let (number, at) = text.split_once('@').ok_or("expected RATE@TIME, like 500@10s")?;
    let at = duration_text::parse(at).map_err(|error| error.to_string())?;
    Ok(RateAt { rate_per_s: rate(number)?, at })
}

/// Reads `Name: value`.
pub(crate) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME: VALUE")?;
    let name = name.trim().parse().map_err(|error| format!("{error}"))?;
    let value = value.trim().parse().map_err(|error| format!("{error}"))?;
    Ok((name, value))
}

/// Reads `2/3`, the second of three parts.
pub(crate) fn part(text: &str) -> Result<Part, String> {
    let numbers = text.split_once('/').and_then(|(index, count)| {
        let index: u32 = index.parse().ok()?;
        Part::new(index.checked_sub(1)?, count.parse().ok()?)
    });
    numbers.ok_or_else(|| "expected I/N with I from 1 to N, like 2/3".to_owned())
}

/// Reads `10s-20s`, from the start of the run.
pub(crate) fn crowd_window(text: &str) -> Result<CrowdWindow, String> {
    let (from, to) = text.split_once('-').ok_or("expected FROM-TO, like 10s-20s")?;
    let seconds = |text| duration_text::parse_or_zero(text).map(|time| time.as_secs_f64());
    let from_s = seconds(from).map_err(|error| error.to_string())?;
    let to_s = seconds(to).map_err(|error| error.to_string())?;
    if from_s < to_s { Ok(CrowdWindow { from_s, to_s }) } else { Err("it ends before it begins".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_with_a_time_and_headers_are_read() {
        assert_eq!(rate_at("500@10s"), Ok(RateAt { rate_per_s: 500.0, at: Duration::from_secs(10) }));
        assert!(rate_at("500").is_err() && rate_at("-1@1s").is_err() && rate_at("1@never").is_err());
        let (name, value) = header("X-Test: a: b").unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-test", &b"a: b"[..]));
        assert!(header("none").is_err() && header("a b: c").is_err() && header("a: \n").is_ok());
    }

    #[test]
    fn rates_are_numbers_that_somebody_could_mean() {
        assert_eq!((rate("0"), rate("2.5"), rate("1e7")), (Ok(0.0), Ok(2.5), Ok(1e7)));
        assert!(["-1", "NaN", "many", ""].into_iter().all(|text| rate(text).is_err()));
        assert!(["1e8", "inf"].into_iter().all(|text| rate(text).unwrap_err().contains("absurd")));
    }

    #[test]
    fn parts_count_from_one() {
        assert_eq!(part("2/3"), Ok(Part::new(1, 3).unwrap()));
        assert_eq!(part("1/1"), Ok(Part::WHOLE));
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "-1/3", "1/3/5", ""] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_crowd_comes_before_it_leaves() {
        assert_eq!(crowd_window("0s-1.5m"), Ok(CrowdWindow { from_s: 0.0, to_s: 90.0 }));
        for wrong in ["10s", "10s-5s", "5s-5s", "a-b", "5-6", ""] {
            assert!(crowd_window(wrong).is_err(), "{wrong}");
        }
    }
}
