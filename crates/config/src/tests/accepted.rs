//! Result of a correct file: defaults, flags over the file, relative names, readable files.

use std::path::Path;
use std::time::Duration;

use crate::{Config, FlashCrowdMode, Overrides, Protocol};

const SMALLEST: &str = "[upstream]\nurls = ['http://10.0.0.5:3000']\n";

#[test]
fn the_smallest_file_gets_every_default() {
    let config = Config::from_toml(SMALLEST, "shop.toml").unwrap();
    assert_eq!(config.listen.addresses, ["127.0.0.1:8080".parse().unwrap()]);
    assert_eq!(config.admin.address, "127.0.0.1:9900".parse().unwrap());
    assert_eq!(config.default_service().unwrap().upstream.protocol, Protocol::Http1);
    assert_eq!(config.flash_crowd.mode, FlashCrowdMode::Repaired);
    assert_eq!(config.flash_crowd.interval, Duration::from_millis(100));
    assert_eq!((config.gateway.workers, config.state.file.as_deref()), (None, None));
    assert!(config.default_service().unwrap().upstream.health.active.is_none());
}

#[test]
fn the_interval_follows_the_mode_unless_it_is_written() {
    let interval = |text: &str| {
        Config::from_toml(&format!("{SMALLEST}{text}"), "shop.toml").unwrap().flash_crowd.interval.as_millis()
    };
    assert_eq!(interval("[flash_crowd]\nmode = 'paper'"), 60_000);
    assert_eq!(interval("[flash_crowd]\nmode = 'scoreboard'"), 60_000);
    assert_eq!(interval("[flash_crowd]\nmode = 'paper'\ninterval = '2s'"), 2_000);
}

#[test]
fn one_client_may_hold_no_more_than_all_may() {
    let share = |text: &str| {
        Config::from_toml(&format!("{SMALLEST}{text}"), "shop.toml")
            .unwrap()
            .client
            .max_connections_per_client
    };
    assert_eq!(share(""), 4_096);
    assert_eq!(share("[bounds]\nmax_connections = 10"), 10);
    assert_eq!(share("[client]\nmax_connections_per_client = 7"), 7);
}

#[test]
fn flags_win_over_the_file_and_stand_without_one() {
    let overrides = Overrides {
        upstream_urls: vec!["https://a".into(), "https://b".into()],
        listen_addresses: vec!["[::1]:81".into()],
        admin_address: Some("127.0.0.1:82".into()),
        kernel: true,
        interfaces: vec!["eth0".into(), "eth1".into()],
        pin: Some("/sys/fs/bpf/shop".into()),
        fail_closed: true,
        shadow: true,
        state_file: Some("run/state.json".into()),
        state_directory: Some("/var/lib/flashweir".into()),
        workers: Some(3),
        log_level: Some("debug".into()),
        ..Overrides::default()
    };
    for config in [
        Config::load(None, &overrides).unwrap(),
        Config::from_toml_with(&format!("{SMALLEST}[state]\nfile = 'x'"), "etc/shop.toml", &overrides)
            .unwrap(),
    ] {
        assert_eq!(config.default_service().unwrap().upstream.urls.len(), 2);
        assert_eq!(config.listen.addresses, ["[::1]:81".parse().unwrap()]);
        assert_eq!(config.gateway.workers.map(|workers| workers.get()), Some(3));
        assert_eq!(config.log.level.as_str(), "debug");
        assert_eq!(config.state.file.as_deref(), Some(Path::new("run/state.json")));
        assert!(config.flash_crowd.shadow && config.default_service().unwrap().sentry.shadow);
        assert!(config.kernel.shadow);
        assert_eq!(config.kernel.interfaces, ["eth0", "eth1"]);
        assert!(config.kernel.fail_closed);
        assert_eq!(config.kernel.pin.as_deref(), Some(Path::new("/sys/fs/bpf/shop")));
    }
}

#[test]
fn the_state_file_is_the_flags_then_the_files_then_the_directorys() {
    let file = |text: &str, overrides: &Overrides| {
        let text = format!("{SMALLEST}{text}");
        Config::from_toml_with(&text, "etc/shop.toml", overrides).unwrap().state.file.unwrap()
    };
    let directory = Overrides { state_directory: Some("/var/lib/flashweir".into()), ..Overrides::default() };
    assert_eq!(file("", &directory), Path::new("/var/lib/flashweir/baseline-8080.json"));
    assert_eq!(file("[state]\nfile = 'shop.json'", &directory), Path::new("etc/shop.json"));
    let flag = Overrides { state_file: Some("here.json".into()), ..directory };
    assert_eq!(file("[state]\nfile = 'shop.json'", &flag), Path::new("here.json"));
}

