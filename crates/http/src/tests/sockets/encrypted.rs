//! TLS and HTTP/2 on both sides, certificate reload, probes and shared ports.

use crate::guarded::Protocol;
use crate::listen;
use crate::serve::HeadLimits;
use crate::serve::{Connection, IncomingBody, IncomingBodyError, ServeSettings, Server};
use crate::tests::sockets::support::{RawUpstream, get, refusing_address, run, settings};
use crate::tls::{ServerTls, TlsError};
use crate::upstream::{
    ProbeError, ProbeOutcome, UpstreamErrorKind, UpstreamSettings, UpstreamShared, Upstreams, probe,
    probe_outcome,
};
use bytes::Bytes;
use flashweir_core::Rng;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self { directory: tempfile::tempdir().unwrap() };
        files.renew();
        files
    }

    fn renew(&self) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let key: KeyPair = signing_key;
        fs::write(self.path("cert.pem"), cert.pem()).unwrap();
        fs::write(self.path("key.pem"), key.serialize_pem()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn open(&self) -> Result<ServerTls, TlsError> {
        ServerTls::open(&self.path("cert.pem"), &self.path("key.pem"))
    }
}

fn server() -> Rc<Server> {
    Rc::new(Server::new(ServeSettings {
        head: HeadLimits { bytes_max: 8_192, fields_max: 100 },
        head_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(5),
        http2_streams_max: 3,
        http2_ping_after: Duration::from_secs(5),
    }))
}

/// Echoes with our own server; answers `/sick` 503.
async fn serve(tls: Option<Rc<ServerTls>>) -> SocketAddr {
    let mut worker = listen::bind(&["127.0.0.1:0".parse().unwrap()], 1).unwrap();
    let listener = worker.pop().unwrap().into_tokio().unwrap().pop().unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        let server = server();
        loop {
            let (stream, _) = listen::accept(&listener).await.unwrap();
            let (tls, server) = (tls.clone(), Rc::clone(&server));
            spawn_local(async move {
                let service = |request, _: &Connection| echo(request);
                let never = std::future::pending();
                match tls {
                    None => drop(server.serve(server.guard(stream), None, service, never).await),
                    Some(tls) => {
                        let Ok((stream, protocol, _)) = tls.accept(stream).await else { return };
                        drop(server.serve(server.guard(stream), Some(protocol), service, never).await);
                    }
                }
            });
        }
    });
    address
}

async fn echo(request: Request<IncomingBody>) -> Result<Response<Full<Bytes>>, IncomingBodyError> {
    let status = if request.uri().path() == "/sick" { 503 } else { 200 };
    let version = format!("{:?}", request.version());
    let body = request.into_body().collect().await?.to_bytes();
    let body = if body.is_empty() { Bytes::from(version) } else { body };
    Ok(Response::builder().status(status).body(Full::from(body)).unwrap())
}

fn secure(address: SocketAddr, ca_file: &Path, protocol: Protocol) -> UpstreamSettings {
    UpstreamSettings {
        addresses: vec![format!("https://localhost:{}", address.port()).parse().unwrap()],
        ca_file: Some(ca_file.to_owned()),
        protocol,
        ..settings(&[])
    }
}

async fn ask(settings: UpstreamSettings) -> Result<String, UpstreamErrorKind> {
    let upstreams = Upstreams::new(UpstreamShared::new(settings).unwrap(), Rng::new(1));
    let response = upstreams.send(get("/")).await.map_err(|error| error.kind)?;
    let body = response.into_body().collect().await.map_err(|error| error.kind)?;
    Ok(String::from_utf8(body.to_bytes().to_vec()).unwrap())
}

#[test]
fn both_protocols_work_in_the_clear_and_over_tls() {
    run(async {
        let files = Files::new();
        let plain = serve(None).await;
        let encrypted = serve(Some(Rc::new(files.open().unwrap()))).await;
        for (protocol, version) in [(Protocol::Http1, Version::HTTP_11), (Protocol::Http2, Version::HTTP_2)] {
            let version = format!("{version:?}");
            let clear = ask(UpstreamSettings { protocol, ..settings(&[plain]) }).await;
            assert_eq!(clear.as_ref(), Ok(&version));
            assert_eq!(
                ask(secure(encrypted, &files.path("cert.pem"), protocol)).await.as_ref(),
                Ok(&version)
            );
        }
    });
}

