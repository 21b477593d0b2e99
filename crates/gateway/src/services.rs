//! The servers behind each service, and the sentry before them.

use crate::sentry::{Candidate, Names, Sentry};
use crate::settings::upstream_settings;
use flashweir_config::{Class, Config, Service};
use flashweir_http::upstream::{UpstreamSettingsError, UpstreamShared};
use std::sync::Arc;

/// Health and in-flight counts of each service's upstreams, in the configuration's order. What `before`
/// already has for a service of the same name is taken over: all of it where the settings are the same, else
/// what is known of the servers that stay.
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
        let settings = upstream_settings(&service.upstream, config.bounds.max_response_fields, workers);
        match of_name(&service.name) {
            Some(kept) if *kept.settings() == settings => {
                kept.reload_trust()?;
                Ok(kept.clone())
            }
            Some(former) => UpstreamShared::succeeding(settings, former),
            None => UpstreamShared::new(settings),
        }
    });
    upstreams.collect()
}

/// Each service's sentry, in the configuration's order; `None` where it is off. What `before` already has for
/// a service of the same name and policy is taken over, with all that was learned.
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
        let policy = service.sentry.policy(&service.classes)?;
        let names = names(service, &service.classes);
        let kept = of_name(&service.name).filter(|kept| {
            *kept.policy == policy && kept.names == names && kept.shadow == service.sentry.shadow
        });
        Some(kept.cloned().unwrap_or_else(|| Sentry::new(names, policy, service.sentry.shadow, workers)))
    });
    sentries.collect()
}

/// The candidate of each service that has one. What `before` already has for a service of the same name and
/// candidate is taken over, with all that was compared.
pub(crate) fn candidates(
    config: &Config,
    workers: usize,
    before: Option<&[Option<Arc<Candidate>>]>,
) -> Vec<Option<Arc<Candidate>>> {
    let known = || before.into_iter().flatten().flatten();
    let candidates = config.services.iter().map(|service| {
        let configured = service.candidate.as_ref()?;
        let policy = configured.sentry.policy(&configured.classes)?;
        let names = names(service, &configured.classes);
        let kept = known().find(|kept| kept.sentry.names == names && kept.configured == *configured);
        Some(kept.cloned().unwrap_or_else(|| Candidate::new(names, policy, configured.clone(), workers)))
    });
    candidates.collect()
}

fn names(service: &Service, classes: &[Class]) -> Names {
    let classes = classes.iter().map(|class| class.name.clone());
    Names { service: service.name.clone(), classes: classes.collect() }
}
