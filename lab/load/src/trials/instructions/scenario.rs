//! Scenarios: one kind of request each.

/// One kind of request, from one client, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scenario {
    /// GET of 512 bytes, passed on.
    Get512,
    /// GET of 64 KiB, passed on.
    Get64K,
    /// POST of 8 KiB, passed on; the answer has 512 bytes.
    Post8K,
    /// Refused with 503 on a kept connection.
    RefuseKept,
    /// Refused with 503 on a new connection for each request.
    RefuseNew,
    /// GET of 512 bytes, answered from memory.
    CacheHit,
    /// GET of 512 bytes, passed on; the client speaks TLS 1.3.
    Tls,
    /// GET of 512 bytes, passed on; the client speaks HTTP/2 without TLS.
    Http2,
}

impl Scenario {
    /// Every scenario, in the order of the tables.
    pub const ALL: [Self; 8] = [
        Self::Get512,
        Self::Get64K,
        Self::Post8K,
        Self::RefuseKept,
        Self::RefuseNew,
        Self::CacheHit,
        Self::Tls,
        Self::Http2,
    ];

    /// Its name in the tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get512 => "GET 512 B",
            Self::Get64K => "GET 64 KiB",
            Self::Post8K => "POST 8 KiB",
            Self::RefuseKept => "refused, kept connection",
            Self::RefuseNew => "refused, new connection",
            Self::CacheHit => "cache hit 512 B",
            Self::Tls => "GET 512 B, TLS",
            Self::Http2 => "GET 512 B, HTTP/2",
        }
    }

    /// Its name in the budget, and for `ONLY`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Get512 => "get-512",
            Self::Get64K => "get-64k",
            Self::Post8K => "post-8k",
            Self::RefuseKept => "refuse-kept",
            Self::RefuseNew => "refuse-new",
            Self::CacheHit => "cache-hit",
            Self::Tls => "tls",
            Self::Http2 => "http2",
        }
    }

    /// Bytes of the answer's body at the origin.
    #[must_use]
    pub const fn answer_bytes(self) -> usize {
        match self {
            Self::Get64K => 64 << 10,
            _ => 512,
        }
    }

    /// Bytes of the request's body; 0 for GET.
    #[must_use]
    pub const fn request_bytes(self) -> usize {
        match self {
            Self::Post8K => 8 << 10,
            _ => 0,
        }
    }

    /// True where the answer is a refusal.
    #[must_use]
    pub const fn is_refused(self) -> bool {
        matches!(self, Self::RefuseKept | Self::RefuseNew)
    }
}
