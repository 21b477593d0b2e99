//! Sources that are listed because their clients ignore `Retry-After` again and again: the workers close
//! their new connections at once, and the gate in the kernel, where there is one, drops them
//! (`kernel/sources.rs`).
//!
//! `admission::fairness::Impatience` decides who is listed, by what each worker refuses; this is the list:
//! read at every accept, changed seldom. A listing ends with its time, when a person is seen at its source,
//! when no client has been refused for a while, when a reload exempts its source, and when an operator says
//! so (`DELETE /fairness/impatient`).

use arc_swap::ArcSwap;
use flashweir_admission::fairness::Impatience;
use flashweir_config::Config;
use flashweir_core::limits::IMPATIENT_LISTED;
use flashweir_core::{Duration, Hasher64, Instant};
use flashweir_http::client::{ClientNetwork, TrustedProxies};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The workers' counts of sources, and the listed sources.
#[derive(Debug)]
pub(crate) struct ImpatientSources {
    impatience: Impatience,
    hasher: Hasher64,
    listed: ArcSwap<Listed>,
    /// Sources that were to be listed while the list was full.
    unlisted: AtomicU64,
}

type Listed = BTreeMap<ClientNetwork, Until>;

#[derive(Clone, Copy, Debug)]
struct Until {
    at: Instant,
    times: u32,
}

/// Returns whether a source is one that may be listed: clients are judged, and it is none that speaks for
/// others or is exempt.
pub(crate) fn may_be_listed(config: &Config, trusted_proxies: &TrustedProxies, source: IpAddr) -> bool {
    let source = source.to_canonical();
    let is_in = |networks: &[ipnet::IpNet]| networks.iter().any(|network| network.contains(&source));
    config.fairness.is_enabled
        && config.fairness.drops_impatient
        && !config.fairness.is_exempt(source)
        && !trusted_proxies.trusts(source)
        && !is_in(&config.kernel.preferred)
        && !is_in(&config.listen.proxy_protocol_from)
        && !is_in(&config.feedback.senders)
}

impl ImpatientSources {
    /// None is listed; `hasher` must be keyed, since clients choose their addresses.
    pub(crate) fn new(hasher: Hasher64) -> Self {
        Self {
            impatience: Impatience::default(),
            hasher,
            listed: ArcSwap::default(),
            unlisted: AtomicU64::new(0),
        }
    }

    /// A connection of this source is there; whether it is to be closed at once.
    pub(crate) fn turns_away(&self, now: Instant, source: ClientNetwork) -> bool {
        self.impatience.arrived(now, self.key(source));
        self.is_listed(now, source)
    }

    /// A request of this source was refused, with this `Retry-After`; whether the source is listed, and
    /// whether it was not before.
    pub(crate) fn refused(
        &self,
        now: Instant,
        source: ClientNetwork,
        client: u64,
        retry_after: Duration,
    ) -> (bool, bool) {
        // Its other connections go on for a while.
        if self.is_listed(now, source) {
            return (true, false);
        }
        let Some(listing) = self.impatience.refused(now, self.key(source), client, retry_after) else {
            return (false, false);
        };
        let until = Until { at: now + listing.during, times: listing.times };
        let mut is_listed = false;
        self.listed.rcu(|listed| {
            let mut listed = Listed::clone(listed);
            listed.retain(|_, until| until.at > now);
            is_listed = listed.len() < IMPATIENT_LISTED || listed.contains_key(&source);
            if is_listed {
                listed.insert(source, until);
            }
            listed
        });
        self.unlisted.fetch_add(u64::from(!is_listed), Relaxed);
        (is_listed, is_listed)
    }

    /// A client of this source behaves like a person: it is not to be listed.
    pub(crate) fn saw_person(&self, now: Instant, source: ClientNetwork) {
        self.impatience.saw_person(now, self.key(source));
        if self.listed.load().contains_key(&source) {
            self.remove(|other| other == source);
        }
    }

    /// The sources whose new connections are to be refused now, each with the moment until which; none while
    /// no client is refused.
    pub(crate) fn in_force(&self, now: Instant) -> Vec<(IpAddr, Instant)> {
        let listed = self.listed.load();
        if listed.is_empty() || !self.impatience.is_short(now) {
            return Vec::new();
        }
        let in_time = listed.iter().filter(|(_, until)| until.at > now);
        in_time.map(|(source, until)| (source.address(), until.at)).collect()
    }

