//! Recorded counts, squeezed and scaled, are followed bin by bin.

use crate::profile_csv::read_profile;
use crate::{ArrivalProcess, Column, RateProfile};
use flashweir_core::Duration;
use flashweir_testkit::{require_program, skip};
use std::path::PathBuf;
use std::process::Command;

/// A squeezed bin may expect so few people that the nearest whole number is further off than this: then one
/// person is allowed.
const SHARE: f64 = 0.02;

/// The semi-final Brazil–Netherlands in a minute with 2000 people a second at its height.
#[test]
fn the_world_cup_semi_final() {
    let name = "the_world_cup_semi_final";
    let Some(text) = trace("wc98_brazil_netherlands_19980707.csv", name) else { return };
    let counted = read_profile(&text[..], &Column::parse("requests"), Duration::from_secs(60)).unwrap();
    let profile = counted.squeeze(480.0).unwrap().peak(2000.0).unwrap();
    assert_eq!(profile.length(), Duration::from_secs(60));
    follows(&profile, 1);
    follows(&profile, 8);
    strictly_follows(&profile, 8);
}

/// A shuttle's launch: nine hours counted by the second, in nine minutes.
#[test]
fn the_launch_of_sts_70() {
    let name = "the_launch_of_sts_70";
    let Some(text) = trace("nasa_sts70_launch_19950713_0500_1400_per_second.csv.gz", name) else { return };
    let counted = read_profile(&text[..], &Column::parse("requests"), Duration::from_secs(1)).unwrap();
    let people = counted.expected_arrivals();
    let profile = counted.squeeze(60.0).unwrap();
    assert!((profile.expected_arrivals() - people).abs() < 1e-6 * people, "squeezing keeps all people");
    follows(&profile, 1);
    follows(&profile, 60);
    strictly_follows(&profile, 60);
}

/// Runs of bins have the people they count, to [`SHARE`] or one person.
fn follows(profile: &RateProfile, bins_together: usize) {
    for (bin, (count, expected)) in counts(profile, bins_together).into_iter().enumerate() {
        assert!(
            (count - expected).abs() <= f64::max(SHARE * expected, 1.0),
            "bin {bin}: {count} for {expected}"
        );
    }
}

/// The same to [`SHARE`] alone, where a person is less than that.
fn strictly_follows(profile: &RateProfile, bins_together: usize) {
    let large = counts(profile, bins_together).into_iter().filter(|(_, expected)| *expected >= 1.0 / SHARE);
    let mut checked = 0;
    for (bin, (count, expected)) in large.enumerate() {
        assert!((count / expected - 1.0).abs() <= SHARE, "bin {bin}: {count} for {expected}");
        checked += 1;
    }
    assert!(checked >= 50, "only {checked} bins are large enough to tell");
}

/// Arrivals in each run of bins of the profile, and the expected number.
fn counts(profile: &RateProfile, bins_together: usize) -> Vec<(f64, f64)> {
    let process = ArrivalProcess::Constant(profile.clone());
    let mut moments = process.moments(0).peekable();
    let mut end = Duration::ZERO;
    let mut counts = Vec::new();
    for segments in profile.segments().chunks(bins_together) {
        end += segments.iter().map(|segment| segment.length).sum::<Duration>();
        let mut count = 0.0;
        while moments.next_if(|moment| *moment < end).is_some() {
            count += 1.0;
        }
        counts.push((count, segments.iter().map(|segment| segment.expected_arrivals()).sum()));
    }
    counts
}

/// The text of a trace; `None`, with a loud line, where it is absent (terms keep some out of the repository).
fn trace(name: &str, test: &str) -> Option<Vec<u8>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
    if !path.exists() {
        skip(test, &format!("{name} is not beside the repository"));
        return None;
    }
    if !name.ends_with(".gz") {
        return Some(std::fs::read(path).unwrap());
    }
    let gzip = require_program("gzip", test)?;
    let output = Command::new(gzip).arg("-dc").arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(output.stdout)
}
