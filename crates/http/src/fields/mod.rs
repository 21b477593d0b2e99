//! Changes that an intermediary must make to the fields of a message before passing it on (RFC 9110 §7.6, RFC
//! 9112 §3).
//!
//! One pass over the names finds what there is to do; an ordinary request has nothing removed.

mod forwarded;
mod hop_by_hop;
mod spans;
mod target;

pub use forwarded::{ForwardedMemo, X_FORWARDED_HOST, X_FORWARDED_PROTO};
pub use spans::prepare_head;

use crate::rules::field::{agreed_content_length, trim};
use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HeaderMap, HeaderName, HeaderValue, MAX_FORWARDS, TE,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{Method, StatusCode, Version, request, response};
use std::net::IpAddr;

/// Scheme of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientScheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl ClientScheme {
    /// As in `Forwarded` and `X-Forwarded-Proto`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// The hop over which a request came, as its fields describe it.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// The other end of the connection.
    pub peer: IpAddr,
    /// True if the peer is a trusted proxy, whose `Forwarded` and `X-Forwarded-*` are kept and extended.
    pub is_peer_trusted: bool,
    /// Scheme of the connection.
    pub scheme: ClientScheme,
}

/// Findings that the gateway needs beyond the changed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The client asks for an upgrade which may be tunnelled; `Upgrade` was kept.
    pub wants_upgrade: bool,
    /// `Max-Forwards` was 0 on OPTIONS: answer here, do not forward (RFC 9110 §7.6.2).
    pub is_last_hop: bool,
}

/// Reason for which a request cannot be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// CONNECT: a reverse proxy opens no tunnels to places of the client's choice. TRACE: it would reflect
    /// the fields of the request, with what a browser or this gateway added to them.
    #[error("CONNECT and TRACE are not served here")]
    Method,
    /// The target is none of origin-form, absolute-form of http(s), or `*` with OPTIONS.
    #[error("the request target has no form that can be forwarded")]
    Target,
    /// An authority that is none (with a user's name, for one), more than one Host; in HTTP/2 none at all, or
    /// one that `:authority` disagrees with (RFC 9113 §8.3.1).
    #[error("the request does not say unambiguously which host it is for")]
    Host,
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    #[error("the expectation cannot be met")]
    Expectation,
}

impl FieldsError {
    /// The status to answer.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Target | Self::Host => StatusCode::BAD_REQUEST,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
        }
    }
}

/// Makes a received request fit to be sent on: target in origin-form with `Host`, hop-by-hop fields, our own
/// `Flashweir-*` and spellings of both with underscores removed, `Via`, `Forwarded` and `X-Forwarded-*`
/// added.
///
/// `Expect: 100-continue` is removed: [`serve`](crate::serve) says 100 to the client once the body is wanted.
/// A caller that can wait for the upstream's own 100 adds it again.
///
/// # Errors
/// [`FieldsError`]; answer its status.
pub fn prepare_request(parts: &mut request::Parts, hop: &Hop) -> Result<Prepared, FieldsError> {
    prepare_next_request(parts, hop, &ForwardedMemo::default())
}

/// The same for one of several requests of a connection, whose `memo` it is.
///
/// # Errors
/// As [`prepare_request`].
pub fn prepare_next_request(
    parts: &mut request::Parts,
    hop: &Hop,
    memo: &ForwardedMemo,
) -> Result<Prepared, FieldsError> {
    let scan = hop_by_hop::survey(&parts.headers);
    target::normalize(parts)?;
    // Over HTTP/2 no client can send `Upgrade` (RFC 9113 §8.2.2): there it is the gateway's own, for a stream
    // that is to be a WebSocket.
    let wants_upgrade = scan.has_upgrade && parts.version != Version::HTTP_10 && may_tunnel(&parts.headers);
    let upgrade = parts.headers.get(UPGRADE).filter(|_| wants_upgrade).cloned();
    let takes_trailers = scan.has_te && lists(&parts.headers, &TE, "trailers");
    if scan.has_expect {
        meet_expectation(&mut parts.headers)?;
    }
    hop_by_hop::remove(&mut parts.headers, &scan);
    hop_by_hop::remove_ours(&mut parts.headers, &scan);
    hop_by_hop::remove_respelt(&mut parts.headers, &scan);
    let is_last_hop = scan.has_max_forwards && count_hop(parts);
    let connection = match (&upgrade, takes_trailers) {
        (Some(_), _) => Some("upgrade"),
        (None, true) => Some("te"),
        (None, false) => None,
    };
    if let Some(connection) = connection {
        parts.headers.insert(CONNECTION, HeaderValue::from_static(connection));
    }
    if let Some(upgrade) = upgrade {
        parts.headers.insert(UPGRADE, upgrade);
    } else if takes_trailers {
        parts.headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if parts.version == Version::HTTP_2 {
        join_cookies(&mut parts.headers);
    }
    forwarded::extend(&mut parts.headers, hop, memo);
    parts.headers.append(VIA, via(parts.version));
    Ok(Prepared { wants_upgrade, is_last_hop })
}

/// Reason for which a response cannot be passed on; the client gets 502.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// A transfer coding other than `chunked`. None was asked for (`TE` is not passed on), and the body would
    /// reach the client without the label that says how to read it.
    #[error("the response has a transfer coding that was not requested")]
    TransferCoding,
    /// Lengths that disagree, or are none.
    #[error("the response does not say unambiguously how long it is")]
    Length,
}

