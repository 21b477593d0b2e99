//! Every label value that is not a shed reason: closed enums, so that the number of series is bounded.

use flashweir_admission::flash_crowd::Rule;
use flashweir_core::Reason;

/// An enum whose variants are the values of one label.
pub trait Label: Copy + 'static {
    /// The label's name in the metrics.
    const NAME: &'static str;
    /// Every value, in the order of [`index`](Self::index).
    const ALL: &'static [Self];

    /// This value's place in [`ALL`](Self::ALL).
    fn index(self) -> usize;
    /// This value's one spelling.
    fn as_str(self) -> &'static str;
}

macro_rules! labels {
    ($(
        $(#[$about:meta])*
        $type:ident, $label:literal { $($(#[$variant_about:meta])* $variant:ident => $name:literal,)+ }
    )+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$variant_about])* $variant,)+ }

        impl Label for $type {
            const NAME: &'static str = $label;
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            fn index(self) -> usize {
                self as usize
            }

            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    )+};
}

labels! {
    /// Why a request was answered 4xx by the gateway itself.
    BadRequest, "kind" {
        /// Ambiguous or malformed framing (request smuggling): 400 and close.
        Framing => "framing",
        /// Malformed in another way: 400.
        Malformed => "malformed",
        /// More head bytes than `bounds.max_head_bytes`: 431.
        HeadTooLarge => "head_too_large",
        /// More fields than `bounds.max_fields`: 431.
        TooManyFields => "too_many_fields",
        /// The head did not arrive within `bounds.header_read_timeout`: 408.
        HeadTimeout => "head_timeout",
        /// A method that a reverse proxy does not serve (CONNECT): 405 or 501.
        Method => "method",
        /// A request target or Host that names no resource here: 400.
        Target => "target",
        /// A host that no service has: 421.
        Misdirected => "misdirected",
    }
    /// How an exchange with an upstream failed.
    UpstreamFailure, "kind" {
        /// No connection: refused, unreachable, name not found.
        Connect => "connect",
        /// No connection within `upstream.connect_timeout`.
        ConnectTimeout => "connect_timeout",
        /// The upstream's certificate or TLS handshake failed.
        Tls => "tls",
        /// No response head within `upstream.response_header_timeout`.
        HeaderTimeout => "header_timeout",
        /// Silence in the body beyond `upstream.body_idle_timeout`.
        BodyTimeout => "body_timeout",
        /// The connection was lost before the response's end.
        Reset => "reset",
        /// The response is not HTTP, or its length is a lie.
        Malformed => "malformed",
        /// No upstream could be tried.
        NoUpstream => "no_upstream",
    }
    /// How a client's connection failed.
    ConnectionFailure, "kind" {
        /// The TLS handshake failed.
        Tls => "tls",
        /// No TLS handshake within `bounds.tls_handshake_timeout`.
        TlsTimeout => "tls_timeout",
        /// The client took no byte for `bounds.write_stall_timeout`.
        WriteStall => "write_stall",
        /// The client broke the HTTP protocol after a good start.
        Protocol => "protocol",
        /// The connection was lost.
        Io => "io",
        /// `accept` itself failed (out of files, for one).
        Accept => "accept",
    }
    /// A bound that was met.
    Bound, "bound" {
        /// `bounds.max_connections`.
        Connections => "connections",
        /// `client.max_connections_per_client`.
        ConnectionsPerClient => "connections_per_client",
        /// The connections beyond a bound that are still answered.
        RefusedConnections => "refused_connections",
        /// `bounds.max_requests_in_flight`.
        RequestsInFlight => "requests_in_flight",
        /// `upstream.max_connections`.
        UpstreamConnections => "upstream_connections",
        /// Responses whose acknowledgement is awaited; more go unmeasured.
        AcksAwaited => "acks_awaited",
        /// Response observations between two samples; more are sampled away.
        LatencyCells => "latency_cells",
        /// Samples on the way to the planner; the worker keeps accumulating.
        SamplesQueued => "samples_queued",
        /// Requests that a candidate policy is asked about at once; it is not asked about more.
        CandidateRequests => "candidate_requests",
    }
    /// Why a finished response says nothing about quality.
    Unmeasured, "kind" {
        /// No body: HEAD, 204, 304.
        Empty => "empty",
        /// Status 4xx or 5xx from the upstream, or a failed exchange.
        Error => "error",
        /// A refusal of our own.
        Refusal => "refusal",
        /// The client went away.
        Cancelled => "cancelled",
        /// A part of a resource (206).
        Partial => "partial",
        /// The upstream paused longer than a second inside the body, or the client kept it waiting for the request's.
        Paused => "paused",
        /// An upgraded connection.
        Tunnel => "tunnel",
        /// The connection closed before the client's kernel acknowledged the response.
        Unacknowledged => "unacknowledged",
        /// Enough others were measured at that moment.
        LeftOut => "left_out",
        /// Too many acknowledgements are awaited already.
        AcksOverflow => "acks_overflow",
    }
    /// The first digit of a response's status.
    StatusClass, "class" {
        /// 1xx that ends an exchange: 101.
        Informational => "1xx",
        /// 2xx.
        Success => "2xx",
        /// 3xx.
        Redirection => "3xx",
        /// 4xx.
        ClientError => "4xx",
        /// 5xx.
        ServerError => "5xx",
    }
    /// What a client speaks.
    HttpVersion, "protocol" {
        /// HTTP/1.0 and HTTP/1.1.
        Http1 => "http1",
        /// HTTP/2.
        Http2 => "http2",
    }
    /// What a load report of an upstream was good for.
    LoadReportOutcome, "outcome" {
        /// It was read and used.
        Used => "used",
        /// It is in order, but says nothing that is asked for.
        Other => "other",
        /// It cannot be read.
        Malformed => "malformed",
        /// A number or a length in it makes no sense.
        OutOfRange => "out_of_range",
    }
    /// How something that may fail ended.
    Outcome, "outcome" {
        /// Done.
        Ok => "ok",
        /// Not done; what was before stays in force.
        Failed => "failed",
    }
}

impl StatusClass {
    /// The class of a status code; what is no status counts as a server's error.
    #[must_use]
    pub const fn of(status: u16) -> Self {
        match status / 100 {
            1 => Self::Informational,
            2 => Self::Success,
            3 => Self::Redirection,
            4 => Self::ClientError,
            _ => Self::ServerError,
        }
    }
}

impl Label for Reason {
    const NAME: &'static str = "reason";
    const ALL: &'static [Self] = &Self::ALL;

    fn index(self) -> usize {
        self as usize
    }

    fn as_str(self) -> &'static str {
        self.as_str()
    }
}

impl Label for Rule {
    const NAME: &'static str = "rule";
    const ALL: &'static [Self] = Self::ALL;

    fn index(self) -> usize {
        self as usize
    }

    fn as_str(self) -> &'static str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<L: Label + PartialEq + core::fmt::Debug>() {
        for (index, label) in L::ALL.iter().enumerate() {
            assert_eq!(label.index(), index, "{label:?}");
            let name = label.as_str();
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{name}"
            );
            assert_eq!(L::ALL.iter().filter(|other| other.as_str() == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn every_label_has_its_place_and_its_own_plain_name() {
        check::<BadRequest>();
        check::<UpstreamFailure>();
        check::<ConnectionFailure>();
        check::<Bound>();
        check::<Unmeasured>();
        check::<StatusClass>();
        check::<HttpVersion>();
        check::<Outcome>();
        check::<Reason>();
        check::<Rule>();
        check::<crate::Happening>();
    }
}
