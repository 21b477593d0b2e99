//! Every bound in Flashweir, by name. What is configurable names its default here; the rest is fixed.

/// Hot-spot table entries (hosts tracked at once); NEWS §4.4 gives no number.
pub const HOT_SPOT_ENTRIES: usize = 64;
/// Hot-spots limited at once: each holds more than a quarter of the load, so four is all there can be.
pub const HOT_SPOTS_LIMITED: usize = 4;
/// Response observations one worker keeps between two ticks; more are sampled uniformly (reservoir).
pub const RESPONSES_PER_SAMPLE: usize = 16_384;
/// Response observations in the planner's sliding window; the oldest go first.
pub const RESPONSES_PER_WINDOW: usize = 131_072;
/// Slots of the table that recognises a person's retry after a refusal (16 bytes each).
pub const REFUSED_ATTEMPTS: usize = 65_536;
/// URL classes that have a latency reference of their own; further URLs share by hash.
pub const URL_CLASSES: usize = 1_024;
/// Decisions each worker remembers for `flashweir explain`.
pub const DECISIONS_REMEMBERED: usize = 16_384;
/// Workers: one for each core, and a decision id has eight bits for it.
pub const WORKERS: usize = 256;
/// Samples in flight from one worker to the planner; a full queue keeps accumulating at the worker.
pub const SAMPLES_QUEUED: usize = 8;
/// Responses per worker whose acknowledgement by the client is still awaited; beyond it they go unmeasured.
pub const ACKS_AWAITED: usize = 16_384;
/// Bins of a rate profile read from a file (24 bytes each): a month of seconds fits.
pub const PROFILE_BINS: usize = 3_000_000;
/// People the load tool has on their way at once, over all its threads; more are counted as its own failure.
pub const LOAD_REQUESTS_IN_FLIGHT: usize = 32_768;
/// Idle keep-alive connections each thread of the load tool holds for the next person from the same address.
pub const LOAD_IDLE_CONNECTIONS: usize = 1_024;
/// Distinct client addresses the load tool may use: those of a /16 of the loopback network.
pub const LOAD_SOURCES: u32 = 65_536;
/// Work the origin may be asked for in one request, milliseconds of processor time.
pub const ORIGIN_WORK_MS: f64 = 60_000.0;
/// Body the origin may be asked for in one request, bytes.
pub const ORIGIN_BODY_BYTES: u64 = 1 << 30;
/// Connections the kernel keeps for one listener before they are accepted; the kernel's own cap may be lower.
pub const ACCEPT_BACKLOG: i32 = 4_096;
/// Entries of `X-Forwarded-For`/`Forwarded` walked from the right; a longer chain ends at the last one walked.
pub const FORWARDED_HOPS: usize = 64;
/// Upstream addresses of one service: the balancer keeps them as bits of one word.
pub const UPSTREAM_ADDRESSES: usize = 64;
/// Requests in flight on one HTTP/2 upstream connection before another connection is opened.
pub const STREAMS_PER_UPSTREAM_CONNECTION: usize = 100;
/// Bytes of one chunk-size line, extensions included; nobody sends more than a few digits.
pub const CHUNK_LINE_BYTES: usize = 256;
/// Empty lines skipped before a request line (RFC 9112 §2.2 asks for at least one).
pub const EMPTY_LINES_BEFORE_REQUEST: usize = 2;
