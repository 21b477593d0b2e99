use super::*;
use crate::head::{FieldSet, HeadLimits, KnownField, RequestReader, ResponseReader};
use crate::violation::FramingViolation;

const LIMITS: HeadLimits = HeadLimits { bytes_max: 4_096, fields_max: 64 };

fn request(bytes: &str, changes: &OutgoingRequest<'_>) -> String {
    let (mut reader, mut out) = (RequestReader::new(LIMITS), Vec::new());
    reader.read(bytes.as_bytes()).expect("a good head");
    write_request(&reader.head(bytes.as_bytes()).expect("a whole head"), changes, &mut out);
    String::from_utf8(out).expect("text")
}

fn response(bytes: &str, changes: &OutgoingResponse<'_>) -> String {
    let (mut reader, mut out) = (ResponseReader::new(LIMITS), Vec::new());
    reader.read(bytes.as_bytes()).expect("a good head");
    write_response(&reader.head(bytes.as_bytes()).expect("a whole head"), changes, &mut out);
    String::from_utf8(out).expect("text")
}

#[test]
fn hop_by_hop_fields_go_and_end_to_end_fields_stay() {
    let received = "GET /a?b HTTP/1.1\r\nHost: shop.example:81\r\nConnection: close, X-Private\r\n\
        connection: keep-alive, host, x-forwarded-for,te\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\n\
        Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\nTE: gzip\r\nUpgrade: websocket\r\n\
        Proxy: http://evil\r\nFlashweir-Decision: forged\r\nAuthorization: Bearer y\r\nX-Forwarded-For: 1\r\n\
        Cookie:a=b \r\nContent-Length: 5\r\nX_Forwarded.For: 2\r\nx_other: 3\r\nflashweir_x: 4\r\n\r\n";
    let changes = OutgoingRequest { framing: FramingField::Length(5), ..OutgoingRequest::default() };
    assert_eq!(
        request(received, &changes),
        "GET /a?b HTTP/1.1\r\nHost: shop.example:81\r\nAuthorization: Bearer y\r\nX-Forwarded-For: 1\r\n\
         Cookie: a=b\r\nx_other: 3\r\nContent-Length: 5\r\n\r\n"
    );
}

#[test]
fn replaced_fields_are_left_out_and_lines_come_last() {
    let received = "POST / HTTP/1.1\r\nHost: a\r\nVia: 1.0 b\r\nForwarded: for=6.6.6.6\r\nExpect: 100-continue\r\n\
        Transfer-Encoding: chunked\r\n\r\n";
    let changes = OutgoingRequest {
        framing: FramingField::Chunked,
        removed: FieldSet::of(&[KnownField::Forwarded, KnownField::Expect]),
        connection: ConnectionField::Trailers,
        lines: b"Forwarded: for=192.0.2.7\r\nVia: 1.1 flashweir\r\n",
        ..OutgoingRequest::default()
    };
    assert_eq!(
        request(received, &changes),
        "POST / HTTP/1.1\r\nHost: a\r\nVia: 1.0 b\r\nTransfer-Encoding: chunked\r\nConnection: te\r\n\
         TE: trailers\r\nForwarded: for=192.0.2.7\r\nVia: 1.1 flashweir\r\n\r\n"
    );
}

#[test]
fn a_target_goes_on_in_origin_form_with_its_host() {
    for (line, written) in [
        ("GET http://b/c?d HTTP/1.1", "GET /c?d HTTP/1.1\r\nHost: b\r\nX: y\r\n\r\n"),
        ("GET http://b HTTP/1.1", "GET / HTTP/1.1\r\nHost: b\r\nX: y\r\n\r\n"),
        ("GET http://b?c HTTP/1.1", "GET /?c HTTP/1.1\r\nHost: b\r\nX: y\r\n\r\n"),
        ("OPTIONS * HTTP/1.1", "OPTIONS * HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n"),
        ("GET /c HTTP/1.1", "GET /c HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n"),
    ] {
        let received = format!("{line}\r\nHost: a\r\nX: y\r\n\r\n");
        assert_eq!(request(&received, &OutgoingRequest::default()), written);
    }
    let changes = OutgoingRequest { default_host: b"upstream", ..OutgoingRequest::default() };
    let written = request("\r\nGET / HTTP/1.0\r\nX: y\r\n\r\n", &changes);
    assert_eq!(written, "GET / HTTP/1.1\r\nHost: upstream\r\nX: y\r\n\r\n");
}

#[test]
fn an_upgrade_is_asked_for_and_granted() {
    let changes = OutgoingRequest { connection: ConnectionField::Upgrade, ..OutgoingRequest::default() };
    assert_eq!(
        request("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", &changes),
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    );
    let changes = OutgoingResponse { connection: ConnectionField::Upgrade, ..OutgoingResponse::default() };
    let received = "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\nX: y\r\n\r\n";
    assert_eq!(
        response(received, &changes),
        "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nX: y\r\nConnection: upgrade\r\n\r\n"
    );
    let required = "HTTP/1.1 426 Upgrade Required\r\nUpgrade: h3\r\n\r\n";
    assert_eq!(
        response(required, &OutgoingResponse::default()),
        "HTTP/1.1 426 Upgrade Required\r\nUpgrade: h3\r\nConnection: upgrade\r\n\r\n"
    );
}

#[test]
fn an_old_servers_lines_go_on_in_the_ordinary_spelling() {
    let received =
        "HTTP/1.0 404 Not Here\nServer: old\nX:y\t\r\nContent-Length: 3\r\nFlashweir-Error: x\r\n\n";
    let changes = OutgoingResponse {
        framing: FramingField::Length(3),
        connection: ConnectionField::Close,
        lines: b"Via: 1.0 flashweir\r\n",
        ..OutgoingResponse::default()
    };
    assert_eq!(
        response(received, &changes),
        "HTTP/1.1 404 Not Here\r\nServer: old\r\nX: y\r\nContent-Length: 3\r\nConnection: close\r\n\
         Via: 1.0 flashweir\r\n\r\n"
    );
}

#[test]
fn a_refusal_is_as_long_as_it_says() {
    for violation in FramingViolation::ALL {
        let (mut whole, mut of_head) = (Vec::new(), Vec::new());
        write_refusal(violation, false, b"now", &mut whole);
        write_refusal(violation, true, b"now", &mut of_head);
        let whole = String::from_utf8(whole).expect("text");
        let (head, text) = whole.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("content-length: {}\r\n", text.len())), "{whole}");
        assert!(head.ends_with("\r\ndate: now") && text == violation.explanation(), "{whole}");
        assert_eq!(String::from_utf8(of_head).as_deref(), Ok(&*format!("{head}\r\n\r\n")));
        let mut reader = ResponseReader::new(LIMITS);
        assert_eq!(reader.read(whole.as_bytes()), Ok(Some(head.len() + 4)), "{whole}");
    }
}

#[test]
fn numbers_are_written_in_decimal() {
    for number in [0, 9, 10, 12_345, u64::MAX] {
        assert_eq!(Decimal::new(number).as_bytes(), number.to_string().as_bytes());
    }
}
