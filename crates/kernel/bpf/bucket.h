// The integer token bucket: flashweir_admission::token_bucket, line by line.
//
// One bucket for all processors, under a lock, instead of a share for each: shares that are right for yesterday's
// spread of packets over processors refuse too many today, and each processor would bring its own burst. The lock is
// cheap because it is seldom taken: a refusal finds out when the next token is due and says so in `refuse_until_ns`,
// and until then every processor refuses after reading one word that nobody writes. So the lock is taken about twice
// for each connection let in, however many ask. The arithmetic is the same to the unit for a clock that does not step
// back, and CLOCK_MONOTONIC does not.
#pragma once

#include "maps.h"

#include <stdbool.h>

#define TOKEN 1000000000000ULL
#define BURST_MAX 1000000U
#define NEVER_NS (~0ULL)

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

// Changes rate and burst; what was earned until then was earned at the old rate. A bucket that limited nothing so far
// starts empty: the crowd has just spent any burst there was.
static __always_inline void set_ceiling(struct bucket *bucket, __u64 now_ns, const struct ceiling *ceiling)
{
    __u64 burst = ceiling->burst > BURST_MAX ? BURST_MAX : ceiling->burst ? ceiling->burst : 1;
    __u64 rate_milli = ceiling->rate_milli;
    __u64 capacity = burst * TOKEN;
    __u64 full_after_ns = rate_milli ? (capacity + rate_milli - 1) / rate_milli : 0;
    __u32 limited = ceiling->limited;
    bpf_spin_lock(&bucket->lock);
    if (bucket->limited) {
        refill(bucket, now_ns);
    } else {
        bucket->tokens = 0;
        bucket->last_ns = now_ns;
    }
    bucket->capacity = capacity;
    bucket->tokens = smaller(bucket->tokens, capacity);
    bucket->rate_milli = rate_milli;
    bucket->full_after_ns = full_after_ns;
    bucket->refuse_until_ns = 0;
    bucket->limited = limited;
    bpf_spin_unlock(&bucket->lock);
}

static __always_inline bool is_limited(const struct bucket *bucket)
{
    return *(const volatile __u32 *)&bucket->limited;
}

// Takes one token if there is one.
static __always_inline bool bucket_admits(struct bucket *bucket, __u64 now_ns)
{
    if (now_ns < *(volatile __u64 *)&bucket->refuse_until_ns)
        return false;
    bpf_spin_lock(&bucket->lock);
    refill(bucket, now_ns);
    bool admitted = bucket->tokens >= TOKEN;
    if (admitted)
        bucket->tokens -= TOKEN;
    // No token is whole before the missing part is earned, rounded up: refilling later, in one step, earns the same to
    // the unit.
    else if (bucket->rate_milli)
        bucket->refuse_until_ns =
            bucket->last_ns + (TOKEN - bucket->tokens + bucket->rate_milli - 1) / bucket->rate_milli;
    else
        bucket->refuse_until_ns = NEVER_NS;
    bpf_spin_unlock(&bucket->lock);
    return admitted;
}
