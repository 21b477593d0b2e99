//! Reports as a gateway seals them, and what its leader answers. The format is that of the gateway's
//! `cluster/message.rs`; the policy's number and the service's name are taken from the report of a real
//! gateway.

use bytes::{Buf, BufMut};
use flashweir_admission::sentry::{ClassCounts, Sample};
use flashweir_core::Instant;
use ring::hmac;

/// First bytes of a report: its kind and its version.
const REPORT: &[u8; 4] = b"FWR\x01";
/// First bytes of an answer.
const BROADCAST: &[u8; 4] = b"FWB\x02";
/// The number of the key that seals.
pub(crate) const KEY_NUMBER: u8 = 1;
/// The number of the key and the tag, behind every message.
const SEAL_BYTES: usize = 33;

/// Measurements of each gateway in the 100 ms of a report, as in the measurement without a network: an
/// overload of four times.
const OFFERED: u64 = 40;
const ADMITTED: u64 = 10;
const IN_FLIGHT: u32 = 1;
/// The whole service's limit that the reports name.
const LIMIT: u32 = 1_000;

/// State that all gateways of one service share.
pub(crate) struct Service {
    key: hmac::Key,
    name: Vec<u8>,
    policy: u64,
}

/// A gateway's knowledge of its leader.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known {
    term: u64,
    /// Term and number of the last broadcast that gave it a share.
    applied: (u64, u64),
    share: f64,
}

impl Service {
    /// The first service of a report; `None` if it is not in this bench's format.
    pub(crate) fn of_report(key: hmac::Key, mut report: &[u8]) -> Option<Self> {
        report = report.strip_prefix(REPORT)?;
        let _gateway_sequence_term =
            [report.try_get_u64().ok()?, report.try_get_u64().ok()?, report.try_get_u64().ok()?];
        let _gateway_name = take_text(&mut report)?;
        let _services = report.try_get_u16().ok().filter(|count| *count > 0)?;
        let name = take_text(&mut report)?.to_owned();
        Some(Self { key, name, policy: report.try_get_u64().ok()? })
    }

    /// The report with this number of one gateway, sealed.
    pub(crate) fn report(&self, gateway: u64, sequence: u64, known: &Known) -> Vec<u8> {
        let mut to = REPORT.to_vec();
        [gateway, sequence, known.term].into_iter().for_each(|number| to.put_u64(number));
        put_text(&mut to, format!("gw-{gateway}").as_bytes());
        to.put_u16(1);
        put_text(&mut to, &self.name);
        to.put_u64(self.policy);
        to.put_u64(known.applied.0);
        to.put_u64(known.applied.1);
        to.put_f64(known.share);
        let knee_milli = 0;
        [OFFERED, ADMITTED, u64::from(IN_FLIGHT), knee_milli]
            .into_iter()
            .for_each(|number| to.put_u64(number));
        to.put_u32(LIMIT);
        let sample = flashweir_wire::encode(&sample(sequence));
        to.put_u32(sample.len() as u32);
        to.put_slice(&sample);
        to.put_u8(KEY_NUMBER);
        let tag = hmac::sign(&self.key, &to);
        to.put_slice(tag.as_ref());
        to
    }
}

impl Known {
    /// Returns whether a broadcast gave it a share.
    pub(crate) fn has_share(&self) -> bool {
        self.applied.1 > 0
    }

    /// Takes an answer, whose seal is not checked; `None` if it is not in this bench's format.
    pub(crate) fn take(&mut self, answer: &[u8]) -> Option<()> {
        let mut answer = answer.get(..answer.len().checked_sub(SEAL_BYTES)?)?.strip_prefix(BROADCAST)?;
        self.term = answer.try_get_u64().ok()?;
        let _answers = [answer.try_get_u64().ok()?, answer.try_get_u64().ok()?];
        let _leader = take_text(&mut answer)?;
        if answer.try_get_u16().ok()? == 0 {
            // It does not plan yet.
            return Some(());
        }
        let _service = take_text(&mut answer)?;
        let _policy = answer.try_get_u64().ok()?;
        let epoch = (answer.try_get_u64().ok()?, answer.try_get_u64().ok()?);
        let _limit_in_flight = (answer.try_get_f64().ok()?, answer.try_get_u32().ok()?);
        let plan_bytes = answer.try_get_u32().ok()? as usize;
        answer = answer.get(plan_bytes..)?;
        let _gateways = answer.try_get_u32().ok()?;
        if answer.try_get_u16().ok()? > 0 {
            let _gateway = answer.try_get_u64().ok()?;
            (self.applied, self.share) = (epoch, answer.try_get_f64().ok()?);
        }
        Some(())
    }
}

fn sample(sequence: u64) -> Sample {
    let class = ClassCounts {
        offered: OFFERED,
        admitted: ADMITTED,
        completed: ADMITTED,
        in_flight: IN_FLIGHT,
        ..ClassCounts::default()
    };
    let interval = super::EVERY;
    let to = Instant::from_millis(interval.as_millis() as u64 * sequence);
    Sample {
        from: to - flashweir_core::Duration::from_millis(interval.as_millis() as u64),
        to,
        offered: OFFERED,
        admitted: ADMITTED,
        completed: ADMITTED,
        shed: OFFERED - ADMITTED,
        in_flight: IN_FLIGHT,
        in_flight_nanos: interval.as_nanos() as u64,
        waiting_nanos: interval.as_nanos() as u64,
        classes: vec![class],
        ..Sample::default()
    }
}

fn put_text(to: &mut Vec<u8>, text: &[u8]) {
    to.put_u8(text.len() as u8);
    to.put_slice(text);
}

fn take_text<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(from.try_get_u8().ok()?);
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(text)
}
