//! Detects sources that ignore `Retry-After` again and again.
//!
//! **Decides** for how long new connections of a source (one IPv4 address, one IPv6 /64) are to be refused,
//! **from** its refused requests and the `Retry-After` of each.
//!
//! A client that keeps to its `Retry-After`, r, is refused at most once in r. So K such clients are refused
//! at most K times in r, and a source with more refusals than that has clients that come back early. How many
//! clients a source has is not known: at least [`CLIENTS_MIN`] are assumed, more than an office, and
//! [`CLIENTS_FOR_EACH`] for each that shows itself by its session or its browser. The patience C clients owe
//! is a clock that runs ahead of time (the virtual scheduling of GCRA, ITU-T I.371):
//!
//! ```text
//! refused at t, wait r:   ahead := max(ahead, t) + r / C      listed when  ahead − t > EARLY_RETURNS × (the longest r since ahead was t)
//! ```
//!
//! While all C clients wait for their r, ahead − t never exceeds the longest r; if each comes back early a
//! few times it does not exceed a few r. One client is listed when it is refused more often than C clients
//! could be, without a pause, for as long as takes several thousand refusals: at 200 requests a second and 4
//! s of `Retry-After` half a minute. A person who reloads, however often, is not: three reloads a second are
//! the patience of 3 r clients, 180 at the longest r.
//!
//! **Never listed** are a source from which people came in the last ten minutes (`evidence`), and one beside
//! which no other client came in the last minute: it may be an undeclared proxy, and there is no other client
//! to protect. The caller leaves out what it exempts.
//!
//! **How long**: `LISTED_FOR` the first time, twice as long each time it follows, up to 64 times; for each
//! [`FORGIVEN_AFTER`] without, one doubling is forgotten. The past of a source before its listing is
//! forgotten at once: the first connection after is judged like any other. **Recovery**:
//! [`Impatience::is_short`] is false [`CALM_AFTER`] after the last refusal of any client; then no listing is
//! to have effect.
//!
//! Why not count early returns one by one: requests of one source on several connections do not say which
//! client they are of, and a row of early returns from an office of polite people is as long as one likes.
//!
//! **Cost**: two cache lines for a refused request; no lock: words of relaxed atomics that all workers share.
//! A lost race loses a refusal. **Memory**: `IMPATIENT_TRACKED` × 32 and `SOURCES_OF_PEOPLE` × 8 bytes,
//! independent of load. Keys must be keyed hashes.
//!
//! **Failure modes**: more than [`CLIENTS_MIN`] indistinguishable clients behind one address, on a site that
//! gives no evidence of people, look like one that hammers; a client that shows itself as another with each
//! request is as many clients. A clock that jumps ahead ends listings early; one that jumps back makes a
//! source wait for what it was.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use flashweir_core::limits::{IMPATIENT_TRACKED, SOURCES_OF_PEOPLE};
use flashweir_core::{Duration, Instant};

/// State of the sources of refused requests; shared by the workers.
///
/// ```
/// use flashweir_admission::fairness::Impatience;
/// use flashweir_core::{Duration, Instant, hash::mix};
/// let (impatience, retry_after) = (Impatience::default(), Duration::from_secs(2));
/// let (hasty, polite) = (mix(1), mix(2));
/// let mut listed = None;
/// for millis in 0..60_000 {
///     let now = Instant::from_millis(millis);
///     if millis % 2_000 == 0 {
///         assert!(impatience.refused(now, polite, 7, retry_after).is_none());
///     }
///     // A thousand requests a second, in spite of its `Retry-After`.
///     listed = listed.or(impatience.refused(now, hasty, 8, retry_after));
/// }
/// assert_eq!(listed.map(|listing| listing.during), Some(Duration::from_secs(10)));
/// ```
#[derive(Debug)]
pub struct Impatience {
    slots: Box<[Slot]>,
    people: Box<[AtomicU64]>,
    /// The source seen last, and when it was not the one before.
    seen: AtomicU64,
    /// The second of the last refusal, plus one.
    refused_s: AtomicU64,
    displaced: AtomicU64,
}

/// New connections of a source are to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// For this long.
    pub during: Duration,
    /// Number of this listing, without those that are forgotten.
    pub times: u32,
}

/// Of one source. Two are a cache line.
#[derive(Debug, Default)]
#[repr(align(32))]
struct Slot {
    patience: AtomicU64,
    clients: AtomicU64,
    listing: AtomicU64,
}

