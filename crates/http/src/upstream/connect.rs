//! Opens a connection to one upstream address: TCP, then TLS if asked for, within one timeout.

use super::error::{UpstreamError, UpstreamErrorKind};
use super::settings::{UpstreamSettings, UpstreamSettingsError};
use super::socket::Socket;
use crate::dial::Host;
use crate::guarded::Protocol;
use crate::tls::{ALPN_HTTP2, ClientTls};
use http::Uri;
use http::uri::{Authority, Scheme};
use rustls::pki_types::ServerName;
use std::error::Error as StdError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// Target of connections: one upstream address, ready to be connected to.
#[derive(Debug)]
pub(crate) struct ConnectTarget {
    authority: Authority,
    scheme: Scheme,
    host: Host,
    tls: Option<(ServerName<'static>, Arc<ClientTls>)>,
    protocol: Protocol,
    connect_timeout: Duration,
    address: String,
    /// Connections to it so far.
    opened: AtomicU32,
    /// The one address of the host that is connected to; its name is then not resolved.
    pinned: Option<SocketAddr>,
}

/// Maximum lifetime of a connection to a name. The time to live of DNS records is not known here; most are a
/// minute or less.
const NAMED_LIFETIME_MAX: Duration = Duration::from_secs(60);
/// Number of lifetimes that connections get in turn, each a second shorter than the one before.
const LIFETIMES: u32 = 16;

/// A connection to an upstream, plain or encrypted. Boxed: a TLS session is forty times the size of a socket.
pub(crate) type UpstreamIo = Either<Socket, Box<TlsStream<Socket>>>;

/// The socket below.
pub(super) fn socket_of(io: &UpstreamIo) -> &Socket {
    match io {
        Either::Left(socket) => socket,
        Either::Right(stream) => stream.get_ref().0,
    }
}

impl ConnectTarget {
    /// Every address of the settings, checked.
    pub(super) fn all(
        settings: &UpstreamSettings,
        tls: Option<&Arc<ClientTls>>,
    ) -> Result<Box<[Self]>, UpstreamSettingsError> {
        settings.addresses.iter().map(|uri| Self::new(uri, settings, tls.cloned())).collect()
    }

    fn new(
        uri: &Uri,
        settings: &UpstreamSettings,
        tls: Option<Arc<ClientTls>>,
    ) -> Result<Self, UpstreamSettingsError> {
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
        let host = Host::new(host, port);
        let (protocol, connect_timeout) = (settings.protocol, settings.connect_timeout);
        Ok(Self {
            authority,
            scheme,
            host,
            tls,
            protocol,
            connect_timeout,
            address,
            opened: AtomicU32::new(0),
            pinned: None,
        })
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

    /// Time for which a connection that is opened now takes requests. One to a name ends after a minute at
    /// most: a busy connection would stay for ever at the server that had the name, or that a balancer behind
    /// the name chose, when it was opened. Those of one burst do not end all at once.
    pub(super) fn connection_lifetime(&self) -> Duration {
        if self.pinned.is_some() || !self.host.is_name() {
            return Duration::MAX;
        }
        let turn = self.opened.fetch_add(1, Relaxed) % LIFETIMES;
        NAMED_LIFETIME_MAX - turn * Duration::from_secs(1)
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Connects within the timeout. A name is looked up each time.
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
            None => self.host.connect().await?,
        };
        tcp.set_nodelay(true)?;
        let socket = Socket::new(tcp);
        let Some((name, tls)) = &self.tls else { return Ok(Either::Left(socket)) };
        let stream = tls.connector().connect(name.clone(), socket).await?;
        let alpn = stream.get_ref().1.alpn_protocol();
        if self.protocol == Protocol::Http2 && alpn != Some(ALPN_HTTP2) {
            return Err("the upstream does not speak HTTP/2 over TLS".into());
        }
        Ok(Either::Right(Box::new(stream)))
    }
}
