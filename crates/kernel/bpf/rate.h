// The rate of a response: flashweir_measure::TimeSlidingWindow in integers (RFC 2859 §3; NEWS §4.1).
//
// On `bytes` at `now`: rate = (rate * A + bytes) / (now - front + A), with A = one second. Within the first second of a
// flow the corrected reading is bytes over elapsed time. Products stay below 2^62: rates end at 2^34 bytes per second,
// in units of 2^-8, and a window has less than 2^20 ticks.
#pragma once

#include "observe_abi.h"

#include <bpf/bpf_helpers.h>

// One second, 10 ms (the shortest time that bytes are divided by), 64 s.
#define WINDOW_TICKS 976563ULL
#define FLOOR_TICKS 9766ULL
#define IDLE_TICKS (64 * WINDOW_TICKS)
#define RATE_FRACTION 8
#define RATE_END (1ULL << 34)

// Set before loading: the published reading starts at zero and knows no first second.
SEC(".rodata.reading") const volatile __u32 reads_as_published = 0;

static __always_inline __u64 ticks_between(__u64 from, __u64 to)
{
    return to > from ? to - from : 0;
}

static __always_inline __u64 quotient(__u64 dividend, __u64 divisor)
{
    return (dividend + divisor / 2) / divisor;
}

// Measures `bytes` of payload that came at `now`.
static __always_inline void measure(struct flow *flow, __u64 now, __u32 bytes)
{
    __u64 age = ticks_between(flow->began_ticks, now), rate;
    if (!reads_as_published && age < WINDOW_TICKS) {
        __u64 first_bytes = flow->first_bytes + bytes;
        if (first_bytes >= RATE_END)
            first_bytes = RATE_END - 1;
        flow->first_bytes = first_bytes;
        rate = quotient((first_bytes << RATE_FRACTION) * WINDOW_TICKS, age > FLOOR_TICKS ? age : FLOOR_TICKS);
    } else {
        __u64 gap = ticks_between(flow->front_ticks, now);
        rate = quotient((flow->rate + ((__u64)bytes << RATE_FRACTION)) * WINDOW_TICKS, gap + WINDOW_TICKS);
    }
    flow->rate = rate < RATE_END << RATE_FRACTION ? rate : (RATE_END << RATE_FRACTION) - 1;
    if (now > flow->front_ticks)
        flow->front_ticks = now;
}

// The number of the highest bit set; 0 for none.
static __always_inline __u32 highest_bit(__u64 number)
{
    __u32 bit = 0;
#pragma unroll
    for (__u32 step = 32; step; step /= 2) {
        if (number >> step) {
            number >>= step;
            bit += step;
        }
    }
    return bit;
}

// The bucket of a rate in bytes per second below RATE_END; `bucket_of` in src/observe/histogram.rs.
static __always_inline __u32 rate_bucket(__u64 rate)
{
    __u32 shift = highest_bit(rate | 1 << RATE_STEPS_LOG2) - RATE_STEPS_LOG2;
    return (shift << RATE_STEPS_LOG2) + (rate >> shift);
}
