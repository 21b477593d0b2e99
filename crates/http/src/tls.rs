//! TLS on both sides: the server's certificate, reloadable while it serves, and the client's trust.

use crate::guarded::Protocol;
use arc_swap::ArcSwap;
use flashweir_core::hash::mix;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor, TlsConnector};

/// ALPN name of HTTP/2 (RFC 9113 §3.2).
pub const ALPN_HTTP2: &[u8] = b"h2";
/// ALPN name of HTTP/1.1 (RFC 7301 §6).
pub const ALPN_HTTP1: &[u8] = b"http/1.1";

/// Reason for which certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or holds no PEM of the wanted kind.
    #[error("cannot read {what} from {}: {source}", path.display())]
    Pem {
        /// Certificates or a private key.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: rustls::pki_types::pem::Error,
    },
    /// A file's metadata cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file holds no certificate.
    #[error("{} holds no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// Certificate and key do not belong together, or are of an unknown kind.
    #[error("certificate {} and key {} cannot be used together: {source}", certificate.display(), key.display())]
    Unusable {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
        /// The reason.
        source: rustls::Error,
    },
    /// The system has no trusted certificates and no file was given.
    #[error("this system has no trusted certificates; name a file with the certificates to trust")]
    NoRoots,
    /// TLS itself could not be set up.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// A TLS server whose certificate can be replaced while connections are served. Shared by all workers.
pub struct ServerTls {
    certificate: PathBuf,
    key: PathBuf,
    resolver: Arc<CurrentKey>,
    acceptor: TlsAcceptor,
    seen: Mutex<Fingerprint>,
}

/// The key that new handshakes use.
struct CurrentKey(ArcSwap<CertifiedKey>);

/// Trust in the certificates of upstreams; its file can be replaced while connections are open. Shared by all
/// workers.
pub(crate) struct ClientTls {
    ca_file: Option<PathBuf>,
    protocol: Protocol,
    config: ArcSwap<ClientConfig>,
    seen: Mutex<Fingerprint>,
}

/// Modification time, length and inode of each file: changes with any way of replacing one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fingerprint(Vec<(i64, i64, u64, u64)>);

impl ServerTls {
    /// Reads certificate chain and key (PEM) and prepares TLS 1.2 and 1.3 with ALPN `h2`, `http/1.1`.
    ///
    /// # Errors
    /// [`TlsError`] naming the file that cannot be used.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        // Before reading, so that a change while reading is seen as a change.
        let seen = Fingerprint::of([certificate, key])?;
        let current = read_key(&provider, certificate, key)?;
        let resolver = Arc::new(CurrentKey(ArcSwap::from_pointee(current)));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&resolver) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            resolver,
            acceptor: TlsAcceptor::from(Arc::new(config)),
            seen: Mutex::new(seen),
        })
    }

    /// Reads the files again; new handshakes use what they hold now. Open connections keep theirs.
    ///
    /// # Errors
    /// [`TlsError`]; then the certificate in use stays.
    pub fn reload(&self) -> Result<(), TlsError> {
        let seen = Fingerprint::of([self.certificate.as_path(), self.key.as_path()])?;
        self.load(seen)
    }

    /// Reloads if either file changed since it was last read; says whether it did. Two `stat` calls
    /// otherwise. A change that cannot be used is reported once, not at every call.
    ///
    /// # Errors
    /// As [`reload`](Self::reload).
    pub fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let seen = Fingerprint::of([self.certificate.as_path(), self.key.as_path()])?;
        if seen == *self.seen.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(false);
        }
        self.load(seen).map(|()| true)
    }

    /// Performs the handshake; the time it may take is the caller's to bound. With the connection comes the
    /// fingerprint of the client's software: see [`fingerprint`].
    ///
    /// # Errors
    /// Errors of the handshake.
    pub async fn accept<Io>(&self, io: Io) -> io::Result<(TlsStream<Io>, Protocol, u64)>
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        let begun = LazyConfigAcceptor::new(Acceptor::default(), io).await?;
        let fingerprint = fingerprint(&begun.client_hello());
        let stream = begun.into_stream(Arc::clone(self.acceptor.config())).await?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(ALPN_HTTP2) => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((stream, protocol, fingerprint))
    }

    fn load(&self, seen: Fingerprint) -> Result<(), TlsError> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        let key = read_key(&Arc::new(ring::default_provider()), &self.certificate, &self.key)?;
        self.resolver.0.store(Arc::new(key));
        Ok(())
    }
}

