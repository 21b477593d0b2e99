//! In what course people come to a game's site: quiet before, a crowd from then on.

use flashweir_workload::crowd::{WORLD_CUP_BIN, WORLD_CUP_SEMI_FINAL, world_cup_semi_final};
use flashweir_workload::{RateProfile, Segment};
use std::time::Duration;

/// The course of a crowd: a quiet stretch, then the crowd. Only the shapes of the two count; each experiment gives both
/// their length and their mean rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Crowd {
    name: String,
    built_in: bool,
    quiet: RateProfile,
    crowd: RateProfile,
}

/// How long a stretch of a run is, and how many people come in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretched {
    pub(crate) length: Duration,
    /// Per second.
    pub(crate) mean: f64,
}

impl Crowd {
    /// A log's crowd; `name` goes into notes, after "People come as".
    pub(crate) fn logged(name: String, quiet: RateProfile, crowd: RateProfile) -> Self {
        Self { name, built_in: false, quiet, crowd }
    }

    fn built_in(name: &str, quiet: RateProfile, crowd: RateProfile) -> Self {
        Self { name: name.to_owned(), built_in: true, quiet, crowd }
    }

    /// Instead of the opening match: an even rate, then extra time and penalties of the built-in semi-final, that is 80
    /// minutes with their peak, without the way home, in 3,000 s.
    #[must_use]
    pub fn built_in_opening_match() -> Self {
        let crowd = &WORLD_CUP_SEMI_FINAL[34..54];
        let width = Duration::from_secs(3_000) / crowd.len() as u32;
        let quiet = RateProfile::constant(1.0, Duration::from_secs(1_000));
        let crowd = RateProfile::from_bins(width, crowd.iter().copied());
        // Holds because these are constants: rates from 0 to 1 and lengths above zero.
        let (quiet, crowd) = (quiet.expect("a valid profile"), crowd.expect("a valid profile"));
        Self::built_in(
            "an even rate, then the built-in World Cup semi-final's last 80 minutes, squeezed",
            quiet,
            crowd,
        )
    }

    /// The built-in semi-final: 1,000 s before kick-off and 1,000 s after it.
    #[must_use]
    pub fn built_in_semi_final() -> Self {
        let (table, kick_off) = (world_cup_semi_final(), SEMI_FINAL_BINS_BEFORE * WORLD_CUP_BIN);
        let side = Duration::from_secs(1_000);
        // Holds because the table goes from 40 minutes before kick-off to 220 minutes after it.
        let between = |from, to| between(&table, from, to).expect("a stretch of the table");
        let name = "the built-in World Cup semi-final, from 1,000 s before kick-off to 1,000 s after it";
        Self::built_in(name, between(kick_off - side, kick_off), between(kick_off, kick_off + side))
    }

    /// Whether this is the crowd of someone who has no log of the match.
    pub(crate) fn is_built_in(&self) -> bool {
        self.built_in
    }

    /// What it is, as notes tell it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// People per second: both shapes, squeezed (or stretched) and scaled as told.
    pub(crate) fn arrivals(&self, quiet: Stretched, crowd: Stretched) -> RateProfile {
        fit(&self.quiet, quiet).then(fit(&self.crowd, crowd))
    }
}

/// Bins of the built-in table before kick-off: 18:20 to 19:00.
const SEMI_FINAL_BINS_BEFORE: u32 = 10;

/// The profile with another length and mean.
fn fit(profile: &RateProfile, to: Stretched) -> RateProfile {
    let squeezed = profile.clone().squeeze(profile.length().as_secs_f64() / to.length.as_secs_f64());
    let fitted = squeezed.and_then(|squeezed| {
        let factor = to.mean / squeezed.mean_rate();
        squeezed.scale(factor)
    });
    // Holds because a crowd's profiles last minutes and have people in them, and experiments ask for minutes to hours
    // with more than nobody.
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
        for crowd in [Crowd::built_in_opening_match(), Crowd::built_in_semi_final()] {
            let arrivals = arrivals(crowd, 250);
            let quiet = between(&arrivals, Duration::ZERO, 250 * SECOND).unwrap();
            let rest = between(&arrivals, 250 * SECOND, 9_000 * SECOND).unwrap();
            assert!((quiet.mean_rate() - 23.0).abs() < 1e-6, "{}", quiet.mean_rate());
            assert!((rest.mean_rate() - 117.0).abs() < 1e-6, "{}", rest.mean_rate());
            assert!((arrivals.length().as_secs_f64() - 750.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_semi_finals_crowd_grows_as_people_come_after_kick_off() {
        let Crowd { quiet, crowd, .. } = Crowd::built_in_semi_final();
        assert_eq!((quiet.length(), crowd.length()), (1_000 * SECOND, 1_000 * SECOND));
        assert_eq!((quiet.rate_at(Duration::ZERO), crowd.rate_at(Duration::ZERO)), (0.113, 0.218));
    }
}