/// Makes a received response fit to be sent back: hop-by-hop fields and our own `Flashweir-*` removed, one
/// length, `Via` added. A 101 keeps what the switch needs.
///
/// # Errors
/// [`ResponseError`] where that cannot be done without guessing.
pub fn prepare_response(parts: &mut response::Parts) -> Result<(), ResponseError> {
    let scan = hop_by_hop::survey(&parts.headers);
    let names_upgrade =
        matches!(parts.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::UPGRADE_REQUIRED);
    let upgrade = parts.headers.get(UPGRADE).filter(|_| names_upgrade).cloned();
    if parts.headers.contains_key(TRANSFER_ENCODING) {
        check_transfer_coding(&parts.headers)?;
        // Transfer-Encoding overrides (RFC 9112 §6.3); passing the length on would lie to the client.
        parts.headers.remove(CONTENT_LENGTH);
    } else {
        agree_on_length(&mut parts.headers)?;
    }
    hop_by_hop::remove_ours(&mut parts.headers, &scan);
    hop_by_hop::remove(&mut parts.headers, &scan);
    if let Some(upgrade) = upgrade {
        parts.headers.insert(UPGRADE, upgrade);
        parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    parts.headers.append(VIA, via(parts.version));
    Ok(())
}

fn check_transfer_coding(headers: &HeaderMap) -> Result<(), ResponseError> {
    let mut lines = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = lines.next().is_some_and(|line| trim(line.as_bytes()).eq_ignore_ascii_case(b"chunked"));
    if is_chunked && lines.next().is_none() { Ok(()) } else { Err(ResponseError::TransferCoding) }
}

/// A length that is given more than once is passed on once (RFC 9110 §8.6).
fn agree_on_length(headers: &mut HeaderMap) -> Result<(), ResponseError> {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lines.next() else { return Ok(()) };
    let is_one = lines.next().is_none() && first.as_bytes().iter().all(u8::is_ascii_digit);
    let length = agreed_content_length(headers).map_err(|_| ResponseError::Length)?;
    if let Some(length) = length.filter(|_| !is_one) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(())
}

/// Makes received trailers fit to be passed on, in either direction: none of them may speak for this gateway
/// or forge what it says of the client.
pub fn prepare_trailers(trailers: &mut HeaderMap) {
    hop_by_hop::remove_all_known(trailers);
}

fn via(received: Version) -> HeaderValue {
    HeaderValue::from_static(via_text(received))
}

fn via_text(received: Version) -> &'static str {
    match received {
        Version::HTTP_10 => "1.0 flashweir",
        Version::HTTP_2 => "2 flashweir",
        _ => "1.1 flashweir",
    }
}

/// `Upgrade` counts only when `Connection` names it. Switching to another HTTP or to TLS would put requests
/// behind our back, past admission: never tunnelled.
fn may_tunnel(headers: &HeaderMap) -> bool {
    let is_http = |token: &str| {
        let name = token.split('/').next().unwrap_or(token).trim();
        ["h2c", "h2", "http", "tls"].iter().any(|other| name.eq_ignore_ascii_case(other))
    };
    lists(headers, &CONNECTION, "upgrade") && !tokens(headers, &UPGRADE).any(is_http)
}

fn lists(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    tokens(headers, name).any(|token| token.eq_ignore_ascii_case(wanted))
}

/// The comma-separated elements of a field; a line that is not text has none.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|token| !token.is_empty())
}

/// HTTP/2 may send cookies in several lines; HTTP/1.1 servers expect one (RFC 9113 §8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    // An empty crumb at either end would leave a blank there, which HTTP/1.1 cuts off.
    let lines: Vec<&[u8]> =
        headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).filter(|line| !line.is_empty()).collect();
    // Joined from valid values with valid bytes.
    if let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
}

fn meet_expectation(headers: &mut HeaderMap) -> Result<(), FieldsError> {
    let is_met = headers
        .get_all(EXPECT)
        .iter()
        .all(|expected| expected.as_bytes().trim_ascii().eq_ignore_ascii_case(b"100-continue"));
    headers.remove(EXPECT);
    if is_met { Ok(()) } else { Err(FieldsError::Expectation) }
}

/// Counts `Max-Forwards` down; says whether it was spent. What is not a number is passed on as it is.
fn count_hop(parts: &mut request::Parts) -> bool {
    if parts.method != Method::OPTIONS {
        return false;
    }
    let left =
        parts.headers.get(MAX_FORWARDS).and_then(|left| left.to_str().ok()?.trim().parse::<u32>().ok());
    match left {
        None => false,
        Some(0) => true,
        Some(left) => {
            parts.headers.insert(MAX_FORWARDS, HeaderValue::from(left - 1));
            false
        }
    }
}

#[cfg(test)]
mod tests;