/// A hash of what a ClientHello offers, in its order: cipher suites, groups, signature schemes, protocols.
/// Clients of one program and version have the same, under any name in `User-Agent`. Values that clients draw
/// at random to keep servers tolerant (RFC 8701) are left out. No key: it is to be hashed again where clients
/// may not choose collisions.
#[must_use]
pub fn fingerprint(hello: &ClientHello<'_>) -> u64 {
    let numbers = |state: u64, numbers: &mut dyn Iterator<Item = u16>| {
        // Lists are delimited, or a number could move from one to the next.
        numbers.filter(|number| !is_drawn(*number)).fold(mix(state + 1), |state, number| {
            mix(state ^ u64::from(number)).wrapping_add(state.rotate_left(7))
        })
    };
    let suites = hello.cipher_suites().iter().map(|&suite| u16::from(suite));
    let groups = hello.named_groups().unwrap_or_default().iter().map(|&group| u16::from(group));
    let schemes = hello.signature_schemes().iter().map(|&scheme| u16::from(scheme));
    let state = numbers(0, &mut { suites });
    let state = numbers(state, &mut { groups });
    let state = numbers(state, &mut { schemes });
    let protocols = hello.alpn().into_iter().flatten();
    protocols.fold(state, |state, name| numbers(state, &mut name.iter().map(|&byte| u16::from(byte))))
}

/// 0x0A0A, 0x1A1A and so on (RFC 8701 §2).
fn is_drawn(number: u16) -> bool {
    number & 0x0F0F == 0x0A0A && number >> 8 == number & 0xFF
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls")
            .field("certificate", &self.certificate)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl ResolvesServerCert for CurrentKey {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl std::fmt::Debug for CurrentKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CurrentKey")
    }
}

impl Fingerprint {
    fn of<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<Self, TlsError> {
        let stat = |path: &Path| match fs::metadata(path) {
            Ok(meta) => Ok((meta.mtime(), meta.mtime_nsec(), meta.len(), meta.ino())),
            Err(source) => Err(TlsError::File { path: path.to_owned(), source }),
        };
        files.into_iter().map(stat).collect::<Result<_, _>>().map(Self)
    }
}

impl ClientTls {
    /// Reads the file, or the system's certificates without one.
    pub(crate) fn open(ca_file: Option<&Path>, protocol: Protocol) -> Result<Self, TlsError> {
        let seen = Fingerprint::of(ca_file)?;
        let config = ArcSwap::from(client_config(ca_file, protocol)?);
        Ok(Self { ca_file: ca_file.map(Path::to_owned), protocol, config, seen: Mutex::new(seen) })
    }

    /// For one new connection.
    pub(crate) fn connector(&self) -> TlsConnector {
        TlsConnector::from(self.config.load_full())
    }

    /// Reads the certificates again; new connections trust these alone. After an error the former stay.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        let seen = Fingerprint::of(self.ca_file.as_deref())?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        self.config.store(client_config(self.ca_file.as_deref(), self.protocol)?);
        Ok(())
    }

    /// The same as [`ServerTls::reload_if_changed`]; the system's certificates are not watched.
    pub(crate) fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let seen = Fingerprint::of(self.ca_file.as_deref())?;
        if seen == *self.seen.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(false);
        }
        self.reload().map(|()| true)
    }
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTls").field("ca_file", &self.ca_file).finish_non_exhaustive()
    }
}

/// Trust and ALPN for connections to upstreams.
fn client_config(ca_file: Option<&Path>, protocol: Protocol) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(path) => {
            for certificate in read_certificates(path)? {
                roots.add(certificate)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(TlsError::NoRoots);
            }
        }
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = match protocol {
        Protocol::Http1 => vec![ALPN_HTTP1.to_vec()],
        Protocol::Http2 => vec![ALPN_HTTP2.to_vec()],
    };
    Ok(Arc::new(config))
}

fn read_key(provider: &CryptoProvider, certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let chain = read_certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Pem {
        what: "a private key",
        path: key.to_owned(),
        source,
    })?;
    CertifiedKey::from_der(chain, private, provider).map_err(|source| TlsError::Unusable {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source,
    })
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |source| TlsError::Pem { what: "certificates", path: path.to_owned(), source };
    let chain = CertificateDer::pem_file_iter(path)
        .map_err(unreadable)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(unreadable)?;
    if chain.is_empty() { Err(TlsError::NoCertificate { path: path.to_owned() }) } else { Ok(chain) }
}
