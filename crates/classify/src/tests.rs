//! Keys of requests.

use super::*;
use flashweir_http1::head::{HeadLimits, RequestReader};
use http::{Request, StatusCode, request};

fn classified(request: request::Builder, client: &str) -> Classified {
    let (head, ()) = request.body(()).expect("request").into_parts();
    let config =
        Config::from_toml("upstream.urls = ['http://a']", "test.toml").expect("a valid configuration");
    found(&classifier(&config), &head, client)
}

/// Classification of a request whose host belongs to a service.
fn found(classifier: &Classifier, head: &request::Parts, client: &str) -> Classified {
    classifier.classify(head, client.parse().expect("address"), None).expect("a service")
}

fn host_key(host: &str) -> u64 {
    classified(Request::get("/").header("host", host), "192.0.2.1").host_key
}

#[test]
fn a_host_is_the_same_in_any_case_and_with_any_port() {
    assert_eq!(host_key("Example.ORG:8080"), host_key("example.org"));
    assert_eq!(host_key("[2001:DB8::1]:443"), host_key("[2001:db8::1]"));
    assert_ne!(host_key("a.example.org"), host_key("b.example.org"));
    assert_ne!(host_key("[2001:db8::1]"), host_key("[2001:db8::2]"));
    let http2 = classified(Request::get("http://example.org:1/").version(http::Version::HTTP_2), "192.0.2.1");
    assert_eq!(http2.host_key, host_key("example.org"));
}

#[test]
fn requests_of_one_host_may_be_for_services_by_path() {
    let text = "[[service]]\nname = 'web'\nhosts = 'shop.example'\nupstream.urls = ['http://a']\n\
                [[service]]\nname = 'api'\nhosts = 'shop.example'\npaths = '/api/'\nupstream.urls = ['http://b']\n";
    let classifier = classifier(&Config::from_toml(text, "test.toml").expect("a valid configuration"));
    let at = |path: &str| {
        let request = Request::get(path).header("host", "shop.example").body(());
        let (head, ()) = request.expect("a request").into_parts();
        // Between the two decisions about a request its signs are asked for.
        let _ = classifier.signs(&head, "192.0.2.1".parse().expect("an address"), None, true);
        found(&classifier, &head, "192.0.2.1")
    };
    for (path, service) in [
        ("/", 0),
        ("/api/x", 1),
        ("/a", 0),
        ("/api/y?z", 1),
        ("//%61pi/./x", 1),
        ("/api/../x", 0),
        ("/api", 0),
    ] {
        assert_eq!(at(path).service, service, "{path}");
    }
    assert_ne!(at("/").host_key, at("/api/").host_key, "a host is another hot spot at another service");
}

#[test]
fn a_host_of_absurd_length_does_no_harm() {
    assert_eq!(host_key(&"a".repeat(5_000)), host_key(&"a".repeat(6_000)));
}

/// WordPress has a hash in the name of the cookie of those who are signed in.
#[test]
fn a_cookie_is_found_by_a_pattern_of_its_name() {
    let text = "upstream.urls = ['http://a']\n[[class]]\nname = 'people'\nmatch.cookie = ['session', 'wp_in_*=1*']\n";
    let classifier = classifier(&Config::from_toml(text, "test.toml").expect("a valid configuration"));
    for (cookies, is_found) in [
        ("a=b; session=x", true),
        ("sessions=x", false),
        ("session", false),
        ("wp_in_5f=12", true),
        ("wp_in_5f=2", false),
        ("x=wp_in_5f=12", false),
        ("", false),
    ] {
        let request = Request::get("/").header("host", "a").header("cookie", cookies).body(());
        let (head, ()) = request.expect("a request").into_parts();
        let class = found(&classifier, &head, "192.0.2.1").class;
        assert_eq!(class == 0, is_found, "{cookies}");
    }
}

