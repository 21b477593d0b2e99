//! Opens a connection to one upstream address: TCP, then TLS if asked for, within one timeout.

use super::error::{UpstreamError, UpstreamErrorKind};
use super::shared::{UpstreamSettings, UpstreamSettingsError};
use super::socket::{Socket, SocketProbe};
use crate::guarded::Protocol;
use crate::tls;
use http::Uri;
use http::uri::{Authority, Scheme};
use rustls::pki_types::ServerName;
use std::error::Error as StdError;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// One upstream address, ready to be connected to.
#[derive(Debug)]
pub(crate) struct Target {
    authority: Authority,
    scheme: Scheme,
    host: String,
    port: u16,
    tls: Option<(ServerName<'static>, Tls)>,
    protocol: Protocol,
    connect_timeout: Duration,
    address: String,
    /// The one address of the host that is connected to; its name is then not resolved.
    pinned: Option<SocketAddr>,
}

#[derive(Clone)]
struct Tls(TlsConnector);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// A connection to an upstream, plain or encrypted. Boxed: a TLS session is forty times the size of a socket.
pub(crate) type UpstreamIo = Either<Socket, Box<TlsStream<Socket>>>;

/// Asks the socket below.
pub(super) fn probe_of(io: &UpstreamIo) -> SocketProbe {
    match io {
        Either::Left(socket) => socket.probe(),
        Either::Right(stream) => stream.get_ref().0.probe(),
    }
}

impl Target {
    /// Every address of the settings, checked; certificates are read once.
    pub(super) fn all(settings: &UpstreamSettings) -> Result<Box<[Self]>, UpstreamSettingsError> {
        let needs_tls = settings.addresses.iter().any(|uri| uri.scheme() == Some(&Scheme::HTTPS));
        let connector = if needs_tls {
            let config = tls::client_config(settings.ca_file.as_deref(), settings.protocol)?;
            Some(Tls(TlsConnector::from(config)))
        } else {
            None
        };
        settings.addresses.iter().map(|uri| Self::new(uri, settings, connector.clone())).collect()
    }

    fn new(uri: &Uri, settings: &UpstreamSettings, tls: Option<Tls>) -> Result<Self, UpstreamSettingsError> {
        let wrong = |problem| UpstreamSettingsError::Address { address: uri.to_string(), problem };
        let scheme = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => scheme.clone(),
            _ => return Err(wrong("must begin with http:// or https://")),
        };
        let authority = uri.authority().cloned().ok_or_else(|| wrong("has no host"))?;
        if uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(wrong("must have no path: requests keep the path the client asked for"));
        }
        if authority.as_str().contains('@') {
            return Err(wrong("must have no user name"));
        }
        let is_tls = scheme == Scheme::HTTPS;
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let tls = match tls.filter(|_| is_tls) {
            Some(tls) => {
                let name = ServerName::try_from(host.clone()).map_err(|_| wrong("has no valid host name"))?;
                Some((name, tls))
            }
            None => None,
        };
        let address = format!("{scheme}://{authority}");
        let (protocol, connect_timeout) = (settings.protocol, settings.connect_timeout);
        Ok(Self { authority, scheme, host, port, tls, protocol, connect_timeout, address, pinned: None })
    }

    /// Connects to this address only, without resolving the host's name.
    pub(super) fn pin(&mut self, address: SocketAddr) {
        self.pinned = Some(address);
    }

    /// As configured, without a path.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Connects within the timeout. A name is resolved each time and its addresses tried in order.
    pub(super) async fn connect(&self, index: usize) -> Result<UpstreamIo, UpstreamError> {
        match timeout(self.connect_timeout, self.open()).await {
            Ok(Ok(io)) => Ok(io),
            Ok(Err(error)) => Err(UpstreamError::with_cause(UpstreamErrorKind::Connect, index, error)),
            Err(_) => Err(UpstreamError::new(UpstreamErrorKind::ConnectTimeout, Some(index))),
        }
    }

    async fn open(&self) -> Result<UpstreamIo, Box<dyn StdError + Send + Sync>> {
        let tcp = match self.pinned {
            Some(address) => TcpStream::connect(address).await?,
            None => TcpStream::connect((self.host.as_str(), self.port)).await?,
        };
        tcp.set_nodelay(true)?;
        let socket = Socket::new(tcp);
        let Some((name, Tls(connector))) = &self.tls else { return Ok(Either::Left(socket)) };
        let stream = connector.connect(name.clone(), socket).await?;
        let alpn = stream.get_ref().1.alpn_protocol();
        if self.protocol == Protocol::Http2 && alpn != Some(tls::ALPN_HTTP2) {
            return Err("the upstream does not speak HTTP/2 over TLS".into());
        }
        Ok(Either::Right(Box::new(stream)))
    }
}
