//! Fields that belong to one connection and are not passed on (RFC 9110 §7.6.1).

use super::forwarded::{X_FORWARDED_HOST, X_FORWARDED_PROTO};
use super::tokens;
use crate::byte_class::ORDINARY_NAME;
use crate::client::X_FORWARDED_FOR;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, FORWARDED, HOST, HeaderMap, HeaderName, MAX_FORWARDS,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};

/// Result of one scan of the field names: which kinds of fields there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldScan {
    pub(super) has_upgrade: bool,
    pub(super) has_te: bool,
    pub(super) has_expect: bool,
    pub(super) has_max_forwards: bool,
    has_connection: bool,
    has_fixed: bool,
    has_ours: bool,
    has_odd_name: bool,
}

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const PROXY_AUTHENTICATION_INFO: HeaderName = HeaderName::from_static("proxy-authentication-info");
/// Becomes `HTTP_PROXY` in a CGI environment ("httpoxy"); no request needs it.
const PROXY: HeaderName = HeaderName::from_static("proxy");

/// Removed wherever they occur. The proxy's own credentials and challenges are between it and its neighbour.
const FIXED: [HeaderName; 9] = [
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    PROXY_AUTHENTICATION_INFO,
    PROXY,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Fields that `Connection` may not remove, or a client could strip those that frame, route or describe its
/// request.
const KEPT: [HeaderName; 7] =
    [HOST, CONTENT_LENGTH, VIA, FORWARDED, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO];

const OUR_PREFIX: &str = "flashweir-";

/// Looks at each name once.
pub(super) fn survey(headers: &HeaderMap) -> FieldScan {
    let mut scan = FieldScan::default();
    for name in headers.keys() {
        // Letters, digits and hyphens make up the names of nearly all requests.
        scan.has_odd_name |= !ORDINARY_NAME.has_all(name.as_str().as_bytes());
        match *name {
            CONNECTION => scan.has_connection = true,
            EXPECT => scan.has_expect = true,
            MAX_FORWARDS => scan.has_max_forwards = true,
            UPGRADE => (scan.has_upgrade, scan.has_fixed) = (true, true),
            TE => (scan.has_te, scan.has_fixed) = (true, true),
            TRANSFER_ENCODING | PROXY_AUTHENTICATE | PROXY_AUTHORIZATION => scan.has_fixed = true,
            _ => match name.as_str().as_bytes().first() {
                Some(b'k' | b'p') => scan.has_fixed |= FIXED.contains(name),
                Some(b'f') => scan.has_ours |= name.as_str().starts_with(OUR_PREFIX),
                _ => {}
            },
        }
    }
    scan
}

/// Removes what `survey` found: fields named by `Connection`, then the fixed ones, then `Connection` itself.
pub(super) fn remove(headers: &mut HeaderMap, scan: &FieldScan) {
    if scan.has_connection {
        remove_named(headers);
        headers.remove(CONNECTION);
    }
    if scan.has_fixed {
        for name in FIXED {
            headers.remove(name);
        }
    }
}

/// Removes the fields that `Connection` names.
fn remove_named(headers: &mut HeaderMap) {
    // Nearly all say one of these, which name no other field: `Keep-Alive` is one of the fixed.
    let names_a_field = |token: &&str| !matches!(*token, "keep-alive" | "close");
    let named: Vec<HeaderName> = tokens(headers, &CONNECTION)
        .filter(names_a_field)
        .filter_map(|token| HeaderName::from_bytes(token.as_bytes()).ok())
        .filter(|name| !KEPT.contains(name))
        .collect();
    for name in named {
        headers.remove(name);
    }
}

/// Removes `Flashweir-*`: only this gateway may speak in its name, to the upstream and to the client.
pub(super) fn remove_ours(headers: &mut HeaderMap, scan: &FieldScan) {
    if scan.has_ours {
        remove_where(headers, |name| name.starts_with(OUR_PREFIX));
    }
}

/// Removes what a server behind CGI, where `-` and in some servers every other sign becomes `_`, would take
/// for a field that this gateway writes or removes: `X_Forwarded_For` and `X.Forwarded.For` for
/// `X-Forwarded-For`. (Spellings of framing fields are refused, by [`crate::rules`].)
pub(super) fn remove_respelt(headers: &mut HeaderMap, scan: &FieldScan) {
    if !scan.has_odd_name {
        return;
    }
    remove_where(headers, |name| !ORDINARY_NAME.has_all(name.as_bytes()) && is_known(name));
}

/// Removes every field that this gateway writes or removes in a head, however it is spelt.
pub(super) fn remove_all_known(trailers: &mut HeaderMap) {
    remove_where(trailers, is_known);
}

/// Returns whether this gateway writes or removes such a field, every sign taken for `-`.
fn is_known(name: &str) -> bool {
    let meant = name.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
    let is_meant = |known: &HeaderName| *known == meant.as_str();
    meant.starts_with(OUR_PREFIX) || KEPT.iter().any(is_meant) || FIXED.iter().any(is_meant)
}

fn remove_where(headers: &mut HeaderMap, is_unwanted: impl Fn(&str) -> bool) {
    let unwanted: Vec<HeaderName> =
        headers.keys().filter(|name| is_unwanted(name.as_str())).cloned().collect();
    for name in unwanted {
        headers.remove(name);
    }
}
