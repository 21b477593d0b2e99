//! A narrow link to the clients: each composition beside the best rate limit that a search finds.
//!
//! The origin has much to spare; the link does not carry the crowd's answers. The number is completions in
//! time a second. The bar: the default composition reaches [`BAR`] of the best rate limit on every link.

use crate::trials::comparison::Knob;
use crate::trials::spread::{cell, median};
use crate::trials::useful::Composition;
use std::fmt::Write;

/// The default composition over the best rate limit, at least.
pub const BAR: f64 = 0.9;
/// The crowd over what the link carries.
pub const CROWD: f64 = 5.0;
/// The calm before it.
pub const CALM: f64 = 0.5;

/// A link, and the answers that cross it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its rate.
    pub rate_bits_per_s: u64,
    /// Room before it, in full packets.
    pub packets: u32,
    /// Body of each answer.
    pub answer_bytes: u32,
}

impl Link {
    /// Every link: those of the simulator's `composition` tests.
    pub const ALL: [Self; 6] = [
        Self::narrow(2_000_000, 50, 8_000),
        Self::narrow(2_000_000, 200, 8_000),
        Self::narrow(2_000_000, 600, 8_000),
        Self::narrow(20_000_000, 50, 20_000),
        Self::narrow(20_000_000, 200, 20_000),
        Self::narrow(20_000_000, 600, 20_000),
    ];

    const fn narrow(rate_bits_per_s: u64, packets: u32, answer_bytes: u32) -> Self {
        Self { rate_bits_per_s, packets, answer_bytes }
    }

    /// Bodies that it carries, a second: headers, handshakes and refusals come on top.
    #[must_use]
    pub fn capacity_rps(self) -> f64 {
        self.rate_bits_per_s as f64 / 8.0 / f64::from(self.answer_bytes)
    }

    /// Seconds of the crowd that are not judged: the buffer that filled before it could be noticed is worked
    /// off first.
    #[must_use]
    pub fn settling_s(self) -> u64 {
        const FULL_PACKET_BITS: f64 = 12_000.0;
        const NOTICED_WITHIN_S: u64 = 4;
        let buffered_s = f64::from(self.packets) * FULL_PACKET_BITS / self.rate_bits_per_s as f64;
        NOTICED_WITHIN_S + (2.0 * buffered_s) as u64
    }

    /// Its name in the table.
    #[must_use]
    pub fn name(self) -> String {
        let Self { rate_bits_per_s, packets, answer_bytes } = self;
        format!("{} Mb/s, {packets} packets, {} kB", rate_bits_per_s / 1_000_000, answer_bytes / 1_000)
    }
}

/// The stage that decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Guard {
    /// The gateway.
    Gateway(Composition),
    /// A rate limit set by hand, over the link's capacity.
    RateLimit(f64),
}

impl Guard {
    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Gateway(composition) => composition.name().to_owned(),
            Self::RateLimit(part) => format!("rate limit {part:.2}"),
        }
    }
}

/// Rate limits over the capacity that are tried first; the search goes beyond both ends.
pub const RATE_LIMITS: Knob<'_, f64> = Knob {
    grid: &[0.5, 0.6, 0.4, 0.7, 0.8],
    below: |part| Some(part - RATE_LIMIT_STEP).filter(|part| *part > 0.05),
    above: |part| Some(part + RATE_LIMIT_STEP),
};
const RATE_LIMIT_STEP: f64 = 0.1;

/// Result of one run behind a narrow link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRun {
    /// Link of the trial.
    pub link: Link,
    /// The stage that decided.
    pub guard: Guard,
    /// Completions in time, a second, over the seconds that are judged.
    pub in_time_rps: f64,
    /// The verdict in most looks at the status over these seconds; none for a rate limit.
    pub verdict: Option<String>,
    /// Requests refused before the crowd.
    pub refused_in_calm: u64,
    /// The load generator could not keep up, or this machine lost packets.
    pub is_spoilt: bool,
}

