//! Lines of the access log, in both formats. Pure.

use super::date::Second;
use flashweir_config::AccessLogFormat;
use flashweir_core::{DecisionId, Duration, Reason};
use serde::Serialize;
use std::io::Write as _;
use std::net::IpAddr;

/// Facts of one request that has ended.
#[derive(Debug)]
pub(super) struct Record<'a> {
    /// Of the second in which its head came.
    pub(super) millis: u32,
    pub(super) client: IpAddr,
    pub(super) host: &'a [u8],
    pub(super) method: &'a [u8],
    pub(super) target: &'a [u8],
    pub(super) protocol: &'a str,
    /// 499 where the client was gone before the answer, as nginx has it.
    pub(super) status: u16,
    /// Content handed to the client, bytes.
    pub(super) bytes: u64,
    pub(super) referer: &'a [u8],
    pub(super) user_agent: &'a [u8],
    pub(super) service: Option<&'a str>,
    pub(super) class: Option<&'a str>,
    pub(super) result: &'static str,
    /// The client was handed the whole response.
    pub(super) is_complete: bool,
    pub(super) refused: Option<(DecisionId, Reason)>,
    pub(super) upstream: Option<&'a str>,
    /// From the request's head to the response's.
    pub(super) head_after: Option<Duration>,
    pub(super) total: Duration,
    /// Refused requests before this one that have no line.
    pub(super) left_out: u64,
}

/// Appends the line of a request whose head came in this second.
pub(super) fn write(format: AccessLogFormat, second: &Second, record: &Record<'_>, to: &mut Vec<u8>) {
    match format {
        AccessLogFormat::Combined => combined(second, record, to),
        AccessLogFormat::Json => json(second, record, to),
    }
}

fn combined(second: &Second, record: &Record<'_>, to: &mut Vec<u8>) {
    // Writing to a vector cannot fail, here and below.
    let _infallible = write!(to, "{} - - [{}] \"", record.client, second.combined);
    escaped(record.method, to);
    to.push(b' ');
    escaped(record.target, to);
    let _infallible = write!(to, " {}\" {} {} \"", record.protocol, record.status, record.bytes);
    escaped(or_dash(record.referer), to);
    to.extend_from_slice(b"\" \"");
    escaped(or_dash(record.user_agent), to);
    to.extend_from_slice(b"\"\n");
}

fn or_dash(value: &[u8]) -> &[u8] {
    if value.is_empty() { b"-" } else { value }
}

/// Quotes, backslashes and what is not printable as `\xHH`, so that no client can begin a line or a field.
fn escaped(value: &[u8], to: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => {
                let _infallible = write!(to, "\\x{byte:02X}");
            }
            plain => to.push(plain),
        }
    }
}

#[derive(Serialize)]
struct Json<'a> {
    time: String,
    client: IpAddr,
    host: &'a str,
    method: &'a str,
    target: &'a str,
    protocol: &'a str,
    status: u16,
    bytes: u64,
    referer: &'a str,
    user_agent: &'a str,
    service: Option<&'a str>,
    class: Option<&'a str>,
    result: &'a str,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    upstream: Option<&'a str>,
    head_after_s: Option<f64>,
    total_s: f64,
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn json(second: &Second, record: &Record<'_>, to: &mut Vec<u8>) {
    let [host, method, target, referer, user_agent] =
        [record.host, record.method, record.target, record.referer, record.user_agent]
            .map(String::from_utf8_lossy);
    let line = Json {
        time: format!("{}.{:03}Z", second.rfc3339, record.millis),
        client: record.client,
        host: &host,
        method: &method,
        target: &target,
        protocol: record.protocol,
        status: record.status,
        bytes: record.bytes,
        referer: &referer,
        user_agent: &user_agent,
        service: record.service,
        class: record.class,
        result: record.result,
        complete: record.is_complete,
        decision: record.refused.map(|(id, _)| id.to_string()),
        reason: record.refused.map(|(_, reason)| reason.as_str()),
        upstream: record.upstream,
        head_after_s: record.head_after.map(in_micros),
        total_s: in_micros(record.total),
        left_out: record.left_out,
    };
    // Strings and numbers alone: it cannot fail.
    let _infallible = serde_json::to_writer(&mut *to, &line);
    to.push(b'\n');
}

/// Seconds, to the microsecond.
fn in_micros(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn record() -> Record<'static> {
        Record {
            millis: 42,
            client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            host: b"shop.example",
            method: b"GET",
            target: b"/a?b=\"c\"\n",
            protocol: "HTTP/1.1",
            status: 200,
            bytes: 512,
            referer: b"",
            user_agent: b"Browser/1 \xff",
            service: Some("shop"),
            class: Some("everybody"),
            result: "forwarded",
            is_complete: true,
            refused: None,
            upstream: Some("http://127.0.0.1:3000/"),
            head_after: Some(Duration::from_micros(1_500)),
            total: Duration::from_micros(2_250),
            left_out: 0,
        }
    }

    fn line(format: AccessLogFormat, record: &Record<'_>) -> String {
        let mut line = Vec::new();
        write(format, &Second::at(784_111_777), record, &mut line);
        String::from_utf8(line).expect("text")
    }

    #[test]
    fn combined_is_apaches_and_no_client_can_begin_a_field_or_a_line() {
        let expected = "192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /a?b=\\x22c\\x22\\x0A HTTP/1.1\" 200 512 \"-\" \
                        \"Browser/1 \\xFF\"\n";
        assert_eq!(line(AccessLogFormat::Combined, &record()), expected);
    }

    #[test]
    fn json_has_what_was_decided_and_the_times() {
        let of = |record: &Record<'_>| -> serde_json::Value {
            serde_json::from_str(&line(AccessLogFormat::Json, record)).expect("JSON")
        };
        let served = of(&record());
        assert_eq!(served["time"], "1994-11-06T08:49:37.042Z");
        assert_eq!((&served["head_after_s"], &served["total_s"]), (&0.0015.into(), &0.00225.into()));
        assert_eq!((&served["target"], &served["complete"]), (&"/a?b=\"c\"\n".into(), &true.into()));
        assert!(served.get("decision").is_none() && served.get("left_out").is_none());
        let refused = Some((DecisionId::new(1, 2, 3), Reason::Capacity));
        let refused = of(&Record { refused, left_out: 7, upstream: None, ..record() });
        assert_eq!((&refused["reason"], &refused["left_out"]), (&"capacity".into(), &7.into()));
        assert_eq!(refused["decision"], DecisionId::new(1, 2, 3).to_string());
    }
}
