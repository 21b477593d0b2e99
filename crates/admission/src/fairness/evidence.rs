//! Evidence that a client behaves like a person: a page, then its assets, asked for from that page.
//!
//! A browser that opens a page asks for the page's style sheets, scripts and images within seconds, and names
//! the page in `Referer`. A crawler seldom does: what it fetches beside pages costs it as much as pages. A
//! *person* is a client that has done so under one key (a session cookie, or address and browser) and has
//! been seen in the last `PROOF_S` seconds since.
//!
//! | request, within `BURST_S` seconds of the one before | points |
//! |---|---|
//! | an asset, referer of the same host | `ASSET_POINTS` |
//! | anything else with a session cookie and a referer of the same host | 1 |
//!
//! `PROOF_POINTS` points, of which at least one asset's, prove a person. A cookie or a referer alone proves
//! nothing: crawlers send both by default. To forge the evidence for an address costs several requests within
//! seconds, so a crawler that spreads over many addresses to send little from each gives up what it spread
//! for; and what has evidence is judged as one client.
//!
//! One table for all workers, because a browser's connections are spread over them: words of relaxed atomics,
//! two places for a key. A lost race loses a few points. A key with evidence is never displaced by keys
//! without: a flood of keys cannot make people look like strangers. Cost: two loads and at most one store;
//! memory: `PEOPLE_KNOWN` words of 8 bytes, independent of load.
//!
//! Failure modes: a site whose pages have no assets, and a client that has cached all of them, give no
//! evidence; a clock that jumps by hours makes ages wrong until they are renewed.

use super::sign::Conduct;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use flashweir_core::Instant;
use flashweir_core::limits::PEOPLE_KNOWN;

/// Evidence of people, shared by the workers.
///
/// ```
/// use flashweir_admission::fairness::{Conduct, Evidence};
/// use flashweir_core::Instant;
/// let evidence = Evidence::default();
/// let page = Conduct { has_session: true, ..Conduct::default() };
/// let asset = Conduct { is_asset: true, has_own_referer: true, has_session: true };
/// let seen = [page, asset, asset, asset].map(|conduct| evidence.observe(Instant::from_secs(9), 7, conduct).is_person);
/// assert_eq!(seen, [false, false, true, true]);
/// ```
#[derive(Debug)]
pub struct Evidence {
    words: Box<[AtomicU64]>,
}

/// Evidence about the client of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acquaintance {
    /// It behaves like a person.
    pub is_person: bool,
    /// It has done so for the first time, or again after a long time.
    pub is_newly_person: bool,
    /// It does, and this request is a page.
    pub is_page_view: bool,
    /// The age of its session, in steps: see [`SESSION_STEPS`].
    pub session_step: u8,
}

/// Steps of a session's age: none, younger than a minute, younger than ten minutes, older.
pub const SESSION_STEPS: u8 = 4;

