//! Section on the generator: its lag behind the schedule.

use super::latency::cells;
use super::text::measured;
use super::timeline::Timeline;
use crate::report::{Figure, Hue, ReportError, Section, Series, Table};
use crate::{LoadResult, Second};

/// The section.
pub(super) fn section(result: &LoadResult, time: &Timeline) -> Result<Section, ReportError> {
    let lag = &result.totals.lag_us;
    let p99 = measured(lag.p99, "µs");
    let section = Section::new("Whether the generator kept up");
    let section = if result.saturated {
        section.warning(format!(
            "Generator saturated: 99 % of the tries began at most {p99} late. Use more threads, more machines or a \
             lower rate before blaming the target."
        ))
    } else if lag.count == 0 {
        section.text("No try began, so there is no lag.")
    } else {
        section.text(format!(
            "It did: 99 % of the tries began at most {p99} after their moment, and lag counts as latency."
        ))
    };
    let columns = ["microseconds", "measured", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    Ok(section
        .table(Table::new("Points of the distribution", columns).row("lag of all tries", cells(lag)))
        .figure(lag_over_time(result, time)?))
}

fn lag_over_time(result: &LoadResult, time: &Timeline) -> Result<Figure, ReportError> {
    // Less than a microsecond is drawn as one; where no request was due there was no lag.
    let longest = |second: &Second| (second.offered > 0).then(|| second.lag_max_us.max(1) as f64);
    let chart =
        time.chart("Lag: real beginning of tries after their moment", "microseconds").log_scale().series(
            Series::line("longest of the second", Hue::Purple, time.points(&result.totals.series, longest)),
        );
    match result.totals.lag_us.p99.filter(|p99| *p99 > 0.0) {
        Some(p99) => chart.reference("p99 of the run", Hue::Ink, p99).figure(),
        None => chart.figure(),
    }
}
