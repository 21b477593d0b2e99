//! Responses of upstreams: what is passed on has one length, nothing that belongs to the upstream's
//! connection and nothing in the gateway's name; preparing it twice changes only `Via`.

use flashweir_http::fields::prepare_response;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

/// Fields that belong to one connection (RFC 9110 §7.6.1), and those of proxies' own authentication.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "te",
    "upgrade",
    "proxy-authenticate",
    "proxy-authorization",
];

pub(crate) fn run(data: &[u8]) {
    let Some(mut head) = head_of(data) else { return };
    let received = head.headers.clone();
    if prepare_response(&mut head).is_err() {
        return;
    }
    let names_upgrade = matches!(head.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::UPGRADE_REQUIRED);
    for name in HOP_BY_HOP {
        let may_stay = names_upgrade && matches!(name, "upgrade" | "connection");
        assert!(may_stay || !head.headers.contains_key(name), "{name} was passed on");
    }
    assert!(!head.headers.keys().any(|name| name.as_str().starts_with("flashweir-")));
    let lengths: Vec<_> = head.headers.get_all("content-length").iter().collect();
    assert!(lengths.len() <= 1, "{lengths:?}");
    assert!(
        lengths.iter().all(|length| !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit))
    );
    assert!(lengths.is_empty() || !received.contains_key("transfer-encoding"));
    let once = without_via(&head.headers);
    prepare_response(&mut head).expect("what was fit once is fit twice");
    assert_eq!(without_via(&head.headers), once);
}

fn without_via(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove("via");
    headers
}

fn head_of(data: &[u8]) -> Option<Parts> {
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut response = httparse::Response::new(&mut fields);
    if !response.parse(data).ok()?.is_complete() {
        return None;
    }
    let mut head = Response::new(()).into_parts().0;
    head.status = StatusCode::from_u16(response.code?).ok()?;
    for field in response.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        head.headers.try_append(name, HeaderValue::from_bytes(field.value).ok()?).ok()?;
    }
    Some(head)
}