/// The server would understand HTTP/2, but has not agreed to it: what else it may be is not known.
#[test]
fn http2_over_tls_is_spoken_only_where_it_was_agreed() {
    run(async {
        let files = Files::new();
        let certificate = CertificateDer::from_pem_file(files.path("cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(files.path("key.pem")).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        spawn_local(async move {
            let server = server();
            let (stream, _) = listener.accept().await.unwrap();
            let stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.unwrap();
            let service = |request, _: &Connection| echo(request);
            drop(
                server
                    .serve(server.guard(stream), Some(Protocol::Http2), service, std::future::pending())
                    .await,
            );
        });
        let answer = ask(secure(address, &files.path("cert.pem"), Protocol::Http2)).await;
        assert_eq!(answer, Err(UpstreamErrorKind::Connect));
    });
}

#[test]
fn many_streams_share_connections_within_the_peers_limit() {
    run(async {
        let server = serve(None).await;
        let shared = UpstreamShared::new(UpstreamSettings {
            protocol: Protocol::Http2,
            connections_max: 8,
            ..settings(&[server])
        })
        .unwrap();
        let upstreams = Upstreams::new(shared, Rng::new(1));
        let mut held = Vec::new();
        for _ in 0..8 {
            // A body still unread keeps its place.
            held.push(upstreams.send(get("/")).await.unwrap());
        }
        assert_eq!(upstreams.send(get("/")).await.unwrap_err().kind, UpstreamErrorKind::Full);
        for response in held {
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "HTTP/2.0");
        }
        assert_eq!(upstreams.shared().in_flight(), 0);
        assert!(upstreams.send(get("/")).await.is_ok());
    });
}

/// caddyserver/caddy#1486: traffic that keeps a connection busy went for ever to the server that had the name
/// at first.
#[test]
fn a_connection_to_a_name_takes_no_requests_after_a_minute() {
    // Not `run`: its own time limit would pass with the minutes.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let server = RawUpstream::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        let accepted = async |host: &str| {
            let address = format!("http://{host}:{}", server.address.port()).parse().unwrap();
            let hour = Duration::from_secs(3_600);
            let settings =
                UpstreamSettings { addresses: vec![address], pool_idle_timeout: hour, ..settings(&[]) };
            let upstreams = Upstreams::new(UpstreamShared::new(settings).unwrap(), Rng::new(1));
            let before = server.accepted.get();
            for _ in 0..2 {
                for _ in 0..2 {
                    upstreams.send(get("/")).await.unwrap().into_body().collect().await.unwrap();
                }
                tokio::time::pause();
                tokio::time::advance(Duration::from_secs(61)).await;
                tokio::time::resume();
            }
            server.accepted.get() - before
        };
        assert_eq!(accepted("localhost").await, 2);
        assert_eq!(accepted("127.0.0.1").await, 1, "an address does not move");
    });
}

#[test]
fn a_renewed_certificate_is_used_and_a_broken_one_is_not() {
    run(async {
        let files = Files::new();
        let tls = Rc::new(files.open().unwrap());
        let address = serve(Some(Rc::clone(&tls))).await;
        let old = files.path("old.pem");
        fs::copy(files.path("cert.pem"), &old).unwrap();
        assert!(!tls.reload_if_changed().unwrap());

        files.renew();
        assert!(tls.reload_if_changed().unwrap());
        assert!(ask(secure(address, &files.path("cert.pem"), Protocol::Http1)).await.is_ok());
        assert_eq!(ask(secure(address, &old, Protocol::Http1)).await, Err(UpstreamErrorKind::Connect));

        let current = files.path("current.pem");
        fs::copy(files.path("cert.pem"), &current).unwrap();
        fs::write(files.path("cert.pem"), "-----BEGIN CERTIFICATE-----\nbroken").unwrap();
        let message = tls.reload_if_changed().unwrap_err().to_string();
        assert!(message.contains("cert.pem"), "{message}");
        assert!(!tls.reload_if_changed().unwrap(), "reported once");
        assert!(ask(secure(address, &current, Protocol::Http1)).await.is_ok(), "the old one is kept");
    });
}

