//! Medians and spread over the rounds, as text.

use super::{Case, Composition, LOADS, PAGES_MS, UsefulRun};
use crate::trials::spread::{cell, median};
use flashweir_core::measure::Useful;
use std::fmt::Write;

/// Useful of each case, the ratio of the default composition to the sentry alone (round by round), and the
/// two factors. A case that was not run is a dash.
#[must_use]
pub fn text(runs: &[UsefulRun]) -> String {
    let mut text = String::from(
        "Useful: busy share of the origin × share of its completions in time, median [min–max]\n\n",
    );
    let [news, sentry, default] = Composition::ALL.map(Composition::name);
    line(&mut text, ["page", "load", news, sentry, default, "default / sentry"]);
    for (page_ms, load) in rows() {
        let of = |composition| values(runs, Case { composition, load, page_ms }, |useful| useful.useful());
        let [news, sentry, default] = Composition::ALL.map(|composition| cell(&of(composition)));
        let ratio = cell(&ratios(runs, load, page_ms));
        line(&mut text, [&page(page_ms), &format!("{load}×"), &news, &sentry, &default, &ratio]);
    }
    text.push_str("\nThe two factors, medians: busy × in time\n\n");
    line(&mut text, ["page", "load", news, sentry, default, ""]);
    for (page_ms, load) in rows() {
        let factors = Composition::ALL.map(|composition| {
            let case = Case { composition, load, page_ms };
            let factor = |of: fn(&Useful) -> f64| median(values(runs, case, of));
            match factor(|useful| useful.busy).zip(factor(|useful| useful.in_time)) {
                Some((busy, in_time)) => format!("{busy:.3} × {in_time:.3}"),
                None => "–".to_owned(),
            }
        });
        line(&mut text, [&page(page_ms), &format!("{load}×"), &factors[0], &factors[1], &factors[2], ""]);
    }
    let saturated: Vec<&UsefulRun> = runs.iter().filter(|run| run.is_saturated).collect();
    if !saturated.is_empty() {
        text.push_str("\nThe load generator did not keep up, so the load was less than it says:\n\n");
    }
    for run in saturated {
        let Case { composition, load, page_ms } = run.case;
        let (round, name) = (run.round + 1, composition.name());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  round {round}, {page_ms} ms, {load}×, {name}");
    }
    text
}

fn rows() -> impl Iterator<Item = (u32, f64)> {
    PAGES_MS.into_iter().flat_map(|page_ms| LOADS.into_iter().map(move |load| (page_ms, load)))
}

fn page(page_ms: u32) -> String {
    format!("{page_ms} ms")
}

fn values(runs: &[UsefulRun], case: Case, of: impl Fn(&Useful) -> f64) -> Vec<f64> {
    runs.iter().filter(|run| run.case == case).map(|run| of(&run.useful)).collect()
}

/// Default over sentry alone, of the rounds that have both.
fn ratios(runs: &[UsefulRun], load: f64, page_ms: u32) -> Vec<f64> {
    let of = |composition, round| {
        let case = Case { composition, load, page_ms };
        let run = runs.iter().find(|run| run.case == case && run.round == round)?;
        Some(run.useful.useful())
    };
    let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let ratio = |round| {
        let sentry = of(Composition::SentryAlone, round).filter(|sentry| *sentry > 0.0)?;
        Some(of(Composition::Default, round)? / sentry)
    };
    (0..rounds).filter_map(ratio).collect()
}

fn line(text: &mut String, [page, load, news, sentry, default, ratio]: [&str; 6]) {
    let line = format!("{page:>6} {load:>5}  {news:<20}  {sentry:<20}  {default:<20}  {ratio}");
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(composition: Composition, round: usize, busy: f64, in_time: f64) -> UsefulRun {
        let useful = Useful { busy, in_time, processor_ms: Some(5.0) };
        UsefulRun { case: Case { composition, load: 3.0, page_ms: 5 }, round, useful, is_saturated: false }
    }

    #[test]
    fn medians_spread_and_ratios_by_round() {
        let runs = [
            run(Composition::NewsAlone, 0, 0.8, 0.5),
            run(Composition::SentryAlone, 0, 1.0, 1.0),
            run(Composition::Default, 0, 0.9, 1.0),
            run(Composition::SentryAlone, 1, 0.5, 1.0),
            run(Composition::Default, 1, 1.0, 0.5),
            // Its partner of this round was not measured.
            UsefulRun { is_saturated: true, ..run(Composition::Default, 2, 0.7, 1.0) },
        ];
        insta::assert_snapshot!(text(&runs));
    }

    #[test]
    fn without_runs_the_table_has_dashes() {
        let text = text(&[]);
        assert_eq!(text.matches("10×").count(), 2 * PAGES_MS.len(), "{text}");
        assert!(text.contains('–') && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn every_other_round_goes_backwards() {
        let (forth, mut back) = (Case::all(5, 0), Case::all(5, 1));
        back.reverse();
        assert_eq!(forth, back);
        assert_eq!(forth.len(), Composition::ALL.len() * LOADS.len());
    }
}
