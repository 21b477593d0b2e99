//! The servers behind each service, and the sentry before them.

use crate::sentry::{Names, Sentry};
use crate::settings::{sentry_policy, upstream_settings};
use flashweir_config::Config;
use flashweir_http::upstream::{UpstreamSettingsError, UpstreamShared};
use std::sync::Arc;

/// Health and in-flight counts of each service's upstreams, in the configuration's order. What `before` already has
/// for a service of the same name and settings is taken over.
pub(crate) fn upstreams(
    config: &Config,
    workers: usize,
    before: Option<(&Config, &[Arc<UpstreamShared>])>,
) -> Result<Vec<Arc<UpstreamShared>>, UpstreamSettingsError> {
    let of_name = |name: &str| {
        let (config, upstreams) = before?;
        let index = config.services.iter().position(|service| service.name == name)?;
        upstreams.get(index)
    };
    let upstreams = config.services.iter().map(|service| {
        let settings = upstream_settings(&service.upstream, workers);
        match of_name(&service.name).filter(|kept| *kept.settings() == settings) {
            Some(kept) => Ok(kept.clone()),
            None => UpstreamShared::new(settings),
        }
    });
    upstreams.collect()
}

/// Each service's sentry, in the configuration's order; `None` where it is off. What `before` already has for a service
/// of the same name and policy is taken over, with all that was learned.
pub(crate) fn sentries(
    config: &Config,
    workers: usize,
    before: Option<(&Config, &[Option<Arc<Sentry>>])>,
) -> Vec<Option<Arc<Sentry>>> {
    let of_name = |name: &str| {
        let (config, sentries) = before?;
        let index = config.services.iter().position(|service| service.name == name)?;
        sentries.get(index)?.as_ref()
    };
    let sentries = config.services.iter().map(|service| {
        let policy = sentry_policy(service)?;
        let names = Names {
            service: service.name.clone(),
            classes: service.classes.iter().map(|class| class.name.clone()).collect(),
        };
        let kept = of_name(&service.name).filter(|kept| {
            *kept.policy == policy && kept.names == names && kept.shadow == service.sentry.shadow
        });
        Some(kept.cloned().unwrap_or_else(|| Sentry::new(names, policy, service.sentry.shadow, workers)))
    });
    sentries.collect()
}
