// The gate's maps, all bounded; `endpoints` is in endpoints.h.
#pragma once

#include "abi.h"

#include <bpf/bpf_helpers.h>

#define ARRAY_MAP(name, entries, kind)         \
    struct {                                   \
        __uint(type, BPF_MAP_TYPE_ARRAY);      \
        __uint(max_entries, entries);          \
        __type(key, __u32);                    \
        __type(value, kind);                   \
    } name SEC(".maps")

ARRAY_MAP(control, 1, struct control);
ARRAY_MAP(plans, SERVICES, struct plan);
// Two for each service: 2 * service is that of all clients, the next that of preferred networks.
ARRAY_MAP(buckets, 2 * SERVICES, struct bucket);
ARRAY_MAP(recent, 1, struct recent);
// When each service last got a SYN answered, to the second.
ARRAY_MAP(answered_at, SERVICES, __u64);
ARRAY_MAP(answers, SERVICES * ANSWER_VARIANTS, struct answer);
ARRAY_MAP(attempts, REFUSED_ATTEMPTS, __u64);

// Networks that are charged to a bucket of their own. The value is 1 for IPv6, 0 for IPv4.
struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, PREFERRED_NETWORKS);
    __type(key, struct network);
    __type(value, __u32);
} preferred SEC(".maps");

// Networks whose connections have a rank. The value is twice the rank, plus 1 for IPv6.
struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, TIER_NETWORKS);
    __type(key, struct network);
    __type(value, __u32);
} tier_networks SEC(".maps");

// Sources (of IPv6 their /64) whose new connections are dropped, until the time given. The one longest without traffic goes first.
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, PURGED_SOURCES);
    __type(key, struct address);
    __type(value, __u64);
} purged SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, SERVICES);
    __type(key, __u32);
    __type(value, struct counts);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, PASSED_REASONS);
    __type(key, __u32);
    __type(value, __u64);
} passes SEC(".maps");

// Precision of the times that are kept: spares writing them for each packet.
#define RECENT_GRAIN_NS 1000000000ULL

static __always_inline struct recent *recent_times(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&recent, &zero);
}

static __always_inline void note_time(__u64 *noted_ns, __u64 now_ns)
{
    if (now_ns - *noted_ns >= RECENT_GRAIN_NS)
        *noted_ns = now_ns;
}

// Signed, because another processor may have noted a time that is ahead of this one's by a little.
static __always_inline int is_within(__u64 noted_ns, __u64 now_ns, __s64 span_ns)
{
    return noted_ns && (__s64)(now_ns - noted_ns) < span_ns;
}
