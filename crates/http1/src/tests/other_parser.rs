//! Heads beside `httparse`: what is accepted here is the same head for it; where the verdicts differ, the
//! difference has a name.

use crate::FramingViolation as Fault;
use crate::head::{HeadLimits, RequestReader, ResponseReader, ResponseViolation, Version};
use flashweir_core::Rng;
use std::collections::BTreeMap;

const LIMITS: HeadLimits = HeadLimits { bytes_max: 4_096, fields_max: 64 };

/// Rule by which a head is refused that `httparse` accepts: it checks syntax alone, with leniences.
fn stricter_rule(fault: Fault) -> Option<&'static str> {
    match fault {
        Fault::BareLf => Some("a line may end in LF alone (RFC 9112 §2.2)"),
        Fault::RequestLine => Some("any number of empty lines, and of blanks between the words"),
        Fault::RequestTarget => Some("a target is any visible bytes"),
        Fault::FieldName => Some("a respelt framing field is a field like any other"),
        Fault::ContentLength
        | Fault::RepeatedContentLength
        | Fault::TransferEncoding
        | Fault::RepeatedTransferEncoding
        | Fault::LengthAndTransferEncoding => Some("framing is the caller's"),
        Fault::MissingHost | Fault::RepeatedHost | Fault::InvalidHost => Some("routing is the caller's"),
        _ => None,
    }
}

fn fields_of(headers: &[httparse::Header<'_>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    // The other parser leaves blanks at the end of a value.
    headers
        .iter()
        .map(|field| (field.name.as_bytes().to_vec(), field.value.trim_ascii_end().to_vec()))
        .collect()
}

fn compare_request(bytes: &[u8]) -> &'static str {
    let mut headers = [httparse::EMPTY_HEADER; 65];
    let mut other = httparse::Request::new(&mut headers);
    let theirs = other.parse(bytes);
    let mut reader = RequestReader::new(LIMITS);
    let shown = bytes.escape_ascii();
    match (reader.read(bytes), theirs) {
        (Ok(Some(length)), theirs) => {
            assert_eq!(theirs, Ok(httparse::Status::Complete(length)), "{shown}");
            let head = reader.head(bytes).expect("a whole head");
            let version = if head.version() == Version::Http11 { 1 } else { 0 };
            assert_eq!(other.version, Some(version), "{shown}");
            assert_eq!(other.method.map(str::as_bytes), Some(head.method_name()), "{shown}");
            assert_eq!(other.path.map(str::as_bytes), Some(head.target()), "{shown}");
            let fields: Vec<_> =
                head.fields().iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect();
            assert_eq!(fields, fields_of(other.headers), "{shown}");
            "both accept"
        }
        (Err(fault), Ok(httparse::Status::Complete(_))) => {
            stricter_rule(fault).unwrap_or_else(|| panic!("{fault} for them alone: {shown}"))
        }
        (Err(_), Err(_)) => "both refuse",
        (Err(_), Ok(httparse::Status::Partial)) => "refused at the first bad line, before the end has come",
        (Ok(None), Ok(httparse::Status::Partial)) => "both wait",
        (Ok(None), Err(_)) => "they refuse a line before its end has come",
        (Ok(None), Ok(httparse::Status::Complete(_))) => panic!("only they have a whole head: {shown}"),
    }
}

