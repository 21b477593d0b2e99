//! Links, transfers and the router over time.

use super::judged::Judged;
use flashweir_load::report::{Chart, Figure, Hue, Point, Series};
use flashweir_sim::request::{LinkBin, RunOutcome};

/// One line each; more could not be distinguished.
const HUES: [Hue; 6] = [Hue::Blue, Hue::Vermillion, Hue::Green, Hue::Amber, Hue::Purple, Hue::Sky];

/// Figures by the names of their files.
pub(super) type Figures = Vec<(&'static str, Figure)>;

/// The charts of a network that has packets, by the names of their files; none at the level of requests.
///
/// # Errors
/// None that a run can cause.
pub(super) fn figures(judged: &Judged<'_>) -> anyhow::Result<Figures> {
    let mut figures = Figures::new();
    if judged.scenario.links().is_empty() {
        return Ok(figures);
    }
    figures.push(("loss.svg", loss(judged)?));
    figures.push(("utilization.svg", utilization(judged)?));
    if judged.scenario.transfers().next().is_some() {
        figures.push(("transfers.svg", transfers(judged)?));
    }
    if judged.outcomes.iter().any(|outcome| router_bin(outcome, 0).is_some()) {
        figures.push(("router.svg", router(judged)?));
    }
    Ok(figures)
}

/// Legend for "there" and "back" of each link.
pub(super) fn legend(judged: &Judged<'_>) -> String {
    let links = judged.scenario.links().iter().take(HUES.len()).map(|link| {
        let [one, other] = &link.between;
        format!("{}: there is from {one} to {other}, back from {other} to {one}", link.name)
    });
    let more = if judged.scenario.links().len() > HUES.len() { "; and so on" } else { "" };
    format!("{}{more}.", links.collect::<Vec<_>>().join("; "))
}

fn loss(judged: &Judged<'_>) -> anyhow::Result<Figure> {
    let chart = Chart::new("Packets lost of those that came", "seconds", "%");
    of_links(judged, chart, |bin, _| {
        (bin.offered > 0).then(|| 100.0 * bin.dropped as f64 / bin.offered as f64)
    })
}

fn utilization(judged: &Judged<'_>) -> anyhow::Result<Figure> {
    let bin_s = judged.bin_s();
    let chart = Chart::new("Utilization", "seconds", "%").reference("full", Hue::Grey, 100.0);
    of_links(judged, chart, |bin, rate_bits_per_s| {
        Some(100.0 * bin.delivered_bytes as f64 * 8.0 / (rate_bits_per_s as f64 * bin_s))
    })
}

/// The directions of links in which the value is highest, in the mean over time.
fn of_links(
    judged: &Judged<'_>,
    chart: Chart,
    value: impl Fn(&LinkBin, u64) -> Option<f64>,
) -> anyhow::Result<Figure> {
    let mut lines = Vec::new();
    for (place, link) in judged.scenario.links().iter().enumerate() {
        for (way, rate) in ["there", "back"].into_iter().zip(link.rates_bits_per_s) {
            let points = judged.over_time(|outcome, bin| {
                let wire = outcome.packets.as_ref()?.wires.get(place)?;
                let bins = if way == "there" { &wire.there } else { &wire.back };
                value(bins.get(bin)?, rate)
            });
            lines.push((format!("{} {way}", link.name), points));
        }
    }
    // A stable order: those alike stay as the file has them.
    lines.sort_by(|(_, one), (_, other)| sum(other).total_cmp(&sum(one)));
    let lines = lines.into_iter().zip(HUES).map(|((name, points), hue)| Series::line(name, hue, points));
    finished(judged, lines.fold(chart, Chart::series))
}

fn transfers(judged: &Judged<'_>) -> anyhow::Result<Figure> {
    let bin_s = judged.bin_s();
    let names = judged.scenario.transfers().enumerate().zip(HUES);
    let lines = names.map(|((place, name), hue)| {
        let points = judged.over_time(|outcome, bin| {
            let transfer = outcome.packets.as_ref()?.transfers.get(place)?;
            Some(*transfer.received_bytes.get(bin)? as f64 * 8e-3 / bin_s)
        });
        Series::line(name, hue, points)
    });
    finished(judged, lines.fold(Chart::new("Long transfers", "seconds", "kb/s"), Chart::series))
}

fn router(judged: &Judged<'_>) -> anyhow::Result<Figure> {
    let bin_s = judged.bin_s();
    let rate = |part: fn((u64, u64)) -> u64| {
        judged.over_time(move |outcome, bin| Some(part(router_bin(outcome, bin)?) as f64 / bin_s))
    };
    let chart = Chart::new("SYNs at the router", "seconds", "a second")
        .series(Series::area("offered", Hue::Grey, rate(|(offered, _)| offered)))
        .series(Series::line("admitted", Hue::Blue, rate(|(_, admitted)| admitted)));
    finished(judged, chart)
}

/// SYNs that came in a bin, and those let in.
fn router_bin(outcome: &RunOutcome, bin: usize) -> Option<(u64, u64)> {
    let bin = outcome.packets.as_ref()?.router.as_ref()?.bins.get(bin)?;
    Some((bin.offered, bin.admitted))
}

fn finished(judged: &Judged<'_>, mut chart: Chart) -> anyhow::Result<Figure> {
    for window in judged.scenario.windows() {
        chart = chart.band(&window.name, window.from.as_secs_f64(), window.to.as_secs_f64());
    }
    Ok(chart.x_range(0.0, judged.scenario.length().as_secs_f64()).figure()?)
}

fn sum(points: &[Point]) -> f64 {
    points.iter().filter_map(|(_, value)| *value).sum()
}
