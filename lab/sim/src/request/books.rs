//! Counts of tries by result: in the terms of the load tool, with the gate's and the server's part beside the
//! client's.

use super::gate::ShedReason;
use flashweir_core::measure::Histogram;
use flashweir_core::{Duration, Instant};

/// Tries counted by what became of them.
/// `offered = completed + refused + timed_out + abandoned + broken + in flight`.
///
/// All are counted where the try began; `admitted` and `shed` are what the gate decided about them, whether
/// or not the client was still there to hear of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tries that began.
    pub offered: u64,
    /// Requests: the same, with the tries of one person for one answer counted once.
    pub unique_offered: u64,
    /// Let in by the gate.
    pub admitted: u64,
    /// Refused by the gate, in the order of [`ShedReason::all`].
    pub shed: [u64; ShedReason::COUNT],
    /// Admitted, and refused by the server itself.
    pub server_refused: u64,
    /// Whole answers in time.
    pub completed: u64,
    /// Of these, within the target.
    pub goodput: u64,
    /// Refusals, the gate's or the server's, that the client heard in time.
    pub refused: u64,
    /// Tries given up by the client before the whole answer; the person may try again.
    pub timed_out: u64,
    /// Tries under way when the person lost patience and left.
    pub abandoned: u64,
    /// Tries that broke: the server was down, or went down, or TCP made no connection or gave it up.
    pub broken: u64,
    /// Latencies of the completed, summed, nanoseconds (from the moment a try was to begin to its whole
    /// answer).
    pub latency_nanos: u64,
}

/// End of a try for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Completed,
    Refused,
    TimedOut,
    Abandoned,
    Broken,
}

/// One class's book.
#[derive(Clone, Debug)]
pub(super) struct ClassBook {
    pub(super) totals: Counts,
    pub(super) bins: Vec<Counts>,
    pub(super) latency: Histogram,
    pub(super) refusal: Histogram,
    pub(super) served: Histogram,
    good_within: Duration,
}

/// The books of all classes.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) classes: Vec<ClassBook>,
    bin_nanos: u64,
    /// The bin of now, kept because tries begin in the order of time.
    bin: u32,
    bin_ends_at: u64,
}

/// Cell in which a try is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) class: u16,
    bin: u32,
}

/// Times of the events of a try that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) intended: Instant,
    pub(super) first_asked: Instant,
    pub(super) ended: Instant,
}

impl Counts {
    /// Refused by the gate, for any reason.
    #[must_use]
    pub fn shed_total(&self) -> u64 {
        self.shed.iter().sum()
    }

    /// Tries of which it is known what became of them.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.completed + self.refused + self.timed_out + self.abandoned + self.broken
    }

    /// Tries still under way.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        // A try is settled once, after being offered.
        self.offered.saturating_sub(self.settled())
    }

    /// Mean latency of the completed, seconds.
    #[must_use]
    pub fn mean_latency_s(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.latency_nanos as f64 / 1e9 / self.completed as f64)
    }

    /// Adds other tries to these.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.unique_offered += other.unique_offered;
        self.admitted += other.admitted;
        self.server_refused += other.server_refused;
        self.completed += other.completed;
        self.goodput += other.goodput;
        self.refused += other.refused;
        self.timed_out += other.timed_out;
        self.abandoned += other.abandoned;
        self.broken += other.broken;
        self.latency_nanos = self.latency_nanos.saturating_add(other.latency_nanos);
        self.shed.iter_mut().zip(other.shed).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl Cell {
    /// Of a visitor without a try so far.
    pub(super) const NOWHERE: Self = Self { class: 0, bin: 0 };
}

impl Books {
    /// Books of classes whose goodput is what completes within these times, in `bins` of `bin` each.
    pub(super) fn new(good_within: impl Iterator<Item = Duration>, bin: Duration, bins: usize) -> Self {
        let book = |good_within| ClassBook {
            totals: Counts::default(),
            bins: vec![Counts::default(); bins],
            latency: Histogram::new(),
            refusal: Histogram::new(),
            served: Histogram::new(),
            good_within,
        };
        let bin_nanos = bin.as_nanos() as u64;
        Self { classes: good_within.map(book).collect(), bin_nanos, bin: 0, bin_ends_at: bin_nanos }
    }

    /// A try begins.
    pub(super) fn offer(&mut self, now: Instant, class: u16, is_first: bool) -> Cell {
        if now.as_nanos() >= self.bin_ends_at {
            let last = self.classes.first().map_or(0, |book| book.bins.len().saturating_sub(1));
            let bin = now.as_nanos() / self.bin_nanos;
            self.bin_ends_at = (bin + 1).saturating_mul(self.bin_nanos);
            // The bins reach to the end of the schedule, after which nothing begins; they are far fewer than
            // 2³².
            self.bin = bin.min(last as u64) as u32;
        }
        let cell = Cell { class, bin: self.bin };
        self.change(cell, |counts| {
            counts.offered += 1;
            counts.unique_offered += u64::from(is_first);
        });
        cell
    }

    /// The gate let a try in.
    pub(super) fn admit(&mut self, cell: Cell) {
        self.change(cell, |counts| counts.admitted += 1);
    }

    /// The gate refused a try.
    pub(super) fn shed(&mut self, cell: Cell, reason: ShedReason) {
        self.change(cell, |counts| counts.shed[reason.index()] += 1);
    }

    /// The server refused a try.
    pub(super) fn refuse_at_server(&mut self, cell: Cell) {
        self.change(cell, |counts| counts.server_refused += 1);
    }

    /// It is known what became of a try.
    pub(super) fn settle(&mut self, cell: Cell, end: End, times: Times) {
        let latency = times.ended.saturating_since(times.intended);
        let book = &mut self.classes[usize::from(cell.class)];
        let good = latency <= book.good_within;
        match end {
            End::Completed => {
                book.latency.record(micros(latency));
                book.served.record(micros(times.ended.saturating_since(times.first_asked)));
            }
            End::Refused => book.refusal.record(micros(latency)),
            End::TimedOut | End::Abandoned | End::Broken => {}
        }
        self.change(cell, |counts| match end {
            End::Completed => {
                counts.completed += 1;
                counts.goodput += u64::from(good);
                counts.latency_nanos = counts.latency_nanos.saturating_add(latency.as_nanos() as u64);
            }
            End::Refused => counts.refused += 1,
            End::TimedOut => counts.timed_out += 1,
            End::Abandoned => counts.abandoned += 1,
            End::Broken => counts.broken += 1,
        });
    }

    /// All classes together.
    pub(super) fn totals(&self) -> Counts {
        let mut totals = Counts::default();
        self.classes.iter().for_each(|book| totals.add(&book.totals));
        totals
    }

    fn change(&mut self, cell: Cell, change: impl Fn(&mut Counts)) {
        // The scenario was checked: every class of the schedule has its book, and every book its bins.
        let book = &mut self.classes[usize::from(cell.class)];
        change(&mut book.totals);
        change(&mut book.bins[cell.bin as usize]);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
