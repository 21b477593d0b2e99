//! Samples and plans of the sentry, and the policy its planner is made from.

use crate::field::{
    Difference, Field, Item, choice, compared_whole, note, put_number, record, unzigzag, zigzag,
};
use crate::reader::{Fault, Problem, Reader};
use flashweir_admission::sentry::{
    BatchTest, ClassCounts, ClassPlan, ClassPolicy, Costs, Decide, Explanation, LadderStep, LevelSum,
    LongCounts, LongRequests, Plan, Policing, Policy, Published, PublishedRule, ROWS, Rule, SERVICE_TIMES,
    Sample, UrlSum,
};
use flashweir_core::limits::{CLASSES, LADDER_STEPS, URL_CLASSES, WORKERS};
use flashweir_core::measure::Histogram;
use flashweir_core::measure::histogram::{BUCKETS, Sparse};
use flashweir_limit::{CLASSES_MAX, Row};
use std::sync::Arc;

record!(Sample {
    from,
    to,
    flow,
    offered,
    admitted,
    completed,
    failed,
    left_late,
    shed,
    in_flight,
    long,
    held,
    deciding_milli,
    in_flight_nanos,
    waiting_nanos,
    latency_us,
    age_us,
    classes,
    urls,
    levels,
    rows,
});
record!(LongCounts { in_flight, completed });
record!(ClassCounts {
    offered,
    unique_offered,
    admitted,
    shed_elsewhere,
    shed,
    shed_by_test,
    shed_over_share,
    without_room,
    left,
    completed,
    good,
    service_us,
    services,
    offered_cost_us,
    shed_cost_us,
    held,
    in_flight,
    oldest_held_us,
});
record!(Plan { epoch, limit, classes, decide, knee_milli, long, costs, price, explanation });
record!(LongRequests { url_classes, limit, release_after });
record!(BatchTest { servers_milli, quantile_milli, is_whole });
record!(ClassPlan {
    rank,
    limit,
    hold_len,
    hold_for,
    standing_len,
    standing_for,
    newest_first_after,
    oldest_first_below,
    target,
    delay,
    admit_share,
    guaranteed_rate,
    retry_after,
});
record!(Costs { by_url_class_us, by_class_us, usual_us });
record!(Explanation {
    rule,
    in_flight,
    completed_rps,
    knee,
    stretch,
    response_p95_s,
    target_infeasible,
    target,
    capacity_rps,
    quantile_over_mean,
    guarantees_infeasible,
});
record!(Policy { classes, policing, target, ladder, interval });
record!(ClassPolicy { revenue, guaranteed_rate, target, queue });
record!(LadderStep { below_rps, target });
record!(Published { rule, servers, service_time, quantile_milli });
choice!(Rule, Rule::ALL);

impl Item for ClassCounts {
    const MOST: usize = CLASSES;
}

impl Item for ClassPlan {
    const MOST: usize = CLASSES;
}

impl Item for ClassPolicy {
    const MOST: usize = CLASSES;
}

impl Item for LadderStep {
    const MOST: usize = LADDER_STEPS;
}

/// Of all gates, one after the other.
impl Item for UrlSum {
    const MOST: usize = URL_CLASSES * WORKERS;
    const IS_SERIES: bool = true;
}

/// Of all gates, one after the other.
impl Item for LevelSum {
    const MOST: usize = BUCKETS * WORKERS;
    const IS_SERIES: bool = true;
}

/// URL classes of long requests.
impl Item for u16 {
    const MOST: usize = CLASSES_MAX + 1;
}

/// Of all gates, one after the other.
impl Item for Row {
    const MOST: usize = ROWS * WORKERS;
    const IS_SERIES: bool = true;
}

impl<T: Field> Field for Arc<T> {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        T::put(self, before.map(|before| &**before), out);
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        T::take(before.map(|before| &**before), from).map(Self::new)
    }

    fn is_same(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other) || T::is_same(self, other)
    }

    fn compare(&self, other: &Self, path: &str, found: &mut Vec<Difference>) {
        T::compare(self, other, path, found);
    }
}

