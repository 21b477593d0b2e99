//! Certificates to trust when the target speaks TLS.

use super::Protocol;
use crate::LoadError;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// ALPN name of HTTP/2 (RFC 9113 §3.2).
pub(super) const ALPN_HTTP2: &[u8] = b"h2";
/// ALPN name of HTTP/1.1 (RFC 7301 §6).
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// Certificates to trust. By default those that the system trusts.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Any certificate will do, for a test server with a self-signed one.
    pub insecure: bool,
    /// The certificates in this PEM file instead of the system's.
    pub roots: Option<PathBuf>,
}

/// Trust and protocol of every connection. Sessions are not resumed: the strangers of a crowd have none.
pub(super) fn client_config(
    options: &TlsOptions,
    protocol: Protocol,
) -> Result<Arc<ClientConfig>, LoadError> {
    let provider = Arc::new(ring::default_provider());
    let unusable = |error: rustls::Error| LoadError::Plan(format!("TLS cannot be set up: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let mut config = if options.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else {
        builder.with_root_certificates(roots(options.roots.as_deref())?)
    }
    .with_no_client_auth();
    config.alpn_protocols = match protocol {
        Protocol::Http1New | Protocol::Http1KeepAlive => vec![ALPN_HTTP1.to_vec()],
        Protocol::Http2 => vec![ALPN_HTTP2.to_vec()],
    };
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let why = "this system has no trusted certificates; name a file with the certificates to trust";
            return Err(LoadError::Plan(why.to_owned()));
        }
        return Ok(roots);
    };
    let unreadable = |why: &dyn std::fmt::Display| {
        LoadError::Plan(format!("cannot read certificates from {}: {why}", file.display()))
    };
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(unreadable(&"it holds none"));
    }
    Ok(roots)
}

/// Trusts any certificate, but still asks for proof that the server holds its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