/// The table, and whether the bar is met on each link that was run. The rate limit is the best that the
/// search found, run again in turn with the others: the best of a search is also the luckiest.
#[must_use]
pub fn text(runs: &[LinkRun]) -> String {
    let mut text = String::from("Completions in time a second behind a narrow link, median [min–max]\n\n");
    line(&mut text, ["link", "sentry alone", "NEWS alone", "default", "best rate limit", "ratio", "verdict"]);
    for link in Link::ALL {
        let of = |composition| values(runs, link, |guard| guard == Guard::Gateway(composition));
        let [sentry, news, default] =
            [Composition::SentryAlone, Composition::NewsAlone, Composition::Default].map(of);
        let fixed = values(runs, link, |guard| matches!(guard, Guard::RateLimit(_)));
        let ratio = ratio(&default, &fixed);
        let ratio = ratio.map_or_else(
            || "–".to_owned(),
            |ratio| format!("{ratio:.2} {}", if ratio >= BAR { "met" } else { "BELOW" }),
        );
        let part = runs.iter().find_map(|run| match run.guard {
            Guard::RateLimit(part) if run.link == link => Some(format!(" at {part:.2}")),
            _ => None,
        });
        let fixed = format!("{}{}", cell(&fixed), part.unwrap_or_default());
        let [sentry, news, default] = [sentry, news, default].map(|values| cell(&values));
        line(&mut text, [&link.name(), &sentry, &news, &default, &fixed, &ratio, &verdicts(runs, link)]);
    }
    let _ = writeln!(text, "\nratio: default over the best rate limit; the bar is {BAR}");
    for run in runs.iter().filter(|run| run.refused_in_calm > 0) {
        let (guard, link) = (run.guard.name(), run.link.name());
        let _ = writeln!(text, "{} refused in the calm: {guard}, {link}", run.refused_in_calm);
    }
    for run in runs.iter().filter(|run| run.is_spoilt) {
        let _ = writeln!(text, "this machine did not keep up: {}, {}", run.guard.name(), run.link.name());
    }
    text
}

/// Medians of the two; none where either was not run or nothing completed in time behind the rate limit.
fn ratio(default: &[f64], fixed: &[f64]) -> Option<f64> {
    let fixed = median(fixed.to_vec()).filter(|fixed| *fixed > 0.0)?;
    Some(median(default.to_vec())? / fixed)
}

fn values(runs: &[LinkRun], link: Link, is_wanted: impl Fn(Guard) -> bool) -> Vec<f64> {
    let wanted = runs.iter().filter(|run| run.link == link && is_wanted(run.guard));
    wanted.map(|run| run.in_time_rps).collect()
}

/// The default composition's verdicts, each once.
fn verdicts(runs: &[LinkRun], link: Link) -> String {
    let default = Guard::Gateway(Composition::Default);
    let of_default = runs.iter().filter(|run| run.link == link && run.guard == default);
    let mut verdicts: Vec<&str> = of_default.filter_map(|run| run.verdict.as_deref()).collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    verdicts.join(", ")
}

fn line(text: &mut String, [link, sentry, news, default, fixed, ratio, verdict]: [&str; 7]) {
    let line = format!("{link:<27} {sentry:<24} {news:<24} {default:<24} {fixed:<33} {ratio:<11} {verdict}");
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(guard: Guard, in_time_rps: f64) -> LinkRun {
        let verdict = matches!(guard, Guard::Gateway(_)).then(|| "congested_link".to_owned());
        LinkRun { link: Link::ALL[0], guard, in_time_rps, verdict, refused_in_calm: 0, is_spoilt: false }
    }

    #[test]
    fn the_default_is_judged_by_the_rate_limit_of_the_same_link() {
        let default = Guard::Gateway(Composition::Default);
        let runs = [
            run(Guard::Gateway(Composition::SentryAlone), 2.0),
            run(default, 18.0),
            run(Guard::RateLimit(0.6), 20.0),
            LinkRun { refused_in_calm: 3, is_spoilt: true, ..run(default, 17.0) },
            LinkRun { link: Link::ALL[1], ..run(default, 17.0) },
            LinkRun { link: Link::ALL[1], ..run(Guard::RateLimit(0.7), 20.0) },
        ];
        insta::assert_snapshot!(text(&runs));
    }

    #[test]
    fn without_runs_the_table_has_dashes() {
        let text = text(&[]);
        assert!(text.contains('–') && !text.contains("NaN") && !text.contains("BELOW"), "{text}");
    }

    #[test]
    fn a_deep_buffer_takes_longer_to_settle() {
        assert_eq!(Link::ALL.map(Link::settling_s), [4, 6, 11, 4, 4, 4]);
        assert_eq!(Link::ALL[0].capacity_rps(), 31.25);
    }
}
