//! Target of the load: a URL that is parsed once, before the run.

use crate::LoadError;
use flashweir_core::limits::LOAD_TARGET_ADDRESSES;
use http::Uri;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

/// Target of the load: the URL that all requests go to, the same for all people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadTarget {
    /// Addresses of the host's name when the target was made, in the resolver's order: at least one address,
    /// at most [`LOAD_TARGET_ADDRESSES`], each once. Connections go to each in turn.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The port of every address.
    pub port: u16,
    /// Host and port as the URL has them: what requests name as the host they are for.
    pub host: String,
    /// The host's name or address alone: what the server's certificate must be for.
    pub server_name: String,
    /// The URL says `https://`.
    pub tls: bool,
    /// Path and query, beginning with `/`.
    pub path: String,
}

impl LoadTarget {
    /// Parses a URL such as `https://127.0.0.1:8443/shop?item=1` and looks its host up (blocking). The port
    /// is 80 or 443 unless given.
    ///
    /// # Errors
    /// Not an `http://` or `https://` URL with a host, or a host that cannot be looked up.
    pub fn parse(url: &str) -> Result<Self, LoadError> {
        let bad = |why: &str| LoadError::Url { url: url.to_owned(), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        let (tls, usual_port) = match uri.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            Some(_) => return Err(bad("only http:// and https:// can be loaded")),
            None => return Err(bad("expected http://HOST[:PORT]/PATH")),
        };
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("a user name in the URL is not supported; use a header"));
        }
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = match authority.port() {
            Some(port) => port.as_str().parse().map_err(|_| bad("the port must be 1 to 65535"))?,
            // The library takes a port it does not understand for none.
            None if authority.as_str() == authority.host() => usual_port,
            None => return Err(bad("the port must be 1 to 65535")),
        };
        let found = (name, port)
            .to_socket_addrs()
            .map_err(|error| bad(&format!("the host cannot be looked up: {error}")))?;
        let mut addresses = Vec::new();
        for address in found {
            if addresses.len() < LOAD_TARGET_ADDRESSES && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(bad("the host has no address"));
        }
        Ok(Self {
            addresses,
            port,
            host: authority.as_str().to_owned(),
            server_name: name.to_owned(),
            tls,
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        })
    }
}

/// The URL.
impl fmt::Display for LoadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.host, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let target = LoadTarget::parse("http://127.0.0.1:8080/shop?item=1").unwrap();
        assert_eq!(target.addresses, [SocketAddr::from(([127, 0, 0, 1], 8080))]);
        assert_eq!(target.port, 8080);
        assert_eq!((target.path.as_str(), target.tls), ("/shop?item=1", false));
        assert_eq!((target.host.as_str(), target.server_name.as_str()), ("127.0.0.1:8080", "127.0.0.1"));
        let target = LoadTarget::parse("https://[::1]").unwrap();
        assert_eq!((target.addresses[0].to_string(), target.tls), ("[::1]:443".to_owned(), true));
        assert_eq!((target.host.as_str(), target.server_name.as_str()), ("[::1]", "::1"));
        assert_eq!(LoadTarget::parse("http://[::1]:81/").unwrap().addresses[0].to_string(), "[::1]:81");
        assert_eq!(LoadTarget::parse("http://[::1]").unwrap().addresses[0].to_string(), "[::1]:80");
    }

    #[test]
    fn it_is_shown_as_its_url() {
        for url in ["http://127.0.0.1:8080/shop?item=1", "https://[::1]/", "http://127.0.0.1/"] {
            assert_eq!(LoadTarget::parse(url).unwrap().to_string(), url);
        }
        assert_eq!(LoadTarget::parse("http://127.0.0.1").unwrap().to_string(), "http://127.0.0.1/");
    }

    #[test]
    fn what_is_not_an_http_url_is_refused_by_name() {
        let check = |url: &str, wanted: &str| {
            let message = LoadTarget::parse(url).unwrap_err().to_string();
            assert!(message.contains(wanted) && message.contains(url), "{message:?} lacks {wanted:?}");
        };
        check("ftp://127.0.0.1/", "only http:// and https://");
        check("127.0.0.1:80", "expected http://");
        check("http://user@127.0.0.1/", "user name");
        check("https://user:secret@127.0.0.1/", "user name");
        check("http://127.0.0.1:99999/", "port");
        check("http://127.0.0.1:/", "port");
        check("http:///path", "");
        check("nonsense here", "invalid");
    }
}