/// Its buckets, each by its gap to the one before.
impl Field for Histogram {
    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        put_number(self.buckets().count() as u64, out);
        let mut next = 0;
        for bucket in self.buckets() {
            put_number(u64::from(bucket.index) - next, out);
            put_number(bucket.count, out);
            next = u64::from(bucket.index) + 1;
        }
    }

    fn take(_: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        let len = from.length(BUCKETS)?;
        let (mut pairs, mut next) = (Vec::with_capacity(len), 0u64);
        for _ in 0..len {
            let index = from.number()?.saturating_add(next);
            pairs.push((index, from.number()?));
            next = index.saturating_add(1);
        }
        let sparse = Sparse::from_pairs(pairs).map_err(|_| from.fault(Problem::Order))?;
        let mut dense = Self::new();
        sparse.add_to(&mut dense);
        Ok(dense)
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    fn compare(&self, other: &Self, path: &str, found: &mut Vec<Difference>) {
        if self != other {
            note(&self.count(), &other.count(), path, found);
        }
    }
}

/// As many as there are; nearly always all are zero, or a few of them.
impl Field for [u32; SERVICE_TIMES] {
    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        let used = self.iter().enumerate().filter(|&(_, &count)| count > 0);
        put_number(used.clone().fold(0, |bits, (at, _)| bits | 1 << at), out);
        used.for_each(|(_, &count)| put_number(count.into(), out));
    }

    fn take(_: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        let bits = from.length((1 << SERVICE_TIMES) - 1)?;
        let mut counts = [0; SERVICE_TIMES];
        for (_, count) in counts.iter_mut().enumerate().filter(|(at, _)| bits >> at & 1 == 1) {
            *count = u32::take(None, from)?;
        }
        Ok(counts)
    }

    compared_whole!();
}

/// Squares are written as what they are more than if all were the same: nothing for a single one.
impl Field for UrlSum {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let Self { url_class, count, latency_us, latency_us_squared, shared_us, measured_count, measured_us } =
            self;
        url_class.put(before.map(|before| &before.url_class), out);
        count.put(None, out);
        latency_us.put(None, out);
        put_number(zigzag(latency_us_squared.wrapping_sub(self.even_squares())), out);
        put_number(zigzag(shared_us.wrapping_sub(*latency_us)), out);
        measured_count.put(None, out);
        if *measured_count > 0 || *measured_us > 0 {
            measured_us.put(None, out);
        }
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        let url_class = u16::take(before.map(|before| &before.url_class), from)?;
        below(url_class, URL_CLASSES, from)?;
        let (count, latency_us) = (u32::take(None, from)?, u64::take(None, from)?);
        let mut sum = Self { url_class, count, latency_us, ..Self::default() };
        sum.latency_us_squared = unzigzag(from.number()?).wrapping_add(sum.even_squares());
        sum.shared_us = unzigzag(from.number()?).wrapping_add(latency_us);
        let measured = from.number()?;
        sum.measured_count = u32::try_from(measured)
            .map_err(|_| from.fault(Problem::TooHigh { value: measured, most: u32::MAX.into() }))?;
        if measured > 0 {
            sum.measured_us = u64::take(None, from)?;
        }
        Ok(sum)
    }

    compared_whole!();
}

/// Rows of one class follow each other; most of them are of one request in flight.
impl Field for Row {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let Self { class, bin, completed, left, in_flight } = self;
        class.put(before.map(|before| &before.class), out);
        bin.put(None, out);
        completed.put(None, out);
        left.put(None, out);
        in_flight.put(None, out);
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Self {
            class: u32::take(before.map(|before| &before.class), from)?,
            bin: u8::take(None, from)?,
            completed: u32::take(None, from)?,
            left: u32::take(None, from)?,
            in_flight: u32::take(None, from)?,
        })
    }

    compared_whole!();
}

