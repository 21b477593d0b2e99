//! Messages that came from other gateways: counted, and logged where they were not taken.

use super::leader::ReportError;
use super::message::MessageError;
use crate::shared::Shared;
use flashweir_telemetry::{Happening, ReportOutcome};

/// Counts a message that was not taken and logs it, not too often.
pub(super) fn refuse(shared: &Shared, why: std::fmt::Arguments<'_>) {
    shared.warn(Happening::Cluster, why);
}

/// Counts a message that is no report of this cluster.
pub(super) fn refuse_report(shared: &Shared, error: &MessageError) {
    let is_forged = matches!(error, MessageError::Seal(_));
    let outcome = if is_forged { ReportOutcome::Forged } else { ReportOutcome::Malformed };
    shared.telemetry.control().cluster_reports.increment(outcome);
    refuse(shared, format_args!("a report was refused: {error}"));
}

/// Counts a report at the leader, and logs why it was not taken.
pub(super) fn count_report(shared: &Shared, outcome: Result<(), ReportError>, gateway: &str) {
    let counted = match &outcome {
        Ok(()) => ReportOutcome::Counted,
        Err(ReportError::Repeated) => ReportOutcome::Stale,
        Err(_) => ReportOutcome::Refused,
    };
    shared.telemetry.control().cluster_reports.increment(counted);
    if let Err(error) = outcome {
        refuse(shared, format_args!("a report of gateway {gateway} was not counted: {error}"));
    }
}
