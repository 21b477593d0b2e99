//! Purge, repaired: a flow over its fair share is cut to it before the queue, by its arrival rate.
//!
//! **Decides** for each packet whether it is dropped, marked or kept, **from** the arrivals of each heavy
//! flow, the number of active flows and the queue. Each period (a quarter of a second):
//!
//! > f = C / N, and p_i = 1 − f / r_i for a flow whose arrival rate r_i is over 1.15·f; 0 for others.
//!
//! A packet of flow i is dropped with p_i before the queue and before REM counts it; REM may mark every
//! packet that passes.
//!
//! **Why not the published rule** (in the simulator). Its drop follows the last period's surplus, so it
//! stops for a whole period as soon as it works (**P-8**). 1 − f/r depends on the flow alone: it cuts any
//! rate to f exactly, needs no gain (**P-6**, **P-7**), stays while the flow stays, and costs the queue
//! nothing. REM's price sees arrivals after the purge (**P-9**) and its mark is the same for all (**P-5**: no
//! flow gets a weaker one). Rates are counted from all arrivals (**P-10**), in a table that grows with the
//! flows (**P-2**, [`crate::heavy_flows`]); N is the maximum-likelihood count (**P-3**,
//! [`crate::min_sketch`]) over a window that grows with it (**P-4**, [`crate::distinct_window`]). f is C/N
//! and not a max-min water level: responsive flows that marks hold down would hand their part to those that
//! do not respond.
//!
//! **P-1.** A flow is cut only where its packets *prove* a rate over 1.15·f: with K packets in the horizon, K
//! − 1.64·√K has to be over it. One packet proves nothing, however small the share.
//!
//! **Work conservation.** Where flows leave parts of their shares unused, f rises by 5 % each period once the
//! price was zero and the queue below half its target for a second, and falls back as fast as it must when
//! the price is above zero: nothing is dropped for fairness while there is room for long.
//!
//! **Cold start**: no flow is cut before the first period ends. **Recovery**: a flow that slows down is
//! released within a few averaging times. **Cost**: about 40 ns for each packet beside the hash of its flow,
//! a pass over the table and the sketches each period (about 30 µs); 108 KB and 30 B for each cached flow; no
//! allocation. **Failure modes**: a sender with many flows gets a share for each (choose
//! [`crate::FlowIdentity::Source`]); flows that ended count until they slide out of the window, so shares are
//! too small until then.

use crate::distinct_window::DistinctWindow;
use crate::heavy_flows::HeavyFlows;
use crate::min_sketch::KEPT;
use crate::rem::{Rem, RemPrice};
use crate::{Arrival, Fate, SettingError};
use flashweir_core::{Duration, Instant, Rng, limits};

/// Settings of repaired Purge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PurgeSettings {
    /// The price. Its target must be above 0.
    pub rem: Rem,
    /// Period of rates and shares, 1 ms or more. Usual 0.25 s.
    pub period: Duration,
    /// Memory of the arrival rates, at least the period. Usual 1 s: longer is fairer to bursts, and slower.
    pub averaging: Duration,
    /// Flows whose rates are kept, up to [`limits::AQM_CACHED_FLOWS`]. Usual 4096: a fifth of the active
    /// flows is enough.
    pub cached_flows: usize,
}

impl PurgeSettings {
    /// The usual settings over this price.
    #[must_use]
    pub const fn over(rem: Rem) -> Self {
        Self {
            rem,
            period: Duration::from_millis(250),
            averaging: Duration::from_secs(1),
            cached_flows: 4_096,
        }
    }

    /// Settings for a real link of this rate whose queue is to be `target` long in time. The price's gains
    /// follow the rate, so that a surplus of one part of the link counts alike at every rate; the published
    /// ones are for 2 to 10 Mb/s.
    #[must_use]
    pub fn of_link(rate_bits_per_s: u64, target: Duration) -> Self {
        let packets_per_s = rate_bits_per_s as f64 / (8.0 * f64::from(LINK_PACKET_BYTES));
        let target_packets = (packets_per_s * target.as_secs_f64()).max(LINK_TARGET_PACKETS_MIN);
        let rem = Rem {
            gamma: LINK_PRICE_PER_S / packets_per_s,
            alpha: LINK_QUEUE_WEIGHT,
            target_packets,
            update: LINK_UPDATE,
            packet_bytes: LINK_PACKET_BYTES,
            ..Rem::default()
        };
        // Shorter than the time between two readings, each of which is to end a period even if it comes
        // early.
        Self { period: LINK_PERIOD_MIN, ..Self::over(rem) }
    }