/// A level stands for the lowest number in flight of its bucket here: below 32 that is all there is in it.
impl Field for LevelSum {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let Self { level, nanos, in_flight_nanos, completed } = self;
        level.put(before.map(|before| &before.level), out);
        nanos.put(None, out);
        put_number(zigzag(in_flight_nanos.wrapping_sub(lowest(*level).wrapping_mul(*nanos))), out);
        completed.put(None, out);
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        let level = u16::take(before.map(|before| &before.level), from)?;
        below(level, BUCKETS, from)?;
        let nanos = u64::take(None, from)?;
        let in_flight_nanos = unzigzag(from.number()?).wrapping_add(lowest(level).wrapping_mul(nanos));
        Ok(Self { level, nanos, in_flight_nanos, completed: u64::take(None, from)? })
    }

    compared_whole!();
}

fn below(place: u16, end: usize, from: &Reader<'_>) -> Result<(), Fault> {
    if usize::from(place) < end {
        return Ok(());
    }
    Err(from.fault(Problem::TooHigh { value: place.into(), most: end as u64 - 1 }))
}

fn lowest(level: u16) -> u64 {
    let level = u64::from(level);
    if level < 32 { level } else { (16 + level % 16).wrapping_shl((level / 16 - 1) as u32) }
}

trait Squares {
    /// The squares of latencies added up, if all were the same.
    fn even_squares(&self) -> u64;
}

impl Squares for UrlSum {
    fn even_squares(&self) -> u64 {
        let squares =
            u128::from(self.latency_us) * u128::from(self.latency_us) / u128::from(self.count.max(1));
        u64::try_from(squares).unwrap_or(0)
    }
}

macro_rules! variants {
    ($type:ident { $($place:literal => $variant:ident $(($held:ty))? $({ $($field:ident),+ })?),+ $(,)? }) => {
        impl Field for $type {
            fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
                $(variants!(@put self, out, $type, $place, $variant $(($held))? $({ $($field),+ })?);)+
            }

            fn take(_: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
                match from.byte()? {
                    $($place => variants!(@take from, $variant $(($held))? $({ $($field),+ })?),)+
                    byte => Err(from.fault(Problem::NoSuch { value: byte.into() })),
                }
            }

            compared_whole!();
        }
    };
    (@put $self:ident, $out:ident, $type:ident, $place:literal, $variant:ident) => {
        if matches!($self, Self::$variant) {
            $out.push($place);
        }
    };
    (@put $self:ident, $out:ident, $type:ident, $place:literal, $variant:ident ($held:ty)) => {
        if let Self::$variant(held) = $self {
            $out.push($place);
            held.put(None, $out);
        }
    };
    (@put $self:ident, $out:ident, $type:ident, $place:literal, $variant:ident { $($field:ident),+ }) => {
        if let Self::$variant { $($field),+ } = $self {
            $out.push($place);
            $($field.put(None, $out);)+
        }
    };
    (@take $from:ident, $variant:ident) => { Ok(Self::$variant) };
    (@take $from:ident, $variant:ident ($held:ty)) => { Ok(Self::$variant(<$held>::take(None, $from)?)) };
    (@take $from:ident, $variant:ident { $($field:ident),+ }) => {{
        $(let $field = $from.within(stringify!($field), |from| Field::take(None, from))?;)+
        Ok(Self::$variant { $($field),+ })
    }};
}

variants!(Decide { 0 => Reservation, 1 => Batch(BatchTest), 2 => Threshold });
variants!(Policing { 0 => Reservation, 1 => Batch, 2 => Threshold, 3 => Auto, 4 => Published(Published) });
variants!(PublishedRule {
    0 => Batch { delay_step, is_whole },
    1 => Threshold { period, newest_milli, utilisation_milli, is_capped },
    2 => Reservation { step },
});
