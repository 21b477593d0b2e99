//! Agents' reports, parsed strictly and kept for a few seconds.

use flashweir_core::{Duration, Instant, Shortage};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A report counts for this long: a few answers may be lost.
const LIFETIME: Duration = Duration::from_secs(5);
/// Bytes of an explanation that are shown.
const EXPLANATION_BYTES: usize = 300;
/// A processor may be reported as more than fully used, but not a hundred times over.
const UTILISATION_MAX: f64 = 100.0;

/// Reason for which a report is of no use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReportError {
    /// It is not what an agent sends.
    #[error("it is no report of an agent, expected `short_of` and `orca.cpu_utilization`")]
    Malformed,
    /// Its utilisation makes no sense.
    #[error("its utilisation is out of range, expected 0 to 100")]
    OutOfRange,
}

/// Report of one agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MachineReport {
    pub(crate) at: Instant,
    pub(crate) short_of: Shortage,
    pub(crate) utilisation_milli: u32,
    pub(crate) explanation: String,
}

/// The newest report of each server's agent, by service and the server's place.
#[derive(Debug, Default)]
pub(crate) struct Machines(BTreeMap<String, BTreeMap<usize, MachineReport>>);

#[derive(Deserialize)]
struct Wire {
    short_of: String,
    #[serde(default)]
    explanation: String,
    orca: WireOrca,
}

#[derive(Deserialize)]
struct WireOrca {
    cpu_utilization: f64,
}

/// Reads an agent's answer: what its machine is short of, utilisation in thousandths, and why.
pub(super) fn parse(body: &[u8]) -> Result<(Shortage, u32, String), ReportError> {
    let wire: Wire = serde_json::from_slice(body).map_err(|_| ReportError::Malformed)?;
    let short_of = Shortage::named(&wire.short_of).ok_or(ReportError::Malformed)?;
    let utilisation = wire.orca.cpu_utilization;
    if !(0.0..=UTILISATION_MAX).contains(&utilisation) {
        return Err(ReportError::OutOfRange);
    }
    let mut explanation: String =
        wire.explanation.chars().filter(|character| !character.is_control()).collect();
    explanation.truncate(explanation.floor_char_boundary(EXPLANATION_BYTES));
    Ok((short_of, (utilisation * 1e3) as u32, explanation))
}

impl Machines {
    pub(super) fn insert(&mut self, service: &str, place: usize, report: Option<&MachineReport>) {
        if let Some(report) = report {
            self.0.entry(service.to_owned()).or_default().insert(place, report.clone());
        }
    }

    pub(super) fn of_server(&self, service: &str, place: usize) -> Option<&MachineReport> {
        self.0.get(service)?.get(&place)
    }

    fn fresh(&self, now: Instant, service: &str) -> impl Iterator<Item = (&usize, &MachineReport)> {
        let reports = self.0.get(service).into_iter().flatten();
        reports.filter(move |(_, report)| now.saturating_since(report.at) <= LIFETIME)
    }

    /// Shortage of a service's machines: the one that most of its short machines report; none without a fresh
    /// report.
    pub(crate) fn short_of(&self, now: Instant, service: &str) -> Option<Shortage> {
        let mut counts = [0usize; Shortage::ALL.len()];
        self.fresh(now, service).for_each(|(_, report)| counts[report.short_of as usize] += 1);
        let reported = Shortage::ALL.into_iter().filter(|shortage| counts[*shortage as usize] > 0);
        // One short server of many is what its service is short of; the first of a draw, in the order of the
        // words.
        reported.max_by_key(|shortage| match shortage {
            Shortage::Nothing => (0, 0),
            short => (counts[*short as usize], Shortage::ALL.len() - *short as usize),
        })
    }

    /// Explanation of the shortage on the machines of a service: the text of the first agent that reports it.
    pub(crate) fn explanation(&self, now: Instant, service: &str) -> Option<&str> {
        let short_of = self.short_of(now, service)?;
        let mut with_word = self.fresh(now, service).filter(|(_, report)| report.short_of == short_of);
        with_word.next().map(|(_, report)| report.explanation.as_str())
    }
}

/// State of a service's machines for `/status`; null without agents.
pub(crate) fn machines_json(machines: &Machines, now: Instant, service: &str) -> Value {
    let servers: Vec<Value> = machines
        .fresh(now, service)
        .map(|(place, report)| {
            json!({
                "upstream": place,
                "short_of": report.short_of.as_str(),
                "utilisation": f64::from(report.utilisation_milli) / 1e3,
                "explanation": report.explanation,
                "age_s": now.saturating_since(report.at).as_secs_f64(),
            })
        })
        .collect();
    match machines.short_of(now, service) {
        None => Value::Null,
        Some(short_of) => json!({ "short_of": short_of.as_str(), "servers": servers }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, any, proptest};

    fn report(second: u64, short_of: Shortage) -> MachineReport {
        MachineReport {
            at: Instant::from_secs(second),
            short_of,
            utilisation_milli: 500,
            explanation: format!("of {}", short_of.as_str()),
        }
    }

    #[test]
    fn the_word_is_that_of_most_machines_that_are_short_and_old_reports_say_nothing() {
        let mut machines = Machines::default();
        let now = Instant::from_secs(10);
        assert_eq!(machines.short_of(now, "shop"), None);
        let words =
            [Shortage::Nothing, Shortage::Nothing, Shortage::Disk, Shortage::Disk, Shortage::Processor];
        for (place, short_of) in words.into_iter().enumerate() {
            machines.insert("shop", place, Some(&report(10, short_of)));
            machines.insert("old", place, Some(&report(4, short_of)));
        }
        assert_eq!(machines.short_of(now, "shop"), Some(Shortage::Disk));
        assert_eq!(machines.explanation(now, "shop"), Some("of disk"));
        assert_eq!(machines.short_of(now, "old"), None);
        assert_eq!(machines_json(&machines, now, "old"), Value::Null);
        assert_eq!(machines_json(&machines, now, "shop")["servers"][4]["short_of"], "processor");
    }

    #[test]
    fn reports_are_read_strictly() {
        let good =
            br#"{"short_of":"processor","explanation":"full\nof","orca":{"cpu_utilization":0.5,"x":1}}"#;
        assert_eq!(parse(good), Ok((Shortage::Processor, 500, "fullof".to_owned())));
        let long = format!(
            r#"{{"short_of":"nothing","explanation":"{}","orca":{{"cpu_utilization":0}}}}"#,
            "ä".repeat(400)
        );
        assert_eq!(parse(long.as_bytes()).map(|(_, _, text)| text.len()), Ok(EXPLANATION_BYTES));
        for (body, error) in [
            (&b"{}"[..], ReportError::Malformed),
            (br#"{"short_of":"luck","orca":{"cpu_utilization":0.5}}"#, ReportError::Malformed),
            (br#"{"short_of":"disk","orca":{"cpu_utilization":-1}}"#, ReportError::OutOfRange),
            (br#"{"short_of":"disk","orca":{"cpu_utilization":1e300}}"#, ReportError::OutOfRange),
            (br#"{"short_of":"disk","orca":{"cpu_utilization":null}}"#, ReportError::Malformed),
        ] {
            assert_eq!(parse(body), Err(error), "{}", String::from_utf8_lossy(body));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _read = parse(&body);
        }
    }
}
