//! Services and classes: what a correct policy becomes, and the one message for each mistake.

use crate::{Config, FairBy, HostPattern, Overrides, Policing, Service};

fn config(text: &str) -> Config {
    let text = format!("upstream.urls = ['http://10.0.0.5:3000']\n{text}");
    Config::from_toml(&text, "shop.toml").unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn service(text: &str) -> Service {
    config(text).services.swap_remove(0)
}

/// `expected` is everything after the file's name.
fn refused(text: &str, expected: &str) {
    let text = format!("upstream.urls = ['http://10.0.0.5:3000']\n{text}");
    let message = Config::from_toml(&text, "shop.toml").expect_err(&text).to_string();
    assert_eq!(message, format!("shop.toml:{expected}"), "for: {text}");
}

#[test]
fn without_a_word_there_is_one_service_and_one_class_that_takes_everything() {
    let service = service("");
    assert_eq!((service.name.as_str(), service.hosts.len()), ("default", 0));
    assert_eq!(service.sentry.policing, Policing::Reservation);
    assert_eq!(service.sentry.response_target.as_millis(), 1_000);
    let [class] = service.classes.as_slice() else { panic!("{:?}", service.classes) };
    assert_eq!((class.name.as_str(), class.revenue, class.guaranteed_rate_rps), ("default", 1.0, 0.0));
    assert!(class.rules.are_empty() && !class.exempt && class.fair_by == FairBy::Network);
}

#[test]
fn the_last_class_takes_the_rest_and_is_added_when_it_is_missing() {
    let names =
        |text: &str| -> Vec<String> { service(text).classes.into_iter().map(|class| class.name).collect() };
    let gold = "[[class]]\nname = 'gold'\nmatch.header = 'x-plan: gold'\n";
    assert_eq!(names(gold), ["gold", "default"]);
    assert_eq!(names(&format!("{gold}[[class]]\nname = 'rest'\n")), ["gold", "rest"]);
    assert_eq!(names(&format!("{gold}[[class]]\nname = 'default'\n")), ["gold", "default"]);
}

#[test]
fn a_path_that_ends_in_a_slash_takes_what_is_below_it() {
    let class = "[[class]]\nname = 'a'\nmatch.path = ['/checkout/', '/pay', '/', '/api/*/export']";
    let paths = service(class).classes[0].rules.paths.clone();
    let written: Vec<&str> = paths.iter().map(|glob| glob.as_str()).collect();
    assert_eq!(written, ["/checkout/*", "/pay", "/", "/api/*/export"]);
}

#[test]
fn services_have_hosts_servers_and_classes_of_their_own() {
    let config = config(
        "[[service]]\nname = 'api'\nhosts = ['API.example', '*.api.example', '[::1]']\nupstream.urls = ['http://b']\n\
         sentry.policing = 'off'\n[[service.class]]\nname = 'gold'\nmatch.api_keys = { query = 'key', keys = ['k'] }\n",
    );
    let [first, api] = config.services.as_slice() else { panic!("{:?}", config.services) };
    assert_eq!((first.hosts.len(), first.sentry.policing), (0, Policing::Reservation));
    let exact = |name: &str| HostPattern::Exact(name.into());
    assert_eq!(api.hosts, [exact("api.example"), HostPattern::Below("api.example".into()), exact("[::1]")]);
    assert_eq!((api.upstream.urls[0].host(), api.sentry.policing), (Some("b"), Policing::Off));
    assert!(api.classes[0].rules.api_keys.as_ref().unwrap().contains(b"k"));
}

#[test]
fn where_every_host_has_a_service_there_need_be_none_for_the_others() {
    let api = "[[service]]\nname = 'api'\nhosts = 'api.example'\nupstream.urls = ['http://b']\n";
    let read = |text: &str, overrides: &Overrides| {
        Config::from_toml_with(&format!("{text}{api}"), "shop.toml", overrides)
    };
    let none = Overrides::default();
    for overrides in [none.clone(), Overrides { shadow: true, ..none.clone() }] {
        let config = read("", &overrides).unwrap();
        assert_eq!((config.services.len(), config.default_service()), (1, None));
        assert_eq!(config.services[0].sentry.shadow, overrides.shadow);
    }
    let with_flag = Overrides { upstream_urls: vec!["http://a".into()], ..none.clone() };
    assert_eq!(
        read("", &with_flag).unwrap().default_service().map(|service| service.name.as_str()),
        Some("default")
    );
    let of_no_use = "has no use without upstream.urls, expected it in the `[[service]]` it is for";
    for (text, expected) in [
        ("[sentry]\nshadow = true\n", format!("1: sentry: {of_no_use}")),
        ("\n[[class]]\nname = 'gold'\n", format!("2: class[0]: {of_no_use}")),
        (
            "[upstream]\nprotocol = 'http2'\n",
            "1: upstream.urls: no upstream, expected at least one URL here or as --upstream http://HOST:PORT"
                .to_owned(),
        ),
        (
            "gateway.name = 'api'\n",
            "3: service[0].name: `api` is the name of another service, expected different ones".to_owned(),
        ),
    ] {
        let message = read(text, &none).unwrap_err().to_string();
        assert_eq!(message, format!("shop.toml:{expected}"), "for: {text}");
    }
}

#[test]
fn what_is_wrong_in_a_class_names_line_and_key() {
    for (text, expected) in [
        (
            "name = 'a'\nworth = 3",
            "4: class[0].worth: unknown key `worth`, expected one of `name`, `match`, `revenue`, \
          `guaranteed_rate`, `response_target`, `queue`, `fair_by`, `exempt`, `grace`",
        ),
        ("revenue = 3", "2: class[0]: missing key `name`"),
        (
            "name = 'a b'",
            "3: class[0].name: `a b` does not fit, expected 1 to 63 letters, digits, `-`, `_` or `.`",
        ),
        ("name = 'a'\nrevenue = 0", "4: class[0].revenue: 0 is out of range, expected 0.001 to 1000000"),
        ("name = 'a'\nrevenue = -1", "4: class[0].revenue: -1 is out of range, expected 0.001 to 1000000"),
        ("name = 'a'\nrevenue = nan", "4: class[0].revenue: NaN is out of range, expected 0.001 to 1000000"),
        ("name = 'a'\nrevenue = inf", "4: class[0].revenue: inf is out of range, expected 0.001 to 1000000"),
        (
            "name = 'a'\nguaranteed_rate = -0.5",
            "4: class[0].guaranteed_rate: -0.5 is out of range, expected 0 to 1000000",
        ),
        (
            "name = 'a'\nresponse_target = '2m'",
            "4: class[0].response_target: 2m is out of range, expected 10ms to 1m",
        ),
        ("name = 'a'\nqueue = 16385", "4: class[0].queue: 16385 is out of range, expected 0 to 16384"),
        (
            "name = 'a'\nexempt = true\nqueue = 3",
            "5: class[0].queue: has no use in a class that is exempt, expected one of the two",
        ),
        (
            "name = 'a'\nfair_by = 'person'",
            "4: class[0].fair_by: unknown variant `person`, expected one of `network`, \
          `address`, `header`, `cookie`",
        ),
        (
            "name = 'a'\nfair_by = { header = 'x y' }",
            "4: class[0].fair_by.header: `x y` is not a header's name, expected one like \"x-plan\"",
        ),
        (
            "name = 'a'\nfair_by = { cookie = '' }",
            "4: class[0].fair_by.cookie: `` is not a cookie's name, expected one like \"session\"",
        ),
    ] {
        refused(&format!("[[class]]\n{text}"), expected);
    }
}

#[test]
fn what_is_wrong_in_a_rule_names_line_and_key() {
    for (text, expected) in [
        ("path = []", "path: the list is empty, expected at least one entry"),
        (
            "paths = '/'",
            "paths: unknown key `paths`, expected one of `host`, `path`, `method`, `header`, `cookie`, `client`, `sender`, `api_keys`",
        ),
        (
            "path = 'a'",
            "path: `a` does not begin with `/`, expected a path like \"/checkout/\" or \"/api/*/export\"",
        ),
        (
            "path = '/a/**/b'",
            "path: `/a/**/b` is not a pattern: only `*` is special, and takes `/`, too, expected a path like \
          \"/checkout/\" or \"/api/*/export\"",
        ),
        (
            "path = ['/a', '/b?x=1']",
            "path[1]: `/b?x=1` holds more than a path, expected a path like \"/checkout/\" or \"/api/*/export\"",
        ),
        (
            "path = '/a/../b'",
            "path: `/a/../b` can never match, because paths are compared decoded and resolved, expected a path like \
          \"/checkout/\" or \"/api/*/export\"",
        ),
        (
            "host = 'a:80'",
            "host: `a:80` is not a host, expected a name without port like \"shop.example\" or \"*.shop.example\"",
        ),
        (
            "method = 'post'",
            "method: `post` is not in upper case, as methods are, expected one like \"POST\"",
        ),
        ("method = 'CONNECT'", "method: `CONNECT` is never served, expected one like \"POST\""),
        ("header = 'x plan'", "header: `x plan` is not a header's name, expected one like \"x-plan\""),
        ("header = 'Host: a'", "header: `Host` has a key of its own, expected `match.host`"),
        ("header = 'cookie'", "header: `cookie` has a key of its own, expected `match.cookie`"),
        (
            "header = 'X-Forwarded-For: 10.*'",
            "header: `X-Forwarded-For` can be written by any client, expected `match.client` and \
          `client.trusted_proxies`",
        ),
        (
            "header = 'connection'",
            "header: `connection` is about the connection, expected a header about the request",
        ),
        (
            "header = 'authorization: Bearer x'",
            "header: holds a secret, expected `match.api_keys`, which is never logged",
        ),
        ("cookie = 'a b=1'", "cookie: `a b` is not a cookie's name, expected one like \"session\""),
        (
            "client = ['10.0.0.1/8']",
            "client: `10.0.0.1/8` has bits beyond its prefix, expected \"10.0.0.0/8\"",
        ),
        (
            "api_keys = { keys = 'k' }",
            "api_keys: expected either `header` or `query`: where a request carries its key",
        ),
        ("api_keys = { query = 'k' }", "api_keys: expected either `keys` or `file`: which keys it is about"),
        (
            "api_keys = { query = 'a=b', keys = 'k' }",
            "api_keys.query: `a=b` is not a parameter's name, expected one like \"key\"",
        ),
        (
            "api_keys = { query = 'k', keys = ['a', 'secret b'] }",
            "api_keys.keys[1]: not a key, expected 1 to 1024 visible ASCII \
          characters without blanks",
        ),
    ] {
        refused(&format!("[[class]]\nname = 'a'\nmatch.{text}"), &format!("4: class[0].match.{expected}"));
    }
}

#[test]
fn a_class_that_can_never_match_is_refused_naming_both() {
    let takes_all = "comes first and takes all that it would, expected the special before the general";
    for (first, second) in [
        ("path = '/a/'", "path = '/a/b'"),
        ("path = '/a/'", "path = ['/a/x', '/a/b/']\nmatch.method = 'POST'"),
        ("host = '*.example'", "host = 'a.example'"),
        ("header = 'x-plan'", "header = 'x-plan: gold'"),
        ("cookie = 'plan=g*'", "cookie = 'plan=gold'"),
        ("client = '10.0.0.0/8'", "client = '10.1.0.0/16'"),
        ("method = ['GET', 'POST']", "method = 'POST'"),
        ("api_keys = { header = 'k', keys = ['a', 'b'] }", "api_keys = { header = 'k', keys = 'a' }"),
        (
            "api_keys = { header = 'k', file = 'f' }",
            "api_keys = { header = 'k', file = 'f' }\nmatch.path = '/'",
        ),
    ] {
        let text = |first: &str, second: &str| {
            format!("[[class]]\nname = 'a'\nmatch.{first}\n[[class]]\nname = 'b'\nmatch.{second}")
        };
        refused(&text(first, second), &format!("5: class[1]: `b` can never match: class[0] `a` {takes_all}"));
        assert_eq!(service(&text(second, first)).classes.len(), 3, "the special may come before the general");
    }
    refused(
        "[[class]]\nname = 'a'\n[[class]]\nname = 'b'\nmatch.path = '/'",
        "4: class[1]: `b` can never match: class[0] `a` comes first and has no rules and takes every request, expected the \
         special before the general",
    );
}

#[test]
fn what_is_wrong_among_classes_and_services_names_line_and_key() {
    let service = |text: &str| {
        format!("[[service]]\nname = 'api'\nhosts = 'api.example'\nupstream.urls = ['http://b']\n{text}")
    };
    let class = |name: &str, path: &str| format!("[[class]]\nname = '{name}'\nmatch.path = '{path}'\n");
    let many: String = (0..16).map(|index| class(&format!("c{index}"), &format!("/{index}"))).collect();
    for (text, expected) in [
        (
            class("a", "/a") + &class("a", "/b"),
            "6: class[1].name: `a` is the name of class[0], too, expected different ones".to_owned(),
        ),
        (
            class("default", "/a"),
            "3: class[0].name: `default` is the name of the class that is added for all other requests, \
          expected another name, or no rules and the last place"
                .to_owned(),
        ),
        (many, "2: class: 16 classes, expected at most 16 (one is added for all other requests)".to_owned()),
        (
            "[[service]]\nname = 'api'\nhosts = 'a'".to_owned(),
            "2: service[0].upstream.urls: no upstream, expected at least one URL \
          here or as --upstream http://HOST:PORT"
                .to_owned(),
        ),
        (
            service("sentry.ladder = [{ below = 5, response_target = '1s' }]"),
            "6: service[0].sentry.ladder[0].below: the last step \
          holds for all higher rates, expected none"
                .to_owned(),
        ),
        (
            service("[[service.class]]\nname = 'a'\n[[service.class]]\nname = 'b'\nrevenue = 0"),
            "10: service[0].class[1].revenue: 0 is out of range, expected 0.001 to 1000000".to_owned(),
        ),
        (
            service("upstream.health.path = 'up'"),
            "6: service[0].upstream.health.path: `up` is not a path, expected one like \
          \"/healthz\""
                .to_owned(),
        ),
        (
            service("") + &service(""),
            "7: service[1].name: `api` is the name of another service, expected different ones".to_owned(),
        ),
        (
            service("") + &service("").replace("'api'", "'b'"),
            "8: service[1].hosts: `api.example` is a host of service `api` already, \
          expected each once"
                .to_owned(),
        ),
        (
            service("").replace("'api.example'", "['a', 'A']"),
            "4: service[0].hosts[1]: `A` is a host of service `this one` already, \
          expected each once"
                .to_owned(),
        ),
        (
            service("").replace("'api.example'", "'*.*.example'"),
            "4: service[0].hosts: `*.*.example` is not a host, expected a name \
          without port like \"shop.example\" or \"*.shop.example\""
                .to_owned(),
        ),
        (
            service("").replace("'api.example'", "'a:80'"),
            "4: service[0].hosts: `a:80` is not a host, expected a name without port \
          like \"shop.example\" or \"*.shop.example\""
                .to_owned(),
        ),
        (
            service("").replace("'api.example'", "'a'\npaths = []"),
            "5: service[0].paths: the list is empty, expected a path like \"/api/\" or \"/login\"".to_owned(),
        ),
        (
            service("").replace("'api.example'", "'a'\npaths = 'api/'"),
            "5: service[0].paths: `api/` does not begin with `/`, expected a path like \"/api/\" or \"/login\""
                .to_owned(),
        ),
        (
            service("").replace("'api.example'", "'a'\npaths = ['/a/', '/api/*/x']"),
            "5: service[0].paths[1]: `/api/*/x` is a pattern, expected a path like \"/api/\" or \"/login\""
                .to_owned(),
        ),
        (
            service("").replace("'api.example'", "'a'\npaths = ['/a/', '/a/']"),
            "5: service[0].paths[1]: `/a/` is listed twice, expected different ones".to_owned(),
        ),
        (
            service("").replace("upstream.urls", "paths = ['/a/', '/b']\nupstream.urls")
                + &service("").replace("'api'", "'b'").replace("upstream.urls", "paths = ['/c/', '/a/']\nupstream.urls"),
            "9: service[1].hosts: `api.example` with path `/a/` is of service `api` already, expected another \
          path for `b`"
                .to_owned(),
        ),
        (
            (0..5)
                .map(|number| {
                    let paths: Vec<_> = (0..60).map(|path| format!("'/{number}/{path}'")).collect();
                    let paths = format!("paths = [{}]\nupstream.urls", paths.join(", "));
                    service("").replace("'api'", &format!("'a{number}'")).replace("upstream.urls", &paths)
                })
                .collect(),
            "2: service: 300 paths of all services, expected at most 256".to_owned(),
        ),
        (
            "gateway.name = 'api'\n".to_owned() + &service(""),
            "4: service[0].name: `api` is the name of another service, expected \
          different ones"
                .to_owned(),
        ),
    ] {
        refused(&text, &expected);
    }
}

#[test]
fn a_ladder_rises() {
    let ladder = |steps: &str| format!("[sentry]\nladder = [{steps}]");
    let good = "{ below = 10, response_target = '1s' }, { below = 50, response_target = '1s' }, { response_target = '3s' }";
    let steps = service(&ladder(good)).sentry.ladder;
    assert_eq!(steps.iter().map(|step| step.below_rps).collect::<Vec<_>>(), [10.0, 50.0, f64::INFINITY]);
    for (steps, expected) in [
        (
            "{ below = 10, response_target = '1s' }, { below = 10, response_target = '2s' }, { response_target = '3s' }",
            "3: sentry.ladder[1].below: 10 does not rise, expected more than 10",
        ),
        (
            "{ below = 10, response_target = '2s' }, { response_target = '1s' }",
            "3: sentry.ladder[1].response_target: 1s falls with a rising rate, expected at least 2s",
        ),
        (
            "{ response_target = '2s' }, { response_target = '3s' }",
            "3: sentry.ladder[0].below: missing, expected a rate in every step but the last",
        ),
        (
            "{ below = 0, response_target = '2s' }, { response_target = '3s' }",
            "3: sentry.ladder[0].below: 0 is out of range, expected 0.1 to 1000000",
        ),
    ] {
        refused(&ladder(steps), expected);
    }
    refused(
        "[sentry]\nresponse_target = '2s'\nladder = [{ response_target = '3s' }]",
        "3: sentry.response_target: has no use beside sentry.ladder, expected one of the two",
    );
}

#[test]
fn key_files_are_read_and_their_mistakes_told_without_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.toml");
    let text = "upstream.urls = ['http://a']\n[[class]]\nname = 'gold'\n\
                match.api_keys = { header = 'x-api-key', file = 'gold.keys' }\n";
    std::fs::write(&path, text).unwrap();
    let file = directory.path().join("gold.keys");
    let load = || Config::load(Some(&path), &Overrides::default());
    for (keys, expected) in [
        (None, "cannot read it: "),
        (Some("# none yet\n\n"), "it holds no key, expected one key a line"),
        (Some("good\nsecret with blanks\n"), "line 2: not a key"),
    ] {
        keys.map_or(Ok(()), |keys| std::fs::write(&file, keys)).unwrap();
        let message = load().unwrap_err().to_string();
        let place = format!("{}:4: class[0].match.api_keys.file: `{}`: ", path.display(), file.display());
        assert!(message.starts_with(&place) && message.contains(expected), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
    std::fs::write(&file, "# gold\nk-1\n  k-2  \r\n").unwrap();
    let config = load().unwrap();
    let keys = config.services[0].classes[0].rules.api_keys.as_ref().unwrap();
    assert!(keys.contains(b"k-1") && keys.contains(b"k-2") && !keys.contains(b"# gold"));
    let shown = format!("{config:?}");
    assert!(!shown.contains("k-1") && shown.contains("count: 2"), "{shown}");
}