impl Default for Impatience {
    fn default() -> Self {
        Self {
            slots: (0..IMPATIENT_TRACKED).map(|_| Slot::default()).collect(),
            people: (0..SOURCES_OF_PEOPLE).map(|_| AtomicU64::new(0)).collect(),
            seen: AtomicU64::new(0),
            refused_s: AtomicU64::new(0),
            displaced: AtomicU64::new(0),
        }
    }
}

impl Impatience {
    /// A client of this source is there: a connection, or a request.
    pub fn arrived(&self, now: Instant, source: u64) {
        let (tag, second) = (source >> SEEN_BITS, (1 + seconds(now)) & mask(SEEN_BITS));
        let before = self.seen.load(Relaxed);
        let (last, changed) = (before >> SEEN_BITS, before & mask(SEEN_BITS));
        // Once a second is enough, and the line is all workers'.
        if last != tag && changed != second {
            let changed = if before == 0 { 0 } else { second };
            self.seen.store(tag << SEEN_BITS | changed, Relaxed);
        }
    }

    /// A client of this source behaves like a person.
    pub fn saw_person(&self, now: Instant, source: u64) {
        self.arrived(now, source);
        let (first, second) = self.places_of_people(source);
        let words = [first, second].map(|place| place.load(Relaxed));
        let (tag, at) = (people_tag(source), seconds(now) & mask(PEOPLE_BITS));
        let new = tag << PEOPLE_BITS | at;
        let idle = words.map(|word| at.wrapping_sub(word) & mask(PEOPLE_BITS));
        let place = match words.map(|word| word >> PEOPLE_BITS == tag) {
            [true, _] => 0,
            [_, true] => 1,
            _ if words[0] == 0 || words[1] != 0 && idle[0] >= idle[1] => 0,
            _ => 1,
        };
        if words[place] >> PEOPLE_BITS != tag || idle[place] >= PEOPLE_STEP_S {
            [first, second][place].store(new, Relaxed);
        }
    }

    /// Returns true if people came from this source in the last ten minutes.
    #[must_use]
    pub fn has_people(&self, now: Instant, source: u64) -> bool {
        let (first, second) = self.places_of_people(source);
        [first, second].into_iter().map(|place| place.load(Relaxed)).any(|word| {
            let idle_s = seconds(now).wrapping_sub(word) & mask(PEOPLE_BITS);
            word >> PEOPLE_BITS == people_tag(source) && idle_s <= PEOPLE_S
        })
    }

    /// Records a refusal of a client of this source, with `retry_after` as its `Retry-After`; the listing of
    /// the source, if one begins. `client` distinguishes clients of one source, as far as possible. O(1), no
    /// allocation.
    pub fn refused(&self, now: Instant, source: u64, client: u64, retry_after: Duration) -> Option<Listing> {
        let second = 1 + seconds(now);
        if self.refused_s.load(Relaxed) != second {
            self.refused_s.store(second, Relaxed);
        }
        self.arrived(now, source);
        let slot = self.slot_of(now, source)?;
        let before = Patience::from_word(slot.patience.load(Relaxed));
        let told_s = retry_after.as_secs().clamp(1, mask(TOLD_BITS));
        let mut patience = Patience { tag: slot_tag(source), ..before };
        let sketch = match before.ahead(now) {
            // All that was owed has been waited for: what comes now is another episode.
            0 => {
                (patience.told_s, patience.until) = (told_s, ticks(now));
                0
            }
            _ => {
                patience.told_s = before.told_s.max(told_s);
                slot.clients.load(Relaxed)
            }
        };
        let with_client = sketch_with(sketch, client);
        if with_client != slot.clients.load(Relaxed) {
            slot.clients.store(with_client, Relaxed);
        }
        let clients = CLIENTS_MIN.max(CLIENTS_FOR_EACH.saturating_mul(distinct(with_client)));
        let owed = (told_s * TICKS_PER_S + clients / 2) / clients;
        patience.until = patience.until.wrapping_add(owed) & mask(UNTIL_BITS);
        let is_over = patience.ahead(now) > EARLY_RETURNS * patience.told_s * TICKS_PER_S;
        if !is_over || !self.may_be_listed(now, source) {
            // No more is owed than lists: a source that is not listed for another reason is not to be for
            // hours of the past.
            let most =
                ticks(now).wrapping_add(EARLY_RETURNS * patience.told_s * TICKS_PER_S) & mask(UNTIL_BITS);
            let until = if is_over { most } else { patience.until };
            slot.patience.store(Patience { until, ..patience }.to_word(), Relaxed);
            return None;
        }
        // The slate is clean.
        slot.patience.store(Patience { until: ticks(now), told_s: 0, ..patience }.to_word(), Relaxed);
        // Of two workers that find it at the same time one lists it, and a connection that is still open does
        // not list it again.
        let listing = slot.listing.load(Relaxed);
        let listed = Record::from_word(listing);
        if listed.until_s > seconds(now) {
            return None;
        }
        let times = listed.times_now(now).saturating_add(1).min(TIMES_MAX);
        let during = LISTED_FOR * (1 << (times - 1));
        let record = Record { until_s: seconds(now + during), times };
        slot.listing.compare_exchange(listing, record.to_word(), Relaxed, Relaxed).ok()?;
        Some(Listing { during, times })
    }

