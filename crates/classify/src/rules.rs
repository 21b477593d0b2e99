//! Test whether a class's rules hold for a request: compares and looks up, allocates nothing.

use core::net::IpAddr;
use flashweir_config::{ApiKeys, ClassRules, FieldRule, KeyPlace};
use flashweir_http1::head::{KnownField, RequestView};
use http::header::AUTHORIZATION;

/// Properties of a request that rules can match.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// In lower case, without port.
    pub(super) host: &'a [u8],
    /// In normal form.
    pub(super) path: &'a [u8],
    pub(super) head: RequestView<'a>,
    pub(super) client: IpAddr,
    /// Name that the node in front gives itself, if the sender is one: empty without a name.
    pub(super) sender: Option<&'a str>,
}

impl<'a> View<'a> {
    /// Returns whether all the rules hold; what is cheap to ask comes first.
    pub(super) fn fits(&self, rules: &ClassRules) -> bool {
        one_of(&rules.methods, |method| method.as_str().as_bytes() == self.head.method())
            && one_of(&rules.paths, |glob| glob.matches(self.path))
            && one_of(&rules.hosts, |glob| glob.matches(self.host))
            && one_of(&rules.clients, |network| network.contains(&self.client))
            && one_of(&rules.senders, |name| {
                self.sender.is_some_and(|sender| name.matches(sender.as_bytes()))
            })
            && one_of(&rules.headers, |rule| self.has_field(rule))
            && one_of(&rules.cookies, |rule| {
                let fits = |value| rule.value.as_ref().is_none_or(|glob| glob.matches(value));
                self.cookie_pairs().any(|(name, value)| rule.name.matches(name) && fits(value))
            })
            && rules.api_keys.as_ref().is_none_or(|keys| self.shows(keys))
    }

    /// The values of a cookie: browsers may send several of one name (RFC 6265 §5.4).
    pub(super) fn cookies<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let pairs = self.cookie_pairs();
        pairs.filter_map(move |(known, value)| (known == name.as_bytes()).then_some(value))
    }

    /// Names and values of all cookies.
    fn cookie_pairs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let pairs =
            self.head.fields().all(KnownField::Cookie).flat_map(|line| line.split(|byte| *byte == b';'));
        pairs.filter_map(|pair| {
            let pair = pair.trim_ascii();
            let equals = pair.iter().position(|byte| *byte == b'=')?;
            Some((&pair[..equals], &pair[equals + 1..]))
        })
    }

    fn has_field(&self, rule: &FieldRule) -> bool {
        let mut values = self.head.fields().all_named(&rule.name);
        values.any(|value| rule.value.as_ref().is_none_or(|glob| glob.matches(value)))
    }

    fn shows(&self, keys: &ApiKeys) -> bool {
        match &keys.place {
            KeyPlace::Header(name) => {
                let is_authorization = name == AUTHORIZATION;
                let mut values = self.head.fields().all_named(name);
                values
                    .any(|value| keys.contains(if is_authorization { without_bearer(value) } else { value }))
            }
            KeyPlace::Query(name) => {
                let mut pairs = self.head.query().unwrap_or_default().split(|byte| *byte == b'&');
                pairs.any(|pair| {
                    let value = pair.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
                    value.is_some_and(|value| keys.contains(value))
                })
            }
        }
    }
}

/// No entry holds for everything.
fn one_of<T>(entries: &[T], fits: impl FnMut(&T) -> bool) -> bool {
    entries.is_empty() || entries.iter().any(fits)
}

/// `Bearer KEY` (RFC 6750 §2.1; the word in any case) is about KEY.
fn without_bearer(value: &[u8]) -> &[u8] {
    match value.split_at_checked(BEARER.len()) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(BEARER) => key.trim_ascii_start(),
        _ => value,
    }
}

const BEARER: &[u8] = b"bearer ";
