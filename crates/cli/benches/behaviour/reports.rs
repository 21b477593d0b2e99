//! Reports of other proxies' users that a row of the table stands for.

/// One report.
pub(crate) struct Report {
    pub(crate) address: &'static str,
    pub(crate) line: &'static str,
    /// Name of the case that tries it.
    pub(crate) case: &'static str,
}

const fn report(address: &'static str, case: &'static str, line: &'static str) -> Report {
    Report { address, line, case }
}

/// All reports, by subject.
pub(crate) const ALL: &[Report] = &[
    report(
        "https://github.com/caddyserver/caddy/issues/6452",
        "origin closes after its answer",
        "502 now and then: Node closes idle connections after 5 s, the proxy keeps them for 2 minutes",
    ),
    report(
        "https://github.com/h2o/h2o/issues/281",
        "origin closes after its answer",
        "502 `I/O error (head)` once in a while with kept connections, and 200 at the next try",
    ),
    report(
        "https://github.com/Kong/kong/issues/11160",
        "origin closes after its answer",
        "502 at random since connections to the origin are kept",
    ),
    report(
        "https://github.com/sozu-proxy/sozu/issues/1442",
        "origin closes at the second request",
        "a request on a connection that the origin has just closed is 502 and not sent again",
    ),
    report(
        "https://github.com/apache/apisix/issues/11638",
        "origin has closed before the request",
        "some hundred 502 a day, though the origin runs: its connections are kept for longer than it keeps them",
    ),
    report(
        "https://github.com/h2o/h2o/issues/827",
        "POST is not repeated",
        "asks whether requests that are not idempotent are sent again, as a proxy was found to do",
    ),
    report(
        "https://github.com/envoyproxy/envoy/issues/25881",
        "several interim responses",
        "several 103 are not passed on; the client gets the 200 alone",
    ),
    report(
        "https://github.com/h2o/h2o/issues/1771",
        "103 before the answer",
        "103 of the origin does not reach the browser",
    ),
    report(
        "https://github.com/mitmproxy/mitmproxy/issues/2229",
        "103 before the answer",
        "103 is taken for the final response",
    ),
    report(
        "https://github.com/fpco/http-reverse-proxy/issues/44",
        "103 before the answer",
        "the request hangs when the origin sends 103",
    ),
    report(
        "https://github.com/caddyserver/caddy/issues/5074",
        "103 before the answer",
        "fields of 103 turn up in the final response",
    ),
    report(
        "https://github.com/apache/trafficserver/issues/12012",
        "103 and a client of HTTP/1.0",
        "103 reaches old clients that do not know it",
    ),
    report(
        "https://github.com/tinyproxy/tinyproxy/issues/79",
        "401 instead of 100",
        "the origin's 401 to a head with `Expect` is lost, the connection is closed",
    ),
    report(
        "https://github.com/projectcontour/contour/issues/5074",
        "100 when the origin agrees",
        "100 is sent by the proxy; the origin cannot make the client wait or refuse the upload",
    ),
    report(
        "https://github.com/caddyserver/caddy/issues/5280",
        "100 when the origin agrees",
        "100 is sent twice",
    ),
    report(
        "https://github.com/ProxymanApp/Proxyman/issues/1807",
        "417 instead of 100",
        "an upload with `Expect` times out: the answer before the body is not passed on",
    ),
    report(
        "https://github.com/rekby/lets-proxy/issues/58",
        "origin that does not know `Expect`",
        "an upload with `Expect` hangs",
    ),
    report(
        "https://github.com/h2o/h2o/issues/1733",
        "150 Set-Cookie fields",
        "a response with more than 50 `Link` fields is 502",
    ),
    report(
        "https://github.com/cloudfoundry/routing-release/issues/309",
        "150 Set-Cookie fields",
        "a response with many fields is 502 at the next proxy, though the log says 200",
    ),
    report(
        "https://github.com/envoyproxy/envoy/issues/2066",
        "client that ends its sending direction",
        "a client that half-closes after its request gets no answer",
    ),
    report(
        "https://github.com/caddyserver/caddy/issues/1925",
        "client that ends its sending direction",
        "502 for a client (`nc < file`) that ends its sending direction",
    ),
    report(
        "https://github.com/agentgateway/agentgateway/issues/2427",
        "client that ends its sending direction",
        "an empty reply to a client that half-closes after its body",
    ),
    report(
        "https://github.com/rwf2/Rocket/issues/924",
        "characters that browsers send raw",
        "a browser's `{` in the query is 400",
    ),
    report(
        "https://github.com/hyperium/http/issues/209",
        "characters that browsers send raw",
        "`{` and `}` are refused by the parser of targets",
    ),
    report(
        "https://github.com/haproxy/haproxy/issues/115",
        "long target",
        "long targets do not reach the origin",
    ),
    report(
        "https://github.com/haproxy/haproxy/issues/1378",
        "absolute target",
        "a `Host` that differs from an absolute target is refused instead of ignored",
    ),
    report(
        "https://github.com/abhinavsingh/proxy.py/issues/1455",
        "absolute target",
        "the `Host` of the client is passed on instead of the target's",
    ),
    report(
        "https://github.com/dotnet/yarp/issues/1113",
        "`Max-Forwards: 5` on OPTIONS",
        "`Max-Forwards` is not counted down",
    ),
    report(
        "https://github.com/zoxy-io/zoxy/issues/240",
        "`Max-Forwards: 0` on TRACE",
        "TRACE with `Max-Forwards: 0` reaches the origin",
    ),
    report(
        "https://github.com/Kaliumhexacyanoferrat/GenHTTP/issues/90",
        "204 with a body",
        "an origin that sends a body with 204 breaks the next response",
    ),
    report(
        "https://github.com/e2guardian/e2guardian/issues/136",
        "304 with a body",
        "the body of a 304 is taken for the head of the next response",
    ),
    report(
        "https://github.com/MarSeventh/CloudFlare-ImgBed/issues/549",
        "two equal lengths in a response",
        "a response with the same length twice is 502 behind a proxy, and works without",
    ),
    report(
        "https://github.com/netptop/siteproxy/issues/75",
        "chunks and a length in a response",
        "502 for responses with both chunks and a length",
    ),
    report(
        "https://github.com/nghttp2/nghttp2/issues/453",
        "trailers of a response",
        "trailers are lost towards clients of HTTP/1.1",
    ),
    report(
        "https://github.com/h2o/h2o/pull/1031",
        "chunks without an end",
        "a chunked response that the origin breaks off looks whole to the client",
    ),
    report(
        "https://github.com/caddyserver/caddy/issues/7845",
        "response shorter than its length",
        "of a response that the origin breaks off the client gets nothing",
    ),
    report(
        "https://github.com/envoyproxy/envoy/issues/2929",
        "413 during the upload",
        "an origin's 413 becomes 503",
    ),
    report(
        "https://github.com/encode/httpcore/issues/723",
        "413 and a closed connection",
        "413 of a server that closes is lost behind the error of writing",
    ),
    report(
        "https://github.com/tempesta-tech/tempesta/issues/1346",
        "flood of WINDOW_UPDATE",
        "PING and WINDOW_UPDATE without end on one connection are not limited",
    ),
    report(
        "https://github.com/amphp/http-server/issues/101",
        "flood of PING",
        "frames without effect keep the server busy",
    ),
    report(
        "https://github.com/httpwg/http2-spec/issues/112",
        "flood of PING",
        "asks for limits on PING and empty frames, and GOAWAY beyond",
    ),
    report(
        "https://github.com/scylladb/seastar/issues/3",
        "HTTP/1.0 (`ab`)",
        "`ab` hangs: the connection of a client of HTTP/1.0 is not closed",
    ),
    report(
        "https://github.com/tempesta-tech/tempesta/issues/386",
        "HTTP/1.0 (`ab`)",
        "`ab` works with `-k` alone",
    ),
    report(
        "https://github.com/NanoHttpd/nanohttpd/issues/46",
        "HTTP/1.0 (`ab`)",
        "`ab` hangs: keep-alive is said though it was not asked for",
    ),
    report(
        "https://github.com/hyperium/hyper/issues/1614",
        "HTTP/1.0 with keep-alive (`ab -k`)",
        "`ab -k` hangs: the connection is kept and the answer does not say so",
    ),
    report(
        "https://github.com/Netflix/zuul/issues/300",
        "HTTP/1.0 with keep-alive (`ab -k`)",
        "`ab -k` gets `Connection: close`",
    ),
    report(
        "https://github.com/ReactiveX/RxNetty/issues/130",
        "HTTP/1.0 with keep-alive and chunks",
        "`ab -k` waits forever for the end of a chunked response",
    ),
    report(
        "https://github.com/linkerd/linkerd/issues/1847",
        "chunks to a client of HTTP/1.0",
        "a client of HTTP/1.0 (ddclient) gets chunks, which it cannot read",
    ),
    report(
        "https://github.com/envoyproxy/envoy/issues/4891",
        "version of the request",
        "health checks by HTTP/1.0 are answered 426",
    ),
];