    /// Checks that all settings are in their ranges.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), SettingError> {
        self.rem.check()?;
        let target = self.rem.target_packets;
        SettingError::unless(target > 0.0, "Purge target_packets", target, "above 0")?;
        let (period_s, period_ok) = (self.period.as_secs_f64(), self.period >= Duration::from_millis(1));
        SettingError::unless(period_ok, "Purge period", period_s, "at least 0.001 seconds")?;
        let (averaging_s, averaging_ok) = (self.averaging.as_secs_f64(), self.averaging >= self.period);
        SettingError::unless(averaging_ok, "Purge averaging", averaging_s, "at least one period")?;
        let flows_ok = (1..=limits::AQM_CACHED_FLOWS).contains(&self.cached_flows);
        SettingError::unless(flows_ok, "Purge cached_flows", self.cached_flows, "1 to 65536")
    }
}

/// Counts of a link within a period, made elsewhere. Packets count in units of the settings' usual size.
#[derive(Clone, Copy, Debug)]
pub struct CountedPeriod<'a> {
    /// Sketches of the flows that sent anything ([`crate::MinSketch::merge_residues`]).
    pub sketches: &'a [&'a [[u32; KEPT]]],
    /// The heaviest flows by their hashes, and the bytes that each sent.
    pub flows: &'a [(u64, u64)],
    /// Packets that were put into the queue. P-9 goes for packets that the price drops, too: counted, those
    /// of a sender that does not respond would raise the price until nearly all are dropped.
    pub queued_packets: u32,
    /// Packets in the queue at the period's end.
    pub queue_packets: usize,
}

/// A flow is cut above this part of its fair share, so that a flow that keeps to it is never cut for noise.
pub const TOLERANCE: f64 = 1.15;
/// Standard deviations by which a flow's packets must exceed the tolerance: one in twenty flows at the bound
/// is above it by chance.
pub const DEVIATIONS: f64 = 1.64;
/// Packet of a link, bytes: most of what fills a link is as large as Ethernet allows.
const LINK_PACKET_BYTES: u16 = 1_500;
/// The shortest target of a link's queue: a burst of a sender, and the packet that is being sent.
const LINK_TARGET_PACKETS_MIN: f64 = 4.0;
/// Rise of the price each second by a surplus of the whole link. At a price of 20, where a tenth of ten TCP
/// flows' rate is taken back by their halving, a surplus of a tenth changes it by a fifth in a second.
const LINK_PRICE_PER_S: f64 = 40.0;
/// Weight of the queue against the rate: 20 ms more than the target weigh as much as a surplus of a fifth of
/// the link.
const LINK_QUEUE_WEIGHT: f64 = 0.1;
/// Steps of the price within a reading's period: the error of a reading that comes late is one step.
const LINK_UPDATE: Duration = Duration::from_millis(10);
/// See [`PurgeSettings::of_link`].
const LINK_PERIOD_MIN: Duration = Duration::from_millis(100);
/// Shortest window of the count of flows: eight of the usual periods.
const WINDOW_MIN: Duration = Duration::from_secs(2);
/// Longest: with slower flows than one packet in twenty seconds a share means little.
const WINDOW_MAX: Duration = Duration::from_secs(60);
/// The window holds this many packets of a flow at its fair share, so that 95 % of Poisson flows are seen.
const WINDOW_PACKETS: f64 = 3.0;
/// Time for which the link must be idle enough before shares rise above C/N.
const SLACK_AFTER: Duration = Duration::from_secs(1);
/// Step of the share each period while there is room, and back while there is none (back is faster: room is
/// found again, a queue is not undone).
const SLACK_RAISE: f64 = 1.05;
const SLACK_LOWER: f64 = 1.25;

