//! Finds the clients that have had more than their share of a service while it was short: they get what the
//! others leave.
//!
//! Each client has a *lane*: the time that its requests were at the origin, of which a quarter is forgotten
//! each second. Over its share is a client whose lane holds more than one and a half times the mean of the
//! others of its class, by more than chance makes, and more than a twentieth of what all clients had; in a
//! class of one client none is over its share.
//!
//! *Chance.* Clients that ask equally often do not have equally much: of sixteen that ask once a second each,
//! one has twice the mean in every second second. If each asks at random moments (a Poisson process), the
//! variance of what a lane holds is what it holds, times the time of a request: [`CHANCE`] standard
//! deviations are allowed beyond that. The time of a request is the mean over all of the class, so that a
//! client's own long requests do not excuse it.
//!
//! While the service is not short (few wait, and no request is refused) it makes no difference. A request is
//! counted when it is sent, with what such requests usually take, and corrected when its time is known: a
//! client that has much at the origin is over its share before that has ended.
//!
//! Shares are held by each worker for itself: a client is measured against those with which it shares the
//! worker. Of clients whose keys fall into one lane, one of [`SHARE_LANES`], the one with most time has it:
//! the time of the others is subtracted from its count, and the client that comes when the count is 0 gets
//! the lane (Boyer and Moore's majority vote, by weight). So a client that comes once is not taken for a
//! greedy one. Cost: O(1) for a request; a look at all lanes once a second. Integers only, 8 KiB for a
//! service and worker.

use alloc::boxed::Box;
use alloc::vec;
use flashweir_core::hash::mix;
use flashweir_core::limits::{CLASSES, SHARE_LANES};
use flashweir_core::{BitSet, Duration, Instant};

/// The lanes of one service at one worker.
#[derive(Debug)]
pub(super) struct Shares {
    lanes: Box<[Lane]>,
    /// Lanes that hold time: the others have nothing to forget.
    used: BitSet<{ SHARE_LANES / u64::BITS as usize }>,
    /// Time at the origin of all clients of a class, microseconds.
    had_us: [u64; CLASSES],
    /// Requests of a class that took this time, thousandths.
    requests_milli: [u64; CLASSES],
    /// Clients of each class that had anything a second ago.
    clients: [u64; CLASSES],
    /// By class, microseconds: a client with more is over its share.
    allowed_us: [u32; CLASSES],
    takes_shares_at: Instant,
    /// Time at which a quarter is forgotten next.
    forgets_at: Instant,
    short_until: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// At the origin, microseconds.
    had_us: u32,
    /// The client that has the lane.
    owner: Owner,
}

/// A client, as far as a lane distinguishes clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Owner {
    class: u8,
    /// Of its key.
    tag: u8,
}

/// A request at the origin, as its client's lane knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    /// Not counted yet is what has passed since then, unless it is paused.
    since: Instant,
    /// Of what has not passed yet, counted already.
    counted_us: u32,
    /// The lane; its highest bit is set while it is paused.
    place: u16,
    owner: Owner,
}

impl Shares {
    pub(super) fn new() -> Self {
        Self {
            lanes: vec![Lane::default(); SHARE_LANES].into_boxed_slice(),
            used: BitSet::default(),
            had_us: [0; CLASSES],
            requests_milli: [0; CLASSES],
            clients: [0; CLASSES],
            allowed_us: [u32::MAX; CLASSES],
            takes_shares_at: Instant::ZERO,
            forgets_at: Instant::ZERO,
            short_until: Instant::ZERO,
        }
    }

    /// Many wait, or a request is refused.
    pub(super) fn is_short_at(&mut self, now: Instant) {
        self.short_until = now + SHORT_FOR;
    }

    /// Returns true if many waited or a request was refused in the last minute.
    pub(super) fn is_short(&self, now: Instant) -> bool {
        now < self.short_until
    }

    /// Returns true if this client is over its share of a service that is short.
    pub(super) fn is_over(&mut self, now: Instant, class: u8, client_key: u64) -> bool {
        if !self.is_short(now) {
            return false;
        }
        self.forget(now);
        self.take_shares(now);
        let (index, owner) = lane_of(class, client_key);
        let lane = self.lanes[index];
        lane.owner == owner && lane.had_us > self.allowed_us[usize::from(class) % CLASSES]
    }

    /// A request of this client is sent to the origin, where `usual_us` is the usual time of such requests.
    pub(super) fn begin(&mut self, now: Instant, class: u8, client_key: u64, usual_us: u32) -> Charge {
        self.forget(now);
        let (index, owner) = lane_of(class, client_key);
        let had_us = &mut self.had_us[usize::from(class) % CLASSES];
        *had_us = had_us.saturating_add(usual_us.into());
        self.used.insert(index);
        let lane = &mut self.lanes[index];
        if lane.owner == owner {
            lane.had_us = lane.had_us.saturating_add(usual_us);
        } else if lane.had_us > usual_us {
            lane.had_us -= usual_us;
        } else {
            *lane = Lane { had_us: usual_us, owner };
        }
        Charge { since: now, counted_us: usual_us, place: index as u16, owner }
    }

