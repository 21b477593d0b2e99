//! Work for a count of instructions: `instructions WHAT TIMES`, under callgrind. The difference of two counts
//! of times, divided by theirs, is the cost of one.

use flashweir_http1::connection::{
    ClientConnection, RequestBodyUse, RequestStart, ServerConnection, ServerLimits,
};
use flashweir_http1::head::{FieldSet, HeadLimits, KnownField, RequestReader, ResponseReader};
use flashweir_http1::write::{
    ConnectionField, FramingField, OutgoingRequest, OutgoingResponse, write_request, write_response,
};
use std::hint::black_box;

const LIMITS: HeadLimits = HeadLimits { bytes_max: 32_768, fields_max: 100 };

/// A browser's request: ten fields, 495 bytes.
const REQUEST: &[u8] = b"GET /products/4711?variant=blue HTTP/1.1\r\n\
    Host: shop.example.org\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br\r\n\
    Referer: https://shop.example.org/products\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    Cache-Control: no-cache\r\n\
    Connection: keep-alive\r\n\
    \r\n";

/// An origin's response: eight fields.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Server: nginx/1.26.2\r\n\
    Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    Content-Type: text/html; charset=utf-8\r\n\
    Content-Length: 1024\r\n\
    Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT\r\n\
    ETag: \"5f3c-1a2b3c\"\r\n\
    Cache-Control: max-age=60\r\n\
    Connection: keep-alive\r\n\
    \r\n";

/// Lines that a gateway adds.
const LINES: &[u8] =
    b"X-Forwarded-For: 192.0.2.7\r\nForwarded: for=192.0.2.7;host=shop.example.org;proto=http\r\n\
    X-Forwarded-Proto: http\r\nX-Forwarded-Host: shop.example.org\r\nVia: 1.1 flashweir\r\n";

const REPLACED: FieldSet = FieldSet::of(&[
    KnownField::Forwarded,
    KnownField::XForwardedFor,
    KnownField::XForwardedHost,
    KnownField::XForwardedProto,
    KnownField::Expect,
]);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let work = arguments.next().unwrap_or_default();
    let times = arguments.next().and_then(|times| times.parse().ok()).unwrap_or(0);
    match work.as_str() {
        "request" => read_requests(times, false),
        "request-written" => read_requests(times, true),
        "response" => read_responses(times, false),
        "response-written" => read_responses(times, true),
        "exchange" => exchange(times),
        "httparse-request" => httparse_requests(times),
        "httparse-response" => httparse_responses(times),
        _ => eprintln!("instructions WHAT TIMES: no such work: {work}"),
    }
}

fn read_requests(times: u32, is_written: bool) {
    let (mut reader, mut out) = (RequestReader::new(LIMITS), Vec::with_capacity(4_096));
    let changes = OutgoingRequest { removed: REPLACED, lines: LINES, ..OutgoingRequest::default() };
    for _ in 0..times {
        reader.restart();
        let bytes = black_box(REQUEST);
        assert_eq!(reader.read(bytes), Ok(Some(bytes.len())));
        let head = reader.head(bytes).expect("a whole head");
        if is_written {
            out.clear();
            write_request(&head, &changes, &mut out);
            black_box(&out);
        } else {
            black_box(&head);
        }
    }
}

fn read_responses(times: u32, is_written: bool) {
    let (mut reader, mut out) = (ResponseReader::new(LIMITS), Vec::with_capacity(4_096));
    for _ in 0..times {
        reader.restart();
        let bytes = black_box(RESPONSE);
        assert_eq!(reader.read(bytes), Ok(Some(bytes.len())));
        let head = reader.head(bytes).expect("a whole head");
        if is_written {
            out.clear();
            let framing = head.content_length().map_or(FramingField::Chunked, FramingField::Length);
            let changes =
                OutgoingResponse { framing, lines: b"Via: 1.1 flashweir\r\n", ..OutgoingResponse::default() };
            write_response(&head, &changes, &mut out);
            black_box(&out);
        } else {
            black_box(&head);
        }
    }
}

/// All of a proxied exchange but its I/O: both connections, both heads read and written, one piece of
/// content.
fn exchange(times: u32) {
    let mut server = ServerConnection::new(ServerLimits { head: LIMITS, drain_bytes_max: 16_384 });
    let mut client = ClientConnection::new(LIMITS);
    let (mut to_upstream, mut to_client) = (Vec::with_capacity(4_096), Vec::with_capacity(4_096));
    let answer = [RESPONSE, &[b'x'; 1_024]].concat();
    for _ in 0..times {
        to_upstream.clear();
        to_client.clear();
        let request = black_box(REQUEST);
        server.receive(request).expect("a good request");
        let head = server.head(request).expect("a whole head");
        let (method, body) = (head.method(), head.body());
        assert!(client.begin(RequestStart { method, body, wants_upgrade: false, is_last: false }));
        let changes = OutgoingRequest {
            framing: body.into(),
            removed: REPLACED,
            lines: LINES,
            ..OutgoingRequest::default()
        };
        write_request(&head, &changes, &mut to_upstream);
        client.end().expect("no body");
        let response = black_box(&answer[..]);
        let taken = client.receive(response).expect("a good response").taken;
        let head = client.head(response).expect("a whole head");
        let start = server
            .respond(head.status(), head.content_length(), RequestBodyUse::Read, false)
            .expect("a response is due");
        let changes = OutgoingResponse {
            framing: start.framing,
            connection: start.connection,
            lines: b"Via: 1.1 flashweir\r\n",
            ..OutgoingResponse::default()
        };
        assert_eq!(changes.connection, ConnectionField::None);
        write_response(&head, &changes, &mut to_client);
        let content = client.receive(&response[taken..]).expect("content").taken;
        server.frame(content as u64).expect("as long as announced");
        client.receive(&response[taken + content..]).expect("the end");
        server.end().expect("as long as announced");
        black_box((&to_upstream, &to_client));
    }
}

fn httparse_requests(times: u32) {
    for _ in 0..times {
        let mut fields = [httparse::EMPTY_HEADER; 100];
        let mut request = httparse::Request::new(&mut fields);
        assert!(request.parse(black_box(REQUEST)).expect("a good head").is_complete());
        black_box(&request);
    }
}

fn httparse_responses(times: u32) {
    for _ in 0..times {
        let mut fields = [httparse::EMPTY_HEADER; 100];
        let mut response = httparse::Response::new(&mut fields);
        assert!(response.parse(black_box(RESPONSE)).expect("a good head").is_complete());
        black_box(&response);
    }
}
