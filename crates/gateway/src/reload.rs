//! Takes over a changed configuration file, or keeps everything as it was.

use crate::descriptors;
use crate::flash_crowd_candidate::FlashCrowdCandidate;
use crate::services::{candidates, sentries, upstreams};
use crate::shared::{Live, Shared};
use flashweir_config::{Config, ConfigError, Overrides};
use flashweir_http::client::TrustedProxies;
use flashweir_http::tls::{ServerTls, TlsError};
use flashweir_http::upstream::UpstreamSettingsError;
use std::path::Path;
use std::sync::Arc;

/// Reason for which a reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{file}: {key} cannot change while running, restart for it")]
    RestartNeeded { file: String, key: &'static str },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Upstream(#[from] UpstreamSettingsError),
}

/// Reads the configuration again and puts it in force: all of it or nothing. Services come and go; what did
/// not change is kept, so that upstream connections, health and certificates survive a reload that is about
/// something else.
pub(crate) fn reload(
    shared: &Shared,
    file: Option<&Path>,
    overrides: &Overrides,
    workers: usize,
) -> Result<(), ReloadError> {
    let mut config = Config::load(file, overrides)?;
    let refuse_only = descriptors::fit(&mut config, workers, descriptors::limit());
    let before = shared.live.load();
    // The log was opened by the process that started the gateway.
    let log_differs = (before.config.log != config.log).then_some("log");
    if let Some(key) = before.config.restart_needed(&config).or(log_differs) {
        let file = file.map_or_else(String::new, |file| file.display().to_string());
        return Err(ReloadError::RestartNeeded { file, key });
    }
    let tls = match (&before.tls, &config.listen.tls) {
        (Some(current), Some(files)) if before.config.listen.tls.as_ref() == Some(files) => {
            current.reload()?;
            Some(current.clone())
        }
        (_, Some(files)) => Some(Arc::new(ServerTls::open(&files.certificate, &files.key)?)),
        (_, None) => None,
    };
    let upstreams = upstreams(&config, workers, Some((&before.config, &before.upstreams)))?;
    let trusted_proxies = TrustedProxies::new(config.client.trusted_proxies.clone());
    let sentries = sentries(&config, workers, Some((&before.config, &before.sentries)));
    let candidates = candidates(&config, workers, Some(&before.candidates));
    let flash_crowd_candidate =
        FlashCrowdCandidate::of(&config, workers, before.flash_crowd_candidate.as_ref());
    shared.bounds.set_refuse_only_most(refuse_only);
    shared.cache.directory.gauge().set_max(config.cache.memory_bytes);
    shared.telemetry.control().set_connection_limits(descriptors::limit(), config.bounds.max_connections);
    shared.impatient.follow(&config, &trusted_proxies);
    shared.live.store(Arc::new(Live {
        config,
        upstreams,
        sentries,
        candidates,
        flash_crowd_candidate,
        tls,
        trusted_proxies,
    }));
    Ok(())
}

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
