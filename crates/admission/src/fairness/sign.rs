//! By what clients are told apart, or found to be one.

/// How many [`Sign`]s there are.
pub const SIGNS: usize = 7;

/// Something that requests have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// The client's address; of IPv6 its /64.
    Address,
    /// Its network: /24 of IPv4, /48 of IPv6.
    Network,
    /// Its autonomous system.
    System,
    /// Its user agent.
    UserAgent,
    /// The family of URLs it asks for.
    UrlFamily,
    /// The age of its session cookie, in a few steps; one of them is "none".
    SessionAge,
    /// The fingerprint of its TLS handshake.
    TlsFingerprint,
}

impl Sign {
    /// In the order of [`RequestSigns::values`].
    pub const ALL: [Self; SIGNS] = [
        Self::Address,
        Self::Network,
        Self::System,
        Self::UserAgent,
        Self::UrlFamily,
        Self::SessionAge,
        Self::TlsFingerprint,
    ];
}

/// What a request shows of its client. All values are keyed hashes ([`flashweir_core::Hasher64`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestSigns {
    /// The session, where it is evidence of a person.
    pub person: Option<u64>,
    /// The value of each sign, in the order of [`Sign::ALL`]; none where a request does not have it.
    pub values: [Option<u64>; SIGNS],
}

/// Why a request is demoted: for `explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its person has more than a share.
    Person,
    /// All who show the same value of this sign together have more than theirs.
    Sign(Sign),
}