fn compare_response(bytes: &[u8]) -> &'static str {
    let mut headers = [httparse::EMPTY_HEADER; 65];
    let mut other = httparse::Response::new(&mut headers);
    let theirs = other.parse(bytes);
    let mut reader = ResponseReader::new(LIMITS);
    let shown = bytes.escape_ascii();
    match (reader.read(bytes), theirs) {
        (Ok(Some(length)), theirs) => {
            assert_eq!(theirs, Ok(httparse::Status::Complete(length)), "{shown}");
            let head = reader.head(bytes).expect("a whole head");
            assert_eq!(other.code, Some(head.status()), "{shown}");
            let fields: Vec<_> =
                head.fields().iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect();
            assert_eq!(fields, fields_of(other.headers), "{shown}");
            "both accept"
        }
        (Err(ResponseViolation::StatusLine), Ok(httparse::Status::Complete(_))) => {
            let is_odd =
                other.code.is_some_and(|code| code < 100) || bytes.starts_with(b"\r\n") || bytes[0] == b'\n';
            assert!(is_odd, "a status line for them alone: {shown}");
            "any number of empty lines, and a status below 100"
        }
        (Err(ResponseViolation::Framing(fault)), Ok(httparse::Status::Complete(_))) => {
            assert_ne!(fault, Fault::BareLf, "{shown}");
            stricter_rule(fault).unwrap_or_else(|| panic!("{fault} for them alone: {shown}"))
        }
        (Err(_), Err(_)) => "both refuse",
        (Err(_), Ok(httparse::Status::Partial)) => "refused at the first bad line, before the end has come",
        (Ok(None), Ok(httparse::Status::Partial)) => "both wait",
        (Ok(None), Err(_)) => "they refuse a line before its end has come",
        (Ok(None), Ok(httparse::Status::Complete(_))) => panic!("only they have a whole head: {shown}"),
    }
}

const WORDS: [&str; 32] = [
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    "\t",
    ":",
    "Host: a\r\n",
    "Content-Length: 5\r\n",
    "content_length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "X: y\r\n",
    "X:\r\n",
    "x y: z\r\n",
    " folded\r\n",
    ": z\r\n",
    "\u{e4}",
    "\x7f",
    "/",
    "#",
    "?",
    "http://a",
    "*",
    "GET",
    "HTTP/1.0",
    "HTTP/1.2",
    "200",
    "099",
    "\"",
    "X: \ty \t\r\n",
    "Connection: close\r\n",
    "Host: b/c\r\n",
];

/// Runs `compare` over mutations of `seeds`; counts each class of outcomes.
fn run(seeds: &[&str], compare: fn(&[u8]) -> &'static str) -> BTreeMap<&'static str, u32> {
    let mut rng = Rng::new(17);
    let mut classes = BTreeMap::new();
    for _ in 0..60_000 {
        let mut bytes = seeds[rng.below(seeds.len() as u64) as usize].as_bytes().to_vec();
        for _ in 0..rng.below(4) {
            let at = rng.below(bytes.len() as u64 + 1) as usize;
            let end = (at + rng.below(4) as usize).min(bytes.len());
            match rng.below(4) {
                0 if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
                1 => bytes.truncate(at),
                _ => drop(bytes.splice(at..end, WORDS[rng.below(32) as usize].bytes())),
            }
        }
        if !bytes.is_empty() {
            *classes.entry(compare(&bytes)).or_default() += 1;
        }
    }
    classes
}

#[test]
fn requests_are_those_of_another_parser_or_the_difference_has_a_name() {
    let seeds = [
        "GET /a?b HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n",
        "POST http://a/b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n\r\n0\r\n\r\n",
        "\r\nOPTIONS * HTTP/1.0\r\nX:\t y z \r\n\r\n",
    ];
    let classes = run(&seeds, compare_request);
    for class in ["both accept", "both refuse", "both wait", "a line may end in LF alone (RFC 9112 §2.2)"] {
        assert!(classes[class] > 100, "{classes:?}");
    }
    assert!(classes.len() >= 10, "{classes:?}");
}

#[test]
fn responses_are_those_of_another_parser_or_the_difference_has_a_name() {
    let seeds = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello",
        "HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\n",
        "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 103 Early\nLink: </a>\n\n",
    ];
    let classes = run(&seeds, compare_response);
    for class in ["both accept", "both refuse", "both wait", "framing is the caller's"] {
        assert!(classes[class] > 100, "{classes:?}");
    }
}