/// Repaired Purge at one link.
///
/// ```
/// use flashweir_aqm::{Arrival, Fate, FlowHasher, FlowIdentity, Purge, PurgeSettings, Rem};
/// use flashweir_core::{Instant, Rng};
/// // At 10 Mb/s one flow sends 9 Mb/s and nine send 1 Mb/s each: the share is 1 Mb/s.
/// let mut purge = Purge::new(&PurgeSettings::over(Rem::default()), 10_000_000);
/// let hasher = FlowHasher::new(1, 2, FlowIdentity::FiveTuple);
/// let mut rng = Rng::new(1);
/// let [mut kept_of_first, mut dropped_of_others] = [0, 0];
/// for n in 0..45_000 {
///     let now = Instant::from_nanos(n * 444_444);
///     let flow = if n % 2 == 0 { 0 } else { 1 + n / 2 % 9 };
///     let packet = Arrival { flow: hasher.hash_number(flow), bytes: 1_000, is_markable: true };
///     match (flow, purge.arrive(now, 30, packet, &mut rng)) {
///         (0, Fate::Keep) if n >= 22_500 => kept_of_first += 1,
///         (1.., Fate::Drop) => dropped_of_others += 1,
///         _ => {}
///     }
/// }
/// assert_eq!((purge.active_flows(), dropped_of_others), (10.0, 0));
/// // In ten seconds 1,250 packets are its share.
/// assert!((1_100..1_400).contains(&kept_of_first));
/// ```
#[derive(Clone, Debug)]
pub struct Purge {
    settings: PurgeSettings,
    capacity_bytes_per_s: f64,
    price: RemPrice,
    flows: DistinctWindow,
    heavy: HeavyFlows,
    period_began: Instant,
    active: f64,
    share_bytes_per_s: f64,
    /// Time since which price and queue show that there is room.
    room_since: Option<Instant>,
    /// Part of C/N that is the share, 1 or more.
    slack: f64,
}

impl Purge {
    /// At a link of this rate. `settings` must pass [`PurgeSettings::check`]. Allocates.
    #[must_use]
    pub fn new(settings: &PurgeSettings, rate_bits_per_s: u64) -> Self {
        let capacity_bytes_per_s = rate_bits_per_s as f64 / 8.0;
        Self {
            settings: *settings,
            capacity_bytes_per_s,
            price: RemPrice::new(&settings.rem, rate_bits_per_s),
            flows: DistinctWindow::new(Instant::ZERO, WINDOW_MIN),
            heavy: HeavyFlows::new(settings.cached_flows),
            period_began: Instant::ZERO,
            active: 0.0,
            share_bytes_per_s: capacity_bytes_per_s,
            room_since: None,
            slack: 1.0,
        }
    }

    /// Decides about a packet that finds `queue_packets` in the queue: [`Fate::Keep`] or [`Fate::Drop`];
    /// marks are made at departure.
    #[inline]
    pub fn arrive(&mut self, now: Instant, queue_packets: usize, packet: Arrival, rng: &mut Rng) -> Fate {
        self.advance(now, queue_packets);
        self.flows.insert(now, packet.flow);
        let threshold = self.heavy.record(packet.flow, packet.bytes);
        if threshold > 0 && ((rng.next_u64() >> 32) as u32) < threshold {
            return Fate::Drop;
        }
        // P-9: only what survives is the queue's load.
        self.price.count_arrival();
        let is_markable = self.settings.rem.marks && packet.is_markable;
        if !is_markable && self.price.strikes(rng) { Fate::Drop } else { Fate::Keep }
    }

    /// Returns whether a packet that is sent now, of a queue of `queue_packets` with itself, gets a mark.
    pub fn depart(&mut self, now: Instant, queue_packets: usize, is_markable: bool, rng: &mut Rng) -> bool {
        self.advance(now, queue_packets);
        self.settings.rem.marks && is_markable && self.price.strikes(rng)
    }

