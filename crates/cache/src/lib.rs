//! A shared HTTP cache without I/O: what RFC 9111 allows to be stored, what may be answered from the store,
//! and the store itself.
//!
//! **The rules.** [`RequestPart`] says which part a request may take: be answered by a stored response, wait
//! for one that is being fetched, or fetch one for others. [`judge`] says whether a response may be stored,
//! for how long, and why not. [`Stored`] is one response: its age and freshness at a moment, whether a
//! request selects it (`Vary`), and the answer it gives (200, 206, 304 or 416). `docs/cache.md` lists the
//! requirements of RFC 9111, the rule for each, and its test.
//!
//! **The store.** Each worker has its own [`Store`], a least-recently-used list with a bound in bytes, which
//! no other thread touches: a hit takes no lock. Workers share the [`Directory`]: which responses exist in
//! any store, and which are being fetched. It is asked on a miss only. A response that another worker has
//! stored is adopted and not fetched again (both stores then refer to one body), and one flight for each
//! missing document serves the requests of all workers. Invalidation marks the response itself, which every
//! store sees at its next look.
//!
//! **Why least recently used.** The cache exists for documents that many ask for at once. Such a document is
//! used many times a second, so that a flood of other documents would have to fill the whole store between
//! two of its uses to displace it.
//!
//! **Why no library for the rules.** the source of `http-cache-semantics` was read. It compares the names of
//! directives by case, drops a `Cache-Control` line with a byte beyond ASCII as a whole (and with it a
//! `private`), splits quoted values at commas, and parses the request's directives into a map of strings at
//! each use. The first three decide whether a private response is stored, so the rules are here, each with
//! its test.
//!
//! **Opening.** [`Opening`] says for which hosts the store is in use where it is used in crowds only.
//!
//! Time is an argument: [`Instant`](flashweir_core::Instant) for what passes here, seconds since 1970 where a
//! field of a message has a date. Sources: RFC 9110 (ranges, conditional requests), RFC 9111 (caching), RFC
//! 5861 (stale content), RFC 9211 (`Cache-Status`).

mod conditional;
mod date;
mod directives;
mod directory;
mod entity_tag;
mod gauge;
mod identity_hash;
mod judgement;
mod key;
mod marks;
mod opening;
mod range;
mod request;
mod store;
mod stored;
mod surrogate;
mod tags;
mod targeted;
mod vary;
mod weighted;

pub use directives::Directives;
pub use directory::{Directory, FlightGroup, Joined, Lead};
pub use gauge::{Gauge, Reservation};
pub use judgement::{Exchange, Judgement, Lifetime, NotStored, Received, judge, judge_validated};
pub use key::Key;
pub use marks::{Mark, Marks};
pub use opening::{Demand, OpenHost, Opening, Pressure};
pub use request::{Bypass, RequestPart, unknown_fields};
pub use store::{Inserted, Store};
pub use stored::{CACHE_STATUS, CacheStatus, Parts, State, Stored, WholeAnswer};
pub use tags::tag_hash;
