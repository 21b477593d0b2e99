//! `Forwarded` (RFC 7239) and its older `X-Forwarded-*` relatives.

use super::{Hop, via_text};
use crate::byte_class::TOKEN;
use crate::client::{X_FORWARDED_FOR, last_nodes};
use crate::head_types::version_of;
use bytes::Bytes;
use flashweir_http1::head::Version;
use flashweir_http1::write::write_field;
use http::header::{FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue, VIA};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::IpAddr;

/// `X-Forwarded-Proto`.
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// `X-Forwarded-Host`.
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The values for one connection, of its latest request: the next one names the same host nearly always.
#[derive(Debug, Default)]
pub struct ForwardedMemo {
    values: RefCell<Option<Values>>,
    lines: RefCell<Option<Lines>>,
}

/// Lines that say the same, for a head that stays spans.
#[derive(Debug)]
struct Lines {
    host: Bytes,
    version: Version,
    lines: Bytes,
}

/// Values of the two lists where no proxy in front is trusted.
#[derive(Clone, Debug)]
struct Values {
    host: Option<HeaderValue>,
    peer: HeaderValue,
    element: HeaderValue,
}

impl ForwardedMemo {
    /// The values for a request with this `Host`.
    fn values(&self, hop: &Hop, host: Option<&HeaderValue>) -> Values {
        let mut latest = self.values.borrow_mut();
        match &*latest {
            Some(values) if values.host.as_ref() == host => values.clone(),
            _ => latest.insert(Values::new(hop, host)).clone(),
        }
    }

    /// The field lines for a request with this `Host`, of a client that is no trusted proxy; `Via` is one.
    pub(super) fn lines(&self, hop: &Hop, host: &[u8], version: Version) -> Bytes {
        let mut latest = self.lines.borrow_mut();
        match &*latest {
            Some(latest) if latest.host == host && latest.version == version => latest.lines.clone(),
            _ => latest.insert(Lines::new(hop, host, version)).lines.clone(),
        }
    }
}

impl Values {
    fn new(hop: &Hop, host: Option<&HeaderValue>) -> Self {
        let address = hop.peer.to_canonical();
        let peer = address.to_string();
        let element = forwarded_element(&peer, address, hop.scheme.name(), host);
        let value = |text| HeaderValue::try_from(text).expect("addresses, tokens and quoted text are valid");
        Self { host: host.cloned(), peer: value(peer), element: value(element) }
    }
}

impl Lines {
    fn new(hop: &Hop, host: &[u8], version: Version) -> Self {
        let name = HeaderValue::from_bytes(host).ok();
        let Values { peer, element, .. } = Values::new(hop, name.as_ref());
        let mut lines = Vec::with_capacity(LINES_BYTES);
        for (name, value) in [
            (X_FORWARDED_FOR, peer.as_bytes()),
            (FORWARDED, element.as_bytes()),
            (X_FORWARDED_PROTO, hop.scheme.name().as_bytes()),
            (X_FORWARDED_HOST, host),
            (VIA, via_text(version_of(version)).as_bytes()),
        ] {
            write_field(&mut lines, name.as_str().as_bytes(), value);
        }
        Self { host: Bytes::copy_from_slice(host), version, lines: lines.into() }
    }
}

/// Length of the lines of a usual request.
const LINES_BYTES: usize = 256;

/// Says where the request came from. A trusted proxy's word is kept and extended; any other peer's is
/// replaced, or every client could choose the address it is held to.
pub(super) fn extend(headers: &mut HeaderMap, hop: &Hop, memo: &ForwardedMemo) {
    let host = headers.get(HOST).cloned();
    let proto = hop.scheme.name();
    let Values { peer, element, .. } = memo.values(hop, host.as_ref());
    if hop.is_peer_trusted {
        complete(headers);
        extend_list(headers, &X_FORWARDED_FOR, &peer);
        extend_list(headers, &FORWARDED, &element);
        // These describe the client's own request: the first proxy's word stands.
        if !headers.contains_key(&X_FORWARDED_PROTO) {
            headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(proto));
        }
        if let Some(host) = host.filter(|_| !headers.contains_key(&X_FORWARDED_HOST)) {
            headers.insert(X_FORWARDED_HOST, host);
        }
        return;
    }
    headers.insert(X_FORWARDED_FOR, peer);
    headers.insert(FORWARDED, element);
    headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(proto));
    match host {
        Some(host) => headers.insert(X_FORWARDED_HOST, host),
        None => headers.remove(X_FORWARDED_HOST),
    };
}

/// Many proxies write only one of the two lists. If the other began here, the two would name different
/// clients, and the next reader that compares them (another Flashweir does) would believe neither. So the
/// missing one is made from the one that is there (RFC 7239 §7.4); what is no address in it becomes
/// `unknown`, where a reader's walk ends in both.
fn complete(headers: &mut HeaderMap) {
    let has = |name: &HeaderName| headers.contains_key(name);
    let (from, to) = match (has(&X_FORWARDED_FOR), has(&FORWARDED)) {
        (true, false) => (X_FORWARDED_FOR, FORWARDED),
        (false, true) => (FORWARDED, X_FORWARDED_FOR),
        (true, true) | (false, false) => return,
    };
    let mut list = String::new();
    for node in last_nodes(headers, &from) {
        if !list.is_empty() {
            list.push_str(", ");
        }
        if to == FORWARDED {
            list.push_str("for=");
        }
        // Writing to a string cannot fail.
        let _ = match node {
            Some(IpAddr::V6(address)) if to == FORWARDED => write!(list, "\"[{address}]\""),
            Some(address) => write!(list, "{address}"),
            None => write!(list, "{UNKNOWN}"),
        };
    }
    // Addresses and words are valid.
    if let Ok(list) = HeaderValue::try_from(list) {
        headers.insert(to, list);
    }
}

/// A node that is not known (RFC 7239 §6.2), or that is no address.
const UNKNOWN: &str = "unknown";

/// `for=…;host=…;proto=…` with quotes where RFC 7239 §4 wants them.
fn forwarded_element(peer: &str, address: IpAddr, proto: &str, host: Option<&HeaderValue>) -> String {
    let mut element = String::with_capacity(96);
    element.push_str("for=");
    match address {
        IpAddr::V4(_) => element.push_str(peer),
        IpAddr::V6(_) => {
            let _ = write!(element, "\"[{peer}]\"");
        }
    }
    if let Some(host) = host.and_then(|host| host.to_str().ok()) {
        element.push_str(";host=");
        push_value(&mut element, host);
    }
    element.push_str(";proto=");
    element.push_str(proto);
    element
}

/// A token as it is, anything else as a quoted string (RFC 9110 §5.6.4).
fn push_value(element: &mut String, value: &str) {
    if !value.is_empty() && TOKEN.has_all(value.as_bytes()) {
        element.push_str(value);
        return;
    }
    element.push('"');
    for character in value.chars() {
        if matches!(character, '"' | '\\') {
            element.push('\\');
        }
        element.push(character);
    }
    element.push('"');
}

/// Puts `element` behind the list, all in one line: many servers read only one.
fn extend_list(headers: &mut HeaderMap, name: &HeaderName, element: &HeaderValue) {
    let mut list = Vec::new();
    for line in headers.get_all(name) {
        list.extend_from_slice(line.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(element.as_bytes());
    // Joined from valid values with valid bytes.
    if let Ok(list) = HeaderValue::try_from(list) {
        headers.insert(name, list);
    }
}
