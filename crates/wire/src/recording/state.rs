//! Last values of each stream, against which records are written as changes. Writer and reader keep the same.

use super::put_text;
use super::record::{Event, Planned, Record, Stream, fingerprint, orders_same, sentry_orders_same};
use crate::field::{Field, put_number};
use crate::reader::{Fault, Problem, Reader};
use flashweir_admission::{flash_crowd, sentry};
use flashweir_core::limits::{RECORDING_NAME_BYTES, RECORDING_STREAMS, WORKERS};
use flashweir_core::{Duration, Instant};
use std::collections::BTreeMap;

/// The last values of all streams, at most [`RECORDING_STREAMS`].
#[derive(Debug, Default)]
pub(super) struct State {
    at: Instant,
    streams: BTreeMap<Stream, Last>,
}

/// The last values of one stream.
#[derive(Debug, Default)]
struct Last {
    /// By gate.
    flash_crowd_samples: Vec<flash_crowd::Sample>,
    flash_crowd_plan: Option<flash_crowd::Plan>,
    sentry_sample: Option<sentry::Sample>,
    sentry_plan: Option<sentry::Plan>,
    /// Time at which the last whole plan was written.
    whole_at: Instant,
}

/// Between whole plans that order the same there are only fingerprints: most of a plan is measurements, which
/// a replay makes again, and fifty plans a second of the sentry would be half of a recording.
const WHOLE_PLAN_EVERY: Duration = Duration::from_secs(1);

const BEGIN_FLASH_CROWD: u8 = 0;
const BEGIN_SENTRY: u8 = 1;
const FLASH_CROWD_SAMPLE: u8 = 2;
const SENTRY_SAMPLE: u8 = 3;
const FLASH_CROWD_PLAN: u8 = 4;
const SENTRY_PLAN: u8 = 5;
const LOST: u8 = 6;
const FINGERPRINT: u8 = 7;
/// Of the number that begins a record.
const KIND_BITS: u32 = 4;

impl State {
    pub(super) fn put(&mut self, record: &Record, out: &mut Vec<u8>) {
        let last = self.streams.entry(record.stream).or_default();
        let mark = last.fingerprint(record);
        let kind = if mark.is_some() { FINGERPRINT } else { kind(&record.event) };
        put_number(u64::from(record.stream.0) << KIND_BITS | u64::from(kind), out);
        record.at.put(Some(&self.at), out);
        self.at = record.at;
        if let Some(mark) = mark {
            out.extend(mark.to_be_bytes());
            return;
        }
        match &record.event {
            Event::Begin { name, planner, goes_on } => {
                put_text(name, RECORDING_NAME_BYTES, out);
                goes_on.put(None, out);
                match planner {
                    Planned::FlashCrowd(settings, baseline) => {
                        settings.put(None, out);
                        baseline.put(None, out);
                    }
                    Planned::Sentry(policy) => policy.put(None, out),
                }
            }
            Event::FlashCrowdSample(sample) => {
                sample.gate.put(None, out);
                let expected = last.gate(sample.gate).map(expected);
                sample.put(expected.as_ref(), out);
                last.keep(sample);
            }
            Event::SentrySample(sample) => {
                let expected = last.sentry_sample.as_ref().map(expected_of_sentry);
                sample.put(expected.as_ref(), out);
                last.sentry_sample = Some(sample.clone());
            }
            Event::FlashCrowdPlan(plan) => {
                plan.put(last.flash_crowd_plan.as_ref(), out);
                last.flash_crowd_plan = Some(plan.clone());
                last.whole_at = record.at;
            }
            Event::SentryPlan(plan) => {
                plan.put(last.sentry_plan.as_ref(), out);
                last.sentry_plan = Some(plan.clone());
                last.whole_at = record.at;
            }
            Event::Fingerprint(mark) => out.extend(mark.to_be_bytes()),
            Event::Lost(count) => count.put(None, out),
        }
    }