/// kcp-dev/kcp#1308: a CA file that was replaced was in use only after a restart.
#[test]
fn a_replaced_ca_file_is_used_and_a_broken_one_is_not() {
    run(async {
        let files = Files::new();
        let trusted = files.path("trusted.pem");
        fs::copy(files.path("cert.pem"), &trusted).unwrap();
        files.renew();
        let address = serve(Some(Rc::new(files.open().unwrap()))).await;
        let shared = UpstreamShared::new(secure(address, &trusted, Protocol::Http1)).unwrap();
        let upstreams = Upstreams::new(Arc::clone(&shared), Rng::new(1));
        let error = upstreams.send(get("/")).await.unwrap_err();
        assert_eq!(error.kind, UpstreamErrorKind::Connect, "the certificate is another's");
        assert!(!shared.reload_trust_if_changed().unwrap());

        fs::copy(files.path("cert.pem"), &trusted).unwrap();
        assert!(shared.reload_trust_if_changed().unwrap());
        assert!(upstreams.send(get("/")).await.is_ok());

        fs::write(&trusted, "-----BEGIN CERTIFICATE-----\nbroken").unwrap();
        let message = shared.reload_trust_if_changed().unwrap_err().to_string();
        assert!(message.contains("trusted.pem"), "{message}");
        assert!(!shared.reload_trust_if_changed().unwrap(), "reported once");
        assert!(upstreams.send(get("/")).await.is_ok(), "the former trust is kept");
    });
}

#[test]
fn unusable_certificates_name_the_file() {
    let files = Files::new();
    fs::copy(files.path("key.pem"), files.path("other-key.pem")).unwrap();
    files.renew();
    let mixed = ServerTls::open(&files.path("cert.pem"), &files.path("other-key.pem")).unwrap_err();
    assert!(
        matches!(&mixed, TlsError::Unusable { .. }) && mixed.to_string().contains("other-key.pem"),
        "{mixed}"
    );
    let missing = ServerTls::open(&files.path("none.pem"), &files.path("key.pem")).unwrap_err();
    assert!(missing.to_string().contains("none.pem"), "{missing}");
    let empty = ServerTls::open(&files.path("key.pem"), &files.path("key.pem")).unwrap_err();
    assert!(matches!(&empty, TlsError::NoCertificate { .. }), "{empty}");
}

#[test]
fn probes_tell_well_from_sick_from_gone() {
    run(async {
        let second = Duration::from_secs(1);
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let gone = refusing_address();
            let settings = UpstreamSettings { protocol, ..settings(&[serve(None).await, gone]) };
            let shared = UpstreamShared::new(settings).unwrap();
            let (well, sick) = ("/".parse().unwrap(), "/sick".parse().unwrap());
            assert!(probe(&shared, 0, Some(&well), second).await.is_ok());
            assert!(
                matches!(probe(&shared, 0, Some(&sick), second).await, Err(ProbeError::Status(status)) if status == 503)
            );
            for path in [Some(&well), None] {
                let probed = probe(&shared, 1, path, second).await;
                assert!(matches!(probed, Err(ProbeError::Upstream(_))));
                assert_eq!(probe_outcome(path.is_some(), &probed), ProbeOutcome::NoConnection);
            }
            let connected = probe(&shared, 0, None, second).await;
            assert_eq!(probe_outcome(false, &connected), ProbeOutcome::Connected);
        }
        let silent = RawUpstream::start(|_, stream| async move {
            let _open = stream;
            std::future::pending::<()>().await;
        })
        .await;
        let shared = UpstreamShared::new(settings(&[silent.address])).unwrap();
        let stalled = probe(&shared, 0, Some(&"/".parse().unwrap()), Duration::from_millis(30)).await;
        assert!(matches!(stalled, Err(ProbeError::Timeout(_))));
        for _ in 0..3 {
            shared.record_probe(0, probe_outcome(true, &stalled));
        }
        assert!(!shared.statuses()[0].is_available());
    });
}

#[test]
fn workers_share_a_port_that_no_stranger_has() {
    let any = ["127.0.0.1:0".parse().unwrap()];
    let workers = listen::bind(&any, 3).unwrap();
    let bound: Vec<_> = workers.iter().map(|worker| worker.addresses().unwrap()[0]).collect();
    assert!(bound.iter().all(|address| *address == bound[0] && address.port() != 0));
    let message = listen::bind(&bound[..1], 1).unwrap_err().to_string();
    assert_eq!(message, format!("cannot listen on {}: address in use by another process", bound[0]));
    drop(workers);
    assert!(listen::bind(&bound[..1], 1).is_ok());
}

#[test]
fn bad_upstream_settings_are_refused_by_name() {
    let refused = |address: &str| {
        let settings = UpstreamSettings { addresses: vec![address.parse().unwrap()], ..settings(&[]) };
        UpstreamShared::new(settings).unwrap_err().to_string()
    };
    assert!(refused("http://a/path").contains("`http://a/path` must have no path"));
    assert!(refused("ftp://a").contains("must begin with http://"));
    assert!(refused("/x").contains("must begin with"));
    assert!(refused("http://user@a").contains("user name"));
    assert!(UpstreamShared::new(settings(&[])).is_err());
}
