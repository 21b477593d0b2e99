//! Every bound in Flashweir, by name. Configurable bounds have their default here; the others are fixed.

/// Hot-spot table entries (hosts tracked at once); NEWS §4.4 gives no number.
pub const HOT_SPOT_ENTRIES: usize = 64;
/// Hot-spots limited at once: each holds more than a quarter of the load, so four is all there can be.
pub const HOT_SPOTS_LIMITED: usize = 4;
/// Distinct latencies of one sample, by latency class and bucket (12 bytes each); further ones are counted
/// without their class, which takes no more than [`LATENCY_CELLS_UNCLASSED`].
pub const LATENCY_CELLS: usize = 4_096;
/// Distinct latencies without a class in one sample: the number of buckets.
pub const LATENCY_CELLS_UNCLASSED: usize = 960;
/// Distinct rates in one sample: the number of buckets.
pub const RATE_CELLS: usize = 960;
/// Cells of samples (32 bytes each) in the planner's sliding window; the oldest go first.
pub const CELLS_PER_WINDOW: usize = 131_072;
/// Slots of the table that recognises a person's retry after a refusal (16 bytes each).
pub const REFUSED_ATTEMPTS: usize = 65_536;
/// URL classes, each with a separate latency reference; URLs fall into them by hash, so several may share
/// one.
pub const URL_CLASSES: usize = 1_024;
/// Decisions each worker remembers for `flashweir explain`.
pub const DECISIONS_REMEMBERED: usize = 16_384;
/// Workers: one for each core, and a decision id has eight bits for it.
pub const WORKERS: usize = 256;
/// Samples in flight from one worker to the planner; a full queue keeps accumulating at the worker.
pub const SAMPLES_QUEUED: usize = 8;
/// Responses per worker whose acknowledgement by the client is still awaited; beyond it they go unmeasured.
pub const ACKS_AWAITED: usize = 16_384;
/// Bins of a rate profile read from a file (32 bytes each): a month of seconds fits.
pub const PROFILE_BINS: usize = 3_000_000;
/// People the load tool has on their way at once, over all its threads; more are counted as its own failure.
pub const LOAD_REQUESTS_IN_FLIGHT: usize = 32_768;
/// Idle keep-alive connections each thread of the load tool holds for the next person from the same address.
pub const LOAD_IDLE_CONNECTIONS: usize = 1_024;
/// Distinct client addresses the load tool may use: those of a /16 of the loopback network.
pub const LOAD_SOURCES: u32 = 65_536;
/// Addresses of a server's name that the load tool spreads connections over; further ones are left out.
pub const LOAD_TARGET_ADDRESSES: usize = 16;
/// Bins of a load result's series, a second each at first; longer runs have wider bins, not more.
pub const LOAD_SERIES_BINS: usize = 7_200;
/// Classes of one load plan; each keeps about a megabyte of distributions per thread.
pub const LOAD_CLASSES: usize = 64;
/// People a second beyond which a rate asked of the load tool is a typing error.
pub const LOAD_RATE_PER_S: f64 = 1e7;
/// Lines of a list of paths (about 30 bytes each besides their text).
pub const LOAD_LIST_PATHS: usize = 4_000_000;
/// Text of a list of paths, bytes.
pub const LOAD_LIST_BYTES: u64 = 512 << 20;
/// Body of a request that the load tool sends, bytes; held once for each class.
pub const LOAD_BODY_BYTES: u64 = 64 << 20;
/// Text of a file that describes classes, bytes.
pub const LOAD_CLASSES_FILE_BYTES: u64 = 1 << 20;
/// People of one thread of the load tool who are thinking or wait to try again; more are counted as its own
/// failure.
pub const LOAD_PEOPLE_WAITING: usize = 1_000_000;
/// Work the origin may be asked for in one request, milliseconds of processor time.
pub const ORIGIN_WORK_MS: f64 = 60_000.0;
/// Body the origin may be asked for in one request, bytes.
pub const ORIGIN_BODY_BYTES: u64 = 1 << 30;
/// Lines of the access log that a worker gathers before it hands them over, bytes.
pub const ACCESS_LOG_BYTES: usize = 32 << 10;
/// Parcels of lines that wait for the access log's file, of all workers: some 8 MB.
pub const ACCESS_LOG_QUEUE: usize = 256;
/// Connections the kernel keeps for one listener before they are accepted; the kernel's own cap may be lower.
pub const ACCEPT_BACKLOG: i32 = 4_096;
/// Connections beyond a bound that are still answered with a refusal, over all workers: some 30 MB of memory.
pub const REFUSE_ONLY_CONNECTIONS: usize = 1_024;
/// Open files that are neither connections nor a worker's: libraries, logs, signals, files being written or
/// read.
pub const DESCRIPTORS_FIXED: usize = 64;
/// Open files of each worker that are no connections: its listeners and its runtime.
pub const DESCRIPTORS_PER_WORKER: usize = 8;
/// Pipes of each worker, for large bodies: two open files each, and 64 KiB of kernel memory while a client
/// has not taken the bytes in them.
pub const PIPES_PER_WORKER: usize = 64;
/// All pipes have at most this part (1/n) of the open files.
pub const PIPES_DESCRIPTOR_PARTS: usize = 16;
/// Admin connections at once that may ask for anything: a scraper, and a few people.
pub const ADMIN_CONNECTIONS: usize = 64;
/// Admin connections at once besides, which have not asked yet or ask for `/healthz` and `/readyz`.
pub const ADMIN_PROBES: usize = 64;
/// Bytes of a header of the PROXY protocol, its additional fields included. The protocol asks for 536 at
/// least; clients' certificates in it may have some thousand.
pub const PROXY_HEADER_BYTES: usize = 4_096;
/// Entries of `X-Forwarded-For`/`Forwarded` walked from the right; a longer chain ends at the last one
/// walked.
pub const FORWARDED_HOPS: usize = 64;
/// Upstream addresses of one service: the balancer keeps them as bits of one word.
pub const UPSTREAM_ADDRESSES: usize = 64;
/// Probes of upstreams under way at once, over all services: each holds a connection until it is answered or
/// its time is over.
pub const UPSTREAM_PROBES: usize = 256;
/// Bytes of the head of one response of an upstream; with more the client gets 502.
pub const UPSTREAM_HEAD_BYTES: usize = 512 << 10;
/// Bytes of interim responses (1xx) that wait for one client of HTTP/1, or that one request of HTTP/2 gets;
/// what comes beyond is dropped and counted.
pub const INTERIM_RESPONSE_BYTES: usize = 16 << 10;
/// Fields of one interim response; one with more is dropped.
pub const INTERIM_RESPONSE_FIELDS: usize = 100;
/// Bytes read from an upstream at once. A response whose client reads slowly holds a few times as many in
/// memory.
pub const UPSTREAM_READ_BYTES: usize = 16 << 10;
/// Bytes of one HTTP/2 response that are kept for a client that does not take them.
pub const STREAM_SEND_BYTES: usize = 64 << 10;
/// Bytes a second that a client must take of a response while it is waited for: a fifth of what the slowest
/// mobile links have.
pub const READER_RATE_MIN: u64 = 512;
/// Bytes of a request's body that must be here before an upstream connection is taken; a smaller body must be
/// here whole.
pub const UPLOAD_FIRST_PART_BYTES: usize = 64 << 10;
/// Bodies, or first parts, that one worker waits for at once; then the slowest is answered 408.
pub const UPLOADS_GATHERED: usize = 4_096;
/// The same of one client's network (/24, or /56 in IPv6): four HTTP/2 connections full of uploads.
pub const UPLOADS_GATHERED_PER_CLIENT: usize = 512;
/// Bytes of those, in one worker.
pub const UPLOADS_GATHERED_BYTES: usize = 32 << 20;
/// Uploads that are waited for may hold this part (1/n) of the connections to a service's upstreams; then the
/// slowest is cut.
pub const UPLOADS_POOL_PARTS: usize = 2;
/// Of those, the part (1/n) that one client may hold.
pub const UPLOADS_CLIENT_PARTS: usize = 4;
/// Requests in flight on one HTTP/2 upstream connection before another connection is opened.
pub const STREAMS_PER_UPSTREAM_CONNECTION: usize = 100;
/// Bytes of one chunk-size line, extensions included; ordinary senders use a few digits.
pub const CHUNK_LINE_BYTES: usize = 256;
/// Empty lines skipped before a request line (RFC 9112 §2.2 asks for at least one).
pub const EMPTY_LINES_BEFORE_REQUEST: usize = 2;
/// Requests of a recorded log (20 bytes each once read, up to 40 while they are put in order).
pub const RECORDED_REQUESTS: usize = 20_000_000;
/// Distinct documents (method and path) of a recorded log, about 100 bytes each besides their text.
pub const RECORDED_DOCUMENTS: usize = 4_000_000;
/// Text of all of a recorded log's documents together, bytes.
pub const RECORDED_TEXT_BYTES: usize = 512 << 20;
/// Path and query of one recorded document, bytes: what common servers accept for a whole request line.
pub const RECORDED_PATH_BYTES: usize = 8_192;
/// Method of a recorded request, bytes: the longest registered one has 17.
pub const RECORDED_METHOD_BYTES: usize = 32;
/// Time from the first to the last request of a recorded log, seconds: ten years. A stamp beyond it is
/// garbage.
pub const RECORDED_SPAN_S: u32 = 315_360_000;
/// Lines of a recorded log, those that are left out or do not parse included.
pub const LOG_LINES: u64 = 200_000_000;
/// One line of a recorded log, bytes; a longer one is skipped.
pub const LOG_LINE_BYTES: usize = 65_536;
/// Bytes skipped in search of the end of a line that is too long; a longer line is no log.
pub const LOG_LINE_SKIPPED_BYTES: u64 = 64 << 20;
/// A step back in the times of a recorded log, seconds, that is put in order rather than counted as a fault,
/// and the longest time that a request is believed to have taken: a long download. A clock that is set wrong
/// is further off.
pub const LOG_REORDERED_S: u64 = 3_600;
/// Columns of a recorded log in the W3C's extended format; the vendors' have at most 33.
pub const LOG_COLUMNS: usize = 256;
/// Variables and texts in the pattern of a recorded log.
pub const LOG_PATTERN_PARTS: usize = 64;
/// Window of a recorded log that zstd compressed, bytes: what `zstd --ultra -22` uses, and its own bound for
/// decompression.
pub const LOG_ZSTD_WINDOW_BYTES: u64 = 128 << 20;
/// Problems of each kind in a recorded log that are kept to be shown; the rest is only counted.
pub const LOG_PROBLEMS_SHOWN: usize = 5;
/// Characters shown of what does not parse.
pub const LOG_SNIPPET_CHARACTERS: usize = 80;
/// Sessions of a self-similar arrival process under way at once, on average (mean rate times gap).
pub const SELF_SIMILAR_ACTIVE_MEAN: f64 = 524_288.0;
/// The same at most (16 bytes each): twice the mean allowed, which a Poisson number of that mean never
/// reaches.
pub const SELF_SIMILAR_ACTIVE: usize = 1_048_576;
/// Workers of the arrival processes that pace each worker by itself (16 bytes each).
pub const PACED_WORKERS: u32 = 1_048_576;
/// Arrival streams merged into one schedule; each arrival costs one comparison for each.
pub const SCHEDULE_STREAMS: usize = 64;
/// Documents one popularity may speak of: 8 bytes each while drawing, about 20 more while the table is made.
pub const DOCUMENTS: usize = 10_000_000;
/// Bytes of one document that the load tool or the simulator asks for.
pub const DOCUMENT_BYTES: u64 = 1 << 30;
/// Maximum wait of a person, seconds: patience, thought, a server's `Retry-After`. No run lasts a day.
pub const PERSON_WAIT_SECONDS: u64 = 86_400;
/// Mean number of requests in a session of drawn length; one session has at most 37 times its mean.
pub const SESSION_REQUESTS_MEAN: f64 = 1_000_000.0;
/// Bins the Hurst estimator counts: a day of milliseconds. Later arrivals are left out of the estimate.
pub const HURST_BINS: u64 = 1 << 27;
/// Head or trailers of an answer that the load tool reads, and fields of a request that it sends, bytes.
pub const LOAD_HEAD_BYTES: usize = 65_536;
/// Fields of an answer's head that the load tool reads.
pub const LOAD_ANSWER_FIELDS: usize = 128;
/// File of a load result that is read back, bytes: 65 series of the most bins have about 400 MB.
pub const LOAD_RESULT_BYTES: u64 = 512 << 20;
/// Results that are merged at once, each up to [`LOAD_RESULT_BYTES`].
pub const LOAD_RESULTS_MERGED: usize = 1_024;
/// Flows whose arrival rates a queue discipline keeps (30 bytes each).
pub const AQM_CACHED_FLOWS: usize = 65_536;
/// Events of one simulation that wait to happen (32 bytes each).
pub const SIM_EVENTS: usize = 8_000_000;
/// People present in one request-level simulation (about 270 bytes each), and tries on their way (100 bytes
/// each).
pub const SIM_PEOPLE: usize = 1_000_000;
/// Bins of a request-level simulation's series, all classes together (about 150 bytes each).
pub const SIM_SERIES_BINS: usize = 1_000_000;
/// Plans of one simulation kept for its report (about 180 bytes each); later ones are only counted.
pub const SIM_PLANS: usize = 200_000;
/// Faults of one request-level simulation.
pub const SIM_FAULTS: usize = 1_024;
/// Processors of one simulated server: keeps its arithmetic within 64 bits.
pub const SIM_PROCESSORS: u32 = 65_536;
/// Work of one simulated request at most, seconds of processor time.
pub const SIM_WORK_SECONDS: u64 = 86_400;
/// Hosts and routers of one simulated network (32 bytes each).
pub const SIM_NODES: usize = 1_000_000;
/// Links of one simulated network, each direction counted (about 400 bytes each).
pub const SIM_LINKS: usize = 1_000_000;
/// Routes of one simulated network, each with its way back.
pub const SIM_ROUTES: usize = 1_000_000;
/// Hops of all routes together (8 bytes each).
pub const SIM_HOPS: usize = 16_000_000;
/// Sets of TCP settings in one simulated network.
pub const SIM_TCP_SETTINGS: usize = 1_024;
/// Flows of one simulated network that exist at once (about 600 bytes each).
pub const SIM_FLOWS: usize = 1_000_000;
/// Constant-rate sources of one simulated network, and sources with feedback.
pub const SIM_SOURCES: usize = 65_536;
/// Packets waiting or on a wire in one simulated network (40 bytes each).
pub const SIM_PACKETS: usize = 16_000_000;
/// Clients of one request-level simulation over packets, counted once for each class that sits at them (about
/// 1 kB each). To find the way of one takes a look at all of them: 20,000 take a few seconds.
pub const SIM_CLIENTS: usize = 20_000;
/// Long transfers of one request-level simulation over packets.
pub const SIM_TRANSFERS: usize = 1_024;
/// One scenario file of the simulator, bytes.
pub const SCENARIO_FILE_BYTES: u64 = 1 << 20;
/// One table of counts that a scenario names, bytes.
pub const SCENARIO_TABLE_BYTES: u64 = 64 << 20;
/// Classes of one scenario, and windows.
pub const SCENARIO_CLASSES: usize = 64;
/// Links of one scenario over packets: their nodes are looked up by name, one after the other.
pub const SCENARIO_LINKS: usize = 1_024;
/// Seeds of one scenario, and scenarios of one swarm.
pub const SCENARIO_SEEDS: u32 = 100_000;
/// Memory that the runs of one scenario keep for its report, all seeds together, bytes.
pub const SCENARIO_MEMORY_BYTES: u64 = 2 << 30;
/// Requests one gate holds at once while they wait for room at the origin (about 40 bytes each besides what
/// is kept).
pub const REQUESTS_HELD: usize = 16_384;
/// The most requests the sentry ever lets be in flight to one service at once.
pub const SENTRY_IN_FLIGHT: u32 = 65_536;
/// Requests one worker compares at once between a service's policy and its candidate (about 150 bytes each).
pub const CANDIDATE_REQUESTS: usize = 65_536;
/// Classes of one service's policy: each has a queue in every worker and is walked at every decision.
pub const CLASSES: usize = 16;
/// Lanes among which the waiting clients of one class share room, in each gate; further clients share lanes
/// by hash.
pub const CLIENT_LANES: usize = 64;
/// Lanes in which the time is counted that a service's clients have had at its origin, in each worker;
/// further clients share lanes by hash.
pub const SHARE_LANES: usize = 1_024;
/// Heavy claimants that fairness counts separately by each sign, for each service and worker (16 bytes each);
/// lighter ones make room.
pub const FAIRNESS_CLAIMS: usize = 1_024;
/// Clients of which fairness remembers whether they behave like people, in all (8 bytes each); a person makes
/// no room for others.
pub const PEOPLE_KNOWN: usize = 65_536;
/// Sources of refused requests of which is remembered how often they come before their `Retry-After` is over,
/// in all (32 bytes each); the one that keeps to it best makes room.
pub const IMPATIENT_TRACKED: usize = 8_192;
/// Sources from which people come, in all (8 bytes each); the one longest without makes room.
pub const SOURCES_OF_PEOPLE: usize = 32_768;
/// Sources whose new connections are closed at once because their clients ignore `Retry-After`; further ones
/// are not.
pub const IMPATIENT_LISTED: usize = 4_096;
/// Bytes of each file that fairness reads: ranges of verified crawlers, autonomous systems.
pub const FAIRNESS_FILE_BYTES: u64 = 64 << 20;
/// Networks in such a file, and exempt ones.
pub const FAIRNESS_NETWORKS: usize = 2_000_000;
/// Services of one gateway, each with separate connections in every worker.
pub const SERVICES: usize = 64;
/// Paths of all services together: a request is compared with those of its host, one after the other.
pub const SERVICE_PATHS: usize = 256;
/// Steps of one service's ladder of targets.
pub const LADDER_STEPS: usize = 16;
/// API keys of one class (about 60 bytes each besides their text).
pub const API_KEYS: usize = 100_000;
/// One API key, bytes.
pub const API_KEY_BYTES: usize = 1_024;
/// A file of API keys, bytes.
pub const API_KEYS_FILE_BYTES: u64 = 16 << 20;
/// Hosts longer than a domain name can be (RFC 1035: 253 characters) are distinguished by their beginning.
pub const HOST_BYTES: usize = 255;
/// Classes, of all services, with separate metrics (about 12 KB each in every worker); all further ones share
/// the last.
pub const CLASS_SLOTS: usize = 64;
/// Fields of one response in which an upstream reports its load, bytes; more are ignored.
pub const LOAD_REPORT_BYTES: usize = 4_096;
/// Metrics of one such field.
pub const LOAD_REPORT_METRICS: usize = 64;
/// Services that the gate in the kernel protects: the size of its tables, 9 kB each with their responses.
pub const KERNEL_SERVICES: usize = 64;
/// Addresses and ports of all those services together.
pub const KERNEL_ENDPOINTS: usize = 256;
/// Networks that the gate in the kernel prefers.
pub const KERNEL_PREFERRED_NETWORKS: usize = 4_096;
/// Tiers of a service's plan in the kernel, one for each rank: a power of two, so that the program bounds a
/// rank by a mask.
pub const KERNEL_TIERS: usize = 8;
/// Networks whose new connections have a rank in the kernel.
pub const KERNEL_TIER_NETWORKS: usize = 4_096;
/// Ports whose new connections have a rank in the kernel.
pub const KERNEL_TIER_PORTS: usize = 256;
/// Sources whose new connections the gate in the kernel drops; the one longest without traffic goes first.
pub const KERNEL_PURGED_SOURCES: usize = 65_536;
/// Interfaces that one process guards in the kernel: the members of a few bundles.
pub const KERNEL_INTERFACES: usize = 16;
/// Ports on which protected servers speak TLS.
pub const KERNEL_TLS_PORTS: usize = 64;
/// Flows that the observer in the kernel may be given room for (about 160 bytes each, all of it taken at
/// once).
pub const KERNEL_FLOWS: u32 = 1_048_576;
/// The same, unless configured: about 20 MB. The flow longest without a packet goes first.
pub const KERNEL_FLOWS_DEFAULT: u32 = 131_072;
/// Destinations whose new connections the observer in the kernel counts separately between two readings (40
/// bytes each).
pub const KERNEL_DESTINATIONS: usize = 512;
/// Flows of one period whose bytes the classifier of a link counts (25 bytes each, twice); a power of two
/// times eight. One that sends more than an eighth of what its set of eight sends is never left out.
pub const LINK_FLOWS: usize = 4_096;
/// Heavy flows that the status of a link lists.
pub const LINK_FLOWS_LISTED: usize = 16;
/// Decisions a router remembers, to tell why something was refused (about 300 bytes each): a quarter of an
/// hour at one a second.
pub const ROUTER_PLANS_REMEMBERED: usize = 1_024;
/// Records of planners' samples and plans that wait to be written to a recording; further ones are lost, and
/// counted.
pub const RECORDS_QUEUED: usize = 1_024;
/// Bytes of one segment of a recording, nearly; then the next one is begun.
pub const RECORDING_SEGMENT_BYTES: u64 = 20 << 20;
/// Bytes of the contents of one frame of a recording, unpacked: what is packed may claim to be anything. A
/// frame is written at 64 KiB, and one record is far below the rest.
pub const RECORDING_FRAME_BYTES: usize = 8 << 20;
/// Segments of a recording that are kept besides the one being written; the oldest are removed.
pub const RECORDING_SEGMENTS: u64 = 24;
/// Planners of one recording; a reload that changes a policy begins another.
pub const RECORDING_STREAMS: usize = 4_096;
/// Bytes of the text that says how planners were configured.
pub const RECORDING_ABOUT_BYTES: usize = 65_536;
/// Bytes of the name of one planner's service.
pub const RECORDING_NAME_BYTES: usize = 255;
/// Places where a replay shows that plans begin to differ; further ones are counted.
pub const REPLAY_PARTINGS: usize = 20;
/// Applications of one pool of servers (about 25 kB each in the planner of capacity).
pub const PROVISIONED_APPLICATIONS: usize = 4_096;
/// Servers of one pool: beyond it the number is a typing error.
pub const PROVISIONED_SERVERS: u32 = 1_000_000;
/// Bins of a season in which demand is remembered: five minutes of a day.
pub const SEASON_BINS: usize = 288;
/// Seasons in which demand is remembered: two weeks of days.
pub const SEASONS_REMEMBERED: usize = 14;
/// Intervals between plans of which demand is counted separately (about 300 bytes each for 16 classes); older
/// ones are forgotten.
pub const DEMAND_INTERVALS: usize = 64;
/// Numbers of servers that an application needed lately and that a release has to respect (16 bytes each).
pub const RELEASE_ENTRIES: usize = 256;
/// Gateways that share one limit (about 100 bytes each at the leader).
pub const GATEWAYS: usize = 4_096;
/// Bytes of a report or a broadcast between gateways: some 100 services, or shares of all [`GATEWAYS`] for
/// ten.
pub const CLUSTER_MESSAGE_BYTES: usize = 1 << 20;
/// Servers over which one redirector spreads requests (about 100 bytes each).
pub const REPLICA_SERVERS: usize = 256;
/// Documents that one redirector knows (about 100 bytes each, and 10 for each copy); requests for further
/// ones go to the home server.
pub const REPLICA_DOCUMENTS: usize = 65_536;
/// Copies that one round of placement creates; the rest waits for the next round.
pub const PLACEMENTS_PER_ROUND: usize = 1_024;
/// Redirectors among which documents are divided.
pub const REDIRECTORS: usize = 256;
/// Documents that one worker of a redirector or replica counts between two samples (about 300 bytes each);
/// requests for further ones are routed and not counted.
pub const REPLICATION_COUNTED: usize = 4_096;
/// Bytes of a document's name (host and target) that are kept for reports and `/status`; one with a longer
/// name is counted without it.
pub const REPLICATION_NAME_BYTES: usize = 512;
/// Documents of one report of a replica, the most wanted first.
pub const REPORT_DOCUMENTS: usize = 64;
/// Bytes of a replica's report, and of the answer to it.
pub const REPORT_BYTES: usize = 128 << 10;
/// Orders (purges, documents to be fetched again) that wait for a replica's next report; the oldest go when
/// it does not come.
pub const REPLICA_ORDERS: usize = 256;
/// Changes of placement that `/status` remembers.
pub const PLACEMENT_EVENTS: usize = 64;
/// Plans of a ladder, each 100 ms, over which it remembers what came and was completed (32 bytes each).
pub const LADDER_GROWTH_TICKS: usize = 32;
/// Senders that an overloaded node distinguishes when it divides its rate (about 200 bytes each); further
/// ones share an entry.
pub const FEEDBACK_SENDERS: usize = 4_096;
/// Nodes in front that one service distinguishes, those of all workers together; further ones are asked for
/// nothing.
pub const FEEDBACK_NODES: usize = FEEDBACK_SENDERS + 1;
/// Datagrams of upstreams that wait for one service's planner, which looks every 20 ms; further ones are
/// dropped.
pub const FEEDBACK_DATAGRAMS: usize = 64;
/// Datagrams that one service sends to quiet nodes in front in one refresh of 100 ms; further nodes get
/// theirs with the next ones.
pub const FEEDBACK_DATAGRAMS_SENT: usize = 64;
/// Traces whose first call a sender remembers for each node, 40 bytes each.
pub const CALLER_TRACES: usize = 4_096;
/// Targets of one `flashweir egress`; each is a label of its metrics.
pub const EGRESS_TARGETS: usize = 64;
/// Listeners of one `flashweir egress`.
pub const EGRESS_LISTENERS: usize = 64;
/// Connections from the process to one `flashweir egress`; further ones wait to be accepted.
pub const EGRESS_CONNECTIONS: usize = 4_096;
/// Bytes of a request's body that `flashweir egress` keeps so that it can be sent again.
pub const EGRESS_REPLAY_BYTES: usize = 64 << 10;
/// Requests that may wait at one sender for one node.
pub const GAPPING_QUEUE: usize = 4_096;
/// Processes that an agent takes for a service's: the one it was given and its descendants, or those of the
/// control group.
pub const AGENT_PROCESSES: usize = 128;
/// Threads of those that an agent looks at, the first of each process first: each costs 10 µs at each
/// reading.
pub const AGENT_THREADS: usize = 128;
/// Bytes of `/proc/net/tcp` and of `/proc/net/tcp6` that an agent reads, line by line: 110,000 sockets; those
/// that listen come first.
pub const AGENT_SOCKET_BYTES: u64 = 16 << 20;
/// Bytes of any other file that an agent reads.
pub const AGENT_FILE_BYTES: usize = 64 << 10;
/// Bytes of an agent's answer that a gateway reads.
pub const AGENT_REPORT_BYTES: usize = 16 << 10;
/// Agents that a gateway asks at once; further ones wait for their turn.
pub const AGENT_POLLS: usize = 64;
/// Stored variants (`Vary`) of one document; beyond that the oldest is evicted.
pub const CACHE_VARIANTS: usize = 8;
/// Documents that one worker knows not to be worth waiting for (24 bytes each).
pub const CACHE_MARKS: usize = 4_096;
/// Tags of one response by which it can be purged; one with more is not stored.
pub const CACHE_TAGS: usize = 128;
/// Fetches for others of one document at once by requests with fields by which an origin may choose its
/// response; further ones go to the origin by themselves.
pub const CACHE_FLIGHTS: usize = 16;
/// Requests of the whole gateway that wait for a response that another one fetches; further ones go to the
/// origin by themselves.
pub const CACHE_WAITERS: usize = 16_384;
/// Stale documents that one worker fetches again at once while they are in use.
pub const CACHE_REFRESHES: usize = 64;
/// Custom resources `OverloadPolicy` that one controller follows: the oldest.
pub const KUBERNETES_POLICIES: usize = 256;
/// Replicas of one workload that were ordered and are not ready yet whose start is timed; further ones are
/// not timed.
pub const KUBERNETES_ORDERS: usize = 4_096;
