use super::*;
use crate::client::TrustedProxies;
use http::Request;
use http::header::{HOST, PROXY_AUTHORIZATION};
use proptest::prelude::*;

const STRANGER: Hop = Hop {
    peer: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
    is_peer_trusted: false,
    scheme: ClientScheme::Https,
};

fn parts(method: &str, uri: &str, version: Version, fields: &[(&str, &str)]) -> request::Parts {
    let mut request = Request::builder().method(method).uri(uri).version(version);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn prepared(fields: &[(&str, &str)]) -> (request::Parts, Prepared) {
    let mut parts = parts("GET", "/", Version::HTTP_11, &[&[("host", "shop.example:81")], fields].concat());
    let prepared = prepare_request(&mut parts, &STRANGER).unwrap();
    (parts, prepared)
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

#[test]
fn hop_by_hop_fields_go_and_end_to_end_fields_stay() {
    let (parts, _) = prepared(&[
        ("connection", "close, X-Private"),
        ("connection", "keep-alive, host, x-forwarded-for"),
        ("x-private", "1"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("proxy-authorization", "Basic x"),
        ("te", "gzip"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "websocket"),
        ("proxy", "http://evil"),
        ("expect", "100-Continue"),
        ("flashweir-decision", "forged"),
        ("authorization", "Bearer y"),
        ("cookie", "a=b"),
    ]);
    for name in
        ["connection", "x-private", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"]
    {
        assert!(!parts.headers.contains_key(name), "{name}");
    }
    for name in ["proxy", "expect", "flashweir-decision", PROXY_AUTHORIZATION.as_str()] {
        assert!(!parts.headers.contains_key(name), "{name}");
    }
    for name in ["authorization", "cookie", "host", "x-forwarded-for"] {
        assert!(parts.headers.contains_key(name), "{name}");
    }
}

#[test]
fn a_strangers_word_is_replaced_and_a_proxys_extended() {
    let forged = [
        ("x-forwarded-for", "6.6.6.6"),
        ("forwarded", "for=6.6.6.6"),
        ("x-forwarded-proto", "gopher"),
        ("x-forwarded-host", "evil.example"),
        ("via", "1.0 old"),
    ];
    let (parts, _) = prepared(&forged);
    assert_eq!(values(&parts.headers, "x-forwarded-for"), ["192.0.2.7"]);
    assert_eq!(values(&parts.headers, "forwarded"), [r#"for=192.0.2.7;host="shop.example:81";proto=https"#]);
    assert_eq!(values(&parts.headers, "x-forwarded-proto"), ["https"]);
    assert_eq!(values(&parts.headers, "x-forwarded-host"), ["shop.example:81"]);
    assert_eq!(values(&parts.headers, "via"), ["1.0 old", "1.1 flashweir"]);

    let mut parts = self::parts("GET", "/", Version::HTTP_11, &[&[("host", "a")], &forged[..]].concat());
    let proxy =
        Hop { peer: "2001:db8::1".parse().unwrap(), is_peer_trusted: true, scheme: ClientScheme::Http };
    prepare_request(&mut parts, &proxy).unwrap();
    assert_eq!(values(&parts.headers, "x-forwarded-for"), ["6.6.6.6, 2001:db8::1"]);
    assert_eq!(
        values(&parts.headers, "forwarded"),
        [r#"for=6.6.6.6, for="[2001:db8::1]";host=a;proto=http"#]
    );
    assert_eq!(values(&parts.headers, "x-forwarded-proto"), ["gopher"]);
    assert_eq!(values(&parts.headers, "x-forwarded-host"), ["evil.example"]);
}

/// A proxy that writes only one of the lists, then this gateway, then another one: it must find the same
/// client.
#[test]
fn a_second_gateway_finds_the_client_that_the_first_one_found() {
    let trusted =
        TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap(), "2001:db8:1::/48".parse().unwrap()]);
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    for (peer, fields, client, listed, forwarded) in [
        (
            "10.0.0.1",
            [("x-forwarded-for", "192.0.2.9, 10.0.0.2")],
            "192.0.2.9",
            "192.0.2.9, 10.0.0.2, ",
            "for=192.0.2.9, for=10.0.0.2, ",
        ),
        (
            "10.0.0.1",
            [("forwarded", "for=\"[2001:db8::9]:80\";by=x")],
            "2001:db8::9",
            "2001:db8::9, ",
            "for=\"[2001:db8::9]:80\";by=x, ",
        ),
        (
            "10.0.0.1",
            [("x-forwarded-for", "2001:db8::9")],
            "2001:db8::9",
            "2001:db8::9, ",
            "for=\"[2001:db8::9]\", ",
        ),
        (
            "10.0.0.1",
            [("x-forwarded-for", "6.6.6.6, rubbish")],
            "10.0.0.1",
            "6.6.6.6, rubbish, ",
            "for=6.6.6.6, for=unknown, ",
        ),
        (
            "10.0.0.1",
            [("forwarded", "for=_hidden, proto=http")],
            "10.0.0.1",
            "unknown, unknown, ",
            "for=_hidden, proto=http, ",
        ),
    ] {
        let mut parts = parts("GET", "/", Version::HTTP_11, &[&[("host", "a")], &fields[..]].concat());
        assert_eq!(trusted.client_address(address(peer), &parts.headers), address(client));
        let proxy = Hop { peer: address(peer), is_peer_trusted: true, scheme: ClientScheme::Http };
        prepare_request(&mut parts, &proxy).unwrap();
        assert_eq!(values(&parts.headers, "x-forwarded-for"), [format!("{listed}{peer}")]);
        assert_eq!(values(&parts.headers, "forwarded"), [format!("{forwarded}for={peer};host=a;proto=http")]);
        let found = trusted.client_address(address("10.9.9.9"), &parts.headers);
        assert_eq!(found, address(client), "{fields:?}");
    }
}

#[test]
fn upgrades_are_kept_only_where_a_tunnel_is_harmless() {
    let asks = |connection, upgrade| {
        let (parts, prepared) = prepared(&[("connection", connection), ("upgrade", upgrade)]);
        assert_eq!(parts.headers.contains_key(UPGRADE), prepared.wants_upgrade);
        assert_eq!(parts.headers.contains_key(CONNECTION), prepared.wants_upgrade);
        prepared.wants_upgrade
    };
    assert!(asks("keep-alive, Upgrade", "websocket"));
    assert!(!asks("keep-alive", "websocket"));
    assert!(!asks("upgrade, http2-settings", "h2c"));
    assert!(!asks("upgrade", "websocket, HTTP/2.0"));
    assert!(!asks("upgrade", "TLS/1.2"));
}

#[test]
fn trailers_are_announced_and_other_codings_are_not() {
    let (parts, _) = prepared(&[("te", "gzip, trailers"), ("connection", "te")]);
    assert_eq!(values(&parts.headers, "te"), ["trailers"]);
    assert_eq!(values(&parts.headers, "connection"), ["te"]);
}

#[test]
fn targets_and_hosts_take_one_form() {
    let normal = |method: &str, uri: &str, version, host: Option<&str>| {
        let host: Vec<_> = host.map(|host| ("host", host)).into_iter().collect();
        let mut parts = parts(method, uri, version, &host);
        prepare_request(&mut parts, &STRANGER).map(|_| {
            (parts.uri.to_string(), parts.headers.get(HOST).map(|host| host.to_str().unwrap().to_owned()))
        })
    };
    let of = |uri: &str, host: &str| Ok((uri.to_owned(), Some(host.to_owned())));
    assert_eq!(normal("GET", "/a?b", Version::HTTP_11, Some("h")), of("/a?b", "h"));
    assert_eq!(normal("GET", "http://real/a?b", Version::HTTP_11, Some("other")), of("/a?b", "real"));
    assert_eq!(normal("GET", "https://h:8/a", Version::HTTP_2, Some("H:8")), of("/a", "h:8"));
    assert_eq!(normal("GET", "https://h/a", Version::HTTP_2, None), of("/a", "h"));
    assert_eq!(normal("OPTIONS", "*", Version::HTTP_11, Some("h")), of("*", "h"));
    assert_eq!(normal("GET", "/", Version::HTTP_10, None), Ok(("/".to_owned(), None)));
    assert_eq!(normal("GET", "https://h/a", Version::HTTP_2, Some("g")), Err(FieldsError::Host));
    assert_eq!(normal("GET", "/a", Version::HTTP_2, None), Err(FieldsError::Host));
    assert_eq!(normal("GET", "http://user@h/", Version::HTTP_11, Some("h")), Err(FieldsError::Host));
    assert_eq!(normal("GET", "ftp://h/a", Version::HTTP_11, Some("h")), Err(FieldsError::Target));
    assert_eq!(normal("GET", "h", Version::HTTP_11, Some("h")), Err(FieldsError::Target));
    assert_eq!(normal("GET", "*", Version::HTTP_11, Some("h")), Err(FieldsError::Target));
    assert_eq!(normal("CONNECT", "h:443", Version::HTTP_11, Some("h")), Err(FieldsError::Method));
    assert_eq!(normal("TRACE", "/", Version::HTTP_11, Some("h")), Err(FieldsError::Method));
    assert_eq!(normal("GET", "*", Version::HTTP_2, Some("h")), Err(FieldsError::Target));
    assert_eq!(normal("GET", "http://h#x", Version::HTTP_11, Some("h")), of("/", "h"));
    assert_eq!(normal("GET", "http://h?q", Version::HTTP_11, Some("h")), of("/?q", "h"));
    assert_eq!(normal("GET", "http://h?q", Version::HTTP_2, None), Err(FieldsError::Target));
    for authority in ["h:80:90", "h:xx", "h:65536"] {
        let uri = format!("http://{authority}/");
        // What the library's own parser refuses never gets here.
        if uri.parse::<http::Uri>().is_ok() {
            assert_eq!(normal("GET", &uri, Version::HTTP_11, Some("h")), Err(FieldsError::Host), "{uri}");
        }
    }
}

#[test]
fn spellings_with_underscores_of_what_we_write_or_remove_go() {
    let (parts, _) = prepared(&[
        ("x_forwarded_for", "6.6.6.6"),
        ("X_Forwarded-Proto", "https"),
        ("x-forwarded_host", "evil"),
        ("x.forwarded.for", "6.6.6.6"),
        ("flashweir!decision", "forged"),
        ("x.own", "kept"),
        ("flashweir_decision", "forged"),
        ("keep_alive", "1"),
        ("proxy_connection", "1"),
        ("x_own", "kept"),
    ]);
    let odd: Vec<_> = parts.headers.keys().filter(|name| name.as_str().contains(['_', '.', '!'])).collect();
    assert_eq!(odd, ["x_own", "x.own"]);
    assert_eq!(values(&parts.headers, "x-forwarded-for"), ["192.0.2.7"]);
}

#[test]
fn http2_cookie_crumbs_become_one_line() {
    let crumbs = [("cookie", "a=1"), ("cookie", "b=2; c=3")];
    let mut parts = parts("GET", "http://h/", Version::HTTP_2, &crumbs);
    prepare_request(&mut parts, &STRANGER).unwrap();
    assert_eq!(values(&parts.headers, "cookie"), ["a=1; b=2; c=3"]);
    assert_eq!(values(&parts.headers, "via"), ["2 flashweir"]);
    let crumbs = [("cookie", ""), ("cookie", "b=2"), ("cookie", "")];
    let mut parts = self::parts("GET", "http://h/", Version::HTTP_2, &crumbs);
    prepare_request(&mut parts, &STRANGER).unwrap();
    assert_eq!(values(&parts.headers, "cookie"), ["b=2"]);
}

#[test]
fn max_forwards_counts_down_on_options_only() {
    let counted = |method: &str, left: &str| {
        let mut parts = parts(method, "/", Version::HTTP_11, &[("host", "a"), ("max-forwards", left)]);
        let prepared = prepare_request(&mut parts, &STRANGER).unwrap();
        (prepared.is_last_hop, values(&parts.headers, "max-forwards").remove(0))
    };
    assert_eq!(counted("OPTIONS", "0"), (true, "0".to_owned()));
    assert_eq!(counted("OPTIONS", "7"), (false, "6".to_owned()));
    assert_eq!(counted("OPTIONS", "many"), (false, "many".to_owned()));
    assert_eq!(counted("GET", "0"), (false, "0".to_owned()));
}

#[test]
fn an_unknown_expectation_is_refused() {
    let mut parts = parts("GET", "/", Version::HTTP_11, &[("host", "a"), ("expect", "200-ok")]);
    let error = prepare_request(&mut parts, &STRANGER).unwrap_err();
    assert_eq!(error.status(), 417);
}

#[test]
fn responses_lose_hop_by_hop_fields_and_gain_via() {
    let response = |status: u16, fields: &[(&str, &str)]| {
        let mut response = http::Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let mut parts = response.body(()).unwrap().into_parts().0;
        prepare_response(&mut parts).map(|()| parts.headers)
    };
    let plain = response(
        200,
        &[
            ("connection", "x-hop, close"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("content-length", "5"),
            ("upgrade", "h2c"),
            ("proxy-authenticate", "Basic"),
            ("flashweir-decision", "forged"),
        ],
    )
    .unwrap();
    assert_eq!(plain.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["via"]);
    let switch =
        response(101, &[("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-accept", "x")])
            .unwrap();
    assert_eq!(values(&switch, "connection"), ["upgrade"]);
    assert_eq!(values(&switch, "upgrade"), ["websocket"]);
    let same = response(200, &[("content-length", "2, 2"), ("content-length", "2")]).unwrap();
    assert_eq!(values(&same, "content-length"), ["2"]);
    assert_eq!(response(200, &[("content-length", "2, 3")]).unwrap_err(), ResponseError::Length);
    for coding in ["gzip, chunked", "gzip", "cow", "chunked, chunked", "identity", ""] {
        let refused = response(200, &[("transfer-encoding", coding)]).unwrap_err();
        assert_eq!(refused, ResponseError::TransferCoding, "{coding}");
    }
    assert!(response(200, &[("transfer-encoding", "Chunked")]).is_ok());
}

#[test]
fn each_request_of_a_connection_names_its_own_host() {
    let memo = ForwardedMemo::default();
    for host in ["a.example", "a.example", "b.example", "a.example"] {
        let mut parts =
            parts("GET", "/", Version::HTTP_11, &[("host", host), ("x-forwarded-for", "10.0.0.1")]);
        prepare_next_request(&mut parts, &STRANGER, &memo).unwrap();
        assert_eq!(values(&parts.headers, "x-forwarded-for"), ["192.0.2.7"]);
        assert_eq!(values(&parts.headers, "x-forwarded-host"), [host]);
        assert_eq!(values(&parts.headers, "forwarded"), [format!("for=192.0.2.7;host={host};proto=https")]);
    }
    let mut old = parts("GET", "/", Version::HTTP_10, &[]);
    prepare_next_request(&mut old, &STRANGER, &memo).unwrap();
    assert_eq!(values(&old.headers, "forwarded"), ["for=192.0.2.7;proto=https"], "HTTP/1.0 may have no Host");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_fields_are_survived_and_nothing_hop_by_hop_is_left(
        fields in prop::collection::vec(
            ("(connection|te|upgrade|forwarded|x-forwarded-for|expect|keep-alive|x-[a-c]|via)", "[ -~]{0,20}"),
            0..12,
        ),
        is_peer_trusted: bool,
    ) {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut parts = parts("GET", "/", Version::HTTP_11, &fields);
        if let Ok(prepared) = prepare_request(&mut parts, &Hop { is_peer_trusted, ..STRANGER }) {
            prop_assert!(!parts.headers.contains_key("keep-alive") && !parts.headers.contains_key(EXPECT));
            prop_assert_eq!(parts.headers.contains_key(UPGRADE), prepared.wants_upgrade);
            prop_assert!(values(&parts.headers, "x-forwarded-for")[0].ends_with("192.0.2.7"));
            prop_assert_eq!(parts.headers.get_all("x-forwarded-for").iter().count(), 1);
        }
    }
}
