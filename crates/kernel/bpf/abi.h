// What the programs and user space share: bounds and the layout of every map's keys and values.
//
// src/gate/abi.rs says the same in Rust; a test compares sizes and bounds with what was loaded. Addresses are 16 bytes
// in network order, IPv4 as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2), so that one path serves both. Times are nanoseconds
// of CLOCK_MONOTONIC. A new gate takes over the maps of a pinned one if names and sizes agree: a change of what a
// field means, and of no size, has to rename its map.
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "hashes read addresses as little-endian words"
#endif

// Bounds. Those that flashweir_core::limits names have the same number there.
enum {
    SERVICES = 64,
    ENDPOINTS = 256,
    PREFERRED_NETWORKS = 4096,
    // A rank is bounded by a mask, so the number of tiers is a power of two.
    TIERS = 8,
    TIER_NETWORKS = 4096,
    // Values of an IP header's field for differentiated services (RFC 2474 §3): six bits.
    MARKS = 64,
    PURGED_SOURCES = 65536,
    REFUSED_ATTEMPTS = 65536,
    ANSWER_VARIANTS = 16,
    ANSWER_BYTES = 512,
};

struct address {
    __u64 words[2];
};

// Key of `endpoints`. All zeros, or ::ffff:0.0.0.0, as address means every address of that family.
struct endpoint {
    struct address address;
    __be16 port;
    __u8 zero[6];
};
_Static_assert(sizeof(struct endpoint) == 24, "Endpoint in src/gate/abi.rs");

// Value of `endpoints` in the gate: the number of a service, and above it the rank of the port plus 1, or 0 for none.
#define PLACE_RANK_SHIFT 16
#define PLACE_SERVICE_MASK 0xffffU

// Key of `preferred` and of `tier_networks`, as the kernel's longest-prefix trie wants it: bits of the mapped address, 96
// more than IPv4 says. The lowest bit of the value says of which family the network is (::/0 does not mean IPv4), the
// others its rank.
struct network {
    __u32 bits;
    struct address address __attribute__((packed));
};
_Static_assert(sizeof(struct network) == 20, "Network in src/gate/abi.rs");

// What is done about a new connection that does not fit.
enum mode {
    MODE_PASS,
    MODE_DROP,
    MODE_RESET,
    MODE_ANSWER,
};

enum service_flag {
    // Decide and count, but let everything in.
    SERVICE_SHADOW = 1,
    // TLS is spoken here: no client would understand an answer, so it is a reset.
    SERVICE_TLS = 2,
};

// A rate and a burst for new connections; thousandths of a connection per second, whole connections.
struct ceiling {
    __u64 rate_milli;
    __u32 burst;
    // 0: no ceiling, everything is let in.
    __u32 limited;
};

// Value of `plans`, one for each service.
struct plan {
    // On preferred networks together.
    struct ceiling preferred;
    // On all others, by rank; the first that is not limited ends them.
    struct ceiling tiers[TIERS];
    // From when on it holds.
    __u64 at_ns;
    __u32 mode;
    __u32 flags;
    // The service whose buckets pay for this one's connections; mostly itself.
    __u32 charged_to;
    __u32 zero;
};
_Static_assert(sizeof(struct plan) == 168, "Plan in src/gate/abi.rs");

// Value of `buckets`, two for each service: written by the programs only.
struct bucket {
    struct bpf_spin_lock lock;
    // How many tiers there are; 0: no ceiling. A rank beyond the last tier is judged as the last.
    __u32 tiers;
    // In units of 10^-12 connection.
    __u64 tokens;
    __u64 capacity;
    __u64 rate_milli;
    __u64 full_after_ns;
    __u64 last_ns;
    // Until then there is not one whole token for this tier: a reader needs no lock to be refused.
    __u64 refuse_until_ns[TIERS];
    // What each tier leaves to those before it, in the units of `tokens`.
    __u64 floors[TIERS];
};
_Static_assert(sizeof(struct bucket) == 176, "Bucket in src/gate/abi.rs");

// The one value of `recent`, written by the programs only, to the second: what has not happened lately needs no looking
// for. Zero is never.
struct recent {
    // When a connection was last refused; when a SYN was last answered, of any service.
    __u64 refused_ns;
    __u64 answered_ns;
};
_Static_assert(sizeof(struct recent) == 16, "small");

struct hash_key {
    __u64 words[2];
};

enum control_flag {
    // Go on judging although user space has fallen silent.
    CONTROL_FAIL_CLOSED = 1,
    // There is something in `preferred`, in `purged`, in `tier_networks`: spares a lookup where there is not.
    CONTROL_PREFERS = 2,
    CONTROL_PURGES = 4,
    CONTROL_RANKS_NETWORKS = 8,
};

// The one value of `control`, written by user space only.
struct control {
    // When user space last said that it lives.
    __u64 beat_ns;
    // Counts plans; written after everything else of a plan.
    __u64 generation;
    // The time, where tests were loaded.
    __u64 test_now_ns;
    __u32 flags;
    // Which of the keys makes new sequence numbers; both are valid.
    __u32 key_index;
    struct hash_key answer_keys[2];
    struct hash_key attempts_key;
    // The rank of a connection that neither its network, its mark nor its port gives one.
    __u32 default_rank;
    __u32 zero;
    // Ranks by mark, plus 1; 0 for none.
    __u8 mark_ranks[MARKS];
};
_Static_assert(sizeof(struct control) == 152, "Control in src/gate/abi.rs");

// A whole response, ready to send. Both lengths are odd: see answered() in answer.h.
struct answer {
    __u16 whole_bytes;
    // Without the body, for HEAD.
    __u16 head_bytes;
    // Sums of the bytes as 16-bit words in memory order (RFC 1071), so that nothing is summed here.
    __u16 whole_sum;
    __u16 head_sum;
    __u8 bytes[ANSWER_BYTES];
};
_Static_assert(sizeof(struct answer) == 520, "Answer in src/gate/abi.rs");

// Connections of one rank, preferred networks left out; those that were offered and not admitted were refused.
struct tier_counts {
    __u64 offered;
    __u64 admitted;
};

// Value of `counts`, one for each service and processor. A connection attempt is offered, and then one of: admitted,
// dropped, reset, answered, purged.
struct counts {
    __u64 offered;
    // Without retransmissions of attempts that were refused, and without purged sources.
    __u64 unique_offered;
    __u64 admitted;
    __u64 dropped;
    __u64 reset;
    __u64 answered;
    __u64 purged;
    // Of those admitted: let in because user space was silent; let in although shadow says no.
    __u64 failed_open;
    __u64 shadowed;
    // Of those offered, admitted: from preferred networks.
    __u64 preferred_offered;
    __u64 preferred_admitted;
    // Segments of answered connections: responses sent, resets sent, others that ended here.
    __u64 responses;
    __u64 late_resets;
    __u64 absorbed;
    // Replies for which the packet had no room: a SYN was dropped, a request reset.
    __u64 unsent;
    struct tier_counts tiers[TIERS];
};
_Static_assert(sizeof(struct counts) == 248, "Counts in src/gate/abi.rs");

// Why a frame went on unjudged; the index into `passes`.
enum passed {
    PASSED_NOT_IP,
    PASSED_NOT_TCP,
    PASSED_FRAGMENT,
    PASSED_MALFORMED,
    PASSED_TOO_MANY_HEADERS,
    // For any receiver.
    PASSED_NOT_NEW,
    PASSED_NOT_PROTECTED,
    PASSED_REASONS,
};
