//! The cache in `/status`.

use crate::shared::Shared;
use flashweir_telemetry::{CacheAnswer, Label as _};
use serde_json::{Map, Value, json};

/// Document of the cache for `/status`. Hosts have numbers and no names: names are chosen by clients.
pub(crate) fn status(shared: &Shared) -> Value {
    let live = shared.live.load();
    let (config, cache) = (&live.config.cache, &shared.cache);
    let now = shared.clock.now();
    let open = cache.open_hosts.load();
    let hosts = open.iter().map(|host| {
        json!({
            "open_s": now.saturating_since(host.since).as_secs_f64(),
            "demand_rps": host.demand_rps,
            "usual_rps": host.usual_rps,
            "peak_rps": host.peak_rps,
        })
    });
    let answers: Map<String, Value> = CacheAnswer::ALL
        .iter()
        .map(|&how| {
            (how.as_str().to_owned(), shared.telemetry.sum(|worker| worker.cache.answers.value(how)).into())
        })
        .collect();
    json!({
        "mode": config.mode.as_str(),
        "memory_bytes": config.memory_bytes,
        "used_bytes": cache.directory.gauge().bytes(),
        "responses": cache.directory.responses(),
        "flights": cache.directory.flights(),
        "waiting": cache.waiting(),
        "open_hosts": hosts.collect::<Vec<_>>(),
        "answers": answers,
        "fetches": shared.telemetry.sum(|worker| worker.cache.fetches.value()),
        "fetch_retries": shared.telemetry.sum(|worker| worker.cache.fetch_retries.value()),
        "refreshes": shared.telemetry.sum(|worker| worker.cache.refreshes.value()),
    })
}
