//! The whole crowd's schedule: who comes when, merged from the streams of all classes.

use crate::arrivals::{ArrivalProcess, Moments};
use flashweir_core::Rng;
use flashweir_core::limits::SCHEDULE_STREAMS;
use std::fmt;
use std::time::Duration;

/// One arrival process whose people belong to one or several classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Arrival process.
    pub arrivals: ArrivalProcess,
    /// The classes they belong to, each person drawn by weight.
    pub classes: Vec<Share>,
}

/// A class's share of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The class's number; the caller's list of classes says which.
    pub class: u16,
    /// Number of its people, in proportion to the sum of the stream's weights; finite and not negative.
    pub weight: f64,
}

/// Arrival times of each person of each class, decided by the streams and the seed alone.
///
/// Each stream draws from its own generator, so changing one leaves the others' people where they were.
/// Nothing is held in memory: each walk through it draws it again.
///
/// ```
/// use flashweir_workload::{ArrivalProcess, Part, RateProfile, Schedule, Share, Stream};
/// use std::time::Duration;
/// let profile = RateProfile::constant(100.0, Duration::from_secs(10))?;
/// let classes = vec![Share { class: 0, weight: 9.0 }, Share { class: 1, weight: 1.0 }];
/// let schedule = Schedule::new(vec![Stream { arrivals: ArrivalProcess::Poisson(profile), classes }], 7)?;
/// let buyers = schedule.arrivals().filter(|arrival| arrival.class == 1).count();
/// assert!((50..150).contains(&buyers));
/// // The second of two machines runs four threads; this is what its first thread sends.
/// let machine = Part::new(1, 2).ok_or("no such part")?;
/// let thread = machine.within(Part::new(0, 4).ok_or("no such part")?);
/// assert!(schedule.part(thread).all(|arrival| arrival.ordinal % 8 == 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    streams: Vec<Stream>,
    seed: u64,
}

/// The streams make no schedule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// None, or too many.
    #[error("{0} arrival streams: expected 1 to {SCHEDULE_STREAMS}")]
    Streams(usize),
    /// A weight that is negative, infinite or not a number.
    #[error("{weight} is not the weight of class {class}: expected a finite number, zero or more")]
    Weight {
        /// The class.
        class: u16,
        /// Its weight.
        weight: f64,
    },
    /// A stream whose people belong to no class.
    #[error("stream {0} (counted from 0) has no class with a weight above zero")]
    NoClass(usize),
}

/// One person's coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time from the start of the run.
    pub moment: Duration,
    /// The class they belong to.
    pub class: u16,
    /// Number of the person within the class, from 0.
    pub person: u64,
    /// Number of the arrival within the whole schedule, from 0.
    pub ordinal: u64,
}

/// A part of a schedule: every `count`-th arrival from the `index`-th on.
///
/// Machines and threads each take a part without talking: together they have every arrival once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    index: u64,
    count: u64,
}

impl Schedule {
    /// The schedule of these streams.
    ///
    /// # Errors
    /// No streams or more than [`SCHEDULE_STREAMS`], a weight that is none, or a stream without a class.
    pub fn new(streams: Vec<Stream>, seed: u64) -> Result<Self, ScheduleError> {
        if streams.is_empty() || streams.len() > SCHEDULE_STREAMS {
            return Err(ScheduleError::Streams(streams.len()));
        }
        for (index, stream) in streams.iter().enumerate() {
            let wrong =
                stream.classes.iter().find(|share| !(share.weight.is_finite() && share.weight >= 0.0));
            if let Some(Share { class, weight }) = wrong.copied() {
                return Err(ScheduleError::Weight { class, weight });
            }
            if !stream.classes.iter().any(|share| share.weight > 0.0) {
                return Err(ScheduleError::NoClass(index));
            }
        }
        Ok(Self { streams, seed })
    }

    /// One process, all people of class 0.
    #[must_use]
    pub fn one(arrivals: ArrivalProcess, seed: u64) -> Self {
        Self { streams: vec![Stream { arrivals, classes: vec![Share { class: 0, weight: 1.0 }] }], seed }
    }

