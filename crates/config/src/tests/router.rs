//! The part of a configuration file that a router reads.

use std::path::Path;
use std::time::Duration;

use crate::{FlashCrowdMode, KernelHook, KernelRefusal, LinkFlow, LinkSide, Overrides, RouterConfig};

const SMALLEST: &str = "[kernel]\ninterface = 'eth0'\nprotect = ['198.51.100.10:80']\n";

fn read(text: &str) -> RouterConfig {
    RouterConfig::from_toml_with(text, "etc/router.toml", &Overrides::default()).unwrap()
}

#[test]
fn the_smallest_file_gets_every_default() {
    let config = read(SMALLEST);
    let kernel = &config.kernel;
    assert_eq!((kernel.hook, kernel.refusal), (KernelHook::Auto, KernelRefusal::Answer));
    assert_eq!((kernel.tls_ports.as_slice(), kernel.flows), (&[443][..], 131_072));
    assert!(!kernel.fail_closed && !kernel.shadow && kernel.preferred.is_empty());
    assert_eq!(
        (kernel.interval, config.flash_crowd.interval),
        (Duration::from_secs(1), Duration::from_secs(1))
    );
    assert_eq!(config.admin.address, "127.0.0.1:9900".parse().unwrap());
}

#[test]
fn the_interval_is_that_of_the_router() {
    let interval = |text: &str| read(&format!("{SMALLEST}{text}")).flash_crowd.interval.as_secs();
    assert_eq!(interval("[flash_crowd]\nmode = 'paper'"), 60);
    assert_eq!(interval("[flash_crowd]\ninterval = '10ms'"), 1);
    assert_eq!(interval("interval = '7s'\n[flash_crowd]\nmode = 'paper'"), 7);
}

#[test]
fn flags_stand_without_a_file_and_the_state_file_has_a_name_of_its_own() {
    let overrides = Overrides {
        interfaces: vec!["eth0".into()],
        protect: vec!["[2001:db8::1]:443".into()],
        shadow: true,
        state_directory: Some("/var/lib/flashweir".into()),
        ..Overrides::default()
    };
    let config = RouterConfig::load(None, &overrides).unwrap();
    assert_eq!(config.kernel.protect, ["[2001:db8::1]:443".parse().unwrap()]);
    assert!(config.kernel.shadow && config.flash_crowd.shadow);
    assert_eq!(config.state.file.as_deref(), Some(Path::new("/var/lib/flashweir/baseline-router.json")));
}

#[test]
fn flags_about_the_plan_win_over_the_file() {
    let overrides = Overrides {
        mode: Some("paper".into()),
        interval: Some(Duration::from_secs(16)),
        refusal: Some("drop".into()),
        ..Overrides::default()
    };
    let check = |overrides: &Overrides| RouterConfig::from_toml_with(SMALLEST, "router.toml", overrides);
    let config = check(&overrides).unwrap();
    assert_eq!(config.flash_crowd.mode, FlashCrowdMode::Paper);
    assert_eq!(config.flash_crowd.interval, Duration::from_secs(16));
    assert_eq!(config.kernel.refusal, KernelRefusal::Drop);

    let wrong = Overrides { mode: Some("maybe".into()), ..overrides.clone() };
    let message = check(&wrong).unwrap_err().to_string();
    assert!(message.starts_with("--mode: unknown variant `maybe`, expected one of"), "{message}");
    let wrong = Overrides { interval: Some(Duration::from_millis(10)), ..overrides };
    let message = check(&wrong).unwrap_err().to_string();
    assert!(message.starts_with("--interval: 10ms is out of range, expected 1s to 5m"), "{message}");
}

#[test]
fn a_router_without_interface_or_server_is_none() {
    let message = |text: &str, overrides: &Overrides| {
        RouterConfig::from_toml_with(text, "router.toml", overrides).unwrap_err().to_string()
    };
    let none = Overrides::default();
    assert_eq!(
        message("", &none),
        "router.toml:1: kernel.interface: no interface, expected the one clients come through, here or as --interface NAME"
    );
    assert_eq!(
        message("[kernel]\ninterface = 'eth0'\n", &none),
        "router.toml:1: kernel.protect: no server, expected the address and port of at least one, here or as --protect \
         ADDR:PORT"
    );
    let wrong = Overrides { protect: vec!["10.0.0.1".into()], ..none };
    assert_eq!(
        message(SMALLEST, &wrong),
        "--protect: `10.0.0.1` is not an address, expected an IP address and a port like \"127.0.0.1:8080\""
    );
}

#[test]
fn a_router_may_only_divide_a_link_and_says_what_is_missing() {
    let overrides = Overrides {
        link: Some("eth1".into()),
        link_rate: Some("10mbit".into()),
        link_flow: Some("source".into()),
        ..Overrides::default()
    };
    let config = RouterConfig::load(None, &overrides).unwrap();
    assert!(config.kernel.interfaces.is_empty());
    let link = config.link.unwrap();
    assert_eq!(
        (link.interface.as_str(), link.rate_bits_per_s, link.flow),
        ("eth1", 10_000_000, LinkFlow::Source)
    );
    assert_eq!((link.side, link.target), (LinkSide::Egress, Duration::from_millis(50)));

    let error = |overrides: Overrides| RouterConfig::load(None, &overrides).unwrap_err().to_string();
    let no_rate = error(Overrides { link: Some("eth1".into()), ..Overrides::default() });
    assert!(no_rate.contains("link.rate") && no_rate.contains("--link-rate RATE"), "{no_rate}");
    let wrong_rate = error(Overrides { link_rate: Some("10".into()), ..overrides.clone() });
    assert!(wrong_rate.contains("--link-rate") && wrong_rate.contains("10mbit"), "{wrong_rate}");
    let no_link = error(Overrides { link: None, ..overrides.clone() });
    assert!(no_link.contains("--link NAME"), "{no_link}");
    // With an interface to guard there must be servers, link or not.
    let guarded = error(Overrides { interfaces: vec!["eth0".into()], ..overrides });
    assert!(guarded.contains("kernel.protect"), "{guarded}");
}
