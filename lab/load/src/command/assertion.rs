//! `--assert`: what a run has to show, for continuous integration.

use super::metric::{Metric, metric, seconds, written};
use crate::LoadResult;
use flashweir_workload::Operator;
use std::fmt;

/// The long help of `--assert`.
pub(super) const HELP: &str = "\
Fail with exit code 1 unless this holds; may be repeated. [CLASS.]METRIC OP VALUE, OP one of >= <= > < ==:

  'goodput_ratio >= 95%'   'p99 < 500ms'   'errors == 0'   'buyers.refusal_p99 < 50ms'   'recovery < 10s'

Counts: offered unique_offered sent completed goodput refused timed_out abandoned errors in_flight body_bytes; of the \
whole run connections connections_reused connections_failed connections_given_up syn_retransmissions. \
Shares of requests (unique_offered): goodput_ratio completed_ratio abandoned_ratio. \
Shares of tries (offered): refused_ratio timed_out_ratio error_ratio. Rates over the schedule's length: offered_rps \
completed_rps goodput_rps body_bytes_per_s. Tries for each request: retry_amplification. Times, with their unit (us, \
ms, s): mean p50 p90 p99 p999 p9999 max of the latency of completed tries, and the same after refusal_, ttfb_, \
served_ (all tries of a request together) and lag_ (of the generator), such as lag_p99. recovery: from the end of \
the crowd until goodput and p99 are as before; never is longer than any time. What was not measured fails, and so does \
every assertion on a run whose generator was saturated.";

/// One condition on a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assertion {
    /// All classes if `None`.
    class: Option<String>,
    metric: Metric,
    operator: Operator,
    /// In the metric's unit; milliseconds for times.
    bound: f64,
    /// The condition as it was written, for messages.
    text: String,
}

/// Reads a condition.
///
/// # Errors
/// Describes the fault and the accepted form.
pub(crate) fn parse(text: &str) -> Result<Assertion, String> {
    let example = "expected METRIC OP VALUE with OP one of >= <= > < ==, like 'p99 < 500ms'";
    let at = text.find(['<', '>', '=', '!']).ok_or(example)?;
    let (subject, rest) = text.split_at(at);
    let (operator, bound) = Operator::read(rest).ok_or(example)?;
    let (class, metric) = subject_of(subject.trim())?;
    let bound = metric.quantity().read(&metric.name(), bound.trim())?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Assertion { class: class.map(str::to_owned), metric, operator, bound, text })
}

/// The class and the metric; `p99.9` is a metric, not a class with a metric.
fn subject_of(subject: &str) -> Result<(Option<&str>, Metric), String> {
    let whole = metric(subject);
    match subject.split_once('.') {
        Some((class, name)) if whole.is_err() => {
            let metric = metric(name)?;
            if !metric.is_of_classes() {
                return Err(format!("{name} exists for the whole run only: write it without \"{class}.\""));
            }
            if class.is_empty() {
                return Err("there is no class before the dot".to_owned());
            }
            Ok((Some(class), metric))
        }
        _ => Ok((None, whole?)),
    }
}

/// Finds before a run what could only fail after it: classes that it does not have, a recovery without a
/// crowd.
///
/// # Errors
/// The first of these.
pub(crate) fn check(assertions: &[Assertion], classes: &[&str], has_crowd: bool) -> Result<(), String> {
    for Assertion { class, metric, text, .. } in assertions {
        if let Some(class) = class.as_deref().filter(|class| !classes.contains(class)) {
            return Err(format!("--assert '{text}': {}", no_class(class, classes)));
        }
        if *metric == Metric::Recovery && !has_crowd {
            return Err(format!(
                "--assert '{text}': the schedule has no crowd to recover from (--crowd-window can tell of one)"
            ));
        }
    }
    Ok(())
}

fn no_class(class: &str, classes: &[&str]) -> String {
    format!("there is no class \"{class}\", only {}", classes.join(", "))
}

/// Reports on stderr which of the assertions do not hold.
///
/// # Errors
/// The number that did not hold.
pub(crate) fn enforce(assertions: &[Assertion], result: &LoadResult) -> anyhow::Result<()> {
    let failures = failures(assertions, result);
    failures.iter().for_each(|failure| eprintln!("assertion failed: {failure}"));
    match failures.len() {
        0 => Ok(()),
        failed => anyhow::bail!("{failed} of {} checks failed", assertions.len().max(failed)),
    }
}

/// Each that does not hold, and why.
fn failures(assertions: &[Assertion], result: &LoadResult) -> Vec<String> {
    let saturated = (result.saturated && !assertions.is_empty())
        .then(|| "the generator was saturated, so nothing is known about the target".to_owned());
    let failed = assertions.iter().filter_map(|assertion| assertion.failure(result));
    saturated.into_iter().chain(failed).collect()
}

impl Assertion {
    fn failure(&self, result: &LoadResult) -> Option<String> {
        let why = match self.value(result) {
            Ok(value) if self.operator.holds(value, self.bound) => return None,
            Ok(value) => format!("{} is {}", self.metric.name(), written(value, self.metric.quantity())),
            Err(why) => why,
        };
        Some(format!("{self}: {why}"))
    }

    fn value(&self, result: &LoadResult) -> Result<f64, String> {
        let value = match &self.class {
            None => self.metric.of_run(result),
            Some(class) => match result.classes.get(class) {
                Some(tally) => self.metric.of_tally(tally, seconds(result)),
                None => {
                    let classes: Vec<_> = result.classes.keys().map(String::as_str).collect();
                    return Err(no_class(class, &classes));
                }
            },
        };
        value.map_err(str::to_owned)
    }
}

/// As it was written; read again it is the same.
impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