    /// All arrivals, in order of moment; at equal moments the earlier stream first. Beyond what the processes
    /// cost themselves, each arrival costs about 5 ns for each stream.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals<'_> {
        let root = Rng::new(self.seed);
        let sources: Vec<_> = self
            .streams
            .iter()
            .enumerate()
            .map(|(index, stream)| Source::new(stream, &root, index))
            .collect();
        let classes = self.classes().last().map_or(0, |last| usize::from(*last) + 1);
        Arrivals { sources, people: vec![0; classes], ordinal: 0 }
    }

    /// The arrivals of a part. Walks through all arrivals all the same, for each person's number within the
    /// class depends on all who came before.
    pub fn part(&self, part: Part) -> impl Iterator<Item = Arrival> + Send + '_ {
        let mut next = part.index;
        self.arrivals().filter(move |arrival| {
            let mine = arrival.ordinal == next;
            if mine {
                next = next.saturating_add(part.count);
            }
            mine
        })
    }

    /// The same with every stream at its mean rate throughout, for estimates of burstiness; see
    /// [`ArrivalProcess::evened`].
    #[must_use]
    pub fn evened(&self) -> Self {
        let even =
            |stream: &Stream| Stream { arrivals: stream.arrivals.evened(), classes: stream.classes.clone() };
        Self { streams: self.streams.iter().map(even).collect(), seed: self.seed }
    }

    /// The streams.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// The classes people may belong to, ascending, each once.
    #[must_use]
    pub fn classes(&self) -> Vec<u16> {
        let shares = self.streams.iter().flat_map(|stream| &stream.classes);
        let mut classes: Vec<_> =
            shares.filter(|share| share.weight > 0.0).map(|share| share.class).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Length of the arrivals, in the longest stream.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.streams.iter().map(|stream| stream.arrivals.length()).max().unwrap_or_default()
    }

    /// Expected number of people.
    #[must_use]
    pub fn expected(&self) -> f64 {
        self.streams.iter().map(|stream| stream.arrivals.expected()).sum()
    }
}

/// `I/N`, counted from 1 as people do.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.count)
    }
}

impl Part {
    /// Everything.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// The `index`-th (from 0) of `count` parts; `None` unless there is such a one.
    #[must_use]
    pub fn new(index: u32, count: u32) -> Option<Self> {
        (index < count).then_some(Self { index: index.into(), count: count.into() })
    }

    /// A part of this part: a thread's of a machine's. Numbers beyond what a schedule can have stay there.
    #[must_use]
    pub fn within(self, inner: Self) -> Self {
        Self {
            index: self.index.saturating_add(self.count.saturating_mul(inner.index)),
            count: self.count.saturating_mul(inner.count),
        }
    }
}

/// All arrivals of a schedule in order; made by [`Schedule::arrivals`].
#[derive(Clone, Debug)]
pub struct Arrivals<'a> {
    sources: Vec<Source<'a>>,
    /// People so far, for each class by number.
    people: Vec<u64>,
    ordinal: u64,
}

impl Iterator for Arrivals<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        // The first of several equal ones, so that the order is certain; streams that are over come last.
        let source = self.sources.iter_mut().min_by_key(|source| (source.next.is_none(), source.next))?;
        let moment = source.next?;
        source.next = source.moments.next();
        let class = source.class();
        let person = &mut self.people[usize::from(class)];
        let arrival = Arrival { moment, class, person: *person, ordinal: self.ordinal };
        *person += 1;
        self.ordinal += 1;
        Some(arrival)
    }
}

/// A stream under way.
#[derive(Clone, Debug)]
struct Source<'a> {
    moments: Moments<'a>,
    next: Option<Duration>,
    rng: Rng,
    /// Each class and the sum of weights up to and with it; those without weight are left out.
    shares: Vec<(u16, f64)>,
}

impl<'a> Source<'a> {
    fn new(stream: &'a Stream, root: &Rng, index: usize) -> Self {
        let own = root.fork(index as u64);
        let mut moments = stream.arrivals.moments(own.fork(0).next_u64());
        let weighted = stream.classes.iter().filter(|share| share.weight > 0.0);
        let mut sum = 0.0;
        let shares = weighted.map(|share| {
            sum += share.weight;
            (share.class, sum)
        });
        Self { next: moments.next(), moments, shares: shares.collect(), rng: own.fork(1) }
    }

