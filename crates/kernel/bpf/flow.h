// From a frame to the keyed hash of its flow: flashweir_aqm::FlowHasher, bit by bit.
//
// Every length that a packet claims is checked against the bytes that are there, and every walk is bounded. What is not IP
// or cannot be read has no flow. All fragments of a datagram have the flow without ports, because only the first carries
// them.
#pragma once

#include "hash.h"
#include "link_abi.h"

#include <linux/in6.h>

struct flow_header {
    struct address source;
    struct address destination;
    // Source port and destination port as in the packet, where there are any.
    __u32 ports;
    __u8 protocol;
    __u8 has_ports;
    __u8 is_ipv6;
    // The sender understands congestion marks (RFC 3168 §5), or another node marked the packet before.
    __u8 is_markable;
    // Less of the frame can be seen than its headers take.
    __u8 is_cut_off;
};

// As `bytes_at`, and remembers what cannot be seen.
static __always_inline void *header_at(void *data, void *data_end, __u32 at, __u32 bytes, struct flow_header *header)
{
    void *start = bytes_at(data, data_end, at, bytes);
    if (!start)
        header->is_cut_off = 1;
    return start;
}

// SipHash of a message of 64-bit words: `tail` holds the last `bytes % 8` bytes.
static __always_inline struct hash_state hash_begun(const struct hash_key *key)
{
    return (struct hash_state){
        .v0 = key->words[0] ^ 0x736f6d6570736575ULL,
        .v1 = key->words[1] ^ 0x646f72616e646f6dULL,
        .v2 = key->words[0] ^ 0x6c7967656e657261ULL,
        .v3 = key->words[1] ^ 0x7465646279746573ULL,
    };
}

static __always_inline __u64 hash_ended(struct hash_state *s, __u64 tail, __u64 bytes)
{
    hash_word(s, tail | bytes << 56);
    s->v2 ^= 0xff;
    hash_round(s);
    hash_round(s);
    hash_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

// flashweir_core::Hasher64 puts eight bytes before each part: the part's length.
static __always_inline __u64 hash_of_source(const struct hash_key *key, const struct flow_header *header, bool is_prefix)
{
    struct hash_state s = hash_begun(key);
    if (header->is_ipv6) {
        hash_word(&s, 16);
        hash_word(&s, 0);
        // A prefix of 48 bits stands in the last six bytes.
        hash_word(&s, is_prefix ? header->source.words[0] << 16 : header->source.words[0]);
        return hash_ended(&s, 0, 24);
    }
    __u32 source = header->source.words[0];
    hash_word(&s, 4);
    return hash_ended(&s, is_prefix ? bpf_htonl(bpf_ntohl(source) >> 8) : source, 12);
}

static __always_inline __u64 hash_of_five_tuple(const struct hash_key *key, const struct flow_header *header)
{
    struct hash_state s = hash_begun(key);
    __u64 ports_bytes = header->has_ports ? 4 : 0;
    __u64 tail = header->protocol | (header->has_ports ? (__u64)header->ports << 8 : 0);
    if (header->is_ipv6) {
        hash_word(&s, 33 + ports_bytes);
        hash_word(&s, header->source.words[0]);
        hash_word(&s, header->source.words[1]);
        hash_word(&s, header->destination.words[0]);
        hash_word(&s, header->destination.words[1]);
        return hash_ended(&s, tail, 41 + ports_bytes);
    }
    hash_word(&s, 9 + ports_bytes);
    hash_word(&s, header->source.words[0] | header->destination.words[0] << 32);
    return hash_ended(&s, tail, 17 + ports_bytes);
}

static __always_inline __u64 hash_of_flow(const struct hash_key *key, __u32 identity, const struct flow_header *header)
{
    if (identity == FLOW_FIVE_TUPLE)
        return hash_of_five_tuple(key, header);
    return hash_of_source(key, header, identity == FLOW_SOURCE_PREFIX);
}

// RFC 768, 9293, 9260, 4340, 3828: both ports are the first four bytes.
static __always_inline void read_ports(void *data, void *data_end, __u32 at, struct flow_header *header)
{
    switch (header->protocol) {
    case IPPROTO_TCP:
    case IPPROTO_UDP:
    case IPPROTO_SCTP:
    case IPPROTO_DCCP:
    case IPPROTO_UDPLITE:
        break;
    default:
        return;
    }
    __u32 *ports = header_at(data, data_end, at, sizeof(*ports), header);
    if (ports) {
        header->ports = *ports;
        header->has_ports = 1;
    }
}

static __always_inline bool read_ipv4(void *data, void *data_end, __u32 at, struct flow_header *header)
{
    struct iphdr *ip = header_at(data, data_end, at, sizeof(*ip), header);
    if (!ip || ip->version != 4 || ip->ihl < 5)
        return false;
    // Addresses of IPv4 stand in the lower half of the first word.
    header->source.words[0] = ip->saddr;
    header->destination.words[0] = ip->daddr;
    header->protocol = ip->protocol;
    header->is_markable = (ip->tos & 3) != 0;
    // More fragments, or not the first one.
    if (!(ip->frag_off & bpf_htons(0x3fff)))
        read_ports(data, data_end, at + ip->ihl * 4, header);
    return true;
}

static __always_inline bool read_ipv6(void *data, void *data_end, __u32 at, struct flow_header *header)
{
    struct ipv6hdr *ip = header_at(data, data_end, at, sizeof(*ip), header);
    if (!ip || ip->version != 6)
        return false;
    __builtin_memcpy(&header->source, &ip->saddr, sizeof(header->source));
    __builtin_memcpy(&header->destination, &ip->daddr, sizeof(header->destination));
    header->is_ipv6 = 1;
    header->is_markable = (ip->flow_lbl[0] >> 4 & 3) != 0;
    __u8 next = ip->nexthdr;
    at += sizeof(*ip);
    for (int walked = 0; walked < EXTENSION_HEADERS; walked++) {
        bool is_fragment = next == IPPROTO_FRAGMENT, is_authentication = next == IPPROTO_AH;
        if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS && !is_fragment &&
            !is_authentication)
            break;
        struct extension_header *extension = header_at(data, data_end, at, sizeof(*extension), header);
        if (!extension)
            break;
        next = extension->next;
        // RFC 8200 §4.5: the offset and the flag for more. A datagram in one piece is no fragment.
        if (is_fragment && extension->fragment_offset & bpf_htons(0xfff9)) {
            header->protocol = next;
            return true;
        }
        at += is_fragment ? 8 : is_authentication ? (extension->length + 2) * 4 : (extension->length + 1) * 8;
    }
    header->protocol = next;
    read_ports(data, data_end, at, header);
    return true;
}

// Whether the frame has a flow. `header` must be zero before.
static __always_inline bool read_flow(void *data, void *data_end, struct flow_header *header)
{
    struct ethhdr *ethernet = header_at(data, data_end, 0, sizeof(*ethernet), header);
    if (!ethernet)
        return false;
    __be16 protocol = ethernet->h_proto;
    __u32 at = sizeof(*ethernet);
    for (int tag = 0; tag < VLAN_TAGS; tag++) {
        if (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD))
            break;
        struct vlan_tag *vlan = header_at(data, data_end, at, sizeof(*vlan), header);
        if (!vlan)
            return false;
        protocol = vlan->protocol;
        at += sizeof(*vlan);
    }
    if (protocol == bpf_htons(ETH_P_IP))
        return read_ipv4(data, data_end, at, header);
    if (protocol == bpf_htons(ETH_P_IPV6))
        return read_ipv6(data, data_end, at, header);
    return false;
}
