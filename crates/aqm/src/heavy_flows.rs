//! The flows with the most bytes lately, in fixed memory: a Space-Saving table in sets, with decaying counts.
//!
//! The paper keeps 50 flows, found by sampling the buffer. **P-2:** of 4000 flows 600 do not respond, so 50
//! entries cannot hold what has to be cut; and **P-10:** samples are taken only while the queue is above its
//! target, so the measurement ends when policing works. Here every arrival is counted, before any drop, for
//! any queue.
//!
//! A flow's hash chooses a set of [`WAYS`] entries, each set a Space-Saving table: the smallest makes room,
//! and a flow with more than an eighth of its set's bytes is never lost. A newcomer inherits the victim's
//! rank but not its bytes, so what is reported never exceeds what the flow sent: no flow is cut for another's
//! traffic. Counts decay by a factor each period (halving is one such factor), so that flows that ended make
//! room.
//!
//! Cost: a scan of eight keys (about 20 ns) for each packet, a pass over the table (about 3 ns an entry)
//! for each period. Memory: 240 B for eight entries. Failure modes: nine flows that each have over an
//! eighth of a set's bytes do not exist; a set full of equally heavy flows loses the lightest, whose count
//! starts again. Keys that collide on purpose need the hash's key.

use alloc::boxed::Box;
use flashweir_core::limits;
use flashweir_core::measure::SpaceSaving;

/// Entries of a set.
pub const WAYS: usize = 8;

/// The heaviest flows, with what they sent and the probability with which they are dropped.
///
/// ```
/// use flashweir_aqm::HeavyFlows;
/// let mut flows = HeavyFlows::new(64);
/// for _ in 0..100 {
///     flows.record(7, 1_000);
/// }
/// flows.record(8, 1_000);
/// // Counts are halved; a flow that sent over 50 kB is dropped half of the time from now on.
/// flows.end_period(0.5, |_, bytes| if bytes > 50_000.0 { 0.5 } else { 0.0 });
/// assert_eq!(flows.record(7, 1_000), 1 << 31);
/// assert_eq!(flows.record(8, 1_000), 0);
/// ```
#[derive(Clone, Debug)]
pub struct HeavyFlows {
    sets: Box<[Set]>,
}

#[derive(Clone, Debug, Default)]
struct Set {
    busiest: SpaceSaving<WAYS>,
    /// Bytes that the flow sent since it came into the set, decayed.
    bytes: [u64; WAYS],
    /// Probability of a drop, in 2^−32.
    drop: [u32; WAYS],
}

/// A flow of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeavyFlow {
    /// Its hash.
    pub flow: u64,
    /// Bytes it sent, decayed.
    pub bytes: u64,
    /// Probability with which its packets are dropped, 0 to 1.
    pub drop_probability: f64,
}

impl HeavyFlows {
    /// A table of at least this many flows, at most [`limits::AQM_CACHED_FLOWS`]; allocates.
    #[must_use]
    pub fn new(flows: usize) -> Self {
        let sets = flows.clamp(WAYS, limits::AQM_CACHED_FLOWS).div_ceil(WAYS).next_power_of_two();
        Self { sets: (0..sets).map(|_| Set::default()).collect() }
    }

    /// Flows that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Bytes that its sets take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }

    /// Counts bytes of the flow with this hash; the probability with which its packets are to be dropped, in
    /// 2^−32.
    #[inline]
    pub fn record(&mut self, flow: u64, bytes: u32) -> u32 {
        // The low bits; the sketch uses those from bit 22 on.
        let index = flow as usize & (self.sets.len() - 1);
        let set = &mut self.sets[index];
        let Some((way, was_there)) = set.busiest.hit(flow, u64::from(bytes)) else { return 0 };
        if was_there {
            set.bytes[way] = set.bytes[way].saturating_add(u64::from(bytes));
        } else {
            set.bytes[way] = u64::from(bytes);
            set.drop[way] = 0;
        }
        set.drop[way]
    }

    /// Decides for each flow by its hash and its bytes with which probability it is dropped from now on, then
    /// decays its count to the part `keep` (0 to 1). O(capacity).
    pub fn end_period(&mut self, keep: f64, drop_probability: impl Fn(u64, f64) -> f64) {
        // `as` saturates.
        let numerator = (keep.clamp(0.0, 1.0) * 65_536.0) as u32;
        for set in &mut self.sets {
            let Set { busiest, bytes, drop } = set;
            let flows = busiest.iter().zip(bytes.iter_mut()).zip(drop.iter_mut());
            for (((flow, _), bytes), drop) in flows {
                *drop = (drop_probability(flow, *bytes as f64).clamp(0.0, 1.0) * 4_294_967_296.0) as u32;
                *bytes = ((u128::from(*bytes) * u128::from(numerator)) >> 16) as u64;
            }
            busiest.scale(numerator);
        }
    }

    /// Bytes of a flow, decayed; 0 where it is not in the table.
    #[must_use]
    pub fn bytes(&self, flow: u64) -> u64 {
        let set = &self.sets[flow as usize & (self.sets.len() - 1)];
        set.busiest.position(flow).map_or(0, |way| set.bytes[way])
    }

    /// The flows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = HeavyFlow> + '_ {
        self.sets.iter().flat_map(|set| {
            set.busiest.iter().enumerate().map(|(way, (flow, _))| HeavyFlow {
                flow,
                bytes: set.bytes[way],
                drop_probability: f64::from(set.drop[way]) / 4_294_967_296.0,
            })
        })
    }
}