    /// Takes a source off the list, or all; what they did is forgotten then. How many were listed.
    pub(crate) fn pardon(&self, source: Option<ClientNetwork>) -> usize {
        if source.is_none() {
            self.impatience.forget();
        }
        self.remove(|other| source.is_none_or(|source| source == other))
    }

    /// Takes those off the list that this configuration does not have listed.
    pub(crate) fn follow(&self, config: &Config, trusted_proxies: &TrustedProxies) {
        if !self.listed.load().is_empty() {
            self.remove(|source| !may_be_listed(config, trusted_proxies, source.address()));
        }
    }

    /// Number of times a source was not listed, or not watched, for want of room.
    pub(crate) fn overflows(&self) -> u64 {
        self.impatience.displaced() + self.unlisted.load(Relaxed)
    }

    /// For the operator, on the admin listener alone: each source, for how long, and which time it is.
    pub(crate) fn status(&self, now: Instant) -> Value {
        let listed = self.listed.load();
        let is_in_force = self.impatience.is_short(now);
        let sources = listed.iter().filter(|(_, until)| until.at > now).map(|(source, until)| {
            let left = until.at.saturating_since(now);
            json!({ "address": source.address().to_string(), "left_s": left.as_secs_f64(), "times": until.times })
        });
        json!({ "in_force": is_in_force, "sources": sources.collect::<Vec<_>>() })
    }

    fn is_listed(&self, now: Instant, source: ClientNetwork) -> bool {
        let listed = self.listed.load();
        // Nearly always.
        !listed.is_empty()
            && listed.get(&source).is_some_and(|until| until.at > now)
            && self.impatience.is_short(now)
    }

    fn remove(&self, is_gone: impl Fn(ClientNetwork) -> bool) -> usize {
        let before = self.listed.rcu(|listed| {
            let mut listed = Listed::clone(listed);
            listed.retain(|source, _| !is_gone(*source));
            listed
        });
        before.keys().filter(|source| is_gone(**source)).count()
    }

