//! Samples and plans of flash crowds, and what their planner is made from.

use crate::field::{Difference, Field, Item, choice, compared_whole, note, put_number, record};
use crate::reader::{Fault, Problem, Reader};
use flashweir_admission::Flow;
use flashweir_admission::flash_crowd::{
    Baseline, Cause, Counted, Explanation, HostCount, HotSpotLimit, LatencyCell, Limit, Mode, Plan,
    PlannerMode, RateCell, Rule, Sample, Settings, UNCLASSED,
};
use flashweir_core::Rate;
use flashweir_core::limits::{
    HOT_SPOT_ENTRIES, HOT_SPOTS_LIMITED, LATENCY_CELLS, LATENCY_CELLS_UNCLASSED, RATE_CELLS, URL_CLASSES,
};
use flashweir_core::measure::log_buckets::BUCKETS;

record!(Sample {
    gate,
    from,
    to,
    flow,
    unique_offered,
    entered,
    handed_over,
    completed,
    unfinished,
    hosts,
    evidence_from,
    latencies,
    rates,
    responses_unclassed,
});
record!(Flow { offered, admitted, refused_by_self, refused_by_earlier, refused_by_later });
record!(HostCount { key, hits });
record!(Plan { epoch, limit, hot_hosts, gate_shares_milli, evidence_from, retry_after, explanation });
record!(HotSpotLimit { key, rate });
record!(Explanation {
    mode,
    cause,
    rule,
    ceiling_rps,
    quality,
    fast_rate_bytes_per_s,
    fast_rate_reference,
    fast_score,
    fast_score_reference,
    margin,
    offered_rps,
    unique_offered_rps,
    unique_offered_reference_rps,
    admitted_rps,
    completed_rps,
    responses,
});
record!(Settings { mode, interval, margin, gates, hot_spots, shadow });
record!(Baseline { unique_offered_rps, fast_rate_bytes_per_s, fast_score, latency_by_class_s });
choice!(Mode, Mode::ALL);
choice!(Cause, Cause::ALL);
choice!(Rule, Rule::ALL);
choice!(PlannerMode, &[PlannerMode::Paper, PlannerMode::Scoreboard, PlannerMode::Repaired]);

impl Item for HostCount {
    const MOST: usize = HOT_SPOT_ENTRIES;
}

impl Item for HotSpotLimit {
    const MOST: usize = HOT_SPOTS_LIMITED;
}

/// Keys of hot hosts.
impl Item for u64 {
    const MOST: usize = HOT_SPOTS_LIMITED;
}

impl Item for LatencyCell {
    const MOST: usize = LATENCY_CELLS + LATENCY_CELLS_UNCLASSED;
    const IS_SERIES: bool = true;
}

impl Item for RateCell {
    const MOST: usize = RATE_CELLS;
    const IS_SERIES: bool = true;
}

/// Shares of gates, and costs by class of URLs.
impl Item for u32 {
    const MOST: usize = URL_CLASSES;
}

/// Medians by latency class.
impl Item for (u16, f64) {
    const MOST: usize = URL_CLASSES;
}

impl Field for (u16, f64) {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        self.0.put(before.map(|before| &before.0), out);
        self.1.put(None, out);
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok((u16::take(before.map(|before| &before.0), from)?, f64::take(None, from)?))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0 && self.1.is_same(&other.1)
    }

    fn compare(&self, other: &Self, path: &str, found: &mut Vec<Difference>) {
        if !self.is_same(other) {
            note(self, other, path, found);
        }
    }
}

impl Field for Limit {
    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        match self {
            Self::Open => out.push(0),
            Self::All(rate) => {
                out.push(1);
                rate.put(None, out);
            }
            Self::HotSpots(spots) => {
                out.push(2);
                spots.put(None, out);
            }
        }
    }

    fn take(_: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        match from.byte()? {
            0 => Ok(Self::Open),
            1 => Ok(Self::All(Rate::take(None, from)?)),
            2 => Ok(Self::HotSpots(Vec::take(None, from)?)),
            byte => Err(from.fault(Problem::NoSuch { value: byte.into() })),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    fn compare(&self, other: &Self, path: &str, found: &mut Vec<Difference>) {
        match (self, other) {
            (Self::HotSpots(one), Self::HotSpots(other)) => one.compare(other, path, found),
            (one, other) if one != other => note(one, other, path, found),
            _ => {}
        }
    }
}

/// Nearly always one number: few responses are from before the limit in force.
fn put_count(count: Counted, out: &mut Vec<u8>) {
    put_number(u64::from(count.since) << 1 | u64::from(count.before > 0), out);
    if count.before > 0 {
        put_number(count.before.into(), out);
    }
}

fn take_count(from: &mut Reader<'_>) -> Result<Counted, Fault> {
    let number = from.number()?;
    let narrow = |value: u64| {
        u32::try_from(value).map_err(|_| from.fault(Problem::TooHigh { value, most: u32::MAX.into() }))
    };
    let since = narrow(number >> 1)?;
    let before = if number & 1 == 0 { 0 } else { u32::take(None, from)? };
    Ok(Counted { before, since })
}

/// A bucket after another one, or from the first on.
fn take_bucket(after: Option<u16>, gap: u64, from: &Reader<'_>) -> Result<u16, Fault> {
    if gap == 0 && after.is_some() {
        return Err(from.fault(Problem::Order));
    }
    let bucket = gap.saturating_add(after.map_or(0, u64::from));
    let known = u16::try_from(bucket).ok().filter(|&bucket| usize::from(bucket) < BUCKETS);
    known.ok_or_else(|| from.fault(Problem::TooHigh { value: bucket, most: BUCKETS as u64 - 1 }))
}

/// After another cell: twice the gap to its bucket, or one more than twice the gap to its class and then the
/// bucket.
impl Field for LatencyCell {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        match before {
            Some(before) if before.class == self.class => {
                put_number(u64::from(self.bucket.wrapping_sub(before.bucket)) << 1, out);
            }
            before => {
                let gap = self.class.wrapping_sub(before.map_or(0, |before| before.class));
                put_number(u64::from(gap) << 1 | 1, out);
                put_number(self.bucket.into(), out);
            }
        }
        put_count(self.count, out);
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        let gap = from.number()?;
        let (class, bucket) = match before {
            Some(before) if gap & 1 == 0 => (before.class, take_bucket(Some(before.bucket), gap >> 1, from)?),
            None if gap & 1 == 0 => return Err(from.fault(Problem::Order)),
            before => {
                let class = (gap >> 1).saturating_add(before.map_or(0, |before| before.class.into()));
                let known = u16::try_from(class).ok().filter(|&class| class <= UNCLASSED);
                let most = UNCLASSED.into();
                let known = known.ok_or_else(|| from.fault(Problem::TooHigh { value: class, most }))?;
                if before.is_some_and(|before| before.class == known) {
                    return Err(from.fault(Problem::Order));
                }
                let bucket = from.number()?;
                (known, take_bucket(None, bucket, from)?)
            }
        };
        Ok(Self { class, bucket, count: take_count(from)? })
    }

    compared_whole!();
}

impl Field for RateCell {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_number(self.bucket.wrapping_sub(before.map_or(0, |before| before.bucket)).into(), out);
        put_count(self.count, out);
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        let gap = from.number()?;
        let bucket = take_bucket(before.map(|before| before.bucket), gap, from)?;
        Ok(Self { bucket, count: take_count(from)? })
    }

    compared_whole!();
}
