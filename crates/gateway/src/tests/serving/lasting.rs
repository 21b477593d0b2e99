//! State that outlives a request: certificates that are renewed during operation, and the state file.

use crate::tests::serving::common::origin::Origin;
use crate::tests::serving::common::{PATIENCE, Running, eventually};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Writes a new self-signed certificate and its key, and returns the certificate.
fn renew(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("certificate");
    fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("write");
    fs::write(folder.join("certificate.pem"), made.cert.pem()).expect("write");
    made.cert.der().clone()
}

/// `GET /hello` over TLS, trusting only `certificate`; `None` when the handshake fails.
async fn get(address: SocketAddr, certificate: &CertificateDer<'static>) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.expect("connect");
    let name = ServerName::try_from("localhost").expect("name");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    stream
        .write_all(b"GET /hello HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .expect("send");
    let mut response = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut response))
        .await
        .expect("in time")
        .expect("read");
    Some(response)
}

#[tokio::test]
async fn a_renewed_certificate_is_used_and_a_broken_one_is_not() {
    let (origin, folder) = (Origin::start(), TempDir::new().expect("folder"));
    let first = renew(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let more = format!(
        "listen.tls.certificate = '{}'\nlisten.tls.key = '{}'\nbounds.drain_timeout = '1s'\n\
         bounds.tls_handshake_timeout = '200ms'",
        file("certificate.pem"),
        file("key.pem"),
    );
    let gateway = Running::start(origin.address, &more);
    let response = get(gateway.address, &first).await.expect("a handshake");
    assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("hello"), "{response}");
    assert!(origin.next_head().contains("x-forwarded-proto: https"));
    gateway.await_metric("flashweir_responses_measured_total", 1.0);

    fs::write(file("certificate.pem"), "half a certificate").expect("write");
    eventually("the broken one is noticed", || {
        gateway.metric("flashweir_certificate_reloads_total{outcome=\"failed\"}") >= 1.0
    });
    assert!(get(gateway.address, &first).await.is_some(), "the old one stays");
    let second = renew(folder.path());
    eventually("the new one is taken over", || {
        gateway.metric("flashweir_certificate_reloads_total{outcome=\"ok\"}") >= 1.0
    });
    assert!(get(gateway.address, &first).await.is_none());
    assert!(get(gateway.address, &second).await.is_some());

    // One who never starts the handshake does not stay.
    let mut silent = gateway.connect();
    assert!(silent.is_closed());
    gateway.await_metric("flashweir_connections_failed_total{kind=\"tls_timeout\"}", 1.0);
}

#[test]
fn the_state_file_is_written_at_the_end_and_a_damaged_one_is_replaced() {
    let (origin, folder) = (Origin::start(), TempDir::new().expect("folder"));
    let path = folder.path().join("baseline.json");
    fs::write(&path, "{\"version\": 1, \"serv").expect("a damaged file");
    let gateway = Running::start(origin.address, &format!("state.file = '{}'", path.display()));
    assert_eq!(gateway.connect().get("/hello").status, 200, "it serves all the same");
    gateway.outcome().expect("a clean end");
    let saved: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).expect("read")).expect("whole again");
    assert_eq!((&saved["version"], &saved["service"]), (&2.into(), &"default".into()));
    assert!(saved["baseline"].is_object());
}
