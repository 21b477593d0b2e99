//! The documents `/status` and `/explain`, as JSON: every limit, its value, which one binds, and why.

use crate::agents::machines_json;
use crate::cache;
use crate::decisions::Explained;
use crate::feedback;
use crate::processors;
use crate::replication;
use crate::sentry::report;
use crate::shared::Shared;
use crate::verdict;
use flashweir_admission::fairness::{Cause, Sign};
use flashweir_admission::flash_crowd::Limit;
use flashweir_config::{Class, Service};
use flashweir_core::{DecisionId, Rate, Reason};
use flashweir_http::upstream::{OutCause, SHARE_ONE};
use flashweir_runtime::{plan_json, unix_seconds_now};
use flashweir_telemetry::ClassMetrics;
use serde_json::{Map, Value, json};

/// The document of `/status`.
pub(crate) fn status(shared: &Shared, config_file: Option<&str>) -> Value {
    let live = shared.live.load();
    let (config, plan) = (&live.config, shared.plan.load());
    let workers = plan.gate_shares_milli.len();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "service": config.gateway.name,
        "uptime_s": shared.clock.now().as_secs_f64(),
        "draining": shared.is_draining(),
        "workers": workers,
        "processors": processors::usable(workers),
        "processor_s": processors::used_s(),
        "config_file": config_file,
        "listening_on": shared.listening_on.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "requests": requests(shared),
        "verdict": verdict::status(shared),
        "plan": plan_json(&plan),
        "shadow": config.flash_crowd.shadow,
        "flash_crowd_candidate": live.flash_crowd_candidate.as_ref().map(|candidate| candidate.status()),
        "limits": limits(shared),
        "binds": binding(shared),
        "fairness": fairness(shared),
        "cache": cache::status(shared),
        "cluster": shared.cluster.as_ref().map(|cluster| cluster.status(shared.clock.now())),
        "replication": replication::status(shared),
        "kernel": shared.kernel_told.load().as_deref(),
        "services": services(shared),
        "upstreams": upstreams(shared),
        "baseline": baseline(shared),
    })
}

/// The document of `/explain/<id>`.
pub(crate) fn explanation(shared: &Shared, id: DecisionId, record: &Explained) -> Value {
    let age = shared.clock.now().saturating_since(record.at);
    let ceiling =
        ceiling_for(&record.plan.limit, record.host_key).filter(|_| record.reason == Reason::FlashCrowd);
    json!({
        "decision": id.to_string(),
        "decided_at_unix_s": unix_seconds_now().saturating_sub(age.as_secs()),
        "age_s": age.as_secs_f64(),
        "reason": record.reason.as_str(),
        "status": record.reason.status(),
        "shadow": record.shadow,
        "demoted_by": record.demoted.map(Cause::as_str),
        "retry_after_s": record.retry_after_s,
        "limit": {
            "bound": record.reason.as_str(),
            "ceiling_rps": ceiling.map(Rate::per_second),
            "hot_spot": matches!(record.plan.limit, Limit::HotSpots(_)) && ceiling.is_some(),
        },
        "sentry": record.sentry.as_ref().map(report::refusal),
        "plan": plan_json(&record.plan),
        "text": sentence(record, ceiling),
    })
}

/// The ceiling a request for this host was under.
pub(crate) fn ceiling_for(limit: &Limit, host_key: u64) -> Option<Rate> {
    match limit {
        Limit::Open => None,
        Limit::All(rate) => Some(*rate),
        Limit::HotSpots(spots) => spots.iter().find(|spot| spot.key == host_key).map(|spot| spot.rate),
    }
}

fn sentence(record: &Explained, ceiling: Option<Rate>) -> String {
    let plan = &record.plan.explanation;
    let would =
        if record.shadow { "would have been refused (shadow mode: it was admitted)" } else { "was refused" };
    let demoted = record.demoted.map(|cause| format!(" (it came after the others: {})", over_share(cause)));
    let why = format!("{}{}", record.reason.why(), demoted.unwrap_or_default());
    if let Some(sentry) = &record.sentry {
        let candidate = sentry.candidate.as_ref();
        let candidate =
            candidate.map_or_else(String::new, |said| format!(" {}", report::candidate_sentence(said)));
        let (in_flight, limit, waiting) = (sentry.in_flight, report::limit_of(sentry), sentry.waiting);
        return format!(
            "The request {would}: {why}; {in_flight} requests were at the origin, which takes {limit}, and {waiting} waited.{candidate}",
        );
    }
    if record.reason == Reason::FlashCrowd {
        let ceiling = ceiling.map_or_else(|| "open".to_owned(), |rate| rate.to_string());
        return format!(
            "The request {would}: {:.1} requests per second arrived, the ceiling was {ceiling}, because load was judged {}.",
            plan.offered_rps,
            plan.cause.as_str(),
        );
    }
    format!("The request {would}: {why}.")
}

