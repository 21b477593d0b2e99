//! Framing of a message's body, as its head and the request say it (RFC 9112 §6.3).

use super::request_line::Method;

/// Framing of a message's body (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is none.
    None,
    /// This many bytes; above 0 in a request.
    Length(u64),
    /// Chunks (RFC 9112 §7.1).
    Chunked,
    /// All bytes up to the end of the connection: responses only.
    UntilClose,
    /// No body: the connection is a tunnel from here on (101, or 2xx to CONNECT).
    Tunnel,
}

pub(crate) const SWITCHING_PROTOCOLS: u16 = 101;
pub(crate) const NO_CONTENT: u16 = 204;
pub(crate) const NOT_MODIFIED: u16 = 304;

impl BodyFraming {
    /// Framing of a request's body. A head with both a length and chunks has been refused.
    #[must_use]
    pub const fn of_request(is_chunked: bool, content_length: Option<u64>) -> Self {
        match (is_chunked, content_length) {
            (true, _) => Self::Chunked,
            (false, None | Some(0)) => Self::None,
            (false, Some(length)) => Self::Length(length),
        }
    }

    /// Framing of the body of an answer to a request with this method.
    #[must_use]
    pub const fn of_response(
        method: Method,
        status: u16,
        is_chunked: bool,
        content_length: Option<u64>,
    ) -> Self {
        match (method, status) {
            (_, SWITCHING_PROTOCOLS) | (Method::Connect, 200..300) => Self::Tunnel,
            (Method::Head, _) | (_, ..200 | NO_CONTENT | NOT_MODIFIED) => Self::None,
            _ if is_chunked => Self::Chunked,
            _ => match content_length {
                Some(0) => Self::None,
                Some(length) => Self::Length(length),
                None => Self::UntilClose,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BodyFraming::{self, *};
    use super::Method;

    /// Every row of RFC 9112 §6.3.
    #[test]
    fn the_length_of_a_response_depends_on_its_request() {
        let of = BodyFraming::of_response;
        for (method, status, is_chunked, length, framing) in [
            (Method::Head, 200, false, Some(5), None),
            (Method::Head, 200, true, Option::None, None),
            (Method::Get, 100, false, Some(5), None),
            (Method::Get, 103, true, Option::None, None),
            (Method::Get, 101, false, Some(5), Tunnel),
            (Method::Get, 204, false, Some(5), None),
            (Method::Get, 304, true, Option::None, None),
            (Method::Connect, 200, false, Some(5), Tunnel),
            (Method::Connect, 299, true, Option::None, Tunnel),
            (Method::Connect, 403, false, Some(5), Length(5)),
            (Method::Get, 200, true, Option::None, Chunked),
            (Method::Get, 200, false, Some(5), Length(5)),
            (Method::Get, 200, false, Some(0), None),
            (Method::Get, 200, false, Option::None, UntilClose),
            (Method::Get, 999, false, Option::None, UntilClose),
        ] {
            assert_eq!(of(method, status, is_chunked, length), framing, "{method:?} {status}");
        }
    }

    #[test]
    fn a_request_without_a_length_has_no_body() {
        assert_eq!(BodyFraming::of_request(false, Option::None), None);
        assert_eq!(BodyFraming::of_request(false, Some(0)), None);
        assert_eq!(BodyFraming::of_request(false, Some(7)), Length(7));
        assert_eq!(BodyFraming::of_request(true, Option::None), Chunked);
    }
}
