// Recognises retransmissions of attempts that were refused: flashweir_admission::flash_crowd::RefusedAttempts, line by
// line.
//
// Here an attempt is a SYN with its addresses, ports and sequence number; who tries again over a new connection is a
// new attempt to the kernel. A lost race between processors loses one memory of one refusal.
#pragma once

#include "maps.h"

#include <stdbool.h>

#define REMEMBERED_FOR_S 64
// Longer after the last refusal than this nothing is remembered any more: both the stamps and the time of that refusal
// are up to a second old.
#define REFUSED_LATELY_NS ((REMEMBERED_FOR_S + 2) * 1000000000LL)
#define SECONDS_MASK ((1ULL << 20) - 1)

_Static_assert((REFUSED_ATTEMPTS & (REFUSED_ATTEMPTS - 1)) == 0, "places are found by a mask");

// Seconds of `now`, never zero: zero marks a place never used.
static __always_inline __u64 attempt_stamp(__u64 now_ns)
{
    return (now_ns / 1000000000 + 1) & SECONDS_MASK;
}

// Seconds since the word was written, modulo twelve days; an unused place is the oldest of all.
static __always_inline __u64 attempt_age_s(__u64 now_ns, __u64 word)
{
    return word ? (attempt_stamp(now_ns) - (word & SECONDS_MASK)) & SECONDS_MASK : ~0ULL;
}

static __always_inline __u64 *attempt_place(__u64 attempt, __u32 second)
{
    __u32 place = (attempt & (REFUSED_ATTEMPTS - 1)) ^ second;
    return bpf_map_lookup_elem(&attempts, &place);
}

static __always_inline bool is_attempt(__u64 word, __u64 attempt)
{
    return (word & ~SECONDS_MASK) == (attempt & ~SECONDS_MASK);
}

static __always_inline bool is_retry(__u64 now_ns, __u64 attempt)
{
    __u64 *first = attempt_place(attempt, 0);
    __u64 *second = attempt_place(attempt, 1);
    if (!first || !second)
        return false;
    return (is_attempt(*first, attempt) && attempt_age_s(now_ns, *first) <= REMEMBERED_FOR_S) ||
           (is_attempt(*second, attempt) && attempt_age_s(now_ns, *second) <= REMEMBERED_FOR_S);
}

static __always_inline void remember_attempt(__u64 now_ns, __u64 attempt)
{
    __u64 *first = attempt_place(attempt, 0);
    __u64 *second = attempt_place(attempt, 1);
    if (!first || !second)
        return;
    __u64 in_first = *first, in_second = *second;
    bool keeps_first = is_attempt(in_first, attempt) ||
                       (!is_attempt(in_second, attempt) &&
                        attempt_age_s(now_ns, in_first) >= attempt_age_s(now_ns, in_second));
    __u64 word = (attempt & ~SECONDS_MASK) | attempt_stamp(now_ns);
    if (keeps_first)
        *first = word;
    else
        *second = word;
}

static __always_inline void forget_attempt(__u64 attempt)
{
    __u64 *first = attempt_place(attempt, 0);
    __u64 *second = attempt_place(attempt, 1);
    if (first && is_attempt(*first, attempt))
        *first = 0;
    if (second && is_attempt(*second, attempt))
        *second = 0;
}
