//! Outcome of a visit of the crowd.

use anyhow::Context;
use flashweir_load::LoadResult;
use serde::Serialize;
use std::fs;
use std::time::Duration;

/// Counts and processor time of the gateway so far, and refusals of the sidecar before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Books {
    offered: f64,
    refused: f64,
    completed: f64,
    processor_s: f64,
    refused_at_caller: f64,
}

/// Outcome of one visit to the chain, over the judged part of the crowd.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ChainOutcome {
    /// People who came, per second.
    pub(crate) offered_rps: f64,
    /// Answers within the target, per second.
    pub(crate) goodput_rps: f64,
    /// The share of the origin's time that went into answers in time; none where it could not be read.
    pub(crate) useful: Option<f64>,
    /// Requests that the caller's sidecar refused, per second.
    pub(crate) refused_at_caller_rps: f64,
    /// Requests refused by the overloaded gateway, per second.
    pub(crate) refused_at_node_rps: f64,
    /// Of what people asked for, the part that the overloaded gateway refused.
    pub(crate) refused_at_node_part: f64,
    /// Requests that came to the overloaded gateway, per second.
    pub(crate) offered_to_node_rps: f64,
    /// Processor time of the overloaded gateway, cores.
    pub(crate) node_cores: f64,
    /// The part of it that refusing took; none where both visits do not tell serving from refusing.
    pub(crate) node_refusing_cores: Option<f64>,
    /// The same, relative to what it takes without feedback.
    pub(crate) node_refusing_part: Option<f64>,
    /// 99 % of the answers took no longer, milliseconds, second by second the worst.
    pub(crate) p99_ms: Option<f64>,
}

impl Books {
    /// Of the metrics of the gateway and of the sidecar, and the processor time of the gateway's process.
    pub(super) fn read(metrics: &str, of_sidecar: &str, process: u32) -> anyhow::Result<Self> {
        let sum_of = |metrics: &str, name: &str| -> f64 {
            let of_name =
                |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
            metrics
                .lines()
                .filter(of_name)
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum()
        };
        let sum = |name: &str| sum_of(metrics, name);
        Ok(Self {
            offered: sum("flashweir_requests_offered_total"),
            refused: sum("flashweir_requests_shed_total"),
            completed: sum("flashweir_requests_completed_total"),
            processor_s: processor_s(process)?,
            refused_at_caller: sum_of(of_sidecar, "flashweir_egress_refused_total"),
        })
    }
}

impl ChainOutcome {
    /// Of the crowd from `judged[0]` to `judged[1]`, at which the books were read.
    pub(super) fn new(
        load: &LoadResult,
        judged: [Duration; 2],
        books: [&Books; 2],
        useful: Option<f64>,
    ) -> Self {
        let [from, to] = judged.map(|moment| moment.as_secs());
        let seconds = load.totals.series.iter().filter(|second| (from..to).contains(&second.second));
        let length_s = (to - from) as f64;
        let (mut offered, mut goodput, mut p99_ms) = (0, 0, None::<f64>);
        for second in seconds {
            offered += second.offered;
            goodput += second.goodput;
            p99_ms = second.latency_p99_ms.map_or(p99_ms, |ms| Some(p99_ms.map_or(ms, |most| most.max(ms))));
        }
        let books_s = (judged[1] - judged[0]).as_secs_f64();
        let of = |value: fn(&Books) -> f64| (value(books[1]) - value(books[0])) / books_s;
        let (offered_rps, refused_at_node_rps) = (offered as f64 / length_s, of(|books| books.refused));
        Self {
            offered_rps,
            goodput_rps: goodput as f64 / length_s,
            useful,
            refused_at_caller_rps: of(|books| books.refused_at_caller),
            refused_at_node_rps,
            refused_at_node_part: refused_at_node_rps / offered_rps.max(1.0),
            offered_to_node_rps: of(|books| books.offered),
            node_cores: of(|books| books.processor_s),
            node_refusing_cores: None,
            node_refusing_part: None,
            p99_ms,
        }
    }
}

/// Work of a gateway over a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    /// Seconds.
    length_s: f64,
    completed: f64,
    refused: f64,
    processor_s: f64,
}

impl Work {
    /// Between two readings.
    pub(super) fn between(before: &Books, after: &Books, length: Duration) -> Self {
        Self {
            length_s: length.as_secs_f64(),
            completed: after.completed - before.completed,
            refused: after.refused - before.refused,
            processor_s: after.processor_s - before.processor_s,
        }
    }
}

