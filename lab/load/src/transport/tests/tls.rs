//! Certificates that the client trusts, and the protocol over the encrypted connection.

use super::scripted::{Server, Step, write};
use super::{Client, run};
use crate::transport::{Protocol, TlsOptions, Transport, TransportOptions};
use crate::{ErrorKind, LoadError, LoadTarget};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A self-signed certificate, and the file by which a client may come to trust it.
pub(super) struct Certificate {
    made: rcgen::CertifiedKey<rcgen::KeyPair>,
    directory: tempfile::TempDir,
}

impl Certificate {
    pub(super) fn new(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("roots.pem"), made.cert.pem()).unwrap();
        Self { made, directory }
    }

    pub(super) fn trusted(&self) -> TlsOptions {
        TlsOptions { insecure: false, roots: Some(self.roots()) }
    }

    fn roots(&self) -> PathBuf {
        self.directory.path().join("roots.pem")
    }

    pub(super) fn acceptor(&self, protocols: &[&[u8]]) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.made.signing_key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.made.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Answers every request of every connection with two bytes.
async fn serve(acceptor: TlsAcceptor) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(tcp).await else { return };
                let mut head = Vec::new();
                while let Ok(byte) = stream.read_u8().await {
                    head.push(byte);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        stream.write_all(super::scripted::OK.as_bytes()).await.unwrap();
                        stream.flush().await.unwrap();
                    }
                }
            });
        }
    });
    address
}

/// A client of `localhost`, which it finds at the server's address independently of the machine's tables.
pub(super) fn client(address: SocketAddr, protocol: Protocol, tls: TlsOptions) -> Client {
    let options = TransportOptions { protocol, connections_most: None, tls };
    let target = LoadTarget {
        host: format!("localhost:{}", address.port()),
        server_name: "localhost".to_owned(),
        ..LoadTarget::parse(&format!("https://{address}/")).unwrap()
    };
    let transport = Transport::new(&target, &options).unwrap();
    Client { target, transport }
}

#[test]
fn a_trusted_server_is_asked() {
    let certificate = Certificate::new("localhost");
    run(async {
        let address = serve(certificate.acceptor(&[b"http/1.1"])).await;
        let kept = client(address, Protocol::Http1KeepAlive, certificate.trusted());
        for path in ["/1", "/2", "/3"] {
            assert_eq!(kept.get(path).await.unwrap().body_bytes, 2);
        }
        // TLS's own messages between answers do not count as unasked.
        assert_eq!((kept.counts().opened, kept.counts().reused), (1, 2));
        let new = client(address, Protocol::Http1New, certificate.trusted());
        assert_eq!(new.get("/").await.unwrap().status, 200);
    });
}

#[test]
fn a_server_nobody_vouches_for_is_refused_unless_that_is_wanted() {
    let (certificate, other) = (Certificate::new("localhost"), Certificate::new("localhost"));
    let of_another_name = Certificate::new("elsewhere.example");
    run(async {
        let address = serve(certificate.acceptor(&[])).await;
        let check = async |address, tls: TlsOptions, wanted: Result<u16, ErrorKind>| {
            let client = client(address, Protocol::Http1New, tls);
            assert_eq!(client.get("/").await.map(|answer| answer.status), wanted);
            assert_eq!(client.counts().opened, 1);
        };
        check(address, other.trusted(), Err(ErrorKind::Tls)).await;
        check(address, certificate.trusted(), Ok(200)).await;
        check(address, TlsOptions { insecure: true, roots: None }, Ok(200)).await;
        let address = serve(of_another_name.acceptor(&[])).await;
        check(address, of_another_name.trusted(), Err(ErrorKind::Tls)).await;
        check(address, TlsOptions { insecure: true, roots: None }, Ok(200)).await;
    });
}

#[test]
fn a_server_that_speaks_no_tls_or_another_protocol_is_told() {
    let server = Server::once([write("HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n"), Step::AwaitClose]);
    let insecure = || TlsOptions { insecure: true, roots: None };
    let plain = client(server.address, Protocol::Http1New, insecure());
    assert_eq!(run(plain.get("/")).unwrap_err(), ErrorKind::Tls);
    server.join();
    let certificate = Certificate::new("localhost");
    run(async {
        for protocols in [&[][..], &[&b"http/1.1"[..]][..]] {
            let address = serve(certificate.acceptor(protocols)).await;
            let http2 = client(address, Protocol::Http2, insecure());
            assert_eq!(http2.get("/").await.unwrap_err(), ErrorKind::Tls);
        }
    });
}

/// A connection that ends without saying so may have been cut by an attacker.
#[test]
fn an_answer_cut_without_a_word_is_not_whole() {
    let certificate = Certificate::new("localhost");
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = certificate.acceptor(&[]);
        let server = tokio::spawn(async move {
            let (tcp, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(tcp).await.unwrap();
            stream.read_u8().await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nuntil the e").await.unwrap();
            stream.flush().await.unwrap();
            // Closes the socket without closing TLS.
            drop(stream);
        });
        let client = client(address, Protocol::Http1New, certificate.trusted());
        assert_eq!(client.get("/").await.unwrap_err(), ErrorKind::Closed);
        server.await.unwrap();
    });
}

#[test]
fn certificates_that_cannot_be_read_are_told_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let target = LoadTarget::parse("https://127.0.0.1:1/").unwrap();
    let check = |name: &str, content: Option<&str>, wanted: &str| {
        let file = directory.path().join(name);
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        let tls = TlsOptions { insecure: false, roots: Some(file) };
        let options = TransportOptions { tls, ..Default::default() };
        let error = Transport::new(&target, &options).map(|_| ()).unwrap_err();
        assert!(matches!(error, LoadError::Plan(_)), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(name) && message.contains(wanted), "{message}");
    };
    check("absent.pem", None, "");
    check("empty.pem", Some(""), "holds none");
    check("broken.pem", Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "");
}