    /// The request's client is waited for.
    pub(super) fn pause(&mut self, now: Instant, charge: &mut Charge) {
        if charge.place & PAUSED == 0 {
            charge.place |= PAUSED;
            self.count(now, charge);
        }
    }

    /// The request is no longer at the origin.
    pub(super) fn end(&mut self, now: Instant, mut charge: Charge) {
        self.pause(now, &mut charge);
    }

    fn count(&mut self, now: Instant, charge: &mut Charge) {
        let took_us = u32::try_from(now.saturating_since(charge.since).as_micros()).unwrap_or(u32::MAX);
        let counted_us = core::mem::take(&mut charge.counted_us);
        let had_us = &mut self.had_us[usize::from(charge.owner.class) % CLASSES];
        *had_us = had_us.saturating_sub(counted_us.into()).saturating_add(took_us.into());
        self.requests_milli[usize::from(charge.owner.class) % CLASSES] += 1_000;
        let index = usize::from(charge.place & !PAUSED);
        let lane = &mut self.lanes[index];
        if lane.owner == charge.owner {
            self.used.insert(index);
            lane.had_us = lane.had_us.saturating_sub(counted_us).saturating_add(took_us);
        }
    }

    /// A second has passed, or several: a quarter of everything is forgotten for each.
    fn forget(&mut self, now: Instant) {
        if now < self.forgets_at {
            return;
        }
        let passed = now.saturating_since(self.forgets_at).as_micros() / FORGETS_EACH.as_micros();
        self.forgets_at = now + FORGETS_EACH;
        let times = passed.min(ALL_IS_FORGOTTEN);
        self.clients = [0; CLASSES];
        for index in self.used.iter() {
            let lane = &mut self.lanes[index];
            // After that many seconds nothing is left.
            (0..=times).for_each(|_| lane.had_us -= lane.had_us.div_ceil(4));
            match lane.had_us {
                0 => self.used.remove(index),
                _ => self.clients[usize::from(lane.owner.class) % CLASSES] += 1,
            }
        }
        for had_us in self.had_us.iter_mut().chain(&mut self.requests_milli) {
            (0..=times).for_each(|_| *had_us -= had_us.div_ceil(4));
        }
        self.takes_shares_at = now;
    }

    /// Limits the time of each client by what all have had until now: by what they had a second ago, every
    /// client would be over its share as soon as requests take longer than usual.
    fn take_shares(&mut self, now: Instant) {
        if now < self.takes_shares_at {
            return;
        }
        self.takes_shares_at = now + TAKES_SHARES_EACH;
        let (had_us, clients) = (&self.had_us, &self.clients);
        let least = had_us.iter().sum::<u64>() / LEAST_PART;
        for (class, allowed_us) in self.allowed_us.iter_mut().enumerate() {
            // Alone, a client has no share that it could be over.
            if clients[class] < 2 {
                *allowed_us = u32::MAX;
                continue;
            }
            // One and a half times the mean of the others: x > 1.5 · (had − x) / (clients − 1).
            let of_the_mean_us = 3 * had_us[class] / (2 * clients[class] + 1);
            let request_us = had_us[class].saturating_mul(1_000) / self.requests_milli[class].max(1_000);
            let by_chance = CHANCE * (2 * of_the_mean_us / 3).saturating_mul(request_us).isqrt();
            *allowed_us = u32::try_from((of_the_mean_us + by_chance).max(least)).unwrap_or(u32::MAX);
        }
    }
}

impl Charge {
    pub(super) fn resume(&mut self, now: Instant) {
        if self.place & PAUSED != 0 {
            (self.since, self.place) = (now, self.place & !PAUSED);
        }
    }
}

fn lane_of(class: u8, client_key: u64) -> (usize, Owner) {
    let mixed = mix(client_key ^ u64::from(class) << u32::BITS);
    ((mixed % SHARE_LANES as u64) as usize, Owner { class, tag: (mixed >> TAG_SHIFT) as u8 })
}

