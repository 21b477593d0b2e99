//! What people ask for: a URL taken apart once, before the run.

use crate::LoadError;
use http::{HeaderName, HeaderValue, Method, Uri};
use std::net::{SocketAddr, ToSocketAddrs};

/// Where requests go and what they say; the same for everybody.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address that the host's name stood for when the target was made.
    pub address: SocketAddr,
    /// Path and query, as sent in the request line.
    pub path: Uri,
    /// Method, `GET` unless changed.
    pub method: Method,
    /// Fields to send, `Host` first.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Target {
    /// Takes a URL such as `http://127.0.0.1:8080/shop?item=1` apart and looks its host up (blocking).
    ///
    /// # Errors
    /// Not an `http://` URL with a host, or a host that cannot be looked up.
    pub fn parse(url: &str) -> Result<Self, LoadError> {
        let bad = |why: &str| LoadError::Url { url: url.to_owned(), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(_) => return Err(bad("only http:// can be loaded so far")),
            None => return Err(bad("expected http://HOST[:PORT]/PATH")),
        }
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("a user name in the URL is not supported; use a header"));
        }
        let host = HeaderValue::from_str(authority.as_str()).map_err(|error| bad(&error.to_string()))?;
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        let address = (name, authority.port_u16().unwrap_or(80))
            .to_socket_addrs()
            .map_err(|error| bad(&format!("the host cannot be looked up: {error}")))?
            .next()
            .ok_or_else(|| bad("the host has no address"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = path.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        let agent = HeaderValue::from_static(concat!("flashweir-load/", env!("CARGO_PKG_VERSION")));
        let headers = vec![(http::header::HOST, host), (http::header::USER_AGENT, agent)];
        Ok(Self { address, path, method: Method::GET, headers })
    }

    /// Sets a field, instead of the one of the same name if there is one.
    pub fn set_header(&mut self, name: HeaderName, value: HeaderValue) {
        match self.headers.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => self.headers.push((name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let target = Target::parse("http://127.0.0.1:8080/shop?item=1").unwrap();
        assert_eq!(target.address, SocketAddr::from(([127, 0, 0, 1], 8080)));
        assert_eq!(target.path, "/shop?item=1");
        assert_eq!(target.headers[0].1, "127.0.0.1:8080");
        assert_eq!(Target::parse("http://[::1]").unwrap().address.to_string(), "[::1]:80");
    }

    #[test]
    fn a_header_replaces_its_namesake() {
        let mut target = Target::parse("http://127.0.0.1/").unwrap();
        target.set_header(http::header::HOST, HeaderValue::from_static("shop.example"));
        assert_eq!(target.headers.iter().filter(|(name, _)| *name == http::header::HOST).count(), 1);
        assert_eq!(target.headers[0].1, "shop.example");
    }

    #[test]
    fn what_is_not_an_http_url_is_refused_by_name() {
        let check = |url: &str, wanted: &str| {
            let message = Target::parse(url).unwrap_err().to_string();
            assert!(message.contains(wanted) && message.contains(url), "{message:?} lacks {wanted:?}");
        };
        check("https://127.0.0.1/", "only http://");
        check("127.0.0.1:80", "expected http://");
        check("http://user@127.0.0.1/", "user name");
        check("http:///path", "");
        check("nonsense here", "invalid");
    }
}
