//! Frames that carry no work end their connection, and others go on (RFC 9113 §10.5).

use flashweir_testkit::{Gateway, Http2Client, StreamEnd, frame};

use crate::end_to_end::support::reflecting;

const PRIORITY: u8 = 2;
const UNKNOWN: u8 = 200;
/// RFC 9113 §7.
const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 11];
/// Many times what a connection may send.
const FRAMES: usize = 100_000;

const GET: &[(&str, &[u8])] =
    &[(":method", b"GET"), (":scheme", b"http"), (":path", b"/after"), (":authority", b"a")];

/// Sends frames of one kind until the connection ends; the error code of the GOAWAY frame.
fn flood(gateway: &Gateway, kind: u8, stream: u32, payload: &[u8]) -> Option<Vec<u8>> {
    let mut client = Http2Client::connect(gateway.address());
    let _sent = (0..FRAMES).find(|_| client.try_send_frame(kind, 0, stream, payload).is_err());
    loop {
        match client.read_frame() {
            Ok((frame::GOAWAY, _, _, payload)) => return payload.get(4..8).map(<[u8]>::to_vec),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

#[test]
fn a_flood_of_frames_without_work_is_answered_with_goaway() {
    let (_upstream, gateway) = reflecting();
    let floods: [(u8, u32, &[u8]); 4] = [
        (frame::WINDOW_UPDATE, 0, &[0, 0, 0, 1]),
        (PRIORITY, 1, &[0, 0, 0, 0, 15]),
        (frame::PING, 0, b"12345678"),
        (UNKNOWN, 0, b""),
    ];
    for (kind, stream, payload) in floods {
        let code = flood(&gateway, kind, stream, payload);
        assert_eq!(code.as_deref(), Some(&ENHANCE_YOUR_CALM[..]), "frames of kind {kind}");
    }
    gateway.wait_metric("flashweir_connections_failed_total{kind=\"frame_flood\"}", 4.0);
    let mut client = Http2Client::connect(gateway.address());
    client.request(1, GET, frame::END_STREAM);
    assert_eq!(client.outcome(1), StreamEnd::Status(200));
}
