// The integer token bucket in tiers: flashweir_admission::token_bucket and tiered_bucket, line by line.
//
// One bucket for all processors, under a lock, instead of a share for each: shares that are right for yesterday's
// spread of packets over processors refuse too many today, and each processor would bring its own burst. The lock is
// cheap because it is seldom taken: a refusal finds out when the next token is due for its tier and says so in
// `refuse_until_ns`, and until then every processor refuses that tier after reading one word that is not being written. So the
// lock is taken about once for each connection admitted, and as often for each tier that is refused, however many ask. The arithmetic is the same to the unit for a clock that does not step
// back, and CLOCK_MONOTONIC does not.
#pragma once

#include "maps.h"

#include <stdbool.h>

#define TOKEN 1000000000000ULL
#define BURST_MAX 1000000U
// Thousandths of a connection per second: flashweir_core::Rate::MAX.
#define RATE_MAX 1000000000000ULL
#define NEVER_NS (~0ULL)

_Static_assert((TIERS & (TIERS - 1)) == 0, "a rank is bounded by a mask");

static __always_inline __u64 smaller(__u64 one, __u64 other)
{
    return one < other ? one : other;
}

static __always_inline void refill(struct bucket *bucket, __u64 now_ns)
{
    __u64 elapsed_ns = now_ns > bucket->last_ns ? now_ns - bucket->last_ns : 0;
    elapsed_ns = smaller(elapsed_ns, bucket->full_after_ns);
    bucket->tokens = smaller(bucket->tokens + elapsed_ns * bucket->rate_milli, bucket->capacity);
    // Never back: a clock that steps back and forth must not be paid twice for the same time.
    if (now_ns > bucket->last_ns)
        bucket->last_ns = now_ns;
}

// What tiers make together.
struct layers {
    __u32 tiers;
    __u64 rate_milli;
    // Whole connections.
    __u64 burst;
    __u64 floors[TIERS];
};

// Lays the bursts of at most `most` ceilings on each other: those before the first that is not limited.
static __always_inline void lay(const struct ceiling *ceilings, __u32 most, struct layers *layers)
{
    for (__u32 tier = 0; tier < most && ceilings[tier].limited; tier++)
        layers->tiers = tier + 1;
    for (__u32 tier = 0; tier < most && tier < layers->tiers; tier++) {
        __u64 burst = ceilings[tier].burst > BURST_MAX ? BURST_MAX : ceilings[tier].burst ? ceilings[tier].burst : 1;
        // One token is left for this tier and for each after it.
        layers->floors[tier] = smaller(layers->burst, BURST_MAX - (layers->tiers - tier));
        layers->burst += burst;
        layers->rate_milli += smaller(ceilings[tier].rate_milli, RATE_MAX);
    }
    layers->burst = layers->tiers ? smaller(layers->burst, BURST_MAX) : 1;
    layers->rate_milli = smaller(layers->rate_milli, RATE_MAX);
}

// Changes ceilings; what was earned until then was earned at the old rate. A bucket that limited nothing so far starts
// empty: the crowd has just spent any burst there was.
static __always_inline void set_ceilings(struct bucket *bucket, __u64 now_ns, const struct ceiling *ceilings, __u32 most)
{
    struct layers layers = {};
    lay(ceilings, most, &layers);
    __u64 capacity = layers.burst * TOKEN;
    __u64 full_after_ns = layers.rate_milli ? (capacity + layers.rate_milli - 1) / layers.rate_milli : 0;
    bpf_spin_lock(&bucket->lock);
    if (bucket->tiers) {
        refill(bucket, now_ns);
    } else {
        bucket->tokens = 0;
        bucket->last_ns = now_ns;
    }
    bucket->capacity = capacity;
    bucket->tokens = smaller(bucket->tokens, capacity);
    bucket->rate_milli = layers.rate_milli;
    bucket->full_after_ns = full_after_ns;
    for (__u32 tier = 0; tier < TIERS; tier++) {
        bucket->floors[tier] = layers.floors[tier] * TOKEN;
        bucket->refuse_until_ns[tier] = 0;
    }
    bucket->tiers = layers.tiers;
    bpf_spin_unlock(&bucket->lock);
}

static __always_inline bool is_limited(const struct bucket *bucket)
{
    return *(const volatile __u32 *)&bucket->tiers;
}

// The tier by which a rank is judged.
static __always_inline __u32 tier_of(const struct bucket *bucket, __u32 rank)
{
    __u32 tiers = *(const volatile __u32 *)&bucket->tiers;
    return (rank < tiers ? rank : tiers - 1) & (TIERS - 1);
}

// Takes one token if there is one that is not reserved for more important ranks.
static __always_inline bool bucket_admits(struct bucket *bucket, __u32 rank, __u64 now_ns)
{
    __u32 tier = tier_of(bucket, rank);
    if (now_ns < *(volatile __u64 *)&bucket->refuse_until_ns[tier])
        return false;
    bpf_spin_lock(&bucket->lock);
    refill(bucket, now_ns);
    // Again: a plan may have come into force meanwhile.
    tier = tier_of(bucket, rank);
    __u64 needed = bucket->floors[tier] + TOKEN;
    bool admitted = bucket->tokens >= needed;
    if (admitted)
        bucket->tokens -= TOKEN;
    // No token is whole before the missing part is earned, rounded up: refilling later, in one step, earns the same to
    // the unit. Tokens taken by others meanwhile only put it off.
    else if (bucket->rate_milli)
        bucket->refuse_until_ns[tier] =
            bucket->last_ns + (needed - bucket->tokens + bucket->rate_milli - 1) / bucket->rate_milli;
    else
        bucket->refuse_until_ns[tier] = NEVER_NS;
    bpf_spin_unlock(&bucket->lock);
    return admitted;
}
