//! From a name to the figure it means, or to a hint at what may have been meant.

use super::{LEDGER, Metric, POINTS, Point, RUN, TIMES, Times};

pub(super) const RECOVERY: &str = "recovery";

/// Names less alike than this (1 is the same) are no hint.
const ALIKE: f64 = 0.75;

/// The figure that `name` means.
///
/// # Errors
/// Names the accepted spelling.
pub(in super::super) fn metric(name: &str) -> Result<Metric, String> {
    find(name).ok_or_else(|| {
        let hint = closest(name).map_or_else(String::new, |close| format!("; did you mean {close}?"));
        format!("there is no metric \"{name}\"{hint} {}", list())
    })
}

fn find(name: &str) -> Option<Metric> {
    if name == RECOVERY {
        return Some(Metric::Recovery);
    }
    if let Some(metric) = LEDGER.iter().find(|metric| metric.name == name) {
        return Some(Metric::Ledger(metric));
    }
    if let Some(metric) = RUN.iter().find(|metric| metric.name == name) {
        return Some(Metric::Run(metric));
    }
    let (times, point) = match name.split_once('_') {
        Some((times, point)) => (Times::called(times)?, point),
        None => (Times::unnamed(), name),
    };
    Point::called(point).map(|point| Metric::Point(times, point))
}

/// Every name, without the second names some have.
fn names() -> impl Iterator<Item = String> {
    let ledger = LEDGER.iter().map(|metric| metric.name);
    let run = RUN.iter().map(|metric| metric.name);
    let plain = ledger.chain(run).chain([RECOVERY]).map(str::to_owned);
    let points = TIMES.iter().flat_map(|times| POINTS.iter().map(|point| times.point_name(point)));
    plain.chain(points)
}

fn closest(name: &str) -> Option<String> {
    let alike = names().map(|known| (strsim::jaro_winkler(name, &known), known));
    let (alike, known) = alike.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (alike >= ALIKE).then_some(known)
}

/// All names in one sentence.
fn list() -> String {
    let words = |names: &mut dyn Iterator<Item = &'static str>| names.collect::<Vec<_>>().join(" ");
    let plain = LEDGER.iter().map(|metric| metric.name).chain(RUN.iter().map(|metric| metric.name));
    format!(
        "(known: {} {RECOVERY}; of latency {}, and the same after {}_)",
        words(&mut plain.clone()),
        words(&mut POINTS.iter().map(|point| point.name)),
        words(&mut TIMES.iter().skip(1).map(|times| times.name)).replace(' ', "_ "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_itself_and_some_have_a_second() {
        for name in names() {
            assert_eq!(metric(&name).unwrap().name(), name);
        }
        assert_eq!(metric("latency_p99.9"), metric("p999"));
        assert_eq!(metric("lag_p99.99"), metric("lag_p9999"));
    }

    #[test]
    fn an_unknown_name_lists_the_known_and_hints_at_the_closest() {
        let check = |name: &str, wanted: &str| {
            let said = metric(name).unwrap_err();
            assert!(said.contains(wanted) && said.contains("of latency mean p50"), "{said} lacks {wanted}");
            assert!(said.contains("refusal_ ttfb_ served_ lag_)"), "{said}");
        };
        check("goodput_rate", "did you mean goodput_ratio?");
        check("p95", "did you mean p9");
        check("ttfb_p98", "did you mean ttfb_p9");
        check("xyzzy", "no metric \"xyzzy\" (known: offered unique_offered");
        check("", "no metric \"\" (known");
    }
}
