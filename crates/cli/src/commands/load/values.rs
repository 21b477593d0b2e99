//! Values as people write them on the command line.

use hyper::header::{HeaderName, HeaderValue};
use std::time::Duration;

/// A rate from a moment on, written `500@10s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) rate_per_s: f64,
    pub(crate) at: Duration,
}

/// Reads `1.5s`, `500ms`, `2m` or `1h`; zero is refused.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a number above zero and ms, s, m or h, like 500ms or 2s".to_owned();
    let unit_at = text.find(|character: char| character.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(wrong)
}

/// Reads a finite number above zero.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("expected a number above zero".to_owned()),
    }
}

/// Reads a number and checks that it lies in a range.
pub(crate) fn within(low: f64, high: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.parse::<f64>() {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(format!("expected a number from {low} to {high}")),
    }
}

/// Reads `500@10s`; the rate may be zero.
pub(crate) fn step(text: &str) -> Result<Step, String> {
    let (rate, at) = text.split_once('@').ok_or("expected RATE@TIME, like 500@10s")?;
    let rate_per_s = within(0.0, f64::MAX)(rate)?;
    Ok(Step { rate_per_s, at: duration(at)? })
}

/// Reads `Name: value`.
pub(crate) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME: VALUE")?;
    let name = name.trim().parse().map_err(|error| format!("{error}"))?;
    let value = value.trim().parse().map_err(|error| format!("{error}"))?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "5", "s", "-1s", "0s", "1e300h", "1d", "NaNs"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn steps_and_headers_are_read() {
        assert_eq!(step("500@10s"), Ok(Step { rate_per_s: 500.0, at: Duration::from_secs(10) }));
        assert!(step("500").is_err() && step("-1@1s").is_err() && step("1@never").is_err());
        let (name, value) = header("X-Test: a: b").unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-test", &b"a: b"[..]));
        assert!(header("none").is_err() && header("a b: c").is_err() && header("a: \n").is_ok());
    }

    #[test]
    fn rates_are_numbers_above_zero() {
        assert_eq!(positive("2.5"), Ok(2.5));
        assert!(["0", "-1", "inf", "NaN", "many"].into_iter().all(|text| positive(text).is_err()));
    }
}