    fn class(&mut self) -> u16 {
        // `Schedule::new` and `one` see to it that every stream has a class with weight.
        let (last, total) = *self.shares.last().expect("a stream with a class");
        if self.shares.len() == 1 {
            return last;
        }
        let drawn = self.rng.unit_f64() * total;
        self.shares.iter().find(|(_, sum)| drawn < *sum).map_or(last, |(class, _)| *class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::RateProfile;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn poisson(rate: f64, length: Duration) -> ArrivalProcess {
        ArrivalProcess::Poisson(RateProfile::constant(rate, length).unwrap())
    }

    fn shares(weights: &[(u16, f64)]) -> Vec<Share> {
        weights.iter().map(|(class, weight)| Share { class: *class, weight: *weight }).collect()
    }

    fn mixed(seed: u64) -> Schedule {
        let given = ArrivalProcess::given([1, 1, 3].map(|second| second * SECOND)).unwrap();
        let streams = vec![
            Stream { arrivals: poisson(40.0, 5 * SECOND), classes: shares(&[(0, 3.0), (4, 1.0), (2, 0.0)]) },
            Stream { arrivals: given, classes: shares(&[(1, 1.0)]) },
            Stream { arrivals: poisson(20.0, 2 * SECOND), classes: shares(&[(4, 1.0), (0, 1.0)]) },
        ];
        Schedule::new(streams, seed).unwrap()
    }

    #[test]
    fn streams_are_merged_in_order_and_people_counted_by_class() {
        let schedule = mixed(3);
        assert_eq!((schedule.length(), schedule.expected()), (5 * SECOND, 243.0));
        assert_eq!(schedule.classes(), [0, 1, 4]);
        let arrivals: Vec<_> = schedule.arrivals().collect();
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.moment));
        assert!(arrivals.iter().zip(0..).all(|(arrival, ordinal)| arrival.ordinal == ordinal));
        for class in [0, 1, 4] {
            let people =
                arrivals.iter().filter(|arrival| arrival.class == class).map(|arrival| arrival.person);
            assert!(people.eq(0..arrivals.iter().filter(|arrival| arrival.class == class).count() as u64));
        }
        let given = arrivals.iter().filter(|arrival| arrival.class == 1).map(|arrival| arrival.moment);
        assert!(given.eq([1, 1, 3].map(|second| second * SECOND)));
    }

    /// The draws of each stream depend on its place and the seed, not on its neighbours.
    #[test]
    fn a_stream_comes_as_it_would_alone() {
        let alone = Schedule::new(mixed(3).streams()[..1].to_vec(), 3).unwrap();
        let mut together = mixed(3).arrivals().map(|arrival| arrival.moment).collect::<Vec<_>>();
        for arrival in alone.arrivals() {
            let place = together.iter().position(|moment| *moment == arrival.moment);
            together.remove(place.unwrap());
        }
        assert!(!together.is_empty());
    }

    #[test]
    fn classes_come_by_weight_and_equal_moments_by_stream() {
        let streams = vec![Stream { arrivals: poisson(1e5, SECOND), classes: shares(&[(7, 1.0), (3, 3.0)]) }];
        let schedule = Schedule::new(streams, 1).unwrap();
        let (all, seventh) =
            (schedule.arrivals().count(), schedule.arrivals().filter(|a| a.class == 7).count());
        // Five standard deviations of a share of a quarter.
        assert!((seventh as f64 / all as f64 - 0.25).abs() < 5.0 * (0.1875 / all as f64).sqrt());
        let at_once = ArrivalProcess::given(vec![SECOND; 2]).unwrap();
        let streams =
            [5, 2, 9].map(|class| Stream { arrivals: at_once.clone(), classes: shares(&[(class, 1.0)]) });
        let classes: Vec<_> =
            Schedule::new(streams.to_vec(), 1).unwrap().arrivals().map(|a| a.class).collect();
        assert_eq!(classes, [5, 5, 2, 2, 9, 9]);
    }

    #[test]
    fn streams_that_make_no_schedule_are_refused() {
        let new = |weights: &[(u16, f64)]| {
            let stream = Stream { arrivals: poisson(1.0, SECOND), classes: shares(weights) };
            Schedule::new(vec![stream], 0).map(|schedule| schedule.classes())
        };
        assert_eq!(Schedule::new(vec![], 0), Err(ScheduleError::Streams(0)));
        assert_eq!(new(&[(3, 0.0)]), Err(ScheduleError::NoClass(0)));
        assert_eq!(new(&[]), Err(ScheduleError::NoClass(0)));
        assert_eq!(new(&[(3, -1.0)]), Err(ScheduleError::Weight { class: 3, weight: -1.0 }));
        assert_eq!((Part::new(2, 2), Part::new(0, 0)), (None, None));
    }

    #[test]
    fn an_arrival_iterator_may_go_to_a_thread() {
        fn sendable<T: Send>(_: &T) {}
        let schedule = mixed(1);
        sendable(&schedule.arrivals());
        sendable(&schedule.part(Part::WHOLE));
    }

    proptest! {
        /// Machines and their threads together send the whole schedule, each arrival once, for any number of
        /// them.
        #[test]
        fn parts_make_up_the_whole(seed: u64, machines in 1u32..6, threads in 1u32..6) {
            let schedule = mixed(seed);
            let mut union: Vec<Arrival> = Vec::new();
            for machine in 0..machines {
                for thread in 0..threads {
                    let part = Part::new(machine, machines).unwrap().within(Part::new(thread, threads).unwrap());
                    union.extend(schedule.part(part));
                }
            }
            union.sort_by_key(|arrival| arrival.ordinal);
            prop_assert!(union.into_iter().eq(schedule.arrivals()));
            prop_assert!(schedule.arrivals().eq(mixed(seed).arrivals()));
        }
    }
}