#[test]
fn load_opens_what_is_named_and_says_what_it_could_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.toml");
    let load = || Config::load(Some(&path), &Overrides::default());

    let missing = load().unwrap_err().to_string();
    assert!(
        missing.starts_with(&format!("{}: cannot read the configuration file: ", path.display())),
        "{missing}"
    );

    let tls = "[listen.tls]\ncertificate = 'shop.pem'\nkey = 'shop.key'\n";
    std::fs::write(&path, format!("{SMALLEST}{tls}")).unwrap();
    let certificate = directory.path().join("shop.pem");
    let unreadable = load().unwrap_err().to_string();
    let expected =
        format!("{}:4: listen.tls.certificate: cannot read `{}`: ", path.display(), certificate.display());
    assert!(unreadable.starts_with(&expected), "{unreadable}");

    std::fs::write(&certificate, "-----BEGIN").unwrap();
    std::fs::create_dir(directory.path().join("shop.key")).unwrap();
    let a_directory = load().unwrap_err().to_string();
    assert!(a_directory.contains(":5: listen.tls.key: cannot read "), "{a_directory}");

    std::fs::remove_dir(directory.path().join("shop.key")).unwrap();
    std::fs::write(directory.path().join("shop.key"), "").unwrap();
    assert!(load().unwrap_err().to_string().contains("is empty"));

    std::fs::write(directory.path().join("shop.key"), "-----BEGIN").unwrap();
    assert_eq!(load().unwrap().listen.tls.unwrap().certificate, certificate);
}

#[test]
fn only_what_sockets_and_threads_are_made_of_needs_a_restart() {
    let config = |text: &str| Config::from_toml(&format!("{SMALLEST}{text}"), "shop.toml").unwrap();
    let old = config("");
    for (text, expected) in [
        ("[bounds]\nmax_connections = 5\n[upstream.health]\npath = '/'", None),
        ("[flash_crowd]\nmode = 'off'", None),
        ("[listen]\naddress = '127.0.0.1:81'", Some("listen.address")),
        ("[listen]\nproxy_protocol_from = ['10.0.0.0/8']", None),
        ("[listen.tls]\ncertificate = 'a'\nkey = 'b'", Some("listen.tls")),
        ("[gateway]\nworkers = 2", Some("gateway.workers")),
        ("[admin]\naddress = '127.0.0.1:82'", Some("admin.address")),
        ("[kernel]\nrefusal = 'reset'\npreferred = ['10.0.0.0/8']", None),
        ("[[kernel.tier]]\nrank = 0\nports = [443]", None),
        ("[kernel]\ninterface = 'eth0'", Some("kernel.interface")),
        ("[kernel]\nhook = 'generic'", Some("kernel.hook")),
    ] {
        assert_eq!(old.restart_needed(&config(text)), expected, "{text}");
    }
    let with_tls = config("[listen.tls]\ncertificate = 'a'\nkey = 'b'");
    assert_eq!(with_tls.restart_needed(&config("[listen.tls]\ncertificate = 'c'\nkey = 'd'")), None);
    let redirecting = config("[listen]\nredirect = '0.0.0.0:80'\ntls = { certificate = 'a', key = 'b' }");
    assert_eq!(with_tls.restart_needed(&redirecting), Some("listen.redirect"));
}

/// Entries that are listed for a tier have its rank, all others the rank after, unless it says otherwise.
#[test]
fn tiers_of_the_kernel_have_ranks_and_so_have_all_others() {
    let tiers =
        |text: &str| Config::from_toml(&format!("{SMALLEST}{text}"), "shop.toml").unwrap().kernel.tiers;
    assert_eq!((tiers("").count(), tiers("").default_rank), (1, 0));
    let two = "[[kernel.tier]]\nrank = 0\nnetworks = ['10.0.0.0/8', '192.0.2.1']\nmarks = [0, 63]\n\
               [[kernel.tier]]\nrank = 3\nports = [8443]\n";
    let listed = tiers(two);
    let networks = ["10.0.0.0/8", "192.0.2.1/32"].map(|text| (text.parse().unwrap(), 0));
    assert_eq!(
        (listed.networks.as_slice(), listed.marks.as_slice()),
        (&networks[..], &[(0, 0), (63, 0)][..])
    );
    assert_eq!((listed.ports.as_slice(), listed.default_rank, listed.count()), (&[(8443, 3)][..], 4, 5));
    let others = tiers(&format!("[kernel]\ndefault_rank = 1\n{two}"));
    assert_eq!((others.default_rank, others.count()), (1, 4));
    let last = tiers("[[kernel.tier]]\nrank = 7\nports = [1]");
    assert_eq!((last.default_rank, last.count()), (7, 8));
}
