//! This gateway as one of several, in `/status`.

use super::State;
use flashweir_core::Instant;
use serde_json::{Value, json};

pub(super) fn status(gateway: u64, name: &str, state: &State, now: Instant) -> Value {
    let services = state.members.iter().map(|(service, known)| {
        let figures = known.member.figures(now);
        json!({
            "service": service,
            "standing": figures.share_state.as_str(),
            "limit": figures.limit,
            "share": figures.share,
            "gateways": figures.gateways,
            "in_flight_elsewhere": figures.elsewhere,
            "term": figures.epoch.term,
            "sequence": figures.epoch.sequence,
            "silence_s": figures.silence.map(|silence| silence.as_secs_f64()),
        })
    });
    let reporting = state.gateways.iter().map(|(gateway, heard)| {
        json!({ "name": gateway, "silence_s": now.saturating_since(*heard).as_secs_f64() })
    });
    json!({
        "gateway": format!("{gateway:016x}"),
        "name": name,
        "is_leader": state.is_leader,
        "leader": state.leader,
        "term": state.term,
        "services": services.collect::<Vec<_>>(),
        "reporting": reporting.collect::<Vec<_>>(),
    })
}
