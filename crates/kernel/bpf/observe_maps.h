// The observer's maps, all bounded; `endpoints` is in endpoints.h.
#pragma once

#include "observe_abi.h"

#include <bpf/bpf_helpers.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct watching);
} watching SEC(".maps");

// The flow longest without a packet goes first. All of it is allocated at once: no packet ever waits for memory.
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, FLOWS);
    __type(key, struct connection);
    __type(value, struct flow);
} flows SEC(".maps");

// That of even intervals in the first half, of odd ones in the second.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2 * SHARDS);
    __type(key, __u32);
    __type(value, struct histogram);
} histograms SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, SHARDS);
    __type(key, __u32);
    __type(value, struct seen);
} seen SEC(".maps");

// Emptied by every reading, so that what is busy now has room.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, DESTINATIONS);
    __type(key, struct endpoint);
    __type(value, struct attempts_at);
} destinations SEC(".maps");