#[test]
fn a_person_is_address_agent_cookie_and_target() {
    let request = || Request::get("/cart?id=1").header("user-agent", "x").header("cookie", "s=1");
    let same = classified(request(), "192.0.2.1").person_key;
    assert_eq!(classified(request().header("accept", "*/*"), "192.0.2.1").person_key, same);
    assert_ne!(classified(request(), "192.0.2.2").person_key, same);
    assert_ne!(classified(request().uri("/cart?id=2"), "192.0.2.1").person_key, same);
    assert_ne!(classified(request().method("POST"), "192.0.2.1").person_key, same);
    let other_cookie = Request::get("/cart?id=1").header("user-agent", "x").header("cookie", "s=2");
    assert_ne!(classified(other_cookie, "192.0.2.1").person_key, same);
}

#[test]
fn a_url_class_leaves_the_query_out() {
    let class = |uri: &str| classified(Request::get(uri), "192.0.2.1").url_class;
    assert_eq!(class("/a?x=1"), class("/a?x=2"));
    assert_ne!(class("/a"), class("/b"));
    assert_ne!(class("/a"), classified(Request::post("/a"), "192.0.2.1").url_class);
}

#[test]
fn what_cannot_be_measured_is_known_from_head_or_status() {
    let of = |request| classified(request, "192.0.2.1").unmeasured;
    assert_eq!(of(Request::get("/")), None);
    assert_eq!(of(Request::head("/")), Some(Unmeasured::Empty));
    assert_eq!(of(Request::get("/").header("range", "bytes=0-1")), Some(Unmeasured::Partial));
    let statuses = [(200, None), (301, None), (204, Some(Unmeasured::Empty))];
    let more = [(304, Unmeasured::Empty), (206, Unmeasured::Partial), (404, Unmeasured::Error)];
    let last = [(503, Unmeasured::Error), (101, Unmeasured::Tunnel)];
    let rest = more.into_iter().chain(last).map(|(status, why)| (status, Some(why)));
    for (status, why) in statuses.into_iter().chain(rest) {
        assert_eq!(of_response(StatusCode::from_u16(status).expect("status")), why, "{status}");
    }
}

/// Classes `a`, `b`, … with these rules, in one service.
fn config(rules: &[&str]) -> Config {
    let mut toml = "upstream.urls = ['http://a']\n".to_owned();
    for (name, rule) in ('a'..).zip(rules) {
        toml += &format!("[[class]]\nname = '{name}'\n{rule}\n");
    }
    Config::from_toml(&toml, "test.toml").unwrap_or_else(|error| panic!("{error} in {toml}"))
}

fn classifier(config: &Config) -> Classifier {
    Classifier::new(Hasher64::new(1, 2), Hasher64::new(3, 4), config)
}

/// Returns whether a class with this rule takes the request.
fn takes(rule: &str, request: request::Builder, client: &str) -> bool {
    let (head, ()) = request.body(()).expect("request").into_parts();
    found(&classifier(&config(&[rule])), &head, client).class == 0
}

