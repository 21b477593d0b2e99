//! `Flashweir-Overload` and load reports of upstreams: what is accepted is written back as the same bytes, a
//! changed tag is never accepted, and a report that is not in order is counted and nothing else.

use flashweir_feedback::{Field, FieldError, KeyRing, Mac};
use flashweir_gateway::take_load_report;
use flashweir_telemetry::UpstreamMetrics;
use http::{HeaderMap, HeaderValue};
use ring::hmac;

const CONTEXT: &[u8] = b"edge to node";
/// An hour, the longest time a report may name.
const TOOK_US_MAX: u32 = 3_600_000_000;
/// A hundred times busy, the highest utilisation.
const UTILISATION_MILLI_MAX: u32 = 100_000;

pub(crate) fn run(data: &[u8]) {
    overload(data);
    load_report(data);
}

fn overload(value: &[u8]) {
    let unsigned = KeyRing::<fn(&[&[u8]]) -> [u8; 32]>::empty();
    let Ok(feedback) = Field::parse(value, &unsigned, CONTEXT) else { return };
    let written = Field::new(&feedback, &unsigned, CONTEXT).expect("what was accepted may be said");
    assert_eq!(written.as_bytes(), value, "one message has one spelling");
    let keys = KeyRing::new(vec![(7, sha256(b"key of a test"))]).expect("a ring");
    assert_eq!(Field::parse(value, &keys, CONTEXT), Err(FieldError::Untagged));
    let signed = Field::new(&feedback, &keys, CONTEXT).expect("what was accepted may be said");
    assert_eq!(Field::parse(signed.as_bytes(), &keys, CONTEXT), Ok(feedback));
    assert_eq!(Field::parse(signed.as_bytes(), &keys, b"another"), Err(FieldError::Forged));
    let mut changed = signed.as_bytes().to_vec();
    let at = 1 + value.iter().map(|byte| usize::from(*byte)).sum::<usize>() % (changed.len() - 2);
    changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
    assert!(Field::parse(&changed, &keys, CONTEXT).is_err(), "a changed message is accepted");
}

fn sha256(secret: &[u8]) -> impl Mac {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    move |parts: &[&[u8]]| {
        let mut context = hmac::Context::with_key(&key);
        parts.iter().for_each(|part| context.update(part));
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }
}

/// Lines are values of the field that their first byte chooses.
fn load_report(data: &[u8]) {
    const NAMES: [&str; 4] = [
        "server-timing",
        "endpoint-load-metrics",
        "endpoint-load-metrics-bin",
        "x-endpoint-load-metrics-bin",
    ];
    let (mut fields, metrics) = (HeaderMap::new(), UpstreamMetrics::default());
    for line in data.split(|&byte| byte == b'\n').take(8) {
        let Ok(value) = HeaderValue::from_bytes(line) else { return };
        let name = NAMES[usize::from(line.first().copied().unwrap_or(0)) % NAMES.len()];
        fields.append(name, value);
    }
    let timings = fields.get_all(NAMES[0]).iter().count();
    let (took_us, utilisation_milli) = take_load_report(&mut fields, &metrics);
    assert!(took_us.is_none_or(|took| took <= TOOK_US_MAX), "{took_us:?}");
    assert!(utilisation_milli.is_none_or(|milli| milli <= UTILISATION_MILLI_MAX), "{utilisation_milli:?}");
    assert_eq!(fields.len(), timings, "only Server-Timing is for the client");
    assert!(metrics.load_reports.total() <= NAMES.len() as u64, "each field is counted once");
}
