//! Every fault ends in one line that names file, line and key, and says what is expected.

use crate::{Config, Overrides};

/// The message for a file that holds `text` after a valid upstream on line 1.
fn message(text: &str) -> String {
    let text = format!("upstream.urls = ['http://10.0.0.5:3000']\n{text}");
    Config::from_toml(&text, "shop.toml").unwrap_err().to_string()
}

fn check(text: &str, expected: &str) {
    assert_eq!(message(text), expected, "for: {text}");
}

#[test]
fn syntax_unknown_keys_and_wrong_types_name_line_and_key() {
    for (text, expected) in [
        ("[bounds]\nmax_fields = many", "shop.toml:3: string values must be quoted, expected literal string"),
        (
            "[bound]",
            "shop.toml:2: bound: unknown key `bound`, expected one of `listen`, `upstream`, `sentry`, `class`, \
          `candidate`, `service`, `client`, `bounds`, `flash_crowd`, `fairness`, `feedback`, `cluster`, `cache`, `replication`, `kernel`, `link`, `admin`, `state`, `gateway`, `log`",
        ),
        (
            "[log]\nlevels = 'info'",
            "shop.toml:3: log.levels: unknown key `levels`, expected one of `level`, `format`, `access`",
        ),
        (
            "[bounds]\n\nmax_fields = 'many'",
            "shop.toml:4: bounds.max_fields: invalid type: string \"many\", expected u32",
        ),
        (
            "[bounds]\nmax_fields = -1",
            "shop.toml:3: bounds.max_fields: invalid value: integer `-1`, expected u32",
        ),
        (
            "[bounds]\ndrain_timeout = 5",
            "shop.toml:3: bounds.drain_timeout: `5` has no unit, expected a string like \"5s\"",
        ),
        (
            "[bounds]\ndrain_timeout = '5'",
            "shop.toml:3: bounds.drain_timeout: `5` is not a duration, expected a whole \
          number and ms, s, m or h, like \"500ms\" or \"2s\"",
        ),
        (
            "[listen]\naddress = 8080",
            "shop.toml:3: listen.address: invalid type: integer `8080`, expected a string or a \
          list of strings",
        ),
        (
            "[listen]\naddress = ['127.0.0.1:1', 2]",
            "shop.toml:3: listen.address[1]: invalid type: integer `2`, expected a string",
        ),
        (
            "[service]\nname = 'shop'",
            "shop.toml:2: service: is a table, expected `[gateway]` for the gateway's name and workers, or \
          `[[service]]` for a service with hosts of its own",
        ),
        (
            "service = 3",
            "shop.toml:2: service: invalid type: integer `3`, expected one `[[service]]` or several",
        ),
        ("[listen.tls]\nkey = 'a'", "shop.toml:2: listen.tls: missing key `certificate`"),
        (
            "[flash_crowd]\nmode = 'on'",
            "shop.toml:3: flash_crowd.mode: unknown variant `on`, expected one of `off`, \
          `paper`, `scoreboard`, `repaired`",
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn failed_checks_name_line_and_key() {
    for (text, expected) in [
        (
            "[listen]\naddress = ':80'",
            "shop.toml:3: listen.address: `:80` is not an address, expected an IP address and \
          a port like \"0.0.0.0:80\"",
        ),
        (
            "[listen]\naddress = []",
            "shop.toml:3: listen.address: the list is empty, expected at least one address",
        ),
        (
            "[listen]\naddress = [\n  '0.0.0.0:80',\n  '127.0.0.1:80',\n]",
            "shop.toml:5: listen.address[1]: 127.0.0.1:80 \
          collides with 0.0.0.0:80, expected different ones",
        ),
        (
            "[listen]\nproxy_protocol_from = ['10.0.0.0/8', '0.0.0.0/0']",
            "shop.toml:3: listen.proxy_protocol_from[1]: `0.0.0.0/0` trusts the whole Internet \
          to state its own address, expected your load balancers",
        ),
        (
            "[listen]\nproxy_protocol_from = ['lb.example']",
            "shop.toml:3: listen.proxy_protocol_from[0]: `lb.example` is not a \
          network, expected an address or CIDR like \"10.0.0.0/8\"",
        ),
        (
            "[listen]\nredirect = '0.0.0.0:80'",
            "shop.toml:3: listen.redirect: redirects to HTTPS, which is not served here, expected `[listen.tls]` \
          beside it",
        ),
        (
            "[listen]\nredirect = ['0.0.0.0:80', '0.0.0.0:8080']\ntls = { certificate = 'a', key = 'b' }",
            "shop.toml:3: listen.redirect[1]: 0.0.0.0:8080 collides with 127.0.0.1:8080, expected different ones",
        ),
        (
            "[listen]\nredirect = ':80'\ntls = { certificate = 'a', key = 'b' }",
            "shop.toml:3: listen.redirect: `:80` is not an address, expected an IP address and \
          a port like \"0.0.0.0:80\"",
        ),
        (
            "[listen]\nredirect = []\ntls = { certificate = 'a', key = 'b' }",
            "shop.toml:3: listen.redirect: the list is empty, expected at least one address",
        ),
        (
            "[listen]\nredirect = '0.0.0.0:80'\ntls = { certificate = 'a', key = 'b' }\n[admin]\naddress = '127.0.0.1:80'",
            "shop.toml:6: admin.address: 127.0.0.1:80 collides with listen.redirect 0.0.0.0:80, expected another port",
        ),
        (
            "[admin]\naddress = '127.0.0.1:8080'",
            "shop.toml:3: admin.address: 127.0.0.1:8080 collides with listen.address \
          127.0.0.1:8080, expected another port",
        ),
        (
            "[client]\ntrusted_proxies = ['10.0.0.1/8']",
            "shop.toml:3: client.trusted_proxies[0]: `10.0.0.1/8` has bits \
          beyond its prefix, expected \"10.0.0.0/8\"",
        ),
        (
            "[client]\ntrusted_proxies = ['10.0.0.0/33']",
            "shop.toml:3: client.trusted_proxies[0]: `10.0.0.0/33` is not a \
          network, expected an address or CIDR like \"10.0.0.0/8\"",
        ),
        (
            "[client]\ntrusted_proxies = ['::/0']",
            "shop.toml:3: client.trusted_proxies[0]: `::/0` trusts the whole Internet \
          to state its own address, expected your load balancers",
        ),
        (
            "[bounds]\nmax_connections = 10\n[client]\nmax_connections_per_client = 11",
            "shop.toml:5: \
          client.max_connections_per_client: 11 is out of range, expected 1 to 10 (bounds.max_connections)",
        ),
        (
            "[flash_crowd]\nmargin = nan",
            "shop.toml:3: flash_crowd.margin: NaN is out of range, expected 0.01 to 0.9",
        ),
        (
            "[gateway]\nname = 'my shop'",
            "shop.toml:3: gateway.name: `my shop` does not fit, expected 1 to 63 letters, \
          digits, `-`, `_` or `.`",
        ),
        (
            "[kernel]\ninterface = ['eth0', 'eth0']",
            "shop.toml:3: kernel.interface[1]: `eth0` is listed twice, expected different ones",
        ),
        (
            "[kernel]\ninterface = 'a/b'",
            "shop.toml:3: kernel.interface: `a/b` is no interface's name, expected one like \"eth0\"",
        ),
        (
            "[kernel]\npreferred = ['10.0.0.0/8', '0.0.0.0/0']",
            "shop.toml:3: kernel.preferred[1]: `0.0.0.0/0` prefers everybody, expected networks you know",
        ),
        (
            "[kernel]\nprotect = ['10.0.0.1:0']",
            "shop.toml:3: kernel.protect[0]: `10.0.0.1:0` has no port, expected the server's",
        ),
        (
            "[kernel]\nprotect = ['0.0.0.0:80', '10.0.0.1:80']",
            "shop.toml:3: kernel.protect[1]: 10.0.0.1:80 is covered by 0.0.0.0:80, expected different ones",
        ),
        (
            "[[kernel.tier]]\nrank = 8\nports = [80]",
            "shop.toml:3: kernel.tier[0].rank: 8 is out of range, expected 0 to 7",
        ),
        (
            "[kernel]\ndefault_rank = 8",
            "shop.toml:3: kernel.default_rank: 8 is out of range, expected 0 to 7",
        ),
        (
            "[[kernel.tier]]\nrank = 0\nports = [80]\n[[kernel.tier]]\nrank = 0\nports = [81]",
            "shop.toml:6: kernel.tier[1].rank: 0 is the rank of another tier, expected different ones",
        ),
        (
            "[[kernel.tier]]\nrank = 0",
            "shop.toml:2: kernel.tier[0]: no network, mark or port, expected at least one, or `kernel.default_rank` \
          for all others",
        ),
        (
            "[[kernel.tier]]\nrank = 0\nnetworks = ['10.0.0.1/8']",
            "shop.toml:4: kernel.tier[0].networks[0]: `10.0.0.1/8` has bits beyond its prefix, expected \"10.0.0.0/8\"",
        ),
        (
            "[[kernel.tier]]\nrank = 0\nnetworks = ['10.0.0.0/8']\n[[kernel.tier]]\nrank = 1\nnetworks = ['10.0.0.0/8']",
            "shop.toml:7: kernel.tier[1].networks[0]: `10.0.0.0/8` is listed for rank 0 already, expected it once",
        ),
        (
            "[[kernel.tier]]\nrank = 0\nports = [443, 443]",
            "shop.toml:4: kernel.tier[0].ports[1]: `443` is listed for rank 0 already, expected it once",
        ),
        (
            "[[kernel.tier]]\nrank = 0\nports = [0]",
            "shop.toml:4: kernel.tier[0].ports[0]: 0 is no port, expected 1 to 65535",
        ),
        (
            "[[kernel.tier]]\nrank = 0\nmarks = [64]",
            "shop.toml:4: kernel.tier[0].marks[0]: 64 is out of range, expected 0 to 63",
        ),
        (
            "[kernel]\ntls_ports = [443, 0]",
            "shop.toml:3: kernel.tls_ports[1]: 0 is no port, expected 1 to 65535",
        ),
        (
            "[state]\nfile = '..'",
            "shop.toml:3: state.file: `..` does not name a file, expected one like \"baseline.json\"",
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn upstreams_are_checked() {
    let message = |text: &str| Config::from_toml(text, "shop.toml").unwrap_err().to_string();
    for (text, expected) in [
        (
            "",
            "shop.toml:1: upstream.urls: no upstream, expected at least one URL here or as --upstream http://HOST:PORT",
        ),
        (
            "# nothing\n[upstream]\n",
            "shop.toml:2: upstream.urls: no upstream, expected at least one URL here or as \
          --upstream http://HOST:PORT",
        ),
        (
            "[upstream]\nurls = [\n 'http://a',\n 'http://A:80/' ]",
            "shop.toml:4: upstream.urls[1]: `http://A:80/` is listed \
          twice, expected different servers",
        ),
        (
            "[upstream]\nurls = ['http://localhost:8080']",
            "shop.toml:2: upstream.urls[0]: `http://localhost:8080` is \
          Flashweir's own listen address (listen.address, 127.0.0.1:8080 unless it is set), expected the service behind it",
        ),
        (
            "[upstream]\nurls = ['http://a/shop']",
            "shop.toml:2: upstream.urls[0]: `http://a/shop` has a path, expected \
          http://HOST:PORT or https://HOST:PORT",
        ),
        (
            "[upstream]\nurls = ['http://a']\nca_file = 'ca.pem'",
            "shop.toml:3: upstream.ca_file: has no use, expected at \
          least one https:// URL with it",
        ),
        (
            "[upstream]\nurls = ['http://a']\nhealth.path = 'up'",
            "shop.toml:3: upstream.health.path: `up` is not a path, \
          expected one like \"/healthz\"",
        ),
        (
            "[upstream]\nurls = ['http://a']\n[upstream.health]\npath = '/'\ntimeout = '3s'",
            "shop.toml:5: \
          upstream.health.timeout: 3s is longer than upstream.health.interval, expected at most 2s",
        ),
        (
            "[upstream]\nurls = ['http://a', 'http://b', 'http://c']\nagents = ['http://a:1', 'http://b:1']",
            "shop.toml:3: upstream.agents: 2 agents for 3 servers, expected one for all or one for each",
        ),
        (
            "[upstream]\nurls = ['http://a']\nagents = 'https://a:1'",
            "shop.toml:3: upstream.agents: `https://a:1` is not http://, expected the agent's own address",
        ),
        (
            "[upstream]\nurls = ['http://a']\n[upstream.health]\nmax_ejected = 1.5",
            "shop.toml:4: upstream.health.max_ejected: 1.5 is out of range, expected 0 to 1",
        ),
    ] {
        assert_eq!(message(text), expected, "for: {text}");
    }
}

#[test]
fn what_a_flag_got_wrong_names_the_flag() {
    let text = "upstream.urls = ['http://a']\nlog.level = 'warn'";
    let message =
        |overrides: &Overrides| Config::from_toml_with(text, "shop.toml", overrides).unwrap_err().to_string();
    let none = Overrides::default;
    for (overrides, expected) in [
        (
            Overrides { listen_addresses: vec!["x".into()], ..none() },
            "--listen: `x` is not an address, expected an IP \
          address and a port like \"127.0.0.1:8080\"",
        ),
        (
            Overrides { upstream_urls: vec!["http://a".into(), "b".into()], ..none() },
            "--upstream: `b` does not start with \
          http:// or https://, expected http://HOST:PORT or https://HOST:PORT",
        ),
        (
            Overrides { admin_address: Some("127.0.0.1:8080".into()), ..none() },
            "--admin: 127.0.0.1:8080 collides with \
          listen.address 127.0.0.1:8080, expected another port",
        ),
        (
            Overrides { interfaces: vec!["a interface".into()], ..none() },
            "--interface: `a interface` is no interface's name, expected one like \"eth0\"",
        ),
        (
            Overrides { kernel: true, ..none() },
            "shop.toml:1: kernel.interface: no interface, expected the one clients come through, here or as \
          --interface NAME",
        ),
        (
            Overrides { pin: Some("pins".into()), ..none() },
            "--pin: `pins` is no absolute path, expected a directory like \"/sys/fs/bpf/flashweir\"",
        ),
        (Overrides { workers: Some(1_000), ..none() }, "--workers: 1000 is out of range, expected 0 to 256"),
        (
            Overrides { log_level: Some("loud".into()), ..none() },
            "--log: `loud` is not a level, expected error, warn, \
          info, debug or trace",
        ),
    ] {
        assert_eq!(message(&overrides), expected);
    }
}
