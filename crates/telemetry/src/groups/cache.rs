//! The cache: how requests were answered, what was stored, and what it takes.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::ControlMetrics;
use crate::counter::{Counter, CounterSet};
use crate::group::{MetricGroup, Scrape, WorkerGroup, sum};
use crate::label::labels;

/// Counts of one worker's cache. Each request that it answers is also counted as offered, admitted and
/// completed.
#[derive(Debug, Default)]
pub struct CacheMetrics {
    /// Requests answered, by how.
    pub answers: CounterSet<CacheAnswer>,
    /// Responses fetched for the cache, those fetched again included.
    pub fetches: Counter,
    /// Fetches that were refused and tried again for those who wait for them.
    pub fetch_retries: Counter,
    /// Stored responses that were to be fetched again without a client's request; in `/status`.
    pub refreshes: Counter,
    /// Responses stored.
    pub stored: Counter,
    /// Responses that were not, by why.
    pub not_stored: CounterSet<CacheRefusal>,
    /// Responses evicted to make room.
    pub evicted: Counter,
    /// Stored responses that an unsafe method invalidated.
    pub invalidated: Counter,
    /// Requests that began to wait for a response that another one fetches.
    pub wait_begun: Counter,
    /// Requests that no longer wait for such a response, with any outcome.
    pub wait_ended: Counter,
}

/// Figures of the control thread about all workers' caches.
#[derive(Debug, Default)]
pub struct CacheFigures {
    bytes: AtomicUsize,
    responses: AtomicUsize,
    open_hosts: AtomicUsize,
    purges: Counter,
    purges_refused: Counter,
    purged: AtomicU64,
}

impl ControlMetrics {
    /// Publishes the cache's contents: bytes, responses, and hosts for which it was opened.
    pub fn publish_cache(&self, bytes: usize, responses: usize, open_hosts: usize) {
        let figures = &self.cache;
        figures.bytes.store(bytes, Ordering::Relaxed);
        figures.responses.store(responses, Ordering::Relaxed);
        figures.open_hosts.store(open_hosts, Ordering::Relaxed);
    }

    /// Counts a purge, and the responses that it removed; none where it was one too many.
    pub fn count_purge(&self, responses: Option<u64>) {
        let Some(responses) = responses else {
            self.cache.purges_refused.increment();
            return;
        };
        self.cache.purges.increment();
        self.cache.purged.fetch_add(responses, Ordering::Relaxed);
    }
}

impl WorkerGroup for CacheMetrics {
    const TITLE: &'static str = "Cache";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        let help = "Requests answered by the cache, by how.";
        scrape.counter_set("cache_answers", help, copies, |c| &c.answers);
        scrape.counters(
            copies,
            &[
                ("cache_fetches", "Responses that the cache asked an upstream for.", |c| &c.fetches),
                (
                    "cache_fetch_retries",
                    "Times that a refused fetch was tried again for the requests that wait for it.",
                    |c| &c.fetch_retries,
                ),
                ("cache_stored", "Responses stored.", |c| &c.stored),
                ("cache_evicted", "Responses evicted to make room for others.", |c| &c.evicted),
                (
                    "cache_invalidated",
                    "Stored responses invalidated by requests that change something.",
                    |c| &c.invalidated,
                ),
            ],
        );
        let help = "Responses fetched for the cache and not stored, by why.";
        scrape.counter_set("cache_not_stored", help, copies, |c| &c.not_stored);
        // Ended before begun: read the other way round, one ending in between would go negative.
        let ended = sum(copies, |c| &c.wait_ended);
        let waiting = sum(copies, |c| &c.wait_begun).saturating_sub(ended);
        let help = "Requests that wait for a response that another one fetches.";
        scrape.gauge("cache_waiting", help, waiting as f64);
    }
}

impl MetricGroup for CacheFigures {
    fn title(&self) -> &'static str {
        "Cache"
    }

    fn export(&self, scrape: &mut Scrape) {
        let bytes = self.bytes.load(Ordering::Relaxed) as f64;
        scrape.gauge(
            "cache_memory_bytes",
            "Memory of stored responses, those still being sent included.",
            bytes,
        );
        let responses = self.responses.load(Ordering::Relaxed) as f64;
        scrape.gauge("cache_responses", "Stored responses of all workers.", responses);
        let open_hosts = self.open_hosts.load(Ordering::Relaxed) as f64;
        scrape.gauge("cache_open_hosts", "Hosts for which a crowd opened the cache.", open_hosts);
        scrape.counter("cache_purges", "Purges made through the admin listener.", self.purges.value());
        let help = "Purges refused because there were too many in a short time.";
        scrape.counter("cache_purges_refused", help, self.purges_refused.value());
        let help = "Stored responses that were purged.";
        scrape.counter("cache_purged", help, self.purged.load(Ordering::Relaxed));
    }
}

labels! {
    /// Answer of the cache to a request.
    CacheAnswer, "how" {
        /// Fresh from the store.
        Hit => "hit",
        /// From the store, stale, while it is fetched again.
        WhileRevalidate => "stale_while_revalidate",
        /// From the store, stale, because fetching it failed.
        IfError => "stale_if_error",
        /// From the store, older than HTTP allows, instead of a refusal.
        Grace => "grace",
        /// With a response that another request had fetched meanwhile.
        Collapsed => "collapsed",
        /// With a response fetched for it, which is stored.
        Fetched => "fetched",
    }
    /// Reason for which a response was not stored.
    CacheRefusal, "why" {
        /// It sets a cookie.
        SetCookie => "set_cookie",
        /// It says `no-store`.
        NoStore => "no_store",
        /// It says `private`.
        Private => "for_one_user",
        /// It says `no-cache`.
        NoCache => "no_cache",
        /// Its status is none that is stored.
        Status => "status",
        /// Nothing says how long it is fresh, or it was not fresh when it came.
        NotFresh => "not_fresh",
        /// `Vary` selects nothing that two requests share.
        Vary => "vary",
        /// Its request had a cookie, and the origin does not say that it is for all.
        Cookie => "cookie",
        /// Its request had a field by which the origin may have chosen it.
        RequestFields => "request_fields",
        /// Its caching instructions cannot be read in one way.
        Doubtful => "doubtful",
        /// Its end is not marked, it has trailers, or it broke off.
        Incomplete => "incomplete",
        /// It is larger than `cache.max_object`, or comes too slowly to be waited for.
        TooLarge => "too_large",
        /// It has too many tags.
        Tags => "tags",
        /// There is no room beside what is being sent.
        NoRoom => "no_room",
        /// It was purged while it was fetched.
        Purged => "purged",
    }
}
