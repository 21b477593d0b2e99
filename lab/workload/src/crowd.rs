//! A crowd that really came, as a shape to give any peak and any length.

use crate::profile::RateProfile;
use std::time::Duration;

/// Width of one bin of [`WORLD_CUP_SEMI_FINAL`].
pub const WORLD_CUP_BIN: Duration = Duration::from_secs(4 * 60);

/// Requests to the web site of the 1998 football World Cup during the semi-final Brazil–Netherlands, 7 July
/// 1998, 18:20 to 22:40 GMT: the mean of each four minutes relative to the busiest four (21:40, after the
/// penalties).
///
/// Source: the 1998 World Cup web trace of the Internet Traffic Archive (M. Arlitt and T. Jin, "1998 World
/// Cup Web Site Access Logs", 1998). Only these relative rates are used; the trace is not part of Flashweir.
pub const WORLD_CUP_SEMI_FINAL: [f64; 65] = [
    0.104, 0.104, 0.109, 0.103, 0.109, 0.113, 0.114, 0.125, 0.138, 0.165, // 18:20, people come to look
    0.218, 0.267, 0.307, 0.343, 0.375, 0.400, 0.427, 0.448, 0.454, 0.477, // 19:00, kick-off
    0.497, 0.524, 0.542, 0.516, 0.515, 0.532, 0.559, 0.563, 0.571, 0.566, // 19:40, half-time
    0.577, 0.593, 0.598, 0.616, 0.630, 0.657, 0.730, 0.751, 0.774, 0.718, // 20:20, second half
    0.700, 0.706, 0.713, 0.742, 0.733, 0.762, 0.786, 0.815, 0.854, 0.918, // 21:00, extra time
    1.000, 0.786, 0.560, 0.486, 0.420, 0.378, 0.348, 0.301, 0.266, 0.242, // 21:40, decided
    0.231, 0.226, 0.209, 0.201, 0.195, // 22:20, people go home
];

/// [`WORLD_CUP_SEMI_FINAL`] as a profile: 260 minutes with a peak of one arrival per second.
///
/// ```
/// use flashweir_workload::crowd;
/// // The evening in half a minute, with 1000 people a second at its height.
/// let evening = crowd::world_cup_semi_final().squeeze(520.0)?.peak(1000.0)?;
/// assert_eq!(evening.length().as_secs_f64().round(), 30.0);
/// # Ok::<(), flashweir_workload::ProfileError>(())
/// ```
#[must_use]
pub fn world_cup_semi_final() -> RateProfile {
    // The table above is not empty and holds only rates from 0 to 1, so this cannot fail.
    RateProfile::from_bins(WORLD_CUP_BIN, WORLD_CUP_SEMI_FINAL).expect("a built-in table of valid rates")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_relative_to_its_peak_and_the_crowd_is_ninefold() {
        let profile = world_cup_semi_final();
        assert_eq!(profile.peak_rate(), 1.0);
        assert_eq!(profile.length(), Duration::from_secs(260 * 60));
        let quiet = WORLD_CUP_SEMI_FINAL.iter().copied().fold(1.0, f64::min);
        assert!((9.0..11.0).contains(&(1.0 / quiet)));
    }
}
