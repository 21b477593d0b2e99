use super::field::agreed_content_length;
use super::{judge_http2, judge_http2_trailers};
use crate::violation::FramingViolation::{self, *};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Version};

fn judged(uri: &str, fields: &[(&str, &[u8])]) -> Result<(), FramingViolation> {
    let mut head = Request::builder().version(Version::HTTP_2).uri(uri).body(()).unwrap().into_parts().0;
    for (name, value) in fields {
        let name = HeaderName::from_lowercase(name.as_bytes()).unwrap();
        head.headers.append(name, HeaderValue::from_bytes(value).unwrap());
    }
    judge_http2(&head, 8)
}

#[test]
fn http2_heads_keep_the_rules_of_http1() {
    let of = |fields: &[(&str, &[u8])]| judged("http://a/", fields);
    assert_eq!(of(&[("content-length", b"5"), ("host", b"a"), ("x", b"")]), Ok(()));
    assert_eq!(of(&[("content_length", b"5")]), Err(FieldName));
    assert_eq!(of(&[("transfer_encoding", b"chunked")]), Err(FieldName));
    assert_eq!(of(&[("transfer.encoding", b"chunked")]), Err(FieldName));
    assert_eq!(of(&[("x\"y", b"1")]), Err(FieldName), "no name in HTTP/1.1");
    assert_eq!(of(&[("transfer-encoding", b"chunked")]), Err(TransferEncoding));
    assert_eq!(of(&[("content-length", b"5"), ("content-length", b"5")]), Err(RepeatedContentLength));
    assert_eq!(of(&[("content-length", b"")]), Err(ContentLength));
    assert_eq!(of(&[("host", b"a"), ("host", b"a")]), Err(RepeatedHost));
    assert_eq!(of(&[("x", b" a")]), Err(PaddedValue));
    assert_eq!(of(&[("x", b"a\t")]), Err(PaddedValue));
    for host in [&b"a b"[..], b"a/b", b"u:p@b", b"a?b", b"\xff", b"a:80:90", b"a:xx", b"[::1", b""] {
        assert_eq!(judged("/", &[("host", host)]), Err(InvalidHost), "{host:?}");
    }
    assert_eq!(judged("/", &[]), Err(MissingHost));
    assert_eq!(of(&[("x", &b"1"[..]); 9]), Err(TooManyFields));
    assert_eq!(of(&[("cookie", &b"1"[..]); 9]), Ok(()), "one cookie in crumbs");
}

#[test]
fn http2_trailers_keep_the_rules_of_http1() {
    let of = |name: &'static str, value: &'static str| {
        let trailers = HeaderMap::from_iter([(
            HeaderName::from_lowercase(name.as_bytes()).unwrap(),
            HeaderValue::from_static(value),
        )]);
        judge_http2_trailers(&trailers, 8)
    };
    assert_eq!(of("x-sum", "17"), Ok(()));
    for (name, value) in
        [("content-length", "5"), ("host", "b"), ("content_length", "5"), ("x", " a"), ("x\"y", "1")]
    {
        assert_eq!(of(name, value), Err(Trailer), "{name}");
    }
}

#[test]
fn lengths_of_a_response_must_agree() {
    let of = |values: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_LENGTH, HeaderValue::from_static(value));
        }
        agreed_content_length(&headers)
    };
    assert_eq!(of(&[]), Ok(None));
    assert_eq!(of(&["2"]), Ok(Some(2)));
    assert_eq!(of(&["2, 2", "2"]), Ok(Some(2)));
    for wrong in [&["2, 3"][..], &["2", "3"], &["2,"], &["+2"], &[""]] {
        assert_eq!(of(wrong), Err(ContentLength), "{wrong:?}");
    }
}
