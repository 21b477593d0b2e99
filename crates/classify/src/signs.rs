//! Attributes that a request shows of its client, for shares among clients with common attributes
//! (`admission::fairness`).
//!
//! | sign | from |
//! |---|---|
//! | address, network | the client's address, which only trusted proxies may state: of IPv6 the /64 and the /48 |
//! | TLS fingerprint | the ClientHello of the connection, unless a trusted proxy has made it |
//! | autonomous system | the operator's file |
//! | user agent | the field, as it is |
//! | family of URLs | the host's first segment of the path, in its normal form |
//!
//! A person's key is the session cookie, or address and browser where there is none. All values go through
//! the keyed hash: no client can choose which of them collide.

use super::client_key::octets;
use super::{Classifier, Host, Scratch, path};
use core::net::IpAddr;
use flashweir_admission::fairness::{Conduct, RequestSigns, SIGNS, Sign};
use flashweir_http1::head::{KnownField, RequestView};

/// Destinations of parts of a page.
const ASSET_DESTINATIONS: [&[u8]; 8] =
    [b"audio", b"font", b"image", b"manifest", b"script", b"style", b"track", b"video"];
/// Endings of the names of parts of a page, where a browser does not say.
const ASSET_ENDINGS: [&[u8]; 21] = [
    b"css", b"js", b"mjs", b"map", b"png", b"jpg", b"jpeg", b"gif", b"webp", b"avif", b"svg", b"ico", b"bmp",
    b"woff", b"woff2", b"ttf", b"otf", b"mp4", b"webm", b"mp3", b"wasm",
];
/// A shorter value is a flag, not a session.
const SESSION_BYTES_MIN: usize = 8;

impl Classifier {
    /// The signs of a request of this client; `tls` is the fingerprint of the client's own handshake. None
    /// are shown where fairness is off or the client is exempt; only who it is and what it does where clients
    /// are not compared now (`compares`), which takes one short hash in place of five or six. No allocation
    /// but for the first unusual paths.
    #[must_use]
    pub fn signs<'a>(
        &self,
        head: impl Into<RequestView<'a>>,
        client: IpAddr,
        tls: Option<u64>,
        compares: bool,
    ) -> RequestSigns {
        let client = client.to_canonical();
        if !self.fairness.is_enabled || self.fairness.is_exempt(client) {
            return RequestSigns::default();
        }
        let head = head.into();
        let field = |known| head.fields().get(known).unwrap_or_default();
        let mut scratch = self.scratch.borrow_mut();
        let Scratch { path, last } = &mut *scratch;
        let path = path::normal(head.path(), path);
        let (host, properties) = last.of(head, self.hosts.has_paths(), |host| self.properties(host, path));
        let address = octets(prefix(client, ADDRESS_BITS));
        let session = self.session(head);
        let user_agent = field(KnownField::UserAgent);
        let person = match session {
            Some(value) => self.kinds.session.hash(&[value]),
            None => self.kinds.browser.hash(&[&address, user_agent, field(KnownField::AcceptLanguage)]),
        };
        let conduct = Conduct {
            is_asset: is_asset(field(KnownField::SecFetchDest), path),
            has_own_referer: is_of_host(field(KnownField::Referer), host),
            has_session: session.is_some(),
        };
        let mut values = [0; SIGNS];
        let signs = |values| RequestSigns { person_key: person.max(1), conduct, values };
        if !compares {
            return signs(values);
        }
        let kinds = &self.kinds;
        // 0 stands for a sign that a request does not show.
        let mut set = |sign: Sign, hash: u64| values[sign as usize] = (hash as u32).max(1);
        set(Sign::Address, kinds.address.hash(&[&address]));
        set(Sign::Network, kinds.client_network.hash(&[&octets(prefix(client, NETWORK_BITS))]));
        set(Sign::UserAgent, kinds.user_agent.hash(&[user_agent]));
        let of_host = || kinds.family.after(&[host.name()]);
        let family = match properties {
            Some(properties) => *properties.family.get_or_insert_with(of_host),
            None => of_host(),
        };
        set(Sign::UrlFamily, family.hash(&[first_segment(path)]));
        if let Some(tls) = tls {
            set(Sign::TlsFingerprint, kinds.tls.hash(&[&tls.to_le_bytes()]));
        }
        if let Some(system) = self.fairness.system(client) {
            set(Sign::System, kinds.system.hash(&[&system.to_le_bytes()]));
        }
        signs(values)
    }

    /// The value of the first session cookie.
    fn session<'a>(&self, head: RequestView<'a>) -> Option<&'a [u8]> {
        head.fields().get(KnownField::Cookie)?;
        let pairs = head.fields().all(KnownField::Cookie).flat_map(|value| value.split(|byte| *byte == b';'));
        pairs
            .filter_map(|pair| {
                let pair = pair.trim_ascii();
                let equals = pair.iter().position(|&byte| byte == b'=')?;
                Some((pair.get(..equals)?, pair.get(equals + 1..)?))
            })
            .filter(|(_, value)| value.len() >= SESSION_BYTES_MIN)
            .find(|(name, _)| self.fairness.session_cookies.iter().any(|session| session.matches(name)))
            .map(|(_, value)| value)
    }
}

