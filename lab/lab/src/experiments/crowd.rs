//! In what course people come to a game's site: quiet before, a crowd from then on.

use flashweir_workload::{RateProfile, Segment};
use std::time::Duration;

/// The course of a crowd: a quiet stretch, then the crowd. Only the shapes of the two count; each experiment
/// gives both their length and their mean rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Crowd {
    name: String,
    quiet: RateProfile,
    crowd: RateProfile,
}

/// Stretch of a run: its length and its number of arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretched {
    pub(crate) length: Duration,
    /// Per second.
    pub(crate) mean: f64,
}

impl Crowd {
    /// The two stretches; `name` goes into notes, after "Clients arrive as".
    pub(crate) fn new(name: String, quiet: RateProfile, crowd: RateProfile) -> Self {
        Self { name, quiet, crowd }
    }

    /// Its source, as notes name it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// People per second: both shapes, squeezed (or stretched) and scaled as given.
    pub(crate) fn arrivals(&self, quiet: Stretched, crowd: Stretched) -> RateProfile {
        fit(&self.quiet, quiet).then(fit(&self.crowd, crowd))
    }
}

/// The profile with another length and mean.
fn fit(profile: &RateProfile, to: Stretched) -> RateProfile {
    let squeezed = profile.clone().squeeze(profile.length().as_secs_f64() / to.length.as_secs_f64());
    let fitted = squeezed.and_then(|squeezed| {
        let factor = to.mean / squeezed.mean_rate();
        squeezed.scale(factor)
    });
    // Holds because a crowd's profiles last minutes and have people in them, and experiments ask for minutes
    // to hours with at least one person.
    fitted.expect("lengths and rates in range")
}

/// A stretch of a profile; none where it has no length.
pub(crate) fn between(profile: &RateProfile, from: Duration, to: Duration) -> Option<RateProfile> {
    let mut start = Duration::ZERO;
    let mut pieces = Vec::new();
    for segment in profile.segments() {
        let end = start + segment.length;
        let (piece_from, piece_to) = (from.clamp(start, end), to.clamp(start, end));
        pieces.push(Segment {
            length: piece_to.saturating_sub(piece_from),
            from_per_s: segment.rate_after(piece_from - start),
            to_per_s: segment.rate_after(piece_to - start),
        });
        start = end;
    }
    RateProfile::new(pieces).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{OPENING_MATCH, SEMI_FINAL};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_stretch_is_cut_out_with_the_ends_it_has() {
        let slope = Segment { length: 10 * SECOND, from_per_s: 0.0, to_per_s: 10.0 };
        let profile = RateProfile::new([Segment::constant(5 * SECOND, 7.0), slope]).unwrap();
        let cut = between(&profile, 4 * SECOND, 9 * SECOND).unwrap();
        let expected = Segment { length: 4 * SECOND, from_per_s: 0.0, to_per_s: 4.0 };
        assert_eq!(cut.segments(), [Segment::constant(SECOND, 7.0), expected]);
        assert_eq!(between(&profile, 20 * SECOND, 30 * SECOND), None);
    }

    #[test]
    fn both_stretches_get_their_length_and_mean() {
        let arrivals = |crowd: Crowd, quiet_s| {
            let quiet = Stretched { length: Duration::from_secs(quiet_s), mean: 23.0 };
            crowd.arrivals(quiet, Stretched { length: Duration::from_secs(500), mean: 117.0 })
        };
        for crowd in [OPENING_MATCH.counted(), SEMI_FINAL.counted()] {
            let arrivals = arrivals(crowd, 250);
            let quiet = between(&arrivals, Duration::ZERO, 250 * SECOND).unwrap();
            let rest = between(&arrivals, 250 * SECOND, 9_000 * SECOND).unwrap();
            assert!((quiet.mean_rate() - 23.0).abs() < 1e-6, "{}", quiet.mean_rate());
            assert!((rest.mean_rate() - 117.0).abs() < 1e-6, "{}", rest.mean_rate());
            assert!((arrivals.length().as_secs_f64() - 750.0).abs() < 1e-6);
        }
    }
}
