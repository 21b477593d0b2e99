//! `[flash_crowd.candidate]`: another policy of the flash-crowd stage, beside the one in force.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FlashCrowd, FlashCrowdFile, FlashCrowdMode};
use crate::error::Problem;
use crate::text::DurationText;

/// Other rules for the flash-crowd stage, evaluated on the requests and responses of the policy in force: what their ceiling
/// would have let pass and refused is counted, and changes nothing. What is left out is as in `[flash_crowd]`. Not read by
/// `flashweir router`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlashCrowdCandidateFile {
    /// Which rules would decide: `"repaired"`, `"paper"` or `"scoreboard"`; not `"off"`, which refuses no request.
    /// Default: that of `[flash_crowd]`.
    /// Example: `mode = "paper"`.
    pub mode: Option<FlashCrowdMode>,
    /// Shortest time between two decisions. Default: that of `[flash_crowd]` where it is written there; otherwise 100ms for
    /// `"repaired"`, and 1m for `"paper"` and `"scoreboard"`.
    /// Valid: `10ms` to `5m`. Raised: a crowd is noticed later. Lowered: decisions rest on fewer responses.
    /// Example: `interval = "250ms"`.
    pub interval: Option<DurationText>,
    /// How much worse the fastest responses may get before it counts, as a fraction of the usual. Default: that of
    /// `[flash_crowd]`.
    /// Valid: `0.01` to `0.9`. Raised: a crowd is noticed later. Lowered: noise is mistaken for a crowd.
    /// Example: `margin = 0.2`.
    pub margin: Option<f64>,
    /// Whether only the hosts that draw the crowd would be limited. Default: that of `[flash_crowd]`.
    /// Example: `hot_spots = false`.
    pub hot_spots: Option<bool>,
}

impl FlashCrowd {
    /// The candidate, if one is written: [`shadow`](Self::shadow) always, for it refuses no request. `live` is the policy in
    /// force, and `file` how it is written.
    pub(super) fn check_candidate(file: &FlashCrowdFile, live: &Self) -> Result<Option<Self>, Problem> {
        let Some(other) = &file.candidate else { return Ok(None) };
        let mode = other.mode.unwrap_or(file.mode);
        if mode == FlashCrowdMode::Off {
            let what = "a candidate that is \"off\" refuses no request, expected \"repaired\", \"paper\" or \"scoreboard\"";
            return Err(Problem::new("flash_crowd.candidate.mode", what));
        }
        let written = FlashCrowdFile {
            mode,
            interval: other.interval.or(file.interval),
            margin: other.margin.unwrap_or(file.margin),
            hot_spots: other.hot_spots.unwrap_or(file.hot_spots),
            shadow: true,
            candidate: None,
        };
        let at = |problem: Problem| Problem {
            key: problem.key.replace("flash_crowd.", "flash_crowd.candidate."),
            what: problem.what,
        };
        let candidate = Self::check(&written).map_err(at)?;
        if candidate == (Self { shadow: true, ..live.clone() }) {
            let what = "is the policy in force, expected another `mode`, `interval`, `margin` or `hot_spots`";
            return Err(Problem::new("flash_crowd.candidate", what));
        }
        Ok(Some(candidate))
    }
}
