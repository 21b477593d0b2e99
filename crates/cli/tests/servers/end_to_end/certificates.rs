//! A certificate is renewed while people are connected.

use flashweir_testkit::{Authority, Curl, CurlOutput, Gateway, Upstream, eventually};

use crate::end_to_end::support::before;

struct Https {
    gateway: Gateway,
    _upstream: Upstream,
    curl: Curl,
    ca: String,
}

impl Https {
    fn new(test: &str, authority: &Authority) -> Option<Self> {
        let curl = Curl::require(test)?;
        let upstream = Upstream::saying("secret");
        let builder = before(&upstream);
        let ca = authority.write(builder.directory()).display().to_string();
        let _files = authority.issue(builder.directory(), "first certificate");
        let builder =
            builder.text("listen.tls.certificate", "server.pem").text("listen.tls.key", "server.key");
        // It serves HTTPS, so its readiness is all that can be asked in the clear.
        Some(Self { gateway: builder.start(), _upstream: upstream, curl, ca })
    }

    fn get(&self) -> CurlOutput {
        let url = format!("https://localhost:{}/", self.gateway.address().port());
        self.curl.get(&url, &["--verbose", "--ipv4", "--cacert", &self.ca])
    }

    fn shows(&self, name: &str) -> bool {
        let output = self.get();
        assert_eq!((output.code, output.text().as_str()), (0, "secret"), "{}", output.stderr);
        output.stderr.contains(name)
    }
}

#[test]
fn a_renewed_certificate_is_taken_up_by_a_listener_that_runs() {
    let authority = Authority::new();
    let test = "a_renewed_certificate_is_taken_up_by_a_listener_that_runs";
    let Some(https) = Https::new(test, &authority) else { return };
    assert!(https.shows("first certificate"));
    let _files = authority.issue(https.gateway.directory(), "second certificate");
    // No signal: the files are watched.
    eventually("the second certificate", || https.shows("second certificate").then_some(()));
    https.gateway.wait_metric("flashweir_certificate_reloads_total{outcome=\"ok\"}", 1.0);
}

#[test]
fn a_certificate_that_cannot_be_used_leaves_the_old_one_in_force() {
    let authority = Authority::new();
    let test = "a_certificate_that_cannot_be_used_leaves_the_old_one_in_force";
    let Some(https) = Https::new(test, &authority) else { return };
    std::fs::write(https.gateway.directory().join("server.pem"), "half a cert")
        .expect("a writable directory");
    https.gateway.wait_metric("flashweir_certificate_reloads_total{outcome=\"failed\"}", 1.0);
    assert!(https.shows("first certificate"));
    eventually("a message that names the file", || {
        https.gateway.stderr().contains("server.pem").then_some(())
    });
    let _files = authority.issue(https.gateway.directory(), "third certificate");
    eventually("the third certificate", || https.shows("third certificate").then_some(()));
}

#[test]
fn who_never_finishes_the_handshake_is_let_go() {
    let authority = Authority::new();
    let upstream = Upstream::saying("secret");
    let builder = before(&upstream);
    let _files = authority.issue(builder.directory(), "first certificate");
    let gateway = builder
        .text("listen.tls.certificate", "server.pem")
        .text("listen.tls.key", "server.key")
        .text("bounds.tls_handshake_timeout", "300ms")
        .start();
    let mut silent = gateway.connect();
    silent.expect_closed();
    gateway.wait_metric("flashweir_connections_failed_total{kind=\"tls_timeout\"}", 1.0);
    let mut plain = gateway.connect();
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    // An alert, then the end; no HTTP.
    let answer = plain.read_to_end().unwrap_or_default();
    assert!(!answer.starts_with(b"HTTP/"), "{}", String::from_utf8_lossy(&answer));
    gateway.wait_metric("flashweir_connections_failed_total{kind=\"tls\"}", 1.0);
    assert_eq!(upstream.request_count(), 0);
}
