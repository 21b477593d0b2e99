//! Upstream URLs.

use http::Uri;
use http::uri::Scheme;

use crate::error::Problem;

/// `http://` or `https://`, host, optional port, nothing else; HOST:PORT is taken for http. Port 443
/// without a scheme is refused, for it is nearly always that of TLS.
pub(crate) fn upstream_url(key: &str, text: &str) -> Result<Uri, Problem> {
    let refuse = |why: &str| {
        Err(Problem::new(key, format!("`{text}` {why}, expected http://HOST:PORT or https://HOST:PORT")))
    };
    let Ok(mut url) = text.parse::<Uri>() else { return refuse("is not a URL") };
    if url.scheme().is_none() && url.port_u16().is_some_and(|port| port != 443) {
        let Ok(with_scheme) = format!("http://{text}").parse() else { return refuse("is not a URL") };
        url = with_scheme;
    }
    if url.scheme() != Some(&Scheme::HTTP) && url.scheme() != Some(&Scheme::HTTPS) {
        return refuse("does not start with http:// or https://");
    }
    let Some(authority) = url.authority() else { return refuse("has no host") };
    if authority.host().is_empty() {
        return refuse("has no host");
    }
    if authority.as_str().contains('@') {
        return refuse("has a user name");
    }
    // The parser lets `http://a:` and `http://a:99999` pass with no port.
    let after_host = &authority.as_str()[authority.host().len()..];
    if !after_host.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
        return refuse("has no valid port");
    }
    if url.path_and_query().is_some_and(|rest| rest.as_str() != "/") {
        return refuse("has a path");
    }
    Ok(url)
}

/// Parts that make two URLs the same server: scheme, host in lower case, port written or implied.
pub(crate) fn server_of(url: &Uri) -> (bool, String, u16) {
    let https = url.scheme() == Some(&Scheme::HTTPS);
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    (https, host, url.port_u16().unwrap_or(if https { 443 } else { 80 }))
}

#[cfg(test)]
mod tests {
    use super::{server_of, upstream_url};

    #[test]
    fn hosts_with_or_without_port_are_accepted() {
        for text in ["http://127.0.0.1:3000", "https://shop.example", "http://[::1]:80/", "http://a:65535"] {
            assert!(upstream_url("key", text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_host_and_a_port_are_enough() {
        for text in ["localhost:3000", "127.0.0.1:8080", "[::1]:80"] {
            assert_eq!(upstream_url("key", text).unwrap().to_string(), format!("http://{text}/"));
        }
    }

    #[test]
    fn everything_else_is_refused_saying_why() {
        for (text, why) in [
            ("", "not a URL"),
            ("shop.example:443", "start with"),
            ("shop.example", "start with"),
            ("u@a:80", "user name"),
            ("a:80/x", "not a URL"),
            ("ftp://a", "start with"),
            ("http://", "not a URL"),
            ("http://u@a", "user name"),
            ("http://a:", "port"),
            ("http://a:0", "port"),
            ("http://a:99999", "port"),
            ("http://a/x", "path"),
            ("http://a?x", "path"),
        ] {
            let problem = upstream_url("key", text).unwrap_err();
            assert!(problem.what.contains(why), "{text}: {}", problem.what);
        }
    }

    #[test]
    fn the_port_a_scheme_implies_names_the_same_server() {
        let server = |text: &str| server_of(&upstream_url("key", text).unwrap());
        assert_eq!(server("http://A"), server("http://a:80/"));
        assert_ne!(server("http://a:443"), server("https://a"));
    }
}
