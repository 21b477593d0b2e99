//! Limits that refuse.

use flashweir_core::Reason;

/// Limit that refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShedReason {
    /// A limit that the gateway has, too.
    Gateway(Reason),
    /// The rate of [`Policy::StaticRate`](super::Policy::StaticRate) is spent.
    StaticRate,
}

/// A refusal, and the `Retry-After` that the client receives, whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::request) struct Refusal {
    pub(in crate::request) reason: ShedReason,
    pub(in crate::request) retry_after_s: Option<u16>,
}

impl ShedReason {
    /// Number of reasons.
    pub const COUNT: usize = Reason::ALL.len() + 1;

    /// All of them, in the order of [`index`](Self::index).
    pub fn all() -> impl Iterator<Item = Self> {
        Reason::ALL.into_iter().map(Self::Gateway).chain([Self::StaticRate])
    }

    /// Its place among all.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Gateway(reason) => reason as usize,
            Self::StaticRate => Reason::ALL.len(),
        }
    }

    /// Its name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gateway(reason) => reason.as_str(),
            Self::StaticRate => "static_rate",
        }
    }
}
