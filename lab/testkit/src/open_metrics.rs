//! A small reader of OpenMetrics text that refuses what a scraper would refuse.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::client::Client;

/// The samples of one scrape: by series, written as `name{label="value"}`.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    samples: BTreeMap<String, f64>,
    /// Families that were described, with their type.
    pub families: BTreeMap<String, String>,
}

/// Reason for which a text is not OpenMetrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOpenMetrics(pub String);

/// Suffixes that the names of a family's samples may have, by its type (OpenMetrics 1.0, §"Suffixes").
const SUFFIXES: [(&str, &[&str]); 6] = [
    ("counter", &["_total", "_created"]),
    ("gauge", &[""]),
    ("histogram", &["_bucket", "_sum", "_count", "_created"]),
    ("info", &["_info"]),
    ("stateset", &[""]),
    ("unknown", &[""]),
];

impl Metrics {
    /// Scrapes an admin listener as a Prometheus server does.
    ///
    /// # Panics
    /// When nothing listens there, or the answer is not OpenMetrics.
    #[must_use]
    pub fn of(admin: SocketAddr) -> Self {
        let request = "GET /metrics HTTP/1.1\r\nHost: test\r\nAccept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\
            Connection: close\r\n\r\n";
        Self::parse(&Client::connect(admin).ask(request).text()).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Reads a whole scrape.
    ///
    /// # Errors
    /// With the first line that breaks a rule: every family has one TYPE and one HELP before its samples,
    /// names and labels are well formed, no series comes twice, counters are not negative, histograms have
    /// cumulative buckets up to `+Inf` that agree with their count, and the text ends with `# EOF`.
    pub fn parse(text: &str) -> Result<Self, NotOpenMetrics> {
        let body =
            text.strip_suffix("# EOF\n").ok_or_else(|| wrong("the text does not end with `# EOF`", ""))?;
        let mut metrics = Self::default();
        let mut helped = BTreeSet::new();
        for line in body.lines() {
            match line.strip_prefix("# ") {
                Some(description) => metrics.take_description(description, line, &mut helped)?,
                None => metrics.take_sample(line)?,
            }
        }
        match metrics.families.keys().find(|family| !helped.contains(*family)) {
            Some(family) => Err(wrong("no HELP", family)),
            None => metrics.check_histograms().map(|()| metrics),
        }
    }

    /// A series' value, labels as they are written; 0 when there is no such series, which a counter that
    /// never counted may be.
    #[must_use]
    pub fn value(&self, series: &str) -> f64 {
        self.find(series).unwrap_or(0.0)
    }

    /// A series' value, if there is one.
    #[must_use]
    pub fn find(&self, series: &str) -> Option<f64> {
        self.samples.get(series).copied()
    }

    /// The sum over all series of a name.
    #[must_use]
    pub fn sum(&self, name: &str) -> f64 {
        let of_that_name = |series: &&String| series.split('{').next() == Some(name);
        self.samples.keys().filter(of_that_name).map(|series| self.samples[series]).sum()
    }

    fn take_description(
        &mut self,
        text: &str,
        line: &str,
        helped: &mut BTreeSet<String>,
    ) -> Result<(), NotOpenMetrics> {
        let mut words = text.splitn(3, ' ');
        let (kind, family, rest) = (words.next(), words.next().unwrap_or(""), words.next().unwrap_or(""));
        if !is_name(family) {
            return Err(wrong("a bad name", line));
        }
        let fresh = match kind {
            Some("TYPE") if SUFFIXES.iter().any(|(known, _)| *known == rest) => {
                self.families.insert(family.to_owned(), rest.to_owned()).is_none()
            }
            Some("HELP") if !rest.is_empty() => helped.insert(family.to_owned()),
            Some("UNIT") if family.ends_with(rest) => true,
            _ => return Err(wrong("not TYPE, HELP or UNIT", line)),
        };
        if fresh { Ok(()) } else { Err(wrong("described twice", line)) }
    }

    fn take_sample(&mut self, line: &str) -> Result<(), NotOpenMetrics> {
        let at = line.rfind(' ').ok_or_else(|| wrong("no value", line))?;
        let (series, value) = (&line[..at], &line[at + 1..]);
        let value: f64 = match value {
            "+Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            number => number.parse().map_err(|_| wrong("a bad value", line))?,
        };
        let name = series.split('{').next().unwrap_or("");
        if !is_name(name) || !labels_are_good(&series[name.len()..]) {
            return Err(wrong("a bad name or label", line));
        }
        let kind = self.kind_of(name).ok_or_else(|| wrong("no TYPE for this name", line))?;
        if matches!(kind, "counter" | "histogram") && value < 0.0 {
            return Err(wrong("a negative count", line));
        }
        match self.samples.insert(series.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(wrong("a series twice", line)),
        }
    }

    fn kind_of(&self, name: &str) -> Option<&'static str> {
        SUFFIXES.iter().find_map(|(kind, suffixes)| {
            let belongs = suffixes.iter().any(|suffix| {
                name.strip_suffix(suffix)
                    .and_then(|family| self.families.get(family))
                    .is_some_and(|known| known == kind)
            });
            belongs.then_some(*kind)
        })
    }