impl Default for Evidence {
    fn default() -> Self {
        Self { words: (0..PEOPLE_KNOWN).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Evidence {
    /// A request with this key and conduct arrives. O(1), no allocation.
    pub fn observe(&self, now: Instant, key: u64, conduct: Conduct) -> Acquaintance {
        let clock = Clock::at(now);
        let place = key as usize & (PEOPLE_KNOWN - 1);
        let (first, second) = (&self.words[place], &self.words[place ^ 1]);
        let words = [Record::from_word(first.load(Relaxed)), Record::from_word(second.load(Relaxed))];
        let tag = tag_of(key);
        let (place, before, is_new) = match words.map(|record| record.is_used() && record.tag == tag) {
            [true, _] => (first, words[0], false),
            [_, true] => (second, words[1], false),
            _ => {
                // A newcomer takes the place that is worth less, and none from two people.
                let worth = words.map(|record| record.worth(&clock));
                if worth[0].min(worth[1]) == Record::WORTH_OF_PERSON {
                    return Acquaintance {
                        session_step: session_step(conduct, 0),
                        ..Acquaintance::default()
                    };
                }
                let place = if worth[0] <= worth[1] { first } else { second };
                (place, Record::new(tag, &clock), true)
            }
        };
        let record = before.after(&clock, conduct);
        if record != before || is_new {
            place.store(record.to_word(), Relaxed);
        }
        let is_person = record.is_person(&clock);
        Acquaintance {
            is_person,
            is_newly_person: is_person && !before.is_person(&clock),
            is_page_view: is_person && !conduct.is_asset,
            session_step: session_step(conduct, record.age_minutes(&clock)),
        }
    }
}

fn session_step(conduct: Conduct, age_minutes: u64) -> u8 {
    match (conduct.has_session, age_minutes) {
        (false, _) => 1,
        (true, 0) => 2,
        (true, 1..YOUNG_MINUTES) => 3,
        (true, _) => SESSION_STEPS,
    }
}

/// The moments of a record, as it stores them.
struct Clock {
    minute: u64,
    proof: u64,
    second: u64,
}

impl Clock {
    fn at(now: Instant) -> Self {
        let seconds = now.as_nanos() / 1_000_000_000;
        Self {
            minute: (seconds / 60) & mask(FIRST_BITS),
            // 0 stands for "never".
            proof: 1 + (seconds / PROOF_STEP_S) % mask(PROOF_BITS),
            second: seconds & mask(LAST_BITS),
        }
    }
}

/// A decoded word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    tag: u64,
    /// The minute in which it was first seen.
    first: u64,
    /// Time at which it last behaved like a person; 0 for never.
    proof: u64,
    /// The second in which it was last seen.
    last: u64,
    points: u64,
    has_asset: bool,
}

impl Record {
    const WORTH_OF_PERSON: u64 = u64::MAX;

    fn new(tag: u64, clock: &Clock) -> Self {
        Self { tag, first: clock.minute, proof: 0, last: clock.second, points: 0, has_asset: false }
    }

    fn from_word(word: u64) -> Self {
        let field = |shift: u32, bits| word >> shift & mask(bits);
        Self {
            tag: field(TAG_SHIFT, TAG_BITS),
            first: field(FIRST_SHIFT, FIRST_BITS),
            proof: field(PROOF_SHIFT, PROOF_BITS),
            last: field(LAST_SHIFT, LAST_BITS),
            points: field(1, POINTS_BITS),
            has_asset: word & 1 == 1,
        }
    }

    fn to_word(self) -> u64 {
        self.tag << TAG_SHIFT
            | self.first << FIRST_SHIFT
            | self.proof << PROOF_SHIFT
            | self.last << LAST_SHIFT
            | self.points << 1
            | u64::from(self.has_asset)
    }

    /// Tags are not zero.
    fn is_used(&self) -> bool {
        self.tag != 0
    }

    fn is_person(&self, clock: &Clock) -> bool {
        let steps = (clock.proof + mask(PROOF_BITS) - self.proof) % mask(PROOF_BITS);
        self.proof != 0 && steps * PROOF_STEP_S <= PROOF_S
    }

    fn idle_s(&self, clock: &Clock) -> u64 {
        clock.second.wrapping_sub(self.last) & mask(LAST_BITS)
    }

    fn age_minutes(&self, clock: &Clock) -> u64 {
        clock.minute.wrapping_sub(self.first) & mask(FIRST_BITS)
    }

    /// Value that is lost when another key takes its place.
    fn worth(&self, clock: &Clock) -> u64 {
        match (self.is_used(), self.is_person(clock)) {
            (false, _) => 0,
            (true, true) => Self::WORTH_OF_PERSON,
            (true, false) => 1 + mask(LAST_BITS) - self.idle_s(clock),
        }
    }

    /// One request later.
    fn after(self, clock: &Clock, conduct: Conduct) -> Self {
        let Conduct { is_asset, has_own_referer, has_session } = conduct;
        let is_burst = self.idle_s(clock) <= BURST_S;
        let (before, had_asset) = if is_burst { (self.points, self.has_asset) } else { (0, false) };
        let new = match (has_own_referer, is_asset) {
            (true, true) => ASSET_POINTS,
            (true, false) => u64::from(has_session),
            (false, _) => 0,
        };
        let points = (before + new).min(mask(POINTS_BITS));
        let has_asset = had_asset || is_asset && has_own_referer;
        let is_proof = has_asset && points >= PROOF_POINTS;
        // A person who goes on from page to page remains one, even if the browser has cached every asset.
        let is_renewal = has_own_referer && self.is_person(clock);
        let proof = if is_proof || is_renewal { clock.proof } else { self.proof };
        Self { proof, last: clock.second, points, has_asset, ..self }
    }
}

/// Never zero.
fn tag_of(key: u64) -> u64 {
    (key >> (u64::BITS - TAG_BITS)).max(1)
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

const TAG_BITS: u32 = 24;
const FIRST_BITS: u32 = 12;
const PROOF_BITS: u32 = 12;
const LAST_BITS: u32 = 10;
const POINTS_BITS: u32 = 5;
const LAST_SHIFT: u32 = 1 + POINTS_BITS;
const PROOF_SHIFT: u32 = LAST_SHIFT + LAST_BITS;
const FIRST_SHIFT: u32 = PROOF_SHIFT + PROOF_BITS;
const TAG_SHIFT: u32 = FIRST_SHIFT + FIRST_BITS;
const _: () = assert!(TAG_SHIFT + TAG_BITS == u64::BITS && PEOPLE_KNOWN.is_power_of_two());

/// A page's assets are asked for within this time, on slow lines too.
const BURST_S: u64 = 10;
/// Two assets prove a person: one may be a crawler's that takes pictures.
const ASSET_POINTS: u64 = 3;
/// Points that prove a person.
const PROOF_POINTS: u64 = 6;
/// A person who is away for longer than this has to be seen again: a long page is read in that time.
const PROOF_S: u64 = 600;
const PROOF_STEP_S: u64 = 4;
/// Older sessions are all alike.
const YOUNG_MINUTES: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rng;

    const PAGE: Conduct = Conduct { is_asset: false, has_own_referer: false, has_session: true };
    const LINK: Conduct = Conduct { has_own_referer: true, ..PAGE };
    const ASSET: Conduct = Conduct { is_asset: true, ..LINK };

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn assets_beside_a_page_prove_a_person_until_ten_minutes_after() {
        let evidence = Evidence::default();
        let key = 0xABCD_EF01_2345_6789;
        assert!(![PAGE, ASSET].iter().any(|&one| evidence.observe(at(100), key, one).is_person));
        assert!(evidence.observe(at(101), key, ASSET).is_person);
        assert!(!evidence.observe(at(101), key ^ (1 << 60), ASSET).is_person, "another key");
        // Renewed by going on from page to page, then forgotten.
        assert!(evidence.observe(at(600), key, LINK).is_page_view);
        assert!(evidence.observe(at(1_190), key, PAGE).is_person);
        assert!(!evidence.observe(at(1_220), key, PAGE).is_person);
    }

    /// A cookie and a referer cost a crawler nothing; slow addresses gather no proof, not even from assets.
    #[test]
    fn cookies_and_referers_alone_prove_nothing_nor_do_assets_one_a_minute() {
        let evidence = Evidence::default();
        assert!((0..1_000).all(|n| !evidence.observe(at(n), 7 << 40, LINK).is_person));
        assert!((0..1_000).all(|n| !evidence.observe(at(60 * n), 9 << 40, ASSET).is_person));
    }

    #[test]
    fn a_flood_of_keys_displaces_no_person_and_takes_no_more_memory() {
        let evidence = Evidence::default();
        let mut rng = Rng::new(3);
        let people: alloc::vec::Vec<u64> = (0..1_000).map(|_| rng.next_u64()).collect();
        let known: alloc::vec::Vec<u64> = people
            .into_iter()
            .filter(|&key| {
                (0..3).map(|_| evidence.observe(at(50), key, ASSET)).reduce(|_, last| last).unwrap().is_person
            })
            .collect();
        assert!(known.len() > 990, "{}", known.len());
        for n in 0..1_000_000_u64 {
            evidence.observe(at(50 + n / 10_000), rng.next_u64(), PAGE);
        }
        assert!(known.iter().all(|&key| evidence.observe(at(200), key, PAGE).is_person));
    }

    #[test]
    fn the_age_of_a_session_in_steps() {
        let evidence = Evidence::default();
        let step = |second, conduct| evidence.observe(at(second), 5 << 40, conduct).session_step;
        assert_eq!(step(120, Conduct::default()), 1);
        assert_eq!([120, 185, 800, 4_000].map(|second| step(second, PAGE)), [2, 3, 4, 4]);
    }

    #[test]
    fn a_record_is_its_word() {
        let mut rng = Rng::new(1);
        for _ in 0..1_000 {
            let word = rng.next_u64();
            assert_eq!(Record::from_word(word).to_word(), word);
        }
    }

    #[test]
    fn a_clock_that_steps_back_or_far_ahead_panics_nowhere() {
        let evidence = Evidence::default();
        for nanos in [u64::MAX, 0, u64::MAX / 2, 1, u64::MAX] {
            evidence.observe(Instant::from_nanos(nanos), 5, ASSET);
        }
    }
}
