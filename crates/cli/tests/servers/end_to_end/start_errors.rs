//! An error at the start is reported in one line, with exit code 64, before any port opens.

use std::net::{SocketAddr, TcpListener};

use flashweir_testkit::{Authority, Client, Finished, GatewayBuilder, Upstream, reserve_address};

use crate::end_to_end::support::{before, binary};

fn builder() -> GatewayBuilder {
    GatewayBuilder::new(&binary()).upstream("http://127.0.0.1:9")
}

/// The gateway must end with 64 and one line that has every word of `wanted`.
fn check(builder: GatewayBuilder, wanted: &[&str]) {
    let ports = [builder.address(), builder.admin()];
    // A start that takes a port and releases it before it ends would be seen here.
    let taken: Vec<TcpListener> =
        ports.iter().map(|port| TcpListener::bind(port).expect("a free port")).collect();
    drop(taken);
    let finished = builder.start_in_vain();
    assert_one_line(&finished, wanted);
    assert!(ports.iter().all(|port| TcpListener::bind(port).is_ok()), "a port is still held");
}

fn assert_one_line(finished: &Finished, wanted: &[&str]) {
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
    assert_eq!(finished.stderr.trim_end().lines().count(), 1, "one line, not: {}", finished.stderr);
    for word in wanted {
        assert!(finished.stderr.contains(word), "`{word}` is missing: {}", finished.stderr);
    }
    assert_eq!(finished.stdout, "");
}

#[test]
fn an_unknown_key() {
    check(builder().set("upstream.timeout", "5"), &["flashweir.toml:5:", "timeout"]);
    check(builder().set("listne.address", "5"), &["flashweir.toml:5:", "listne"]);
}

#[test]
fn a_wrong_type() {
    check(builder().set("bounds.max_fields", "true"), &["flashweir.toml:5:", "bounds.max_fields"]);
    check(builder().set("client.trusted_proxies", "[1]"), &["flashweir.toml:5:", "client.trusted_proxies"]);
}

#[test]
fn a_value_that_makes_no_sense() {
    for (key, value) in [
        ("upstream.connect_timeout", "\"soon\""),
        ("bounds.max_head_bytes", "\"1GiB\""),
        ("client.trusted_proxies", "[\"10.0.0.0/33\"]"),
        ("flash_crowd.mode", "\"maybe\""),
        ("flash_crowd.margin", "2.0"),
        ("upstream.ca_file", "\"not-there.pem\""),
        ("bounds.max_connections", "0"),
        ("upstream.health.path", "\"no-slash\""),
    ] {
        check(builder().set(key, value), &["flashweir.toml:5:", key]);
    }
    check(
        GatewayBuilder::new(&binary()).upstream("ftp://127.0.0.1"),
        &["flashweir.toml:4:", "upstream.urls"],
    );
}

#[test]
fn no_upstream_at_all() {
    check(GatewayBuilder::new(&binary()), &["upstream"]);
}

#[test]
fn a_file_that_is_not_there() {
    let finished = binary().run(["run", "--config", "nowhere.toml"]);
    assert_one_line(&finished, &["nowhere.toml"]);
}

#[test]
fn wrong_flags() {
    let url = ["run", "--upstream", "http://127.0.0.1:9"];
    for (flags, wanted) in [
        (&["--listen", "everywhere"][..], "everywhere"),
        (&["--workers", "9999"][..], "9999"),
        (&["--log", "loud"][..], "loud"),
    ] {
        let finished = binary().run(url.iter().chain(flags));
        assert_eq!(finished.code(), Some(64), "{flags:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    }
    let finished = binary().run(["run", "--upstreem", "x"]);
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
}

#[test]
fn a_certificate_that_cannot_be_read() {
    let tls = |builder: GatewayBuilder| {
        builder.text("listen.tls.certificate", "server.pem").text("listen.tls.key", "server.key")
    };
    check(tls(builder()), &["server.pem"]);
    let empty = builder();
    let _files = Authority::new().issue(empty.directory(), "x");
    std::fs::write(empty.directory().join("server.pem"), "no certificate").expect("a writable directory");
    check(tls(empty), &["server.pem"]);
    let mismatched = builder();
    let other = tempfile::tempdir().expect("a fresh directory");
    let _files = Authority::new().issue(mismatched.directory(), "x");
    let strangers = Authority::new().issue(other.path(), "y");
    std::fs::copy(strangers.key, mismatched.directory().join("server.key")).expect("a writable directory");
    check(tls(mismatched), &["server.key"]);
}

fn check_port_in_use(taken: SocketAddr, builder: GatewayBuilder, setting: &str) {
    let _holder = TcpListener::bind(taken).expect("a free port");
    let finished = builder.start_in_vain();
    assert_one_line(&finished, &[&taken.to_string(), "in use", setting]);
}

#[test]
fn a_port_that_is_in_use() {
    let upstream = Upstream::saying("x");
    let listen = before(&upstream);
    check_port_in_use(listen.address(), listen, "");
    let admin = before(&upstream);
    check_port_in_use(admin.admin(), admin, "--admin");
}

#[test]
fn the_port_of_another_gateway() {
    // Both use SO_REUSEPORT, so without a check they would share it and each get half of the connections.
    let upstream = Upstream::saying("first");
    let first = before(&upstream).start();
    let second = before(&upstream).text("listen.address", &first.address().to_string());
    assert_one_line(&second.start_in_vain(), &[&first.address().to_string(), "in use"]);
    assert_eq!(first.get("/").text(), "first");
}

#[test]
fn a_client_that_comes_at_once_is_served_only_when_all_is_well() {
    // With a wrong admin address no client port may open either.
    let upstream = Upstream::saying("x");
    let builder = before(&upstream);
    let (address, admin) = (builder.address(), builder.admin());
    let _holder = TcpListener::bind(admin).expect("a free port");
    let finished = builder.start_in_vain();
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
    assert!(Client::try_connect(address).is_err());
    let _ = reserve_address();
}