#[test]
fn each_kind_of_rule_takes_what_it_names() {
    let get = |uri: &str| Request::get(uri).header("host", "shop.example:8080");
    let with = |name: &str, value: &str| get("/").header(name, value);
    for (rule, request, fits) in [
        ("match.host = '*.EXAMPLE'", get("/"), true),
        ("match.host = 'shop'", get("/"), false),
        ("match.path = '/cart/'", get("/cart/1?x=/other"), true),
        ("match.path = '/cart/'", get("/x//../%63art/1"), true),
        ("match.path = '/cart/'", get("/cart"), false),
        ("match.path = '/cart/'", get("/Cart/1"), false),
        ("match.path = '/caf\u{e9}'", get("/caf%C3%A9"), true),
        ("match.method = ['PUT', 'POST']", Request::post("/"), true),
        ("match.method = ['PUT', 'POST']", get("/"), false),
        ("match.header = 'X-Plan'", with("x-plan", ""), true),
        ("match.header = 'x-plan: gold*'", with("x-plan", "golden"), true),
        ("match.header = 'x-plan: gold*'", with("x-plan", "silver").header("x-plan", "gold"), true),
        ("match.header = 'x-plan: gold*'", with("x-plan", "a gold"), false),
        ("match.cookie = 'plan=gold'", with("cookie", "a=b; plan=gold;c"), true),
        ("match.cookie = 'plan=gold'", with("cookie", "xplan=gold"), false),
        ("match.cookie = 'plan=gold'", with("cookie", "a=1").header("cookie", "plan=gold"), true),
        ("match.cookie = 'plan'", with("cookie", "plan="), true),
        ("match.cookie = 'plan'", with("cookie", "plan"), false),
        ("match.client = ['198.51.100.0/24', '192.0.2.1']", get("/"), true),
        ("match.client = '192.0.2.2'", get("/"), false),
        ("match.api_keys = { header = 'x-key', keys = ['k1', 'k2'] }", with("x-key", "k2"), true),
        ("match.api_keys = { header = 'x-key', keys = ['k1', 'k2'] }", with("x-key", "k3"), false),
        (
            "match.api_keys = { header = 'authorization', keys = 'k1' }",
            with("authorization", "bEARER  k1"),
            true,
        ),
        ("match.api_keys = { header = 'x-key', keys = 'k1' }", with("x-key", "Bearer k1"), false),
        ("match.api_keys = { query = 'key', keys = 'k1' }", get("/?a=b&key=k1"), true),
        ("match.api_keys = { query = 'key', keys = 'k1' }", get("/?mykey=k1&key"), false),
        ("match.path = '/'\nmatch.method = 'GET'", get("/"), true),
        ("match.path = '/'\nmatch.method = 'POST'", get("/"), false),
    ] {
        assert_eq!(takes(rule, request, "192.0.2.1"), fits, "{rule}");
    }
}

#[test]
fn the_host_finds_the_service_whatever_the_protocol() {
    let toml = "upstream.urls = ['http://a']\n\
                [[service]]\nname = 'api'\nhosts = ['*.api.example']\nupstream.urls = ['http://b']\n\
                [[service.class]]\nname = 'probe'\nmatch.path = '/healthz'\nexempt = true\n";
    let classifier = classifier(&Config::from_toml(toml, "test.toml").expect("a valid configuration"));
    let of = |request: request::Builder| {
        let (head, ()) = request.body(()).expect("request").into_parts();
        let classified = found(&classifier, &head, "192.0.2.1");
        (classified.service, classified.class, classified.ceiling_priority == CeilingPriority::Exempt)
    };
    assert_eq!(of(Request::get("/healthz").header("host", "V1.API.example.:8080")), (1, 0, true));
    assert_eq!(of(Request::get("/x").header("host", "v1.api.example")), (1, 1, false));
    assert_eq!(of(Request::get("/healthz").header("host", "api.example")), (0, 0, false));
    assert_eq!(
        of(Request::get("http://v1.api.example/healthz").version(http::Version::HTTP_2)),
        (1, 0, true)
    );
    assert_eq!(of(Request::get("/healthz")), (0, 0, false), "no host at all");
}

#[test]
fn classes_of_all_services_are_ranked_together_by_what_they_are_worth() {
    let toml = "[[service]]\nname = 'shop'\nhosts = ['shop.example']\nupstream.urls = ['http://a']\n\
                [[service.class]]\nname = 'cart'\nmatch.path = '/cart'\nrevenue = 10\n\
                [[service.class]]\nname = 'probe'\nmatch.path = '/probe'\nexempt = true\nrevenue = 99\n\
                [[service]]\nname = 'forge'\nhosts = ['forge.example']\nupstream.urls = ['http://b']\n\
                [[service.class]]\nname = 'people'\nmatch.path = '/people'\nrevenue = 3\n";
    let classifier = classifier(&Config::from_toml(toml, "test.toml").expect("a valid configuration"));
    let ceiling_priority = |host: &str, path: &str| {
        let (head, ()) = Request::get(path).header("host", host).body(()).expect("request").into_parts();
        found(&classifier, &head, "192.0.2.1").ceiling_priority
    };
    assert_eq!(ceiling_priority("shop.example", "/cart"), CeilingPriority::FIRST);
    assert_eq!(ceiling_priority("shop.example", "/probe"), CeilingPriority::Exempt);
    assert_eq!(ceiling_priority("shop.example", "/"), CeilingPriority::LAST);
    assert_eq!(ceiling_priority("forge.example", "/people"), CeilingPriority::Credit { milli: 500 });
    assert_eq!(ceiling_priority("forge.example", "/"), CeilingPriority::LAST);
    assert_eq!(
        classified(Request::get("/"), "192.0.2.1").ceiling_priority,
        CeilingPriority::LAST,
        "all are worth the same"
    );
}

