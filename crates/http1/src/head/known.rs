//! Fields that are known by name, found once for each field line.
//!
//! A perfect hash of length, first and last byte names the only candidate; comparing it takes two or three
//! words. Cost: some fifty instructions for each name.

/// Longest known name, bytes.
const NAME_BYTES_MAX: usize = 25;

macro_rules! known_fields {
    ($($field:ident = $name:literal,)+) => {
        /// Field name that has a meaning to an intermediary or to a cache, or is common.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum KnownField {
            $(#[doc = concat!("`", $name, "`.")] $field,)+
            /// Any name that begins with `flashweir-`.
            Flashweir,
            /// Any other name.
            Other,
        }

        const NAMED: [(&str, KnownField); KnownField::Flashweir as usize] =
            [$(($name, KnownField::$field),)+];

        #[cfg(feature = "http")]
        static HTTP_NAMES: [http::HeaderName; KnownField::Flashweir as usize] =
            [$(http::HeaderName::from_static($name),)+];
    };
}

known_fields! {
    Accept = "accept",
    AcceptEncoding = "accept-encoding",
    AcceptLanguage = "accept-language",
    AcceptRanges = "accept-ranges",
    Age = "age",
    Authorization = "authorization",
    CacheControl = "cache-control",
    Connection = "connection",
    ContentEncoding = "content-encoding",
    ContentLanguage = "content-language",
    ContentLength = "content-length",
    ContentRange = "content-range",
    ContentType = "content-type",
    Cookie = "cookie",
    Date = "date",
    ETag = "etag",
    Expect = "expect",
    Expires = "expires",
    Forwarded = "forwarded",
    Host = "host",
    IfMatch = "if-match",
    IfModifiedSince = "if-modified-since",
    IfNoneMatch = "if-none-match",
    IfRange = "if-range",
    IfUnmodifiedSince = "if-unmodified-since",
    KeepAlive = "keep-alive",
    LastModified = "last-modified",
    Link = "link",
    Location = "location",
    MaxForwards = "max-forwards",
    Origin = "origin",
    Pragma = "pragma",
    Priority = "priority",
    Proxy = "proxy",
    ProxyAuthenticate = "proxy-authenticate",
    ProxyAuthenticationInfo = "proxy-authentication-info",
    ProxyAuthorization = "proxy-authorization",
    ProxyConnection = "proxy-connection",
    Range = "range",
    Referer = "referer",
    RetryAfter = "retry-after",
    SecFetchDest = "sec-fetch-dest",
    Server = "server",
    SetCookie = "set-cookie",
    Te = "te",
    Traceparent = "traceparent",
    Trailer = "trailer",
    TransferEncoding = "transfer-encoding",
    Upgrade = "upgrade",
    UserAgent = "user-agent",
    Vary = "vary",
    Via = "via",
    WwwAuthenticate = "www-authenticate",
    XForwardedFor = "x-forwarded-for",
    XForwardedHost = "x-forwarded-host",
    XForwardedProto = "x-forwarded-proto",
}

const OURS: &[u8] = b"flashweir-";
/// Mark of a slot without a name.
const FREE: u8 = u8::MAX;
static SLOTS: [u8; 256] = slots();

/// Slot of a name by its length and its ends, which hold letters only in known names.
const fn slot(length: usize, first: u8, last: u8) -> usize {
    (length + (first | 0x20) as usize * 11 + (last | 0x20) as usize * 15) % 256
}

/// Places each name; a collision ends the build.
const fn slots() -> [u8; 256] {
    let mut slots = [FREE; 256];
    let mut index = 0;
    while index < NAMED.len() {
        let name = NAMED[index].0.as_bytes();
        assert!(name.len() <= NAME_BYTES_MAX, "a longer name than is looked for");
        let slot = slot(name.len(), name[0], name[name.len() - 1]);
        assert!(slots[slot] == FREE, "two names in one slot: choose other factors");
        slots[slot] = index as u8;
        index += 1;
    }
    slots
}

impl KnownField {
    /// Field of this name, in any case.
    #[must_use]
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        let (Some(&first), Some(&last)) = (name.first(), name.last()) else { return Self::Other };
        let candidate = NAMED.get(usize::from(SLOTS[slot(name.len(), first, last)]));
        match candidate {
            Some((known, field)) if is_same(name, known.as_bytes()) => *field,
            _ if first | 0x20 == b'f' && is_ours(name) => Self::Flashweir,
            _ => Self::Other,
        }
    }

    /// Name in lower case; `flashweir-` for [`Self::Flashweir`], empty for [`Self::Other`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match NAMED.get(self as usize) {
            Some((name, _)) => name,
            None if self == Self::Flashweir => "flashweir-",
            None => "",
        }
    }

    /// Name in the crate `http`; none for [`Self::Flashweir`] and [`Self::Other`].
    #[cfg(feature = "http")]
    #[must_use]
    #[inline]
    pub fn http_name(self) -> Option<&'static http::HeaderName> {
        HTTP_NAMES.get(self as usize)
    }

    /// Field whose name is `name` where a server takes every sign for a hyphen, as CGI does:
    /// `X_Forwarded.For` is [`Self::XForwardedFor`].
    #[must_use]
    pub fn of_respelt(name: &[u8]) -> Self {
        let mut meant = [0; NAME_BYTES_MAX];
        let compared = name.len().min(NAME_BYTES_MAX);
        for (sign, byte) in meant.iter_mut().zip(name) {
            *sign = if byte.is_ascii_alphanumeric() { *byte } else { b'-' };
        }
        if is_ours(&meant[..compared]) {
            return Self::Flashweir;
        }
        if name.len() > NAME_BYTES_MAX { Self::Other } else { Self::of(&meant[..compared]) }
    }
}

