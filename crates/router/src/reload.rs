//! Settings that a running router can take over.

use crate::error::RouterError;
use crate::launch::Launch;
use crate::settings::{places, reading};
use flashweir_config::{ConfigError, RouterConfig};

/// Reason for which a reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0} cannot change while running, restart for it")]
    RestartNeeded(&'static str),
    #[error(transparent)]
    Router(#[from] RouterError),
}

/// The configuration as it is written now, if a router that runs by `before` can take it over.
pub(crate) fn changed(launch: &Launch, before: &RouterConfig) -> Result<RouterConfig, ReloadError> {
    let config = RouterConfig::load(launch.config_file.as_deref(), &launch.overrides)?;
    places(&config.kernel)?;
    match restart_needed(before, &config) {
        Some(key) => Err(ReloadError::RestartNeeded(key)),
        None => Ok(config),
    }
}

/// The first setting that differs and takes effect only at a restart. What stands before an interface stays
/// there over a reload, so that nothing gets past meanwhile.
fn restart_needed(before: &RouterConfig, new: &RouterConfig) -> Option<&'static str> {
    let differs = [
        ("kernel.interface", before.kernel.interfaces != new.kernel.interfaces),
        ("kernel.hook", before.kernel.hook != new.kernel.hook),
        ("kernel.pin", before.kernel.pin != new.kernel.pin),
        ("kernel.flows", before.kernel.flows != new.kernel.flows),
        ("flash_crowd.mode", reading(before.flash_crowd.mode) != reading(new.flash_crowd.mode)),
        ("link", before.link != new.link),
        ("admin.address", before.admin != new.admin),
        ("log", before.log != new.log),
    ];
    differs.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_config::Overrides;

    #[test]
    fn what_is_attached_or_listens_stays_and_the_rest_may_change() {
        let config = |more: &str| {
            let text = format!("kernel.interface = 'eth0'\nkernel.protect = ['10.0.0.1:80']\n{more}\n");
            RouterConfig::from_toml_with(&text, "router.toml", &Overrides::default())
                .expect("a configuration")
        };
        let needed = |more: &str| restart_needed(&config(""), &config(more));
        assert_eq!(needed("kernel.flows = 2048"), Some("kernel.flows"));
        assert_eq!(needed("kernel.hook = 'generic'"), Some("kernel.hook"));
        assert_eq!(needed("flash_crowd.mode = 'paper'"), Some("flash_crowd.mode"));
        assert_eq!(needed("log.level = 'warn'"), Some("log"));
        for more in ["kernel.refusal = 'drop'", "kernel.interval = '5s'", "flash_crowd.mode = 'off'"] {
            assert_eq!(needed(more), None, "{more}");
        }
    }
}