    fn key(&self, source: ClientNetwork) -> u64 {
        self.hasher.hash(&[b"source", &source.octets()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn source(text: &str) -> ClientNetwork {
        ClientNetwork::of(text.parse().expect("an address"))
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(1_000 + millis)
    }

    const RETRY_AFTER: Duration = Duration::from_secs(4);

    /// Refuses the source a thousand times a second beside others; when it is listed, if within this many
    /// seconds.
    fn hammer(sources: &ImpatientSources, source: ClientNetwork, from_ms: u64, seconds: u64) -> Option<u64> {
        let other = self::source("203.0.113.9");
        (from_ms..from_ms + 1_000 * seconds).find(|&millis| {
            assert!(!sources.turns_away(at(millis), other));
            sources.refused(at(millis), source, 1, RETRY_AFTER).1
        })
    }

    fn sources() -> ImpatientSources {
        ImpatientSources::new(Hasher64::new(1, 2))
    }

    #[test]
    fn a_listed_source_is_turned_away_for_its_time_and_judged_like_any_other_after_it() {
        let (sources, hasty) = (sources(), source("198.51.100.7"));
        let listed = hammer(&sources, hasty, 0, 30).expect("listed");
        for (after_ms, turned_away) in [(1, true), (9_900, true), (10_000, false), (11_000, false)] {
            // Others are refused meanwhile, so the service stays short.
            sources.refused(at(listed + after_ms), source("203.0.113.1"), 2, RETRY_AFTER);
            assert_eq!(sources.turns_away(at(listed + after_ms), hasty), turned_away, "{after_ms}");
            assert_eq!(sources.in_force(at(listed + after_ms)).len(), usize::from(turned_away));
        }
        assert!(!sources.turns_away(at(listed + 1), source("198.51.100.8")), "its neighbour");
        // Refused once more, it is one refused client; hammering again it is listed again, for longer.
        assert_eq!(sources.refused(at(listed + 11_000), hasty, 1, RETRY_AFTER), (false, false));
        let again = hammer(&sources, hasty, listed + 11_000, 30).expect("listed");
        sources.refused(at(again + 15_000), source("203.0.113.1"), 2, RETRY_AFTER);
        assert!(sources.turns_away(at(again + 15_000), hasty));
    }

    #[test]
    fn a_client_that_hops_within_its_64_is_one_source() {
        let sources = sources();
        let of = |n: u64| source(&format!("2001:db8:1:2::{:x}", 1 + n % 60_000));
        let listed = (0..30_000).find(|&n| {
            sources.turns_away(at(n), source("203.0.113.9"));
            sources.refused(at(n), of(n), n, RETRY_AFTER).0
        });
        // With a new address, it does not show itself as another client, but for its browser or session.
        assert!(listed.is_none(), "30,000 clients of one source");
        let listed = (40_000..70_000).find(|&n| {
            sources.turns_away(at(n), source("203.0.113.9"));
            sources.refused(at(n), of(n), 1, RETRY_AFTER).0
        });
        let listed = listed.expect("one client of one source");
        assert!(
            sources.turns_away(at(listed + 1), of(7))
                && !sources.turns_away(at(listed + 1), source("2001:db8:1:3::1"))
        );
        assert_eq!(sources.in_force(at(listed + 1))[0].0, "2001:db8:1:2::".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn a_listing_ends_when_a_person_is_seen_or_no_client_is_refused_any_more() {
        let (sources, hasty) = (sources(), source("198.51.100.7"));
        let listed = hammer(&sources, hasty, 0, 30).expect("listed");
        sources.saw_person(at(listed + 1), hasty);
        assert!(!sources.turns_away(at(listed + 2), hasty));
        assert_eq!(hammer(&sources, hasty, listed + 3, 30), None);
        // The second time is 20 s: it is not over when all is calm.
        let other = source("198.51.100.8");
        let first = hammer(&sources, other, 100_000, 30).expect("listed");
        let second = hammer(&sources, other, first + 10_000, 30).expect("listed");
        let third = hammer(&sources, other, second + 20_000, 30).expect("listed");
        assert!(sources.turns_away(at(third + 29_000), other));
        assert!(
            !sources.turns_away(at(third + 31_500), other) && sources.in_force(at(third + 31_500)).is_empty()
        );
        sources.refused(at(third + 32_000), source("203.0.113.1"), 2, RETRY_AFTER);
        assert!(sources.turns_away(at(third + 32_500), other), "short again, before its 40 s are over");
    }

    #[test]
    fn an_operator_pardons_one_or_all() {
        let (sources, two) = (sources(), ["198.51.100.7", "198.51.100.8"].map(source));
        let first = hammer(&sources, two[0], 0, 30).expect("listed");
        let second = hammer(&sources, two[1], first + 1, 30).expect("listed");
        assert_eq!(sources.status(at(second))["sources"].as_array().map(Vec::len), Some(2));
        assert_eq!(sources.pardon(Some(two[0])), 1);
        assert!(!sources.turns_away(at(second + 1), two[0]) && sources.turns_away(at(second + 1), two[1]));
        assert_eq!((sources.pardon(None), sources.pardon(None)), (1, 0));
    }

    #[test]
    fn the_list_is_bounded_and_says_when_it_was_full() {
        let sources = sources();
        let until = Until { at: at(1_000_000), times: 1 };
        let full = (0..IMPATIENT_LISTED as u32).map(|n| (ClientNetwork::of(IpAddr::V4(n.into())), until));
        sources.listed.store(Arc::new(full.collect()));
        assert_eq!(hammer(&sources, source("198.51.100.7"), 0, 30), None);
        assert!(sources.overflows() > 0 && sources.in_force(at(30_000)).len() == IMPATIENT_LISTED);
    }

    #[test]
    fn what_is_exempt_or_speaks_for_others_is_never_listed_and_leaves_the_list_at_a_reload() {
        let config = |more: &str| {
            Config::from_toml(&format!("upstream.urls = ['http://a']\n{more}"), "test.toml")
                .expect("a configuration")
        };
        let may = |more: &str| {
            let config = config(more);
            let trusted = TrustedProxies::new(config.client.trusted_proxies.clone());
            may_be_listed(&config, &trusted, "198.51.100.7".parse().unwrap())
        };
        assert!(may(""));
        for more in [
            "fairness.enabled = false",
            "fairness.drop_impatient = false",
            "fairness.exempt = ['198.51.100.0/24']",
            "client.trusted_proxies = ['198.51.100.0/24']",
            "kernel.preferred = ['198.51.100.0/24']",
            "listen.proxy_protocol_from = ['198.51.100.0/24']",
            "feedback.senders = ['198.51.100.0/24']",
        ] {
            assert!(!may(more), "{more}");
        }
        let (sources, hasty) = (sources(), source("198.51.100.7"));
        let listed = hammer(&sources, hasty, 0, 30).expect("listed");
        sources.follow(&config(""), &TrustedProxies::default());
        assert!(sources.turns_away(at(listed + 1), hasty));
        sources.follow(&config("fairness.exempt = ['198.51.100.7']"), &TrustedProxies::default());
        assert!(!sources.turns_away(at(listed + 2), hasty));
    }
}
