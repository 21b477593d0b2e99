//! WebSocket over HTTP/2 (RFC 8441): a client's CONNECT with `:protocol: websocket` is sent on as the GET
//! with `Upgrade` that HTTP/1.1 has for it, and the upstream's 101 is answered by 200. The client's stream is
//! then the tunnel.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderValue, Method, StatusCode, request, response};
use hyper::ext::Protocol;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use ring::rand::{SecureRandom as _, SystemRandom};

/// GUID that a server appends to a client's key to show that it knows the protocol (RFC 6455 §1.3).
const SERVER_PROOF: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const KEY_BYTES: usize = 16;

/// A stream that its client wants to be a WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocketStream {
    /// `Sec-WebSocket-Accept` of an upstream that has understood.
    accept: String,
}

/// A CONNECT that opens no WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoWebSocket {
    /// Without `:protocol`: a tunnel to a place of the client's choice, refused by the rule on methods.
    Plain,
    /// `:protocol` names another protocol.
    OtherProtocol,
}

impl WebSocketStream {
    /// Turns the head of such a CONNECT into that of the GET; leaves any other as it is.
    pub(crate) fn of_head(head: &mut request::Parts) -> Result<Self, NoWebSocket> {
        let protocol = head.extensions.remove::<Protocol>().ok_or(NoWebSocket::Plain)?;
        if !protocol.as_str().eq_ignore_ascii_case("websocket") {
            return Err(NoWebSocket::OtherProtocol);
        }
        let mut nonce = [0; KEY_BYTES];
        // A failure leaves zeros: the key shows that the upstream understands, and keeps no secret.
        let _ = SystemRandom::new().fill(&mut nonce);
        let key = STANDARD.encode(nonce);
        head.method = Method::GET;
        let fields = &mut head.headers;
        // The upgrade has no content.
        fields.remove(CONTENT_LENGTH);
        fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
        // Base64 has no byte a field value cannot hold.
        fields.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_str(&key).expect("base64"));
        Ok(Self { accept: accept_of(&key) })
    }

    /// Turns the upstream's 101 into the 200 that opens the stream; false where it has not understood the
    /// key.
    pub(crate) fn open(&self, answer: &mut response::Parts) -> bool {
        let accept = answer.headers.get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if accept != Some(self.accept.as_bytes()) {
            return false;
        }
        answer.status = StatusCode::OK;
        for name in [CONNECTION, UPGRADE, SEC_WEBSOCKET_ACCEPT, CONTENT_LENGTH, TRANSFER_ENCODING] {
            answer.headers.remove(name);
        }
        true
    }
}

/// RFC 6455 §4.2.2.
pub(crate) fn accept_of(key: &str) -> String {
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key.as_bytes());
    digest.update(SERVER_PROOF);
    STANDARD.encode(digest.finish())
}

#[cfg(test)]
mod tests {
    use super::{WebSocketStream, accept_of};
    use http::Request;

    #[test]
    fn the_upgrade_promises_no_content() {
        let request =
            Request::connect("http://a/").header("content-length", "0").body(()).expect("a request");
        let (mut head, ()) = request.into_parts();
        head.extensions.insert(hyper::ext::Protocol::from_static("websocket"));
        assert!(WebSocketStream::of_head(&mut head).is_ok());
        assert!(!head.headers.contains_key("content-length") && head.headers.contains_key("upgrade"));
    }

    #[test]
    fn the_answer_to_the_key_of_the_rfc() {
        assert_eq!(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
