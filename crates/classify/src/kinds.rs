//! Hashers of values by their kind: equal values of two kinds have different hashes, and the kind is hashed
//! once.

use flashweir_core::Hasher64;

/// One hasher for each kind of value.
#[derive(Debug)]
pub(super) struct Kinds {
    pub(super) address: Hasher64,
    pub(super) network: Hasher64,
    pub(super) header: Hasher64,
    pub(super) cookie: Hasher64,
    pub(super) session: Hasher64,
    pub(super) browser: Hasher64,
    pub(super) client_network: Hasher64,
    pub(super) user_agent: Hasher64,
    pub(super) family: Hasher64,
    pub(super) tls: Hasher64,
    pub(super) system: Hasher64,
}

impl Kinds {
    pub(super) fn new(hasher: Hasher64) -> Self {
        let of = |kind: &[u8]| hasher.after(&[kind]);
        Self {
            address: of(b"address"),
            network: of(b"network"),
            header: of(b"header"),
            cookie: of(b"cookie"),
            session: of(b"session"),
            browser: of(b"browser"),
            client_network: of(b"client network"),
            user_agent: of(b"user agent"),
            family: of(b"family"),
            tls: of(b"tls"),
            system: of(b"system"),
        }
    }
}