    pub(super) fn take(&mut self, from: &mut Reader<'_>) -> Result<Record, Fault> {
        let number = from.number()?;
        let stream =
            u16::try_from(number >> KIND_BITS).ok().filter(|&stream| usize::from(stream) < RECORDING_STREAMS);
        let most = RECORDING_STREAMS as u64 - 1;
        let stream =
            stream.ok_or_else(|| from.fault(Problem::TooHigh { value: number >> KIND_BITS, most }))?;
        let at = Instant::take(Some(&self.at), from)?;
        self.at = at;
        let last = self.streams.entry(Stream(stream)).or_default();
        let event = match number as u8 & 15 {
            kind @ (BEGIN_FLASH_CROWD | BEGIN_SENTRY) => {
                let (name, goes_on) = (from.text(RECORDING_NAME_BYTES)?, bool::take(None, from)?);
                let planner = if kind == BEGIN_FLASH_CROWD {
                    Planned::FlashCrowd(Field::take(None, from)?, Field::take(None, from)?)
                } else {
                    Planned::Sentry(Field::take(None, from)?)
                };
                Event::Begin { name, planner, goes_on }
            }
            FLASH_CROWD_SAMPLE => {
                let gate = from.length(WORKERS - 1)?;
                let expected = last.gate(gate).map(expected);
                let sample = flash_crowd::Sample::take(expected.as_ref(), from)?;
                if sample.gate != gate {
                    return Err(from.fault(Problem::Order));
                }
                last.keep(&sample);
                Event::FlashCrowdSample(sample)
            }
            SENTRY_SAMPLE => {
                let expected = last.sentry_sample.as_ref().map(expected_of_sentry);
                let sample = sentry::Sample::take(expected.as_ref(), from)?;
                last.sentry_sample = Some(sample.clone());
                Event::SentrySample(sample)
            }
            FLASH_CROWD_PLAN => {
                let plan = flash_crowd::Plan::take(last.flash_crowd_plan.as_ref(), from)?;
                last.flash_crowd_plan = Some(plan.clone());
                Event::FlashCrowdPlan(plan)
            }
            SENTRY_PLAN => {
                let plan = sentry::Plan::take(last.sentry_plan.as_ref(), from)?;
                last.sentry_plan = Some(plan.clone());
                Event::SentryPlan(plan)
            }
            FINGERPRINT => Event::Fingerprint(u32::from_be_bytes(from.bytes()?)),
            LOST => Event::Lost(u64::take(None, from)?),
            kind => return Err(from.fault(Problem::NoSuch { value: kind.into() })),
        };
        Ok(Record { at, stream: Stream(stream), event })
    }
}

impl Last {
    fn gate(&self, gate: usize) -> Option<&flash_crowd::Sample> {
        self.flash_crowd_samples.get(gate).filter(|before| before.to > Instant::ZERO)
    }

    /// Of a plan that is not written whole.
    fn fingerprint(&self, record: &Record) -> Option<u32> {
        if record.at.saturating_since(self.whole_at) >= WHOLE_PLAN_EVERY {
            return None;
        }
        match &record.event {
            Event::FlashCrowdPlan(plan) => {
                let before = self.flash_crowd_plan.as_ref()?;
                orders_same(before, plan).then(|| fingerprint(plan))
            }
            Event::SentryPlan(plan) => {
                let before = self.sentry_plan.as_ref()?;
                sentry_orders_same(before, plan).then(|| fingerprint(plan))
            }
            _ => None,
        }
    }

    /// Only gates below [`WORKERS`] are recorded.
    fn keep(&mut self, sample: &flash_crowd::Sample) {
        let len = self.flash_crowd_samples.len().max(sample.gate + 1);
        self.flash_crowd_samples.resize(len, flash_crowd::Sample::default());
        self.flash_crowd_samples[sample.gate] = sample.clone();
    }
}

/// The sample expected after `before`: it begins where that one ended and takes as long.
fn expected(before: &flash_crowd::Sample) -> flash_crowd::Sample {
    let to = before.to + before.to.saturating_since(before.from);
    flash_crowd::Sample { from: before.to, to, latencies: Vec::new(), rates: Vec::new(), ..before.clone() }
}

fn expected_of_sentry(before: &sentry::Sample) -> sentry::Sample {
    let to = before.to + before.to.saturating_since(before.from);
    sentry::Sample { from: before.to, to, urls: Vec::new(), levels: Vec::new(), ..before.clone() }
}

fn kind(event: &Event) -> u8 {
    match event {
        Event::Begin { planner: Planned::FlashCrowd(..), .. } => BEGIN_FLASH_CROWD,
        Event::Begin { planner: Planned::Sentry(_), .. } => BEGIN_SENTRY,
        Event::FlashCrowdSample(_) => FLASH_CROWD_SAMPLE,
        Event::SentrySample(_) => SENTRY_SAMPLE,
        Event::FlashCrowdPlan(_) => FLASH_CROWD_PLAN,
        Event::SentryPlan(_) => SENTRY_PLAN,
        Event::Fingerprint(_) => FINGERPRINT,
        Event::Lost(_) => LOST,
    }
}
