// What the classifier of a link and user space share: src/link/abi.rs says the same in Rust.
//
// Numbers that processors count together are kept in shards, so that what a reading costs does not grow with processors.
#pragma once

#include "abi.h"

enum {
    LINK_SHARDS = 4,
    // The sketch of distinct flows (flashweir_aqm::min_sketch): buckets, and the smallest residues that each keeps.
    SKETCH_BUCKETS = 1024,
    SKETCH_KEPT = 3,
    // The table of heavy flows (flashweir_aqm::heavy_flows): sets, and flows of a set.
    FLOW_SETS = 512,
    FLOW_WAYS = 8,
};

// What makes two packets one flow: flashweir_aqm::FlowIdentity.
enum flow_identity {
    FLOW_FIVE_TUPLE,
    FLOW_SOURCE,
    FLOW_SOURCE_PREFIX,
};

// Value of `orders`, written by user space only.
struct link_orders {
    // Counts readings. Its lowest bit chooses the half of `sketches` and `flow_sets` that is written to.
    __u64 interval;
    // From then on (CLOCK_MONOTONIC) user space has been silent for too long: everything passes.
    __u64 expires_ns;
    // Probability of a mark, in 2^-32.
    __u32 mark;
    __u32 zero;
};
_Static_assert(sizeof(struct link_orders) == 24, "Orders in src/link/abi.rs");

// Value of `sketches`: of each bucket the smallest residues in ascending order, then free places (all bits set).
struct link_sketch {
    __u32 residues[SKETCH_BUCKETS][SKETCH_KEPT];
};
_Static_assert(sizeof(struct link_sketch) == 12288, "Sketch in src/link/abi.rs");

// Value of `flow_sets`: the heaviest flows of one interval among those whose hash ends alike. Flow 0 is a free place. A
// flow's rank is inherited + bytes; the lock is taken only where a flow gets a place.
struct flow_set {
    struct bpf_spin_lock lock;
    __u32 zero;
    __u64 flow[FLOW_WAYS];
    __u64 bytes[FLOW_WAYS];
    __u64 inherited[FLOW_WAYS];
};
_Static_assert(sizeof(struct flow_set) == 200, "FlowSet in src/link/abi.rs");

// Value of `cut_sets`, written by user space only: flows that are cut, in the same sets, with the probability of a drop in
// 2^-32. While user space writes one, a packet may be judged by another flow's probability.
struct cut_set {
    __u64 flow[FLOW_WAYS];
    __u32 drop[FLOW_WAYS];
};
_Static_assert(sizeof(struct cut_set) == 96, "CutSet in src/link/abi.rs");

// Value of `counts`, one for each shard, since the program was loaded.
// offered = purged + refused + sent, in packets and in bytes.
struct link_counts {
    __u64 offered_packets;
    __u64 offered_bytes;
    // Dropped because their flow is over its share.
    __u64 purged_packets;
    __u64 purged_bytes;
    // Dropped in place of a mark, because their sender does not understand marks.
    __u64 refused_packets;
    __u64 refused_bytes;
    // Sent with a mark.
    __u64 marked_packets;
    // Frames that are not IP, or cannot be read: they pass and are in no other number.
    __u64 unread_frames;
};
_Static_assert(sizeof(struct link_counts) == 64, "Counts in src/link/abi.rs: a shard is one line of cache");
