//! A certificate authority of one's own, and server certificates in files.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Signs certificates; clients that are given its own certificate believe them.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// Files of a certificate and its key.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    /// When no key can be made.
    #[must_use]
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Flashweir test authority");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Writes the authority's own certificate into `directory`, for clients to believe.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn write(&self, directory: &Path) -> PathBuf {
        let file = directory.join("authority.pem");
        std::fs::write(&file, &self.pem).expect("a writable directory");
        file
    }

    /// Writes a new certificate for `localhost` and 127.0.0.1 into `directory`, over an older one of that
    /// name. `common_name` distinguishes one from the next.
    ///
    /// # Panics
    /// When it cannot be made or written.
    #[must_use]
    pub fn issue(&self, directory: &Path, common_name: &str) -> CertificateFiles {
        let key = KeyPair::generate().expect("a key");
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("good names");
        params.distinguished_name.push(DnType::CommonName, common_name);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let files =
            CertificateFiles { certificate: directory.join("server.pem"), key: directory.join("server.key") };
        std::fs::write(&files.key, key.serialize_pem()).expect("a writable directory");
        std::fs::write(&files.certificate, certificate.pem()).expect("a writable directory");
        files
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
