//! Signs of clients in the requests of a class, as the gateway's classifier would see them.

use flashweir_admission::fairness::{Cause, Conduct, RequestSigns, SIGNS, Sign};
use flashweir_core::Duration;
use flashweir_core::hash::mix;
use std::num::NonZeroU32;
use std::ops::Range;

/// Signs of the clients of one class. Values that are numbered are the same for all classes: crawlers use
/// real browsers' names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignModel {
    /// Addresses, which the class's people have in turn; none: one for each person.
    pub addresses: Option<NonZeroU32>,
    /// Addresses of one network, next to each other.
    pub addresses_of_network: NonZeroU32,
    /// User agents, by number.
    pub user_agents: Range<u32>,
    /// Each request has another user agent; if not, each person has one.
    pub rotates_user_agents: bool,
    /// TLS stacks, by number, each person's by its user agent; none where the listener speaks plain HTTP.
    pub tls_stacks: Option<Range<u32>>,
    /// Families of URLs, by number; each document is of one.
    pub url_families: NonZeroU32,
    /// True if the origin's session cookie is sent back.
    pub has_session: bool,
    /// Requests after each page that are for its assets, with the page as their referer. They follow at once.
    pub assets: u32,
    /// True if the gate looks at any of this; if not, only the assets count.
    pub is_shown: bool,
}

/// Demotions of a class by fairness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demotions {
    /// Requests that were to come after all others, by the second in which they arrived.
    pub by_second: Vec<u64>,
    /// The same by what was over its share.
    pub by_cause: [u64; Cause::COUNT],
    /// The longest time that one person's requests were demoted without a break, from the first to the last.
    pub longest: Duration,
}

impl SignModel {
    /// People with browsers: an address and a session for each, and `assets` for each page; plain HTTP.
    #[must_use]
    pub fn people(assets: u32) -> Self {
        Self {
            addresses: None,
            addresses_of_network: NonZeroU32::MIN,
            user_agents: 0..BROWSERS,
            rotates_user_agents: false,
            tls_stacks: None,
            url_families: FAMILIES,
            has_session: true,
            assets,
            is_shown: true,
        }
    }

    /// One crawler with these `addresses`, twenty to a network, and another browser's name in each request;
    /// no session, pages only.
    #[must_use]
    pub fn crawler(addresses: NonZeroU32) -> Self {
        Self {
            addresses: Some(addresses),
            addresses_of_network: NonZeroU32::MIN.saturating_add(19),
            rotates_user_agents: true,
            has_session: false,
            ..Self::people(0)
        }
    }

    /// Returns true if this request of a session is for an asset of the page before.
    #[must_use]
    pub fn is_asset(&self, request: u64) -> bool {
        !request.is_multiple_of(u64::from(self.assets) + 1)
    }

    /// The signs of one request.
    pub(super) fn of(&self, class: u16, person: u64, request: u64, document: u32) -> RequestSigns {
        if !self.is_shown {
            return RequestSigns::default();
        }
        let address = self.addresses.map_or(person, |count| person % u64::from(count.get()));
        let network = address / u64::from(self.addresses_of_network.get());
        let within = |range: &Range<u32>, number: u64| {
            u64::from(range.start) + number % u64::from((range.end - range.start).max(1))
        };
        let drawn = if self.rotates_user_agents { mix(person ^ request << 32) } else { person };
        let user_agent = within(&self.user_agents, drawn);
        let of_class = |number| (u64::from(class) << 48) | number;
        let mut values = [0; SIGNS];
        let mut set = |sign: Sign, value: u64| values[sign as usize] = hash(sign, value) as u32 | 1;
        set(Sign::Address, of_class(address));
        set(Sign::Network, of_class(network));
        set(Sign::UserAgent, user_agent);
        set(Sign::UrlFamily, u64::from(document % self.url_families));
        if let Some(stacks) = &self.tls_stacks {
            set(Sign::TlsFingerprint, within(stacks, user_agent));
        }
        let person_key = match self.has_session {
            true => mix(of_class(person) + 1),
            false => mix(mix(of_class(address) + 2) ^ user_agent),
        };
        let is_asset = self.is_asset(request);
        let conduct = Conduct {
            is_asset,
            // From the first page on every request has one before it.
            has_own_referer: self.assets > 0 && request > 0,
            has_session: self.has_session && request > 0,
        };
        RequestSigns { person_key: person_key | 1, conduct, values }
    }
}

/// Numbers that no client chooses: a mixer suffices.
fn hash(sign: Sign, value: u64) -> u64 {
    mix(mix(value + 1) ^ (sign as u64 + 1) << 56)
}

/// User agents of browsers in use.
const BROWSERS: u32 = 20;
const FAMILIES: NonZeroU32 = NonZeroU32::new(5).expect("more than none");
/// A browser asks for the next asset this long after it has the one before.
pub(super) const ASSET_AFTER: Duration = Duration::from_millis(20);