#[test]
fn clients_are_told_apart_by_what_the_class_says() {
    let key = |fair_by: &str, request: request::Builder, client: &str| {
        let (head, ()) = request.body(()).expect("request").into_parts();
        let config = config(&[&format!("fair_by = {fair_by}")]);
        found(&classifier(&config), &head, client).client_key
    };
    let plain = |fair_by: &str, client: &str| key(fair_by, Request::get("/"), client);
    assert_eq!(plain("'network'", "192.0.2.1"), plain("'network'", "192.0.2.254"));
    assert_ne!(plain("'network'", "192.0.2.1"), plain("'network'", "192.0.3.1"));
    assert_eq!(plain("'network'", "2001:db8:0:1::1"), plain("'network'", "2001:db8:0:ff::1"));
    assert_ne!(plain("'network'", "2001:db8:0:1::1"), plain("'network'", "2001:db8:0:100::1"));
    assert_ne!(plain("'address'", "192.0.2.1"), plain("'address'", "192.0.2.2"));
    let with = |name: &str, value: &str| Request::get("/").header(name, value);
    for (fair_by, name, one, other) in [
        ("{ header = 'x-key' }", "x-key", "1", "2"),
        ("{ cookie = 'id' }", "cookie", "a=0; id=1", "a=0; id=2"),
    ] {
        assert_eq!(key(fair_by, with(name, one), "192.0.2.1"), key(fair_by, with(name, one), "198.51.100.1"));
        assert_ne!(key(fair_by, with(name, one), "192.0.2.1"), key(fair_by, with(name, other), "192.0.2.1"));
        assert_eq!(plain(fair_by, "192.0.2.1"), plain("'network'", "192.0.2.9"), "without it, the network");
        assert_eq!(
            key(fair_by, with("x-key", ""), "192.0.2.1"),
            plain("'network'", "192.0.2.9"),
            "an empty one is none"
        );
    }
}

#[test]
fn a_rule_for_nodes_in_front_takes_no_client() {
    let toml = "upstream.urls = ['http://a']\nfeedback.senders = ['10.0.0.0/8']\n\
                [[class]]\nname = 'urgent'\nmatch = { header = 'priority: u=0*', sender = ['shop', 'till-*'] }\n\
                [[class]]\nname = 'any'\nmatch.sender = '*'\n";
    let config = Config::from_toml(toml, "test.toml").expect("a valid configuration");
    let classifier = classifier(&config);
    let (head, ()) = Request::get("/").header("priority", "u=0").body(()).expect("request").into_parts();
    let client = "10.0.0.1".parse().expect("address");
    let class =
        |sender: Option<&str>| classifier.classify(&head, client, sender).map(|classified| classified.class);
    let of_nodes = [Some("shop"), Some("till-7"), Some("shop2"), Some("")].map(class);
    assert_eq!(of_nodes, [Some(0), Some(0), Some(1), Some(1)]);
    assert_eq!(class(None), Some(2), "a client at any address");
    let without = toml.replace("feedback.senders = ['10.0.0.0/8']\n", "");
    let error = Config::from_toml(&without, "test.toml").expect_err("a rule that takes no request");
    assert!(error.to_string().contains("feedback.senders"), "{error}");
}