/// Bits of an IPv4 and of an IPv6 address that one client has, and one network.
const ADDRESS_BITS: (u32, u32) = (32, 64);
const NETWORK_BITS: (u32, u32) = (24, 48);

fn prefix(address: IpAddr, (bits_v4, bits_v6): (u32, u32)) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() & u32::MAX << (32 - bits_v4)).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & u128::MAX << (128 - bits_v6)).into()),
    }
}

/// With its slash: `/products/7` is of the family `/products`.
fn first_segment(path: &[u8]) -> &[u8] {
    let end = path.iter().skip(1).position(|&byte| byte == b'/').map_or(path.len(), |at| at + 1);
    path.get(..end).unwrap_or_default()
}

fn is_asset(destination: &[u8], path: &[u8]) -> bool {
    if !destination.is_empty() {
        return ASSET_DESTINATIONS.contains(&destination);
    }
    let last = path.iter().rposition(|&byte| byte == b'.' || byte == b'/').unwrap_or(path.len());
    match path.split_at(last).1 {
        [b'.', ending @ ..] => ASSET_ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending)),
        _ => false,
    }
}

/// Returns whether a referer names a page of this host, at any port.
fn is_of_host(referer: &[u8], host: Host<'_>) -> bool {
    let Some(scheme_end) = referer.windows(3).position(|three| three == b"://") else { return false };
    let rest = referer.get(scheme_end + 3..).unwrap_or_default();
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let named = super::host::without_port(rest.get(..end).unwrap_or_default());
    let named = named.strip_suffix(b".").unwrap_or(named);
    !named.is_empty() && named.eq_ignore_ascii_case(host.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_config::Config;
    use flashweir_core::Hasher64;
    use http::{Request, request};
    use proptest::prelude::*;

    fn classifier(fairness: &str) -> Classifier {
        let toml = format!("upstream.urls = ['http://a']\n{fairness}");
        let config = Config::from_toml(&toml, "test.toml").expect("a valid configuration");
        Classifier::new(Hasher64::new(1, 2), Hasher64::new(3, 4), &config)
    }

    fn signs(classifier: &Classifier, request: request::Builder, client: &str) -> RequestSigns {
        let (head, ()) = request.body(()).expect("request").into_parts();
        classifier.signs(&head, client.parse().expect("address"), None, true)
    }

    fn get(path: &str) -> request::Builder {
        Request::get(path).header("host", "shop.example:8080").header("user-agent", "Browser/1")
    }

    fn same(one: &RequestSigns, other: &RequestSigns) -> [bool; SIGNS] {
        std::array::from_fn(|sign| one.values[sign] == other.values[sign])
    }

    /// A client that changes the last 64 bits of its address is the same client, and its neighbours are of
    /// its network.
    #[test]
    fn an_address_is_a_64_and_a_network_a_48_of_ipv6_and_a_24_of_ipv4() {
        let classifier = classifier("");
        let of = |client: &str| signs(&classifier, get("/"), client);
        for (one, other, same_address, same_network) in [
            ("2001:db8:1:2::3", "2001:db8:1:2:9:9:9:9", true, true),
            ("2001:db8:1:2::3", "2001:db8:1:3::3", false, true),
            ("2001:db8:1::3", "2001:db8:2::3", false, false),
            ("192.0.2.1", "::ffff:192.0.2.1", true, true),
            ("192.0.2.1", "192.0.2.2", false, true),
            ("192.0.2.1", "192.0.3.1", false, false),
        ] {
            let same = same(&of(one), &of(other));
            let found = (same[Sign::Address as usize], same[Sign::Network as usize]);
            assert_eq!(found, (same_address, same_network), "{one} {other}");
        }
    }

    #[test]
    fn a_family_is_the_first_segment_of_the_path_however_it_is_written() {
        let classifier = classifier("");
        let family = |path: &str| signs(&classifier, get(path), "192.0.2.1").values[Sign::UrlFamily as usize];
        assert_eq!(family("/products/1"), family("/products/2/reviews?page=3"));
        assert_eq!(family("/products/1"), family("//./%70roducts/7"));
        assert_ne!(family("/products/1"), family("/search/1"));
        assert_ne!(family("/"), family("/search"));
    }

    #[test]
    fn a_person_is_a_session_or_an_address_with_a_browser() {
        let classifier = classifier("");
        let key = |request, client: &str| signs(&classifier, request, client).person_key;
        let with = |cookie: &'static str| get("/").header("cookie", cookie);
        let session = "theme=dark; PHPSESSID=0123456789; seen=2";
        assert_eq!(key(with(session), "192.0.2.1"), key(with("PHPSESSID=0123456789"), "198.51.100.1"));
        assert_ne!(key(with(session), "192.0.2.1"), key(with("PHPSESSID=9876543210"), "192.0.2.1"));
        // No session: another cookie, or one that is no more than a flag.
        let browser = key(get("/"), "192.0.2.1");
        for cookie in ["theme=0123456789", "PHPSESSID=1", "=;;PHPSESSID", ""] {
            assert_eq!(key(with(cookie), "192.0.2.1"), browser, "{cookie}");
        }
        assert_ne!(key(get("/").header("accept-language", "de"), "192.0.2.1"), browser);
        assert_ne!(key(get("/"), "192.0.2.2"), browser);
        let shop = self::classifier("fairness.session_cookies = ['shop_*']");
        let has_session = |cookie: &'static str| signs(&shop, with(cookie), "192.0.2.1").conduct.has_session;
        assert!(has_session("shop_v2=0123456789") && !has_session(session));
    }

    #[test]
    fn the_conduct_of_a_browser() {
        let classifier = classifier("");
        let of = |request| signs(&classifier, request, "192.0.2.1").conduct;
        let asset = |path: &str| of(get(path)).is_asset;
        assert!(["/a.css", "/x/y.JPG?v=1", "/static.d/app.min.js"].iter().all(|path| asset(path)));
        assert!(!["/", "/a.html", "/js", "/.css/", "/a.css/b"].iter().any(|path| asset(path)));
        assert!(of(get("/font?1").header("sec-fetch-dest", "font")).is_asset);
        assert!(!of(get("/a.css").header("sec-fetch-dest", "document")).is_asset);
        let own = |referer: &'static str| of(get("/").header("referer", referer)).has_own_referer;
        let ours = ["http://shop.example/", "https://SHOP.example:8443/a?b", "https://shop.example"];
        assert!(ours.iter().all(|referer| own(referer)));
        let others = [
            "https://search.example/?q=http://shop.example/",
            "https://shop.example.evil/",
            "shop.example",
            "://",
            "",
        ];
        assert!(!others.iter().any(|referer| own(referer)));
    }

    #[test]
    fn an_exempt_client_shows_nothing_and_neither_does_any_where_it_is_off() {
        let exempt = classifier("fairness.exempt = ['192.0.2.0/24', '2001:db8::/32']");
        for (client, shown) in [("192.0.2.7", false), ("2001:db8::1", false), ("192.0.3.7", true)] {
            assert_eq!(signs(&exempt, get("/"), client).person_key != 0, shown, "{client}");
        }
        let off = classifier("fairness.enabled = false");
        assert_eq!(signs(&off, get("/"), "192.0.2.1"), RequestSigns::default());
    }

    proptest! {
        #[test]
        fn any_fields_make_signs(
            cookie in proptest::collection::vec(32_u8..127, 0..200),
            referer in proptest::collection::vec(32_u8..127, 0..200),
            path in "/[ -~&&[^ ?#\"<>\\\\^`{|}]]{0,60}",
        ) {
            let classifier = classifier("");
            let mut request = get("/").header("cookie", &cookie[..]).header("referer", &referer[..]);
            if let Ok(uri) = path.parse::<http::Uri>() {
                request = request.uri(uri);
            }
            let signs = signs(&classifier, request, "192.0.2.1");
            prop_assert!(signs.person_key != 0 && signs.values[Sign::UserAgent as usize] != 0);
        }
    }
}
