//! The network and the crowd that all NEWS experiments share, and how they were chosen.
//!
//! The paper gives the number of clients, the ends of the access links' rates and delays, the length of the run, the
//! onset and that requests rise more than sixfold. It does not give the bottleneck, its buffer, or the distributions of
//! links and page sizes. Those were chosen so that four runs *without* NEWS come out as in its Table I (no control, and
//! static limits of 60, 100 and 120 per second). Nothing was chosen by what NEWS itself does.

use crate::Options;
use flashweir_admission::flash_crowd::PlannerMode;
use flashweir_core::Rate;
use flashweir_sim::news::{Links, Scenario};
use flashweir_sim::router::{Controller, Reading, RouterSettings};
use flashweir_workload::RateProfile;
use flashweir_workload::crowd::WORLD_CUP_SEMI_FINAL;
use flashweir_workload::documents::{Pareto, Sizes};
use std::time::Duration;

/// Who controls, as rows name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    None,
    Paper,
    Scoreboard,
    Repaired,
    /// Connections per second.
    Static(u32),
}

/// The modes that the paper's "NEWS" is compared with.
pub(super) const NEWS_MODES: [Mode; 3] = [Mode::Paper, Mode::Scoreboard, Mode::Repaired];
/// The mode that ran in the paper's simulations: its authors' code.
pub(super) const AS_RUN: &str = "scoreboard";

impl Mode {
    pub(super) fn name(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Paper => "paper".to_owned(),
            Self::Scoreboard => "scoreboard".to_owned(),
            Self::Repaired => "repaired".to_owned(),
            Self::Static(_) => "static".to_owned(),
        }
    }

    fn controller(self) -> Controller {
        match self {
            Self::None => Controller::None,
            Self::Paper => Controller::News(PlannerMode::Paper),
            Self::Scoreboard => Controller::News(PlannerMode::Scoreboard),
            Self::Repaired => Controller::News(PlannerMode::Repaired),
            Self::Static(per_second) => Controller::Static(Rate::from_milli(u64::from(per_second) * 1_000)),
        }
    }

    fn reading(self) -> Reading {
        if self == Self::Repaired { Reading::usual_for(PlannerMode::Repaired) } else { Reading::AsPublished }
    }
}

/// A run of 4,000 seconds (unless the options say otherwise) with one decision a minute.
pub(super) fn scenario(options: &Options, mode: Mode, seed: u64) -> Scenario {
    Scenario {
        seed,
        arrivals: arrivals(options),
        // Nine tenths of the pages below 10 kB (§4.3.1).
        pages: Sizes::Pareto(
            // Holds because the numbers are valid constants.
            Pareto::with_minimum(1.3, 1_300.0, 100_000).expect("a valid distribution"),
        ),
        links: Links { bottleneck_bits_per_s: 9_400_000, bottleneck_buffer_packets: 6, ..Links::default() },
        router: RouterSettings {
            controller: mode.controller(),
            reading: mode.reading(),
            ..RouterSettings::default()
        },
        ..Scenario::default()
    }
}

/// 35 a second, then 210 on average (Table I's 209.7, and a sixth of it before), as World Cup football goes.
fn arrivals(options: &Options) -> RateProfile {
    // Extra time and the penalties of the built-in semi-final: 80 minutes with their peak, without the way home.
    let crowd = &WORLD_CUP_SEMI_FINAL[34..54];
    let mean = crowd.iter().sum::<f64>() / crowd.len() as f64;
    let rates = crowd.iter().map(|relative| CROWD_PER_S * relative / mean);
    let width = Duration::from_secs(options.crowd_s) / crowd.len() as u32;
    // Holds because the options' lengths and these rates are in range.
    let quiet = RateProfile::constant(QUIET_PER_S, Duration::from_secs(options.quiet_s)).expect("valid");
    quiet.then(RateProfile::from_bins(width, rates).expect("valid rates"))
}

const QUIET_PER_S: f64 = 35.0;
const CROWD_PER_S: f64 = 210.0;

/// What every finding says of how it differs from the paper's runs.
pub(super) fn notes(options: &Options) -> Vec<String> {
    let mut notes = vec![
        "The bottleneck (9.4 Mb/s, 6 packets), the page sizes (Pareto, shape 1.3, from 1,300 bytes to 100 kB) \
         and the log-uniform access links are chosen so that the runs without NEWS agree with Table I; the \
         paper gives none of them. So no value may be claimed as matched, only shapes."
            .to_owned(),
        "The crowd is 35/s, then the built-in World Cup semi-final's last 80 minutes squeezed to a mean of \
         210/s, not the log of the opening match."
            .to_owned(),
    ];
    if (options.quiet_s, options.crowd_s) != (1_000, 3_000) {
        notes.push(format!(
            "Compressed: {} s of quiet and {} s of crowd instead of 1,000 and 3,000.",
            options.quiet_s, options.crowd_s
        ));
    }
    notes.push(format!("{} seed(s), from {}; the paper tells of one run.", options.seeds, options.seed));
    notes
}