#[test]
fn a_candidate_takes_a_request_by_its_own_rules() {
    let toml = "upstream.urls = ['http://a']\n[[class]]\nname = 'gold'\nmatch.header = 'x-plan: gold'\n\
                [[candidate.class]]\nname = 'free'\nmatch.header = 'x-plan'\nexempt = true\n\
                [[candidate.class]]\nname = 'shop'\nmatch.path = '/cart/'\nfair_by = 'address'\n";
    let config = Config::from_toml(toml, "test.toml").expect("a valid configuration");
    let classifier = classifier(&config);
    let take = |path: &str, plan: Option<&str>| {
        let request =
            plan.into_iter().fold(Request::get(path), |request, plan| request.header("x-plan", plan));
        let (head, ()) = request.body(()).expect("request").into_parts();
        classifier.classify(&head, "192.0.2.1".parse().expect("address"), None).expect("a service")
    };
    let both = |path, plan| {
        let taken = take(path, plan);
        let candidate = taken.candidate.expect("there is a candidate");
        (taken.class, candidate.class, candidate.is_exempt)
    };
    assert_eq!(both("/cart/1", Some("gold")), (0, 0, true));
    assert_eq!(both("/cart/1", None), (1, 1, false));
    assert_eq!(both("/", None), (1, 2, false));
    let taken = take("/cart/1", None);
    assert_ne!(taken.client_key, taken.candidate.expect("there is a candidate").client_key);
}

#[test]
fn classifying_allocates_nothing() {
    let mut with_candidate = config(&RULES);
    let service = &mut with_candidate.services[0];
    service.candidate = Some(flashweir_config::Candidate {
        sentry: service.sentry.clone(),
        classes: service.classes.clone(),
    });
    let classifier = classifier(&with_candidate);
    for target in ["/plain?k=2", "//odd/./%70ath?k=1"] {
        let request = Request::get(target)
            .header("host", "www.shop.example")
            .header("user-agent", "x")
            .header("cookie", "a=1; plan=silver")
            .header("x-plan", "silver");
        let (head, ()) = request.body(()).expect("request").into_parts();
        let client = "198.51.100.1".parse().expect("address");
        // The first unusual path makes room for the others.
        let class = || classifier.classify(&head, client, None).map(|classified| classified.class);
        let first = class();
        let candidate = classifier.classify(&head, client, None).and_then(|classified| classified.candidate);
        assert_eq!(candidate.map(|candidate| candidate.class), first);
        let counted = allocation_counter::measure(|| assert_eq!(class(), first));
        assert_eq!(counted.count_total, 0, "{target}");
    }
}

/// Rules of which several may hold at once, none of which covers another.
const RULES: [&str; 8] = [
    "match.path = '/a*'",
    "match.path = '*b'",
    "match.method = 'POST'",
    "match.header = 'x-plan: g*'",
    "match.cookie = 'plan=*d'",
    "match.client = '192.0.2.0/25'",
    "match.host = '*.example'",
    "match.api_keys = { query = 'k', keys = ['1'] }",
];

proptest::proptest! {
    /// Total, and the first that fits: for any request, the class of a list is the first of those that would
    /// take it if they were alone.
    #[test]
    fn every_request_has_one_class_and_it_is_the_first_that_fits(
        path in "/[ab/.%2]{0,6}",
        query in "(k=[12])?",
        method in "GET|POST|BREW",
        host in "[a.]{0,3}example|",
        plan in "[gd]{0,2}",
        last in proptest::num::u8::ANY,
        order in proptest::sample::subsequence((0..RULES.len()).collect::<Vec<_>>(), 0..=RULES.len()),
    ) {
        let request = || Request::builder().method(method.as_str()).uri(format!("{path}?{query}"))
            .header("host", &host).header("x-plan", &plan).header("cookie", format!("plan={plan}"));
        let rules: Vec<&str> = order.iter().rev().map(|index| RULES[*index]).collect();
        let client = format!("192.0.2.{last}");
        let (head, ()) = request().body(()).expect("request").into_parts();
        let config = config(&rules);
        let classified = found(&classifier(&config), &head, &client);
        let first = rules.iter().position(|rule| takes(rule, request(), &client)).unwrap_or(rules.len());
        proptest::prop_assert_eq!(usize::from(classified.class), first);
    }
}