fn is_ours(name: &[u8]) -> bool {
    name.get(..OURS.len()).is_some_and(|prefix| is_same(prefix, OURS))
}

/// Compares without regard to case; `known` has letters in lower case and hyphens only.
#[inline]
fn is_same(name: &[u8], known: &[u8]) -> bool {
    if name.len() != known.len() {
        return false;
    }
    if let (Some(name_end), Some(known_end)) = (name.last_chunk::<8>(), known.last_chunk::<8>()) {
        let words = name.as_chunks::<8>().0.iter().zip(known.as_chunks::<8>().0);
        return is_same_word(*name_end, *known_end)
            && words.into_iter().all(|(name, known)| is_same_word(*name, *known));
    }
    if let (Some(name_end), Some(known_end)) = (name.last_chunk::<4>(), known.last_chunk::<4>())
        && let (Some(name), Some(known)) = (name.first_chunk::<4>(), known.first_chunk::<4>())
    {
        return is_same_half(*name, *known) && is_same_half(*name_end, *known_end);
    }
    name.iter().zip(known).all(|(byte, known)| byte | (known >> 1 & 0x20) == *known)
}

/// A letter has the bit 0x40, the hyphen has not: only letters are folded.
#[inline]
fn is_same_word(name: [u8; 8], known: [u8; 8]) -> bool {
    let (name, known) = (u64::from_le_bytes(name), u64::from_le_bytes(known));
    name | (known >> 1 & 0x2020_2020_2020_2020) == known
}

#[inline]
fn is_same_half(name: [u8; 4], known: [u8; 4]) -> bool {
    let (name, known) = (u32::from_le_bytes(name), u32::from_le_bytes(known));
    name | (known >> 1 & 0x2020_2020) == known
}

/// Set of known fields as bits of one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldSet(u64);

impl FieldSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// Set of these fields.
    #[must_use]
    pub const fn of(fields: &[KnownField]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < fields.len() {
            set |= 1 << fields[index] as u8;
            index += 1;
        }
        Self(set)
    }

    /// Adds a field.
    #[inline]
    pub const fn insert(&mut self, field: KnownField) {
        self.0 |= 1 << field as u8;
    }

    /// Returns whether the field is in the set.
    #[must_use]
    #[inline]
    pub const fn contains(self, field: KnownField) -> bool {
        self.0 >> field as u8 & 1 == 1
    }

    /// Returns whether the sets have a field in common.
    #[must_use]
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Fields of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Fields of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

const _: () = assert!((KnownField::Other as u8) < 64, "a set has 64 bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_known_in_any_case_and_no_other_is() {
        for (name, field) in NAMED {
            assert_eq!(KnownField::of(name.as_bytes()), field);
            assert_eq!(KnownField::of(name.to_ascii_uppercase().as_bytes()), field);
            assert_eq!(field.name(), name);
            for at in 0..name.len() {
                for byte in 0..=255u8 {
                    let mut other = name.as_bytes().to_vec();
                    other[at] = byte;
                    let is_same = other.eq_ignore_ascii_case(name.as_bytes());
                    let found = KnownField::of(&other);
                    assert_eq!(found == field, is_same, "{}", other.escape_ascii());
                }
            }
            assert_ne!(KnownField::of(&name.as_bytes()[1..]), field);
        }
        assert_eq!(KnownField::of(b""), KnownField::Other);
        assert_eq!(KnownField::of(b"Flashweir-X"), KnownField::Flashweir);
        assert_eq!(KnownField::of(b"flashweir"), KnownField::Other);
        assert_eq!(KnownField::of(b"x-custom"), KnownField::Other);
    }

    #[test]
    fn a_respelt_name_is_recognised() {
        for (name, field) in [
            ("x_forwarded_for", KnownField::XForwardedFor),
            ("X.Forwarded.Host", KnownField::XForwardedHost),
            ("FLASHWEIR_decision_that_is_longer_than_any", KnownField::Flashweir),
            ("x_custom", KnownField::Other),
            ("proxy_authentication_info_and_more", KnownField::Other),
        ] {
            assert_eq!(KnownField::of_respelt(name.as_bytes()), field, "{name}");
        }
    }

    #[test]
    fn a_set_has_its_fields_only() {
        let mut set = FieldSet::of(&[KnownField::Host, KnownField::Other]);
        assert!(set.contains(KnownField::Host) && set.contains(KnownField::Other));
        assert!(!set.contains(KnownField::Te));
        let set_of_two = set;
        set.insert(KnownField::Te);
        assert_eq!(set.without(FieldSet::of(&[KnownField::Te, KnownField::Via])), set_of_two);
        assert_eq!(set_of_two.union(FieldSet::of(&[KnownField::Te])), set);
    }
}
