//! Fair shares among clients while a service is short: who has more than a share, by which sign, and nothing
//! else.
//!
//! **Decides** for each request whether it is served in its place or from what others leave, **from** what
//! requests cost the service, by person and by [`Sign`]. No request is refused here: a demotion is an order
//! of service.
//!
//! * A *person* is a client that behaves like one (`evidence`). Persons are separate claimants: a crawler that looks like a browser
//!   does not drag that browser's users down, and an office behind one address is as many claimants as it has people.
//! * Clients without evidence are judged by what they have in common. One that comes from ten thousand addresses, each polite by
//!   itself, still has one TLS fingerprint, one family of URLs, a few user agents, or no session at all.
//! * Once a period, for each sign: the load is divided into persons and values of the sign, and the claimants above the water level
//!   (`level`) are demoted from now on: those whose excess is the service's. A value that people show has as many shares as there are of
//!   them.
//! * The signs are asked in an order, and what one explains the next ones do not count: where a crawler has its own TLS fingerprint,
//!   newcomers without a session are not demoted with it. A kind of software of which most values are above the level does not distinguish
//!   clients and explains nothing: one crawler under the names of twenty browsers is one claimant by its missing session, not twenty by
//!   their names.
//!
//! **Never touched** are a claimant at or below 1.15 of the equal share, one with less than a burst of pages
//! or a twentieth of what is served, and all clients from five seconds after the last refusal on. **Cold
//! start**: no client is demoted before the first period in which load exceeds what is served ends.
//! **Recovery**: within a few averaging times after a client slows down, or five seconds after the last
//! refusal.
//!
//! **Cost**: one cache line for a person, one for each sign of another client; a pass over the entries in
//! use each period; nothing but evidence while the service is not short (`cargo bench -p
//! flashweir-admission --bench fairness`). **Memory**: 250 KB for a service and worker that was ever short,
//! 512 KB of evidence for all.
//!
//! **Failure modes**: newcomers share with all who look like them until they have evidence; a site whose
//! pages have no assets gives none, and there only addresses and networks are judged. Each worker judges what
//! it sees.
//!
//! Source: Purge §3 at the level of requests, with the repairs P-1, P-2, P-4 and P-10 of
//! `docs/algorithms/purge.md`; in place of C/N a max-min level, because at a gateway what a client does not
//! use is not another's by right but is served to it anyway.

mod claims;
mod evidence;
mod impatience;
mod level;
mod settings;
mod shares;
mod sign;

pub use evidence::{Acquaintance, Evidence, SESSION_STEPS};
pub use impatience::{
    CALM_AFTER, CLIENTS_FOR_EACH, CLIENTS_MIN, EARLY_RETURNS, FORGIVEN_AFTER, Impatience, LISTED_FOR,
    Listing, TIMES_MAX,
};
pub use settings::FairnessSettings;
pub use shares::{Fairness, FairnessStatus};
pub use sign::{Cause, Conduct, RequestSigns, SIGNS, Sign};