const PAUSED: u16 = 1 << 15;
const _: () = assert!(SHARE_LANES <= PAUSED as usize, "a bit is left beside the number of a lane");
/// Bits that the number of a lane is not made of.
const TAG_SHIFT: u32 = 56;
/// Time for which a service counts as short after many waited or a request was refused.
const SHORT_FOR: Duration = Duration::from_secs(60);
const FORGETS_EACH: Duration = Duration::from_secs(1);
/// In this time no client gets far over its share, and an evaluation of the sums costs less than a hundredth
/// of a percent of it.
const TAKES_SHARES_EACH: Duration = Duration::from_millis(50);
/// Seconds after which less than a microsecond of an hour is left.
const ALL_IS_FORGOTTEN: u128 = 80;
/// Standard deviations that a client's lane may be beyond one and a half times the mean: of clients with
/// three requests each, one in a thousand is further by chance.
const CHANCE: u64 = 3;
/// A client with less than this part of what all clients had is not over its share, however many others there
/// are: a person who reads on is no attacker.
const LEAST_PART: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    /// Every 100 ms each of these clients has a request at the origin; the second number is its time there,
    /// milliseconds.
    fn serve(shares: &mut Shares, from_ms: u64, to_ms: u64, clients: &[(u64, u64)]) {
        for now_ms in (from_ms..to_ms).step_by(100) {
            for &(client, took_ms) in clients {
                let charge = shares.begin(at(now_ms), 0, client, 0);
                shares.end(at(now_ms + took_ms), charge);
            }
        }
    }

    #[test]
    fn over_its_share_is_who_has_more_than_twice_what_the_others_have_while_the_service_is_short() {
        let mut shares = Shares::new();
        serve(&mut shares, 1_000, 5_000, &[(1, 60), (2, 10), (3, 10), (4, 15)]);
        let over =
            |shares: &mut Shares, now_ms| [1, 2, 3, 4, 5].map(|client| shares.is_over(at(now_ms), 0, client));
        assert_eq!(over(&mut shares, 5_000), [false; 5], "none waits");
        shares.is_short_at(at(5_000));
        assert_eq!(over(&mut shares, 5_000), [true, false, false, false, false]);
        // Another class has separate shares.
        assert!(!shares.is_over(at(5_000), 1, 1));
        // Use long ago is forgotten, and a service that is no longer short treats all clients alike.
        serve(&mut shares, 6_000, 16_000, &[(1, 10), (2, 10), (3, 10), (4, 15)]);
        shares.is_short_at(at(16_000));
        assert_eq!(over(&mut shares, 16_000), [false; 5]);
        serve(&mut shares, 16_000, 20_000, &[(1, 60), (2, 10), (3, 10), (4, 15)]);
        assert_eq!(over(&mut shares, 20_000), [true, false, false, false, false]);
        serve(&mut shares, 70_000, 76_000, &[(1, 60), (2, 10), (3, 10), (4, 15)]);
        assert_eq!(over(&mut shares, 76_000), [false; 5], "not short for a minute");
    }

    /// Goal: sixteen clients that ask equally often, each at random, are hardly ever over their share,
    /// however few requests that is. Method: 14 requests of 160 ms a second for ten minutes; each is asked
    /// about before it is counted.
    #[test]
    fn equal_clients_are_not_over_their_share_by_chance() {
        let mut shares = Shares::new();
        let mut random = flashweir_core::Rng::new(7);
        let (mut now_ms, mut over, mut asked) = (1_000, 0, 0);
        while now_ms < 600_000 {
            now_ms += random.below(143);
            let client = random.below(16);
            shares.is_short_at(at(now_ms));
            asked += 1;
            over += u32::from(shares.is_over(at(now_ms), 0, client));
            let charge = shares.begin(at(now_ms), 0, client, 0);
            shares.end(at(now_ms + 160), charge);
        }
        assert!(over * 500 <= asked, "{over} of {asked}");
    }

    #[test]
    fn one_client_alone_is_never_over_its_share_and_of_many_small_ones_none_is() {
        let mut shares = Shares::new();
        serve(&mut shares, 1_000, 5_000, &[(1, 90)]);
        shares.is_short_at(at(5_000));
        assert!(!shares.is_over(at(5_000), 0, 1));
        let clients: Vec<_> = (1..=60).map(|client| (client, if client == 1 { 40 } else { 10 })).collect();
        serve(&mut shares, 5_000, 25_000, &clients);
        shares.is_short_at(at(25_000));
        // Four times what the others have, and a fifteenth of all.
        assert!(shares.is_over(at(25_000), 0, 1));
        let clients: Vec<_> = (1..=200).map(|client| (client, if client == 1 { 40 } else { 10 })).collect();
        serve(&mut shares, 25_000, 45_000, &clients);
        shares.is_short_at(at(45_000));
        assert!(!shares.is_over(at(45_000), 0, 1), "a fiftieth of all");
    }

    #[test]
    fn what_is_at_the_origin_counts_before_it_has_ended_and_time_paused_does_not() {
        let mut shares = Shares::new();
        serve(&mut shares, 1_000, 3_000, &[(2, 10), (3, 10)]);
        let mut charges: Vec<_> = (0..4).map(|_| shares.begin(at(3_000), 0, 1, 400_000)).collect();
        shares.is_short_at(at(4_100));
        assert!(shares.is_over(at(4_100), 0, 1));
        for charge in &mut charges {
            shares.pause(at(3_010), charge);
            charge.resume(at(4_090));
        }
        charges.into_iter().for_each(|charge| shares.end(at(4_100), charge));
        serve(&mut shares, 4_200, 5_300, &[(2, 10), (3, 10)]);
        assert!(!shares.is_over(at(5_300), 0, 1), "20 ms each");
    }

    #[test]
    fn a_lane_that_nobody_used_for_long_is_empty() {
        let mut shares = Shares::new();
        serve(&mut shares, 1_000, 3_000, &[(1, 90), (2, 10), (3, 10)]);
        serve(&mut shares, 3_600_000, 3_602_000, &[(2, 10), (3, 10)]);
        assert_eq!(shares.lanes[lane_of(0, 1).0].had_us, 0);
    }
}
