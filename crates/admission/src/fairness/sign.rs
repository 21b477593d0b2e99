//! Signs that requests of different clients may have in common, and the conduct of a client that a request
//! shows.

/// Number of [`Sign`]s.
pub const SIGNS: usize = 7;

/// Something that requests have in common. The order is that in which a cause is looked for: a sign that
/// names fewer clients comes first, so that a client is not demoted for what one of its neighbours explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Sign {
    /// The client's address; of IPv6 its /64.
    Address,
    /// Its network: /24 of IPv4, /48 of IPv6.
    Network,
    /// The fingerprint of its TLS handshake.
    TlsFingerprint,
    /// Its autonomous system.
    System,
    /// Its user agent.
    UserAgent,
    /// The family of URLs it asks for.
    UrlFamily,
    /// The age of its session cookie, in a few steps; one of them is "none". Filled in by the stage.
    SessionAge,
}

impl Sign {
    /// In the order of [`RequestSigns::values`].
    pub const ALL: [Self; SIGNS] = [
        Self::Address,
        Self::Network,
        Self::TlsFingerprint,
        Self::System,
        Self::UserAgent,
        Self::UrlFamily,
        Self::SessionAge,
    ];

    /// Returns true if it names one place on the network. The other signs name a kind of software or of
    /// request, which people may share with a crawler.
    #[must_use]
    pub const fn is_place(self) -> bool {
        matches!(self, Self::Address | Self::Network)
    }
}

/// Signs that a request shows of its client. Values are keyed hashes ([`flashweir_core::Hasher64`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestSigns {
    /// By which evidence of a person is collected: the session cookie, or address and browser where there is
    /// none. 0 for a request that is not judged: its client is exempt, or the shell knows no signs.
    pub person_key: u64,
    /// Conduct of the request.
    pub conduct: Conduct,
    /// The value of each sign, in the order of [`Sign::ALL`]; 0 where the request does not have it.
    pub values: [u32; SIGNS],
}

/// Conduct of a request, as far as it is evidence of a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conduct {
    /// It asks for part of a page: a style sheet, a script, an image.
    pub is_asset: bool,
    /// It was made on a page of the same host, by its referer.
    pub has_own_referer: bool,
    /// It carries a session cookie.
    pub has_session: bool,
}

/// Reason for the demotion of a request: for `explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Its person has more than a share.
    Person,
    /// All who show the same value of this sign together have more than theirs.
    Sign(Sign),
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = SIGNS + 1;
    /// All of them, in the order of [`Cause::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::Person,
        Self::Sign(Sign::Address),
        Self::Sign(Sign::Network),
        Self::Sign(Sign::TlsFingerprint),
        Self::Sign(Sign::System),
        Self::Sign(Sign::UserAgent),
        Self::Sign(Sign::UrlFamily),
        Self::Sign(Sign::SessionAge),
    ];

    /// Its place in [`Cause::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Person => 0,
            Self::Sign(sign) => 1 + sign as usize,
        }
    }

    /// The one spelling used in metrics, `/status` and `explain`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Sign(Sign::Address) => "address",
            Self::Sign(Sign::Network) => "network",
            Self::Sign(Sign::TlsFingerprint) => "tls_fingerprint",
            Self::Sign(Sign::System) => "autonomous_system",
            Self::Sign(Sign::UserAgent) => "user_agent",
            Self::Sign(Sign::UrlFamily) => "url_family",
            Self::Sign(Sign::SessionAge) => "session_age",
        }
    }
}
