//! Names of fields and cookies that a class may be about.

use http::header::{
    CONNECTION, COOKIE, FORWARDED, HOST, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderName, Method};

use crate::error::Problem;

/// A name that a request may carry and that no other key is about.
pub(super) fn field_name(key: &str, text: &str) -> Result<HeaderName, Problem> {
    let refuse = |why: &str| Err(Problem::new(key, format!("`{text}` {why}")));
    let Ok(name) = HeaderName::from_bytes(text.as_bytes()) else {
        return refuse("is not a header's name, expected one like \"x-plan\"");
    };
    let is_forwarded = name == FORWARDED || name.as_str().starts_with("x-forwarded-");
    let is_of_one_hop = [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE, PROXY_AUTHORIZATION].contains(&name);
    match () {
        () if name == HOST => refuse("has a key of its own, expected `match.host`"),
        () if name == COOKIE => refuse("has a key of its own, expected `match.cookie`"),
        () if is_forwarded => {
            refuse("can be written by any client, expected `match.client` and `client.trusted_proxies`")
        }
        () if is_of_one_hop => refuse("is about the connection, expected a header about the request"),
        () => Ok(name),
    }
}

/// A cookie's name: an HTTP token (RFC 6265 §4.1.1).
pub(super) fn cookie_name(key: &str, text: &str) -> Result<Box<str>, Problem> {
    // A method is any token, and keeps its case.
    if Method::from_bytes(text.as_bytes()).is_err() {
        return Err(Problem::new(
            key,
            format!("`{text}` is not a cookie's name, expected one like \"session\""),
        ));
    }
    Ok(text.into())
}