    /// Returns true if a request of any client was refused lately.
    #[must_use]
    pub fn is_short(&self, now: Instant) -> bool {
        let refused_s = self.refused_s.load(Relaxed);
        refused_s > 0 && (1 + seconds(now)).saturating_sub(refused_s) <= CALM_AFTER.as_secs()
    }

    /// Nothing is held against any source.
    pub fn forget(&self) {
        for slot in &self.slots {
            [&slot.patience, &slot.clients, &slot.listing]
                .into_iter()
                .for_each(|word| word.store(0, Relaxed));
        }
    }

    /// Number of times that a source which owed patience, or was listed lately, made room for another or kept
    /// one out.
    #[must_use]
    pub fn displaced(&self) -> u64 {
        self.displaced.load(Relaxed)
    }

    /// Bytes that its tables take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.slots) + size_of_val(&*self.people)
    }

    fn may_be_listed(&self, now: Instant, source: u64) -> bool {
        let changed = self.seen.load(Relaxed) & mask(SEEN_BITS);
        let alone_s = (1 + seconds(now)).wrapping_sub(changed) & mask(SEEN_BITS);
        changed != 0 && alone_s <= OTHERS_WITHIN_S && !self.has_people(now, source)
    }

    /// The source's slot: its own, or that of the one whose loss is the smallest; none where both were listed
    /// lately.
    fn slot_of(&self, now: Instant, source: u64) -> Option<&Slot> {
        let place = source as usize & (IMPATIENT_TRACKED - 1);
        let (first, second) = (&self.slots[place], &self.slots[place ^ 1]);
        let tag = slot_tag(source);
        let mut worth = [0; 2];
        for (slot, worth) in [first, second].into_iter().zip(&mut worth) {
            let patience = Patience::from_word(slot.patience.load(Relaxed));
            if patience.tag == tag {
                return Some(slot);
            }
            let times = Record::from_word(slot.listing.load(Relaxed)).times_now(now);
            *worth = if times > 0 { u64::MAX } else { patience.ahead(now) };
        }
        let (slot, least) = if worth[0] <= worth[1] { (first, worth[0]) } else { (second, worth[1]) };
        if least > 0 {
            self.displaced.fetch_add(1, Relaxed);
        }
        if least == u64::MAX {
            return None;
        }
        slot.patience.store(Patience { tag, told_s: 0, until: ticks(now) }.to_word(), Relaxed);
        slot.listing.store(0, Relaxed);
        Some(slot)
    }

    fn places_of_people(&self, source: u64) -> (&AtomicU64, &AtomicU64) {
        let place = source as usize & (SOURCES_OF_PEOPLE - 1);
        (&self.people[place], &self.people[place ^ 1])
    }
}

/// A word: what a source's clients owe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Patience {
    tag: u64,
    /// Longest `Retry-After` since they owed nothing, seconds.
    told_s: u64,
    /// Until when they would have to wait, ticks; it wraps.
    until: u64,
}

impl Patience {
    fn from_word(word: u64) -> Self {
        Self {
            tag: word >> (UNTIL_BITS + TOLD_BITS),
            told_s: word >> UNTIL_BITS & mask(TOLD_BITS),
            until: word & mask(UNTIL_BITS),
        }
    }

    fn to_word(self) -> u64 {
        self.tag << (UNTIL_BITS + TOLD_BITS) | self.told_s << UNTIL_BITS | self.until
    }

    /// Ticks from now until then; 0 where that is over, or so far ahead that the clock has jumped.
    fn ahead(self, now: Instant) -> u64 {
        let ahead = self.until.wrapping_sub(ticks(now)) & mask(UNTIL_BITS);
        if ahead > AHEAD_MAX { 0 } else { ahead }
    }
}

/// A word: when a source was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    until_s: u64,
    times: u32,
}

