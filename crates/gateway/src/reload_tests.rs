//! A reload puts all of a new configuration in force, or nothing of it.

use super::*;
use crate::shared::Parts;
use std::fs;
use tempfile::TempDir;

const WORKERS: usize = 2;

struct Setup {
    folder: TempDir,
    shared: Arc<Shared>,
}

impl Setup {
    fn new(toml: &str) -> Self {
        let folder = TempDir::new().expect("folder");
        let config = Config::from_toml(toml, "test.toml").expect("a valid configuration");
        let upstreams = upstreams(&config, WORKERS, None).expect("upstreams");
        let sentries = sentries(&config, WORKERS, None);
        let candidates = candidates(&config, WORKERS, None);
        let live = Live {
            flash_crowd_candidate: FlashCrowdCandidate::of(&config, WORKERS, None),
            config,
            upstreams,
            sentries,
            candidates,
            tls: None,
            trusted_proxies: TrustedProxies::default(),
        };
        let shared = Shared::new(Parts {
            live,
            workers: WORKERS,
            listening_on: Vec::new(),
            redirecting_on: Vec::new(),
            access_lines: None,
            url_key: None,
        });
        Self { folder, shared }
    }

    fn reload(&self, toml: &str) -> Result<(), ReloadError> {
        let file = self.folder.path().join("flashweir.toml");
        fs::write(&file, toml).expect("write");
        reload(&self.shared, Some(&file), &Overrides::default(), WORKERS)
    }
}

const BEFORE: &str = "upstream.urls = ['http://127.0.0.1:9']\nupstream.max_connections = 100\n";

#[test]
fn a_changed_bound_is_in_force_and_the_upstreams_are_kept() {
    let setup = Setup::new(BEFORE);
    let upstreams = setup.shared.live.load().upstreams[0].clone();
    let more = "bounds.max_connections = 77\nclient.trusted_proxies = ['10.0.0.0/8']\n";
    setup.reload(&format!("{BEFORE}{more}")).expect("reloaded");
    let live = setup.shared.live.load();
    assert_eq!(live.config.bounds.max_connections, 77);
    assert!(live.trusted_proxies.trusts("10.1.2.3".parse().expect("address")));
    assert!(Arc::ptr_eq(&live.upstreams[0], &upstreams), "connections and health survive");
}

#[test]
fn changed_upstreams_are_new_and_share_the_bound_among_the_workers() {
    let setup = Setup::new(BEFORE);
    let upstreams = setup.shared.live.load().upstreams[0].clone();
    setup
        .reload("upstream.urls = ['http://127.0.0.1:10']\nupstream.max_connections = 30\n")
        .expect("reloaded");
    let live = setup.shared.live.load();
    assert!(!Arc::ptr_eq(&live.upstreams[0], &upstreams));
    assert_eq!(live.upstreams[0].settings().connections_max, 15);
}

#[test]
fn what_is_wrong_changes_nothing_and_names_file_line_and_key() {
    let setup = Setup::new(BEFORE);
    let before = setup.shared.live.load_full();
    for (toml, expected) in [
        (format!("{BEFORE}bounds.max_connections = 0\n"), "flashweir.toml:3: bounds.max_connections:"),
        (format!("{BEFORE}nonsense = 1\n"), "flashweir.toml:3: nonsense"),
        (
            format!("{BEFORE}listen.address = '127.0.0.1:8181'\n"),
            "flashweir.toml: listen.address cannot change",
        ),
        (format!("{BEFORE}log.level = 'debug'\n"), "log cannot change while running"),
        (format!("{BEFORE}gateway.workers = 3\n"), "gateway.workers cannot change while running"),
    ] {
        let message = setup.reload(&toml).expect_err("refused").to_string();
        assert!(message.contains(expected), "{message}");
        assert!(Arc::ptr_eq(&setup.shared.live.load_full(), &before));
    }
    let gone = reload(&setup.shared, Some(Path::new("no/such/file.toml")), &Overrides::default(), WORKERS);
    assert!(gone.expect_err("refused").to_string().contains("no/such/file.toml"));
}

#[test]
fn services_come_and_go_and_those_that_stay_keep_their_connections() {
    let service = |name: &str, port: u16| {
        format!(
            "[[service]]\nname = '{name}'\nhosts = '{name}.example'\nupstream.urls = ['http://127.0.0.1:{port}']\n"
        )
    };
    let setup = Setup::new(&format!("{BEFORE}{}{}", service("api", 1), service("shop", 2)));
    let before = setup.shared.live.load_full();
    setup
        .reload(&format!("{BEFORE}{}{}{}", service("new", 3), service("shop", 2), service("api", 4)))
        .expect("reloaded");
    let after = setup.shared.live.load_full();
    let names: Vec<_> = after.config.services.iter().map(|service| service.name.as_str()).collect();
    assert_eq!(names, ["default", "new", "shop", "api"]);
    assert!(Arc::ptr_eq(&after.upstreams[0], &before.upstreams[0]));
    assert!(Arc::ptr_eq(&after.upstreams[2], &before.upstreams[2]), "shop stays");
    assert!(!Arc::ptr_eq(&after.upstreams[3], &before.upstreams[1]), "api has another server");
}

#[test]
fn a_candidate_is_kept_until_it_changes_and_the_policy_in_force_does_not_notice() {
    let candidate = |revenue: u32| {
        format!("{BEFORE}[[candidate.class]]\nname = 'gold'\nmatch.path = '/'\nrevenue = {revenue}\n")
    };
    let setup = Setup::new(BEFORE);
    let first = setup.shared.live.load_full();
    assert!(first.candidates[0].is_none());
    let reloaded = |toml: &str| {
        setup.reload(toml).expect("reloaded");
        setup.shared.live.load_full()
    };
    let (one, same, other) = (reloaded(&candidate(2)), reloaded(&candidate(2)), reloaded(&candidate(3)));
    let of = |live: &Arc<Live>| live.candidates[0].clone().expect("a candidate");
    assert!(Arc::ptr_eq(&of(&one), &of(&same)), "what was compared is kept");
    assert!(!Arc::ptr_eq(&of(&same), &of(&other)));
    let sentry = |live: &Arc<Live>| live.sentries[0].clone().expect("a sentry");
    assert!(Arc::ptr_eq(&sentry(&first), &sentry(&other)), "and so is what was learned");
    assert!(reloaded(BEFORE).candidates[0].is_none());
}

#[test]
fn a_candidate_of_the_flash_crowd_stage_is_kept_until_it_or_the_policy_in_force_changes() {
    let toml = |live: f64, candidate: f64| {
        format!("{BEFORE}[flash_crowd]\nmargin = {live}\ncandidate.margin = {candidate}\n")
    };
    let setup = Setup::new(BEFORE);
    assert!(setup.shared.live.load().flash_crowd_candidate.is_none());
    let reloaded = |toml: &str| {
        setup.reload(toml).expect("reloaded");
        setup.shared.live.load().flash_crowd_candidate.clone()
    };
    let of = |toml: &str| reloaded(toml).expect("a candidate");
    let first = of(&toml(0.1, 0.2));
    assert!(Arc::ptr_eq(&of(&toml(0.1, 0.2)), &first), "what was compared is kept");
    let other = of(&toml(0.1, 0.3));
    assert!(!Arc::ptr_eq(&other, &first));
    assert!(!Arc::ptr_eq(&of(&toml(0.15, 0.3)), &other), "it is compared with another policy");
    assert!(reloaded(BEFORE).is_none());
}
