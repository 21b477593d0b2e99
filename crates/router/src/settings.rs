//! The configuration in the words of the programs in the kernel.

use crate::error::RouterError;
use crate::orders::Manner;
use crate::places::{PROTECTED_MOST, Places};
use flashweir_config::{FlashCrowdMode, Kernel, RouterConfig};
use flashweir_kernel::gate::{Page, Service};
use flashweir_kernel::observe::Reading;
use flashweir_runtime::StateFile;
use flashweir_runtime::kernel::refusal;
use std::net::{IpAddr, SocketAddr};

/// Manner in which a new connection beyond the ceiling is refused.
pub(crate) fn manner(config: &RouterConfig) -> Manner {
    Manner { refusal: refusal(&config.kernel), shadow: is_shadow(config), ranks: config.kernel.tiers.count() }
}

/// Returns whether plans are made and not obeyed.
pub(crate) fn is_shadow(config: &RouterConfig) -> bool {
    config.kernel.shadow || config.flash_crowd.shadow
}

/// Reading of the rates of responses: the published rules were made for the published reading.
pub(crate) fn reading(mode: FlashCrowdMode) -> Reading {
    match mode {
        FlashCrowdMode::Paper | FlashCrowdMode::Scoreboard => Reading::AsPublished,
        FlashCrowdMode::Repaired | FlashCrowdMode::Off => Reading::Corrected,
    }
}

/// The places of the protected addresses.
pub(crate) fn places(kernel: &Kernel) -> Result<Places, RouterError> {
    match kernel.protect.len() {
        count if count > PROTECTED_MOST => Err(RouterError::TooManyProtected(count)),
        _ => Ok(Places::new(&kernel.protect)),
    }
}

/// The gate's settings for each place.
pub(crate) fn services(places: &Places, kernel: &Kernel) -> Vec<Service> {
    // One of many addresses that speaks TLS makes all of its place so: who would understand an answer
    // understands a reset.
    let speaks_tls =
        |addresses: &[SocketAddr]| addresses.iter().any(|at| kernel.tls_ports.contains(&at.port()));
    let service = |endpoints: Vec<SocketAddr>| Service {
        speaks_tls: speaks_tls(&endpoints),
        endpoints,
        page: Page::default(),
    };
    places.endpoints().into_iter().map(service).collect()
}

/// Networks that are let in under every plan.
pub(crate) fn preferred(kernel: &Kernel) -> Vec<(IpAddr, u8)> {
    kernel.preferred.iter().map(|network| (network.addr(), network.prefix_len())).collect()
}

/// State file of these servers' baseline; `None` when nothing is to be kept.
pub(crate) fn state_file(config: &RouterConfig) -> Option<StateFile> {
    // With other servers the baseline is worth nothing, and so it is by another reading.
    let reading = reading(config.flash_crowd.mode);
    let servers = config.kernel.protect.iter().map(ToString::to_string).chain([format!("{reading:?}")]);
    Some(StateFile::new(config.state.file.clone()?, &config.gateway.name, &servers.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_config::Overrides;

    fn config(text: &str) -> RouterConfig {
        RouterConfig::from_toml_with(text, "router.toml", &Overrides::default()).expect("a configuration")
    }

    const TWO: &str = "[kernel]\ninterface = 'eth0'\nprotect = ['10.0.0.1:80', '10.0.0.1:443']\n";

    #[test]
    fn each_address_is_a_service_and_knows_whether_it_speaks_tls() {
        let config = config(TWO);
        let places = places(&config.kernel).expect("room");
        let services = services(&places, &config.kernel);
        assert_eq!(services.iter().map(|service| service.speaks_tls).collect::<Vec<_>>(), [false, true]);
        assert_eq!(services[0].endpoints, ["10.0.0.1:80".parse().expect("an address")]);
    }

    #[test]
    fn shadow_may_come_from_the_kernel_or_from_the_detector() {
        assert!(!manner(&config(TWO)).shadow);
        assert!(manner(&config(&format!("{TWO}shadow = true\n"))).shadow);
        assert!(manner(&config(&format!("{TWO}[flash_crowd]\nshadow = true\n"))).shadow);
    }

    #[test]
    fn room_is_kept_for_hot_spots() {
        let many: Vec<String> = (0..=PROTECTED_MOST)
            .map(|number| format!("'10.0.{}.{}:80'", number / 256, number % 256))
            .collect();
        let config = config(&format!("[kernel]\ninterface = 'eth0'\nprotect = [{}]\n", many.join(", ")));
        let error = places(&config.kernel).expect_err("one too many");
        assert_eq!(error.to_string(), "kernel.protect: 253 addresses, a router protects at most 252");
    }
}