impl Record {
    fn from_word(word: u64) -> Self {
        // Lossless: eight bits.
        Self { until_s: word >> TIMES_BITS, times: (word & mask(TIMES_BITS)) as u32 }
    }

    fn to_word(self) -> u64 {
        (self.until_s & mask(u64::BITS - TIMES_BITS)) << TIMES_BITS | u64::from(self.times)
    }

    /// Number of its listings that are not forgotten.
    fn times_now(self, now: Instant) -> u32 {
        let forgiven = seconds(now).saturating_sub(self.until_s) / FORGIVEN_AFTER.as_secs();
        self.times.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}

/// The sketch with one more client: HyperLogLog (Flajolet et al. 2007) with eight registers.
fn sketch_with(sketch: u64, client: u64) -> u64 {
    let (register, rest) = (client & (REGISTERS - 1), client >> 3);
    let shift = register * REGISTER_BITS;
    let rank = u64::from(rest.trailing_zeros() + 1).min(mask(REGISTER_BITS as u32));
    let held = sketch >> shift & mask(REGISTER_BITS as u32);
    if rank <= held { sketch } else { sketch & !(mask(REGISTER_BITS as u32) << shift) | rank << shift }
}

/// Number of clients that the sketch has seen, within a factor of two or three.
fn distinct(sketch: u64) -> u64 {
    let sum: u64 = (0..REGISTERS)
        .map(|register| sketch >> (register * REGISTER_BITS) & mask(REGISTER_BITS as u32))
        .map(|rank| 1 << (mask(REGISTER_BITS as u32) - rank))
        .sum();
    // 0.63 is the constant of eight registers.
    63 * REGISTERS * REGISTERS * (1 << mask(REGISTER_BITS as u32)) / 100 / sum
}

fn seconds(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000_000
}

/// Truncated to the bits that a word has for it.
fn ticks(now: Instant) -> u64 {
    (now.as_nanos() / (1_000_000_000 / TICKS_PER_S)) & mask(UNTIL_BITS)
}

/// Never zero.
fn slot_tag(source: u64) -> u64 {
    (source >> (UNTIL_BITS + TOLD_BITS)).max(1)
}

/// Never zero.
fn people_tag(source: u64) -> u64 {
    (source >> PEOPLE_BITS).max(1)
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

const TOLD_BITS: u32 = 7;
const UNTIL_BITS: u32 = 39;
const TIMES_BITS: u32 = 8;
const SEEN_BITS: u32 = 32;
const PEOPLE_BITS: u32 = 24;
/// The patience of a second, in parts that a client's of a source with many still shows in; 39 bits of them
/// are half a year.
const TICKS_PER_S: u64 = 32_000;
/// Further ahead than any source can come.
const AHEAD_MAX: u64 = 2 * EARLY_RETURNS * mask(TOLD_BITS) * TICKS_PER_S;
const REGISTERS: u64 = 8;
const REGISTER_BITS: u64 = 5;

/// Clients that a source may have without showing more than one: an office, and a third more.
pub const CLIENTS_MIN: u64 = 400;
/// Clients assumed for each distinguished one: the sketch may see a third of them, and they may come back
/// early now and then.
pub const CLIENTS_FOR_EACH: u64 = 8;
/// Number of times that all of them may come back early at once: people reload a page a few times.
pub const EARLY_RETURNS: u64 = 8;
/// The first time: short enough that a mistake is a pause.
pub const LISTED_FOR: Duration = Duration::from_secs(10);
/// 10 s × 2^6 is eleven minutes: a job that runs all day costs a few seconds of refusals each time.
pub const TIMES_MAX: u32 = 7;
/// Time without a listing that cancels one doubling: nearly the longest listing, 640 s.
pub const FORGIVEN_AFTER: Duration = Duration::from_secs(600);
/// Half a minute without a refusal of any client: there is room for all.
pub const CALM_AFTER: Duration = Duration::from_secs(30);
/// A small site has a visitor in this time.
const OTHERS_WITHIN_S: u64 = 60;
/// Time for which a person is known as one, seconds.
const PEOPLE_S: u64 = 600;
/// A source of people is renewed this often.
const PEOPLE_STEP_S: u64 = 16;

const _: () = assert!(IMPATIENT_TRACKED.is_power_of_two() && SOURCES_OF_PEOPLE.is_power_of_two());
const _: () = assert!(size_of::<[Slot; 2]>() == 64, "a source's two places are one cache line");
const _: () = assert!(AHEAD_MAX < mask(UNTIL_BITS) / 2 && REGISTERS * REGISTER_BITS <= 64);
