// What the observer and user space share: src/observe/abi.rs says the same in Rust.
//
// Times are ticks of 1,024 ns of CLOCK_MONOTONIC: a shift in place of a division for each packet.
#pragma once

#include "abi.h"

enum {
    TICK_SHIFT = 10,
    // The most; user space chooses fewer when it loads the program.
    FLOWS = 1048576,
    DESTINATIONS = 512,
    // Processors share counters by their numbers: so what a reading costs does not grow with them.
    SHARDS = 4,
    // Buckets of rates: one for each byte per second up to 64, then 32 for each octave up to 16 GiB/s.
    RATE_STEPS_LOG2 = 5,
    RATE_BUCKETS = 960,
};

// Key of `flows`: a connection, for both directions of its packets.
struct connection {
    struct address client;
    struct address server;
    __be16 client_port;
    __be16 server_port;
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct connection) == 36, "a multiple of four, which the kernel hashes fast");

enum flow_flag {
    // Its SYN was seen.
    FLOW_OPENED = 1,
    // The server has sent data.
    FLOW_RESPONDS = 2,
    // And then said that this is all.
    FLOW_ENDED = 4,
};

// Value of `flows`. Fields other than `place` and `flags` are written without a lock: two processors that see packets of
// one flow at the same moment may lose the bytes of one.
struct flow {
    // When its SYN came, or the first packet seen.
    __u64 began_ticks;
    // When the last data came.
    __u64 front_ticks;
    // Bytes per second, in units of 1/256.
    __u64 rate;
    // Payload of its first second; see rate.h.
    __u64 first_bytes;
    // Where it counts in the histogram: an interval's number in the upper half, its slot in the lower. 0 is nowhere.
    __u64 place;
    // Of the SYN.
    __u32 sequence;
    __u32 flags;
};
_Static_assert(sizeof(struct flow) == 48, "flows' size in the documentation of limits");

// Value of `watching`, written by user space only.
struct watching {
    // Flows that began from then on are counted separately.
    __u64 plan_ticks;
    // The time, where tests were loaded.
    __u64 test_now_ns;
    // Counts readings, from 1. Its lowest bit chooses the histogram.
    __u64 interval;
};
_Static_assert(sizeof(struct watching) == 24, "Watching in src/observe/abi.rs");

// Value of `histograms`, two for each shard: flows that came to a bucket less those that left it. The sum over all
// shards is how many are there.
struct histogram {
    // Of flows from before the plan, and since.
    __s32 flows[2 * RATE_BUCKETS];
};
_Static_assert(sizeof(struct histogram) == 7680, "Histogram in src/observe/abi.rs");

// Value of `seen`, one for each shard; since the program was loaded.
struct seen {
    __u64 offered;
    __u64 unique_offered;
    __u64 completed;
    __u64 begun;
    // Of those begun: such as took a place of the table; the others were there already.
    __u64 placed;
    __u64 expired;
    // Flows for which there was no place; attempts whose destination got none.
    __u64 flows_left_out;
    __u64 attempts_left_out;
};
_Static_assert(sizeof(struct seen) == 64, "ObserverCounts in src/observe/abi.rs: a shard is one line of cache");

// Value of `destinations`, since the last reading.
struct attempts_at {
    __u64 offered;
    __u64 unique_offered;
};
