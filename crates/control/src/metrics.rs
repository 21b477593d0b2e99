//! The control plane's own `/metrics`.

use crate::config::ControlError;
use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;
use flashweir_provisioning::{ApplicationPlan, PoolState, Rule};
use flashweir_runtime::{AdminListener, metrics_response};
use flashweir_telemetry::{ProvisioningMetrics, ProvisioningRule, Telemetry};
use std::net::SocketAddr;
use std::sync::Arc;

/// Answers `/metrics` and `/healthz` until the runtime ends; the address.
///
/// # Errors
/// [`ControlError::Listen`] when the address cannot be taken.
pub(crate) fn serve(
    listen: SocketAddr,
    services: Vec<(String, Arc<ProvisioningMetrics>)>,
) -> Result<SocketAddr, ControlError> {
    let listener = AdminListener::bind(listen).map_err(|error| ControlError::Listen(listen, error))?;
    let address = listener.address()?;
    let telemetry = Arc::new(Telemetry::control_plane(services, env!("CARGO_PKG_VERSION")));
    let answer = move |request: HeaderMap| {
        let telemetry = telemetry.clone();
        async move { metrics_response(&telemetry, &request) }
    };
    tokio::task::spawn_local(listener.serve(Router::new().route("/metrics", get(answer)), Vec::new()));
    Ok(address)
}

/// Publishes the numbers behind a plan.
pub(crate) fn publish_plan(metrics: &ProvisioningMetrics, application: &ApplicationPlan) {
    let why = application.explanation;
    metrics.plans.increment(match why.rule {
        Rule::Unknown => ProvisioningRule::Unknown,
        Rule::Keep => ProvisioningRule::Keep,
        Rule::Predict => ProvisioningRule::Predict,
        Rule::Panic => ProvisioningRule::Panic,
        Rule::TargetInfeasible => ProvisioningRule::TargetInfeasible,
        Rule::Hold => ProvisioningRule::Hold,
        Rule::Release => ProvisioningRule::Release,
        Rule::Short => ProvisioningRule::Short,
    });
    metrics.update(|figures| {
        figures.needed = why.servers_needed;
        figures.offered_rps = Some(why.offered_rps);
        figures.forecast_rps = Some(why.forecast_rps);
        figures.refused_ratio = Some(why.refused_share);
        figures.start_up_s = Some(why.start_up.as_secs_f64());
    });
}

/// Publishes how many servers there are.
pub(crate) fn publish_pool(metrics: &ProvisioningMetrics, ordered: Option<u32>, pool: PoolState) {
    metrics.update(|figures| {
        (figures.ordered, figures.ready, figures.starting) = (ordered, Some(pool.ready), Some(pool.starting));
    });
}