    /// Takes a period whose packets were counted and decided about elsewhere, as by a program in the kernel,
    /// and ends it at `now` if it lasted for the settings' period at least. The results are in
    /// [`Purge::heavy_flows`] and [`Purge::mark_probability`]. About 100 µs.
    pub fn take_period(&mut self, now: Instant, counted: &CountedPeriod<'_>) {
        counted.sketches.iter().for_each(|residues| self.flows.merge_residues(now, residues));
        for &(flow, bytes) in counted.flows {
            self.heavy.record(flow, u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        self.price.count_arrivals(counted.queued_packets);
        self.advance(now, counted.queue_packets);
    }

    /// Probability of a mark, or of a drop where the sender does not understand marks, 0 to 1.
    #[must_use]
    pub fn mark_probability(&self) -> f64 {
        self.price.probability()
    }

    /// Number of active flows at the last period's end (N).
    #[must_use]
    pub fn active_flows(&self) -> f64 {
        self.active
    }

    /// The fair share (f), bytes a second.
    #[must_use]
    pub fn share_bytes_per_s(&self) -> f64 {
        self.share_bytes_per_s
    }

    /// The price.
    #[must_use]
    pub fn price(&self) -> f64 {
        self.price.price()
    }

    /// The flows with the highest rates, and how they are cut.
    #[must_use]
    pub fn heavy_flows(&self) -> &HeavyFlows {
        &self.heavy
    }

    /// Bytes of its tables, which never change.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.flows.memory_bytes() + self.heavy.memory_bytes()
    }

    /// Makes up for the time until `now`. However long the silence was, one period ends.
    fn advance(&mut self, now: Instant, queue_packets: usize) {
        self.price.advance(now, queue_packets);
        let elapsed = now.saturating_since(self.period_began);
        if elapsed >= self.settings.period {
            self.end_period(now, elapsed, queue_packets);
        }
    }

    #[cold]
    fn end_period(&mut self, now: Instant, elapsed: Duration, queue_packets: usize) {
        self.period_began = now;
        self.active = self.flows.distinct(now);
        let packet_bytes = f64::from(self.settings.rem.packet_bytes);
        let window_s = WINDOW_PACKETS * self.active * packet_bytes / self.capacity_bytes_per_s;
        let window_s = window_s.clamp(WINDOW_MIN.as_secs_f64(), WINDOW_MAX.as_secs_f64());
        self.flows.set_span(Duration::from_secs_f64(window_s));
        self.follow_room(now, queue_packets);
        let share =
            (self.slack * self.capacity_bytes_per_s / self.active.max(1.0)).min(self.capacity_bytes_per_s);
        self.share_bytes_per_s = share;
        let elapsed_s = elapsed.as_secs_f64();
        let keep = libm::exp(-elapsed_s / self.settings.averaging.as_secs_f64());
        // A flow of the rate r has r·elapsed / (1 − keep) bytes when a period ends.
        let rate_of_a_byte = (1.0 - keep) / elapsed_s;
        // With one flow or none there is no other to be fair to.
        let is_shared = self.active >= 2.0;
        self.heavy.end_period(keep, |_, bytes| {
            let packets = bytes / packet_bytes;
            let proven = (packets - DEVIATIONS * libm::sqrt(packets)) * packet_bytes * rate_of_a_byte;
            if is_shared && proven > TOLERANCE * share { 1.0 - share / (bytes * rate_of_a_byte) } else { 0.0 }
        });
    }

    fn follow_room(&mut self, now: Instant, queue_packets: usize) {
        let has_room =
            self.price.price() == 0.0 && (queue_packets as f64) < self.settings.rem.target_packets / 2.0;
        if !has_room {
            self.room_since = None;
            if self.price.price() > 0.0 {
                self.slack = (self.slack / SLACK_LOWER).max(1.0);
            }
            return;
        }
        let since = *self.room_since.get_or_insert(now);
        if now.saturating_since(since) >= SLACK_AFTER {
            self.slack = (self.slack * SLACK_RAISE).min(self.active.max(1.0));
        }
    }
}
