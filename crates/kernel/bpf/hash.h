// SipHash-1-3 of a connection's addresses, ports and one number (Aumasson and Bernstein, "SipHash: a fast short-input
// PRF", 2012; one round a word and three at the end, as hash tables use it).
//
// Keyed, so that no outsider can aim at a place of a table or guess a sequence number. The variant with more rounds
// costs twice as much for every SYN, and all that a forger of sequence numbers would gain is a 503.
#pragma once

#include "parse.h"

struct hash_state {
    __u64 v0, v1, v2, v3;
};

static __always_inline __u64 rotated(__u64 word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static __always_inline void hash_round(struct hash_state *s)
{
    s->v0 += s->v1;
    s->v1 = rotated(s->v1, 13) ^ s->v0;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotated(s->v1, 17) ^ s->v2;
    s->v2 = rotated(s->v2, 32);
}

static __always_inline void hash_word(struct hash_state *s, __u64 word)
{
    s->v3 ^= word;
    hash_round(s);
    s->v0 ^= word;
}

// The hash of 40 bytes: source, destination, source port, destination port (all as in the packet), `number`.
static __always_inline __u64 hash_of(const struct hash_key *key, const struct segment *segment, __u32 number)
{
    struct hash_state s = {
        .v0 = key->words[0] ^ 0x736f6d6570736575ULL,
        .v1 = key->words[1] ^ 0x646f72616e646f6dULL,
        .v2 = key->words[0] ^ 0x6c7967656e657261ULL,
        .v3 = key->words[1] ^ 0x7465646279746573ULL,
    };
    hash_word(&s, segment->source.words[0]);
    hash_word(&s, segment->source.words[1]);
    hash_word(&s, segment->destination.words[0]);
    hash_word(&s, segment->destination.words[1]);
    hash_word(&s, segment->source_port | (__u64)segment->destination_port << 16 | (__u64)number << 32);
    // The last word holds what is left of the message, nothing, and its length.
    hash_word(&s, 40ULL << 56);
    s.v2 ^= 0xff;
    hash_round(&s);
    hash_round(&s);
    hash_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
