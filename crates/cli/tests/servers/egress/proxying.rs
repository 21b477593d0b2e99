//! Goal: messages pass as they are, by listener or as an HTTP proxy.

use crate::egress::scene::Egress;
use flashweir_testkit::{Client, Upstream, checksum, pattern, reserve_address};

#[test]
fn messages_pass_whole_with_the_servers_own_host() {
    let upstream = Upstream::reflecting();
    let egress = Egress::start(&[upstream.url()], "");
    let mut client = Client::connect(egress.address);
    let body = "x".repeat(200_000);
    let request = format!(
        "POST /a?b=c HTTP/1.1\r\nHost: localhost:1\r\nX-Forwarded-For: 203.0.113.9\r\nContent-Length: 200000\r\n\r\n{body}"
    );
    let answer = client.ask(&request);
    assert_eq!((answer.status(), answer.field("x-body-bytes")), (200, Some("200000")));
    let seen = upstream.last_request();
    assert_eq!(seen.start, "POST /a?b=c HTTP/1.1");
    assert_eq!(seen.field("host"), Some(upstream.address().to_string().as_str()));
    assert_eq!(seen.fields.all("x-forwarded-for"), ["203.0.113.9"], "who the client is, the process knows");
    assert!(!seen.fields.has("forwarded"));
    let bytes = client.ask("GET /bytes/300000 HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(checksum(&bytes.body), checksum(&pattern(300_000)));
    let chunks =
        client.ask("GET /chunks/100000 HTTP/1.1\r\nHost: t\r\nTE: trailers\r\nConnection: te\r\n\r\n");
    assert_eq!((checksum(&chunks.body), chunks.trailers.has("x-sum")), (checksum(&pattern(100_000)), true));
}

#[test]
fn a_listener_without_target_is_a_proxy_by_host() {
    let (api, blog) = (Upstream::saying("api"), Upstream::saying("blog"));
    let (address, admin) = (reserve_address(), reserve_address());
    let config = format!(
        "name = \"shop\"\nadmin = \"{admin}\"\n[[listen]]\naddress = \"{address}\"\n\
         [[target]]\nname = \"api\"\nurls = [\"{}\"]\nhosts = [\"api.example\", \"api.example:8443\"]\n\
         [[target]]\nname = \"blog\"\nurls = [\"{}\"]\nhosts = [\"Blog.Example\"]\n",
        api.url(),
        blog.url()
    );
    let egress = Egress::start_config(&config, address, admin);
    let mut client = Client::connect(egress.address);
    // As `http_proxy` makes clients ask, and as a changed name of a host does.
    let absolute = client.ask(
        "GET http://api.example/a HTTP/1.1\r\nHost: api.example\r\nProxy-Connection: keep-alive\r\n\r\n",
    );
    assert_eq!((absolute.status(), absolute.text().as_str()), (200, "api"));
    let seen = api.last_request();
    assert_eq!((seen.start.as_str(), seen.field("host")), ("GET /a HTTP/1.1", Some("api.example")));
    assert!(!seen.fields.has("proxy-connection"));
    assert_eq!(client.ask("GET /b HTTP/1.1\r\nHost: blog.example:80\r\n\r\n").text(), "blog");
    let unknown = client.ask("GET http://else.example/ HTTP/1.1\r\nHost: else.example\r\n\r\n");
    assert_eq!((unknown.status(), unknown.field("flashweir-egress")), (421, Some("no_target")));
    let tunnel = Client::connect(egress.address)
        .ask("CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n\r\n");
    assert_eq!(tunnel.status(), 400, "TLS inside a tunnel could not be limited");
}

#[test]
fn it_ends_in_order() {
    let upstream = Upstream::saying("x");
    let egress = Egress::start(&[upstream.url()], "");
    assert_eq!(egress.get().status(), 200);
    let finished = egress.stop();
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
}
