// The classifier's maps, all bounded.
#pragma once

#include "link_abi.h"

#include <bpf/bpf_helpers.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct link_orders);
} orders SEC(".maps");

// Those of even intervals in the first half, of odd ones in the second.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2 * LINK_SHARDS);
    __type(key, __u32);
    __type(value, struct link_sketch);
} sketches SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2 * FLOW_SETS);
    __type(key, __u32);
    __type(value, struct flow_set);
} flow_sets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, FLOW_SETS);
    __type(key, __u32);
    __type(value, struct cut_set);
} cut_sets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, LINK_SHARDS);
    __type(key, __u32);
    __type(value, struct link_counts);
} counts SEC(".maps");
