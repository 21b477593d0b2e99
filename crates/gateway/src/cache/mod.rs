//! The cache in the gateway: which requests it answers, how responses get into it, and when it is in use.
//!
//! The rules and the store are `flashweir_cache`. Here is what makes them a part of a request's life:
//!
//! ```text
//! request ── lookup ─┬─ answer ───────────────────────────────────────────────▶ the client      (a hit)
//!                    ├─ passage ─┬─ waits for a flight ── answer ─────────────▶ the client      (collapsed)
//!                    │           └─ leads it ── pipeline ── fetch ── answer ──▶ the client      (fetched, stored)
//!                    └─ by itself ── pipeline ─┬─ forward ────────────────────▶ the client
//!                                              └─ refused: a copy within its grace, or the refusal
//! ```
//!
//! *A flight* is one fetch for all who ask for the same document at the same time, on any worker; it belongs
//! to none of its clients: it goes on when its leader's client leaves, and ends when no request waits for it.
//! When its response turns out to be for its request alone, its leader gets it and the others go on by
//! themselves.
//!
//! A request that finds no room at the origin before a crowd has opened the cache takes part in flights, too
//! (`shortage`).
//!
//! *In use* is a host for as long as `opening` says, or all of them. `purge` is the operator's, on the admin
//! listener.

mod answer;
mod collect;
mod copy_body;
mod decision;
mod fetch;
mod flight;
mod grace;
mod leader;
mod lookup;
mod opening;
mod passage;
mod purge;
mod purge_query;
mod refresh;
mod shared;
mod shortage;
mod status;
mod worker;

pub(crate) use copy_body::CopyBody;
pub(crate) use decision::Decision;
pub(crate) use lookup::{Invalidation, Lookup, look_up};
pub(crate) use opening::CacheOpening;
pub(crate) use passage::{Traveller, through_flights};
pub(crate) use purge::{invalidate, invalidate_document, purge};
pub(crate) use purge_query::PurgeQuery;
pub(crate) use refresh::REFRESH_EVERY;
pub(crate) use shared::CacheShared;
pub(crate) use status::status;
pub(crate) use worker::WorkerCache;

use flashweir_cache::{CacheStatus, NotStored};
use flashweir_telemetry::{CacheAnswer, CacheRefusal};

/// Label under which an answer is counted.
pub(crate) fn counted_as(how: CacheStatus) -> CacheAnswer {
    match how {
        CacheStatus::Hit => CacheAnswer::Hit,
        CacheStatus::WhileRevalidate => CacheAnswer::WhileRevalidate,
        CacheStatus::IfError => CacheAnswer::IfError,
        CacheStatus::Grace => CacheAnswer::Grace,
        CacheStatus::Collapsed => CacheAnswer::Collapsed,
        CacheStatus::Fetched | CacheStatus::Revalidated => CacheAnswer::Fetched,
    }
}

/// As what a response that was not stored is counted.
pub(crate) fn refusal_of(why: NotStored) -> CacheRefusal {
    match why {
        NotStored::SetCookie => CacheRefusal::SetCookie,
        NotStored::NoStore => CacheRefusal::NoStore,
        // Requests with credentials never come so far.
        NotStored::Private | NotStored::Authorization => CacheRefusal::Private,
        NotStored::NoCache => CacheRefusal::NoCache,
        NotStored::Status => CacheRefusal::Status,
        NotStored::NotFresh => CacheRefusal::NotFresh,
        NotStored::Vary => CacheRefusal::Vary,
        NotStored::Cookie => CacheRefusal::Cookie,
        NotStored::RequestFields => CacheRefusal::RequestFields,
        NotStored::Doubtful => CacheRefusal::Doubtful,
        NotStored::Incomplete => CacheRefusal::Incomplete,
        NotStored::TooLarge => CacheRefusal::TooLarge,
        NotStored::Tags => CacheRefusal::Tags,
        NotStored::NoRoom => CacheRefusal::NoRoom,
        NotStored::Purged => CacheRefusal::Purged,
    }
}
