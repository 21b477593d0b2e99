//! Choice of this gateway's state file.

use crate::shared::Shared;
use flashweir_config::Config;
use flashweir_runtime::StateFile;

/// The file this configuration names, for its service and upstreams; `None` when nothing is to be kept.
pub(crate) fn configured(config: &Config) -> Option<StateFile> {
    // One detector watches all services: with another service or other servers its baseline is worth nothing.
    let urls = config.services.iter().flat_map(|service| &service.upstream.urls);
    let upstreams: Vec<String> = urls.map(ToString::to_string).collect();
    Some(StateFile::new(config.state.file.clone()?, &config.gateway.name, &upstreams))
}

/// The same of the configuration in force, to be written.
pub(crate) fn in_force(shared: &Shared) -> Option<StateFile> {
    Some(configured(&shared.live.load().config)?.with_url_key(shared.url_key))
}