/// The cause that is over a fair share, in words that follow "it came after the others: ".
fn over_share(cause: Cause) -> &'static str {
    match cause {
        Cause::Person => "its own session had more than a fair share",
        Cause::Sign(Sign::Address) => "its address had more than a fair share",
        Cause::Sign(Sign::Network) => "its network had more than a fair share",
        Cause::Sign(Sign::TlsFingerprint) => {
            "all clients with its TLS fingerprint together had more than a fair share"
        }
        Cause::Sign(Sign::System) => {
            "all clients of its autonomous system together had more than a fair share"
        }
        Cause::Sign(Sign::UserAgent) => "all clients with its user agent together had more than a fair share",
        Cause::Sign(Sign::UrlFamily) => {
            "all who ask for its family of URLs together had more than a fair share"
        }
        Cause::Sign(Sign::SessionAge) => {
            "all clients with a session as old as its own, or with none, together had more than a fair share"
        }
    }
}

fn fairness(shared: &Shared) -> Value {
    let live = shared.live.load();
    let by_cause = |count: &dyn Fn(Cause) -> u64| -> Value {
        Cause::ALL.iter().map(|&cause| (cause.as_str().to_owned(), json!(count(cause)))).collect()
    };
    let telemetry = &shared.telemetry;
    json!({
        "enabled": live.config.fairness.is_enabled,
        "people": telemetry.sum(|worker| worker.fairness.people().into()),
        "over_share": by_cause(&|cause| telemetry.sum(|worker| worker.fairness.over(cause).into())),
        "demoted": by_cause(&|cause| telemetry.sum(|worker| worker.fairness.demoted.value(cause))),
        "refused": telemetry.sum(|worker| worker.requests.shed.value(Reason::FairShare)),
        "impatient": {
            "sources": shared.impatient.in_force(shared.clock.now()).len(),
            "listed": telemetry.sum(|worker| worker.fairness.listed.value()),
            "dropped": telemetry.sum(|worker| worker.fairness.dropped.value()),
        },
    })
}

fn requests(shared: &Shared) -> Value {
    let sum = |value: fn(&flashweir_telemetry::WorkerMetrics) -> u64| shared.telemetry.sum(value);
    json!({
        "offered": sum(|worker| worker.requests.offered.value()),
        "unique_offered": sum(|worker| worker.requests.unique_offered.value()),
        "admitted": sum(|worker| worker.requests.admitted.value()),
        "completed": sum(|worker| worker.requests.completed.value()),
        "failed": sum(|worker| worker.requests.failed.value()),
        "abandoned": sum(|worker| worker.requests.abandoned.value()),
        "shed": sum(|worker| worker.requests.shed.total()),
        "shadow_shed": sum(|worker| worker.requests.shadow_shed.value()),
        "in_flight": shared.pipelines.in_gateway.get(),
    })
}

fn limits(shared: &Shared) -> Value {
    let live = shared.live.load();
    let config = &live.config;
    let shed = |reason: Reason| shared.telemetry.sum(|worker| worker.requests.shed.value(reason));
    let plan = shared.plan.load();
    json!([
        {
            "name": Reason::FlashCrowd.as_str(), "setting": "flash_crowd",
            "limit_rps": plan.explanation.ceiling_rps, "value_rps": plan.explanation.admitted_rps,
            "shed": shed(Reason::FlashCrowd),
        },
        {
            "name": Reason::RequestsInFlight.as_str(), "setting": "bounds.max_requests_in_flight",
            "limit": config.bounds.max_requests_in_flight, "value": shared.pipelines.in_gateway.get(),
            "shed": shed(Reason::RequestsInFlight),
        },
        {
            "name": Reason::UpstreamConnections.as_str(), "setting": "upstream.max_connections",
            "limit": live.services().map(|(service, _)| most_upstream(service)).sum::<usize>(),
            "value": live.services().map(|(_, upstreams)| upstreams.in_flight()).sum::<usize>(), "shed": shed(Reason::UpstreamConnections),
        },
        {
            "name": Reason::Connections.as_str(), "setting": "bounds.max_connections",
            "limit": config.bounds.max_connections, "value": shared.bounds.connections(),
            "shed": shed(Reason::Connections),
        },
        {
            "name": Reason::ConnectionsPerClient.as_str(), "setting": "client.max_connections_per_client",
            "limit": config.client.max_connections_per_client, "value": null,
            "shed": shed(Reason::ConnectionsPerClient),
        },
    ])
}