/// Goal: no client can put URLs of its choice into the class of another. Method: URLs that fall into one
/// class under the key that every gateway once had, and what becomes of them under another key.
#[test]
fn urls_chosen_to_collide_do_not_without_the_key() {
    const CHOSEN: usize = 64;
    let config = config(&[]);
    let class_of = |url_hasher: Hasher64, path: &str| {
        let classifier = Classifier::new(Hasher64::new(1, 2), url_hasher, &config);
        let (head, ()) = Request::get(path).header("host", "a").body(()).expect("request").into_parts();
        found(&classifier, &head, "192.0.2.1").url_class as usize % flashweir_core::limits::URL_CLASSES
    };
    let known = Hasher64::new(0, 0);
    let victim = class_of(known, "/checkout");
    let chosen: Vec<String> = (0..)
        .map(|number| format!("/{number}"))
        .filter(|path| class_of(known, path) == victim)
        .take(CHOSEN)
        .collect();
    let drawn = Hasher64::new(0x5eed, 0xf00d);
    let victim = class_of(drawn, "/checkout");
    let hits = chosen.iter().filter(|path| class_of(drawn, path) == victim).count();
    assert!(hits <= 2, "{hits} of {CHOSEN} collide all the same");
}

/// Goal: a class rule, a key or a sign does not depend on the reader of a head.
#[test]
fn a_head_is_classified_alike_whatever_has_read_it() {
    let toml = "upstream.urls = ['http://a']\n\
        [[class]]\nname = 'gold'\nmatch.header = 'x-tier: gold*'\nfair_by = { header = 'x-team' }\n\
        [[class]]\nname = 'cart'\nmatch.cookie = 'cart'\nmatch.method = ['POST']\n";
    let config = Config::from_toml(toml, "test.toml").expect("a valid configuration");
    let classifier = classifier(&config);
    let client = "192.0.2.1".parse().expect("address");
    let fields = [
        &[("host", "Shop.Example:8080")][..],
        &[("host", "shop.example"), ("x-tier", "golden"), ("x-team", "red")],
        &[("host", "shop.example"), ("x-tier", "silver"), ("x-tier", "gold"), ("user-agent", "x")],
        &[("host", "shop.example"), ("cookie", "a=1; cart=7"), ("cookie", "sessionid=0123456789")],
        &[("host", "shop.example"), ("range", "bytes=0-1"), ("referer", "http://shop.example/a")],
        &[("host", "shop.example"), ("sec-fetch-dest", "image"), ("accept-language", "de")],
    ];
    let mut classes = std::collections::BTreeSet::new();
    for (fields, target) in
        fields.iter().flat_map(|fields| ["/", "/a//b?c=d", "/%61?"].map(|it| (fields, it)))
    {
        for method in ["GET", "POST", "HEAD"] {
            let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let bytes = format!("{method} {target} HTTP/1.1\r\n{lines}\r\n");
            let mut reader = RequestReader::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
            reader.read(bytes.as_bytes()).expect("a good head");
            let spans = reader.head(bytes.as_bytes()).expect("a whole head");
            let builder = Request::builder().method(method).uri(target);
            let builder = fields.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
            let (parts, ()) = builder.body(()).expect("request").into_parts();
            let of_spans = classifier.classify(spans, client, None).expect("a service");
            let of_parts = classifier.classify(&parts, client, None).expect("a service");
            assert_eq!(format!("{of_spans:?}"), format!("{of_parts:?}"), "{bytes}");
            let signs =
                (classifier.signs(spans, client, None, true), classifier.signs(&parts, client, None, true));
            assert_eq!(signs.0, signs.1, "{bytes}");
            classes.insert(of_spans.class);
        }
    }
    assert_eq!(classes.len(), 3, "each class takes some");
}
