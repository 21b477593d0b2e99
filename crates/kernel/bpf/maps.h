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
// Two for each service: 2 * service is everybody's, the next that of preferred networks.
ARRAY_MAP(buckets, 2 * SERVICES, struct bucket);
// When each service last got a SYN answered.
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

// Sources whose new connections are dropped, until the time given. The one longest without traffic goes first.
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