/// Processor time of one refusal, seconds: the third coefficient of `time = a · seconds + b · completed + c ·
/// refused` by least squares over the work of a gateway in several periods. None where those do not determine
/// the three.
pub(super) fn cost_of_refusal_s(works: &[Work]) -> Option<f64> {
    let rows = works.iter().map(|work| ([work.length_s, work.completed, work.refused], work.processor_s));
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for (row, time_s) in rows {
        for i in 0..3 {
            (0..3).for_each(|j| matrix[i][j] += row[i] * row[j]);
            right[i] += row[i] * time_s;
        }
    }
    let whole = determinant(&matrix);
    let scale: f64 = (0..3).map(|i| matrix[i][i]).product();
    if whole.abs() <= SINGULAR_BELOW * scale {
        return None;
    }
    // Cramer's rule, for the last column.
    let mut replaced = matrix;
    (0..3).for_each(|i| replaced[i][2] = right[i]);
    Some((determinant(&replaced) / whole).max(0.0))
}

/// A determinant that is this small relative to its diagonal is rounding.
const SINGULAR_BELOW: f64 = 1e-9;

fn determinant(m: &[[f64; 3]; 3]) -> f64 {
    let minor = |i: usize, j: usize| m[1][i] * m[2][j] - m[1][j] * m[2][i];
    m[0][0] * minor(1, 2) - m[0][1] * minor(0, 2) + m[0][2] * minor(0, 1)
}

/// Processor time of a process, all its threads together, in seconds (proc_schedstat: nanoseconds). The
/// gateway's threads last as long as it.
fn processor_s(process: u32) -> anyhow::Result<f64> {
    let directory = format!("/proc/{process}/task");
    let tasks = fs::read_dir(&directory).with_context(|| directory.clone())?;
    let mut nanos = 0;
    for task in tasks {
        let file = task.with_context(|| directory.clone())?.path().join("schedstat");
        // A thread may end while this is read.
        nanos += fs::read_to_string(&file).ok().as_deref().and_then(on_processor).unwrap_or(0);
    }
    Ok(nanos as f64 / 1e9)
}

/// The first of three numbers.
fn on_processor(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_all_threads() {
        assert_eq!(on_processor("1500000000 20 30\n"), Some(1_500_000_000));
        assert_eq!(on_processor(""), None);
        // A thread of another test that ends takes its time along.
        let has_grown = || {
            let before_s = processor_s(std::process::id()).unwrap();
            let mut sum = 0_u64;
            let worked = std::thread::spawn(move || {
                (0..30_000_000_u64).for_each(|number| sum = std::hint::black_box(sum ^ number));
                processor_s(std::process::id()).unwrap()
            });
            worked.join().unwrap() > before_s
        };
        assert!((0..20).any(|_| has_grown()));
    }

    #[test]
    fn refusing_is_told_from_serving_and_from_idling() {
        let work = |length_s, completed, refused| {
            let processor_s = 0.01 * length_s + 0.000_2 * completed + 0.000_05 * refused;
            Work { length_s, completed, refused, processor_s }
        };
        let works = [work(4.0, 320.0, 0.0), work(12.0, 2_400.0, 3_000.0), work(12.0, 2_380.0, 20.0)];
        let cost_s = cost_of_refusal_s(&works).unwrap();
        assert!((cost_s - 0.000_05).abs() < 1e-9, "{cost_s}");
        let alike = [work(4.0, 400.0, 0.0), work(8.0, 800.0, 0.0), work(2.0, 200.0, 0.0)];
        assert_eq!(cost_of_refusal_s(&alike), None, "there is no refusal to tell");
    }

    #[test]
    fn counts_are_added_over_their_labels() {
        let metrics = "# HELP flashweir_requests_shed_total x\nflashweir_requests_shed_total{reason=\"capacity\"} 3\n\
                       flashweir_requests_shed_total{reason=\"ladder\"} 4\nflashweir_requests_offered_total 20\n\
                       flashweir_requests_offered_total_other 5\n";
        let books =
            Books::read(metrics, "flashweir_egress_refused_total{reason=\"limit\"} 9\n", std::process::id())
                .unwrap();
        assert_eq!((books.offered, books.refused, books.refused_at_caller), (20.0, 7.0, 9.0));
    }
}