/// The limits that bind right now; a ceiling binds when nine tenths of it are used.
fn binding(shared: &Shared) -> Vec<&'static str> {
    let live = shared.live.load();
    let (config, plan) = (&live.config, shared.plan.load());
    let ceiling_met =
        plan.explanation.ceiling_rps.is_some_and(|ceiling| plan.explanation.admitted_rps >= 0.9 * ceiling);
    let upstream_met =
        live.services().any(|(service, upstreams)| upstreams.in_flight() >= most_upstream(service));
    [
        (Reason::Draining, shared.is_draining()),
        (Reason::FlashCrowd, ceiling_met),
        (Reason::RequestsInFlight, shared.pipelines.in_gateway.get() >= config.bounds.max_requests_in_flight),
        (Reason::UpstreamConnections, upstream_met),
        (Reason::Connections, shared.bounds.connections() >= config.bounds.max_connections),
    ]
    .into_iter()
    .filter_map(|(reason, binds)| binds.then_some(reason.as_str()))
    .collect()
}

fn baseline(shared: &Shared) -> Value {
    let baseline = shared.baseline.load();
    json!({
        "unique_offered_rps": baseline.unique_offered_rps,
        "fast_rate_bytes_per_s": baseline.fast_rate_bytes_per_s,
        "fast_score": baseline.fast_score,
        "latency_classes_known": baseline.latency_by_class_s.len(),
    })
}

/// The policy of each service.
fn services(shared: &Shared) -> Vec<Value> {
    let live = shared.live.load();
    let sentries = live.sentries.iter().zip(&live.candidates);
    let all = live.services().zip(sentries).map(|((service, upstreams), (sentry, candidate))| {
        json!({
            "name": service.name,
            "hosts": service.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "paths": service.written_paths().collect::<Vec<_>>(),
            "requests": requests_of(shared, service),
            "policing": service.sentry.policing.as_str(),
            "shadow": service.sentry.shadow,
            "response_target_s": service.sentry.response_target.as_secs_f64(),
            "classes": service.classes.iter().map(class).collect::<Vec<_>>(),
            "demand": service.classes.iter().map(|class| demand(shared, service, class)).collect::<Vec<_>>(),
            "in_flight_upstream": upstreams.in_flight(),
            "machines": machines_json(&shared.machines.load(), shared.clock.now(), &service.name),
            "sentry": sentry.as_ref().map(|sentry| report::status(sentry, shared.clock.now())),
            "feedback": sentry.as_ref().map(|sentry| {
                feedback::report::status(&sentry.feedback_report.load(), &service.upstream.urls)
            }),
            "candidate": candidate.as_deref().map(|candidate| report::candidate(candidate, shared.clock.now())),
        })
    });
    all.collect()
}

/// Requests to one service; retries are counted separately for the gateway as a whole only.
fn requests_of(shared: &Shared, service: &Service) -> Value {
    let control = shared.telemetry.control();
    let classes = service.classes.iter().map(|class| control.class_slot(&service.name, &class.name));
    let slots: Vec<_> = classes.collect();
    let sum = |value: fn(&ClassMetrics) -> u64| {
        shared.telemetry.sum(|worker| slots.iter().map(|&slot| value(worker.classes.of(slot))).sum())
    };
    json!({
        "offered": sum(|class| class.offered.value()),
        "admitted": sum(|class| class.admitted.value()),
        "shed": sum(|class| class.shed.total()),
    })
}

/// Counts of one class since the start, refusals by reason: the inputs by which servers are planned.
fn demand(shared: &Shared, service: &Service, class: &Class) -> Value {
    let slot = shared.telemetry.control().class_slot(&service.name, &class.name);
    let sum = |count: fn(&ClassMetrics) -> u64| shared.telemetry.sum(|worker| count(worker.classes.of(slot)));
    let refused = Reason::ALL.iter().filter_map(|reason| {
        let count = shared.telemetry.sum(|worker| worker.classes.of(slot).shed.value(*reason));
        (count > 0).then(|| (reason.to_string(), count.into()))
    });
    json!({
        "name": class.name,
        "offered": sum(|class| class.offered.value()),
        "admitted": sum(|class| class.admitted.value()),
        "refused": refused.collect::<Map<String, Value>>(),
    })
}

fn class(class: &Class) -> Value {
    json!({
        "name": class.name,
        "revenue": class.revenue,
        "guaranteed_rps": class.guaranteed_rate_rps,
        "response_target_s": class.response_target.map(|target| target.as_secs_f64()),
        "exempt": class.exempt,
    })
}

fn upstreams(shared: &Shared) -> Vec<Value> {
    let live = shared.live.load();
    let statuses = live.services().flat_map(|(service, upstreams)| {
        upstreams.statuses().into_iter().map(|status| (service.name.as_str(), status))
    });
    let upstreams = statuses.map(|(service, status)| {
        json!({
            "service": service, "url": status.address, "in_flight": status.in_flight,
            "healthy": status.is_available(), "out_because": status.out_because.map(OutCause::as_str),
            "share": f64::from(status.share) / f64::from(SHARE_ONE),
        })
    });
    upstreams.collect()
}

/// Connections all upstreams of a service may have.
fn most_upstream(service: &Service) -> usize {
    service.upstream.max_connections * service.upstream.urls.len()
}
