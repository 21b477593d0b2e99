//! Calls of a Kubernetes API server: one connection for each, JSON both ways.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

/// A server that hangs fails a test within this.
const CALL_WITHIN: Duration = Duration::from_secs(10);

/// A user of an API server.
#[derive(Clone, Debug)]
pub struct KubernetesApi {
    address: SocketAddr,
    token: String,
    tls: Arc<ClientConfig>,
}

/// Answer of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// The object; null where the answer is none.
    pub body: Value,
    /// As it came.
    pub text: String,
}

impl ApiAnswer {
    /// The object of an answer that says that all is well.
    ///
    /// # Panics
    /// When it says something else.
    #[must_use]
    pub fn expect_ok(self, what: &str) -> Value {
        assert!((200..300).contains(&self.status), "{what}: {} {}", self.status, self.body["message"]);
        self.body
    }
}

impl KubernetesApi {
    /// The user with this token; the server's certificate is vouched for by `authority` (PEM).
    pub(super) fn new(address: SocketAddr, token: &str, authority: &str) -> Self {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(authority.as_bytes()).expect("a certificate");
        roots.add(certificate).expect("an authority");
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { address, token: token.to_owned(), tls: Arc::new(tls) }
    }

    /// GET; panics when the server cannot be asked.
    ///
    /// # Panics
    /// When there is no answer.
    #[must_use]
    pub fn get(&self, path: &str) -> ApiAnswer {
        self.call("GET", path, None)
    }

    /// POST of an object.
    ///
    /// # Panics
    /// When there is no answer.
    pub fn create(&self, path: &str, object: &Value) -> ApiAnswer {
        self.call("POST", path, Some(("application/json", object)))
    }

    /// PATCH by a merge.
    ///
    /// # Panics
    /// When there is no answer.
    pub fn merge(&self, path: &str, patch: &Value) -> ApiAnswer {
        self.call("PATCH", path, Some(("application/merge-patch+json", patch)))
    }

    /// DELETE at once.
    ///
    /// # Panics
    /// When there is no answer.
    pub fn delete(&self, path: &str) -> ApiAnswer {
        self.call("DELETE", &format!("{path}?gracePeriodSeconds=0"), None)
    }

    fn call(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> ApiAnswer {
        self.try_call(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Any call, or why there is no answer.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn try_call(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> std::io::Result<ApiAnswer> {
        let stream = TcpStream::connect_timeout(&self.address, CALL_WITHIN)?;
        stream.set_read_timeout(Some(CALL_WITHIN))?;
        stream.set_write_timeout(Some(CALL_WITHIN))?;
        let name = ServerName::from(self.address.ip());
        let connection = ClientConnection::new(self.tls.clone(), name).map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        let text = body.map_or_else(String::new, |(_, object)| object.to_string());
        let kind = body.map_or_else(String::new, |(kind, _)| format!("Content-Type: {kind}\r\n"));
        // The older version of HTTP: its answers end with the connection and have no chunks.
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: cluster\r\nAuthorization: Bearer {}\r\nAccept: application/json\r\n\
             {kind}Content-Length: {}\r\n\r\n{text}",
            self.token,
            text.len()
        )?;
        stream.flush()?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // Without a farewell of TLS the answer may be whole all the same: JSON says so.
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error),
            _ => {}
        }
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        let status =
            head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(ErrorKind::InvalidData)?;
        Ok(ApiAnswer { status, body: serde_json::from_str(body).unwrap_or_default(), text: body.to_owned() })
    }
}
