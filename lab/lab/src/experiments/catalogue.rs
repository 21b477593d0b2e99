//! The experiments by name.

use crate::experiments::elsewhere::{ELSEWHERE, Elsewhere};
use crate::experiments::{Experiment, ExperimentError, cataclysm, intel, news, purge, radar};

/// All there are, in the order of the papers.
pub const EXPERIMENTS: &[Experiment] = &[
    news::fastest_flows::EXPERIMENT,
    news::table_one::EXPERIMENT,
    news::request_rates::EXPERIMENT,
    news::fastest_over_time::EXPERIMENT,
    news::best_static::EXPERIMENT,
    news::interval::EXPERIMENT,
    news::bulk_bystander::EXPERIMENT,
    news::impatience::EXPERIMENT,
    news::server_delay::EXPERIMENT,
    news::server_memory::EXPERIMENT,
    news::testbed_interval::EXPERIMENT,
    news::web_bystander::EXPERIMENT,
    cataclysm::capacity::EXPERIMENT,
    cataclysm::shares::EXPERIMENT,
    cataclysm::refusal_rate::EXPERIMENT,
    cataclysm::thresholds::EXPERIMENT,
    cataclysm::policies::EXPERIMENT,
    cataclysm::sentry_counts::EXPERIMENT,
    cataclysm::moving_servers::EXPERIMENT,
    cataclysm::violations::EXPERIMENT,
    cataclysm::crowd_relieved::EXPERIMENT,
    radar::closed_loop::EXPERIMENT,
    radar::one_server::EXPERIMENT,
    radar::redirect_levels::EXPERIMENT,
    radar::scaling::EXPERIMENT,
    radar::step::EXPERIMENT,
    radar::three_servers::EXPERIMENT,
    radar::herd::LOW_WATERMARK,
    radar::herd::HIGH_LOAD,
    radar::herd::FAST_REPORTS,
    radar::fractals::WHOLE,
    radar::fractals::ONSET,
    purge::tables::THROUGHPUT,
    purge::tables::GOODPUT,
    purge::counts::OVER_TIME,
    purge::counts::BY_FLOWS,
    purge::count_time::EXPERIMENT,
    purge::memory::EXPERIMENT,
    purge::single::OVER_TIME,
    purge::single::AVERAGE,
    intel::table_one::EXPERIMENT,
    intel::throughput::EXPERIMENT,
    intel::response_times::EXPERIMENT,
    intel::self_similar_throughput::EXPERIMENT,
    intel::self_similar_response_times::EXPERIMENT,
    intel::dropping::THROUGHPUT,
    intel::dropping::RESPONSE_TIMES,
    intel::throttling::THROUGHPUT,
    intel::throttling::RESPONSE_TIMES,
    intel::distributions::UNCONTROLLED,
    intel::distributions::CONTROLLED,
    intel::throttling::SELF_SIMILAR_LOAD,
    intel::schemes::THROUGHPUT,
    intel::schemes::RESPONSE_TIMES,
    intel::combined::QUEUE,
    intel::combined::RESPONSE_TIMES,
    intel::priorities::THROUGHPUT,
    intel::priorities::RESPONSE_TIMES,
    intel::throttling::BEST,
    intel::lost_feedback::EXPERIMENT,
];

/// The experiment of this name, in capitals or not.
///
/// # Errors
/// [`ExperimentError::Unknown`], which lists all names, and [`ExperimentError::Elsewhere`] of what is
/// measured.
pub fn find(id: &str) -> Result<&'static Experiment, ExperimentError> {
    if let Some(&Elsewhere { id, command, .. }) = ELSEWHERE.iter().find(|it| it.id.eq_ignore_ascii_case(id)) {
        return Err(ExperimentError::Elsewhere { id, command });
    }
    EXPERIMENTS.iter().find(|experiment| experiment.id.eq_ignore_ascii_case(id)).ok_or_else(|| {
        let known: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
        ExperimentError::Unknown { id: id.to_owned(), known: known.join(", ") }
    })
}