    fn check_histograms(&self) -> Result<(), NotOpenMetrics> {
        for (family, _) in self.families.iter().filter(|(_, kind)| *kind == "histogram") {
            let mut buckets = self.buckets(family)?;
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            let grows = buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1);
            let last = buckets.last().filter(|(bound, _)| bound.is_infinite()).map(|(_, count)| *count);
            if !grows || last.is_none() || last != self.find(&format!("{family}_count")) {
                return Err(wrong("buckets that do not add up", family));
            }
        }
        Ok(())
    }

    fn buckets(&self, family: &str) -> Result<Vec<(f64, f64)>, NotOpenMetrics> {
        let prefix = format!("{family}_bucket{{le=\"");
        let bound = |series: &str| match series.strip_prefix(&prefix)?.strip_suffix("\"}")? {
            "+Inf" => Some(f64::INFINITY),
            number => number.parse().ok(),
        };
        let of_family =
            self.samples.iter().filter(|(series, _)| series.starts_with(&format!("{family}_bucket")));
        of_family
            .map(|(series, count)| Ok((bound(series).ok_or_else(|| wrong("a bad bucket", series))?, *count)))
            .collect()
    }
}

fn is_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    name.bytes().next().is_some_and(|first| !first.is_ascii_digit()) && name.bytes().all(good)
}

fn labels_are_good(labels: &str) -> bool {
    if labels.is_empty() {
        return true;
    }
    let Some(inner) = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else { return false };
    // No label of ours holds a comma or a quote: their values are closed lists.
    inner.is_empty()
        || inner.split(',').all(|label| {
            let Some((name, value)) = label.split_once('=') else { return false };
            let quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
            is_name(name) && quoted && !value[1..value.len() - 1].contains('"')
        })
}

fn wrong(what: &str, line: &str) -> NotOpenMetrics {
    NotOpenMetrics(format!("{what}: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# HELP a_requests Requests.\n# TYPE a_requests counter\na_requests_total{kind=\"x\"} 3\n\
        a_requests_total{kind=\"y\"} 4\n# HELP b B.\n# TYPE b gauge\nb -1.5\n# HELP c_seconds C.\n# TYPE c_seconds histogram\n\
        # UNIT c_seconds seconds\nc_seconds_bucket{le=\"0.1\"} 1\nc_seconds_bucket{le=\"+Inf\"} 2\nc_seconds_sum 1.0\n\
        c_seconds_count 2\n# EOF\n";

    #[test]
    fn a_good_text_is_read() {
        let metrics = Metrics::parse(GOOD).unwrap();
        assert_eq!(metrics.value("a_requests_total{kind=\"y\"}"), 4.0);
        assert_eq!(metrics.sum("a_requests_total"), 7.0);
        assert_eq!((metrics.find("b"), metrics.find("nothing")), (Some(-1.5), None));
    }

    #[test]
    fn what_a_scraper_refuses_is_refused() {
        for (from, to) in [
            ("# EOF\n", ""),
            ("# TYPE b gauge\n", ""),
            ("# HELP b B.\n", ""),
            ("b -1.5\n", "b -1.5\nb 2\n"),
            ("b -1.5\n", "b one\n"),
            ("a_requests_total{kind=\"x\"} 3", "a_requests{kind=\"x\"} 3"),
            ("a_requests_total{kind=\"x\"} 3", "a_requests_total{kind=\"x\"} -3"),
            ("{kind=\"x\"}", "{kind=x}"),
            ("c_seconds_count 2", "c_seconds_count 3"),
            ("c_seconds_bucket{le=\"0.1\"} 1", "c_seconds_bucket{le=\"0.1\"} 5"),
        ] {
            let bad = GOOD.replacen(from, to, 1);
            assert!(Metrics::parse(&bad).is_err(), "accepted: {bad}");
        }
    }
}
