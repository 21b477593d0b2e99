// From a frame to a TCP segment: Ethernet, up to two VLAN tags, IPv4 with options, IPv6 with extension headers, TCP.
//
// Knows no map and no program type: XDP and tc hand it the two ends of what can be read of a packet, and how long it is
// (tc shows the headers only of a packet whose payload lies elsewhere). Every length that a packet claims is checked
// against the bytes that are there before it is believed, every walk is bounded, and what is not understood is said to
// be so. The caller lets such packets pass: the stack behind knows better what to do with them.
#pragma once

#include "abi.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <stdbool.h>

enum {
    VLAN_TAGS = 2,
    // RFC 8200 §4.1 lists seven headers between IPv6 and TCP, one of them twice; senders use two at most.
    EXTENSION_HEADERS = 6,
    // No header starts later: 22 bytes of Ethernet, and IPv6 with six extension headers of at most 2,048 bytes each.
    OFFSET_MAX = 0x3fff,
};

enum parsed {
    PARSED_TCP,
    PARSED_NOT_IP,
    PARSED_NOT_TCP,
    PARSED_FRAGMENT,
    PARSED_MALFORMED,
    PARSED_TOO_MANY_HEADERS,
};

enum tcp_flag {
    TCP_FIN = 0x01,
    TCP_SYN = 0x02,
    TCP_RST = 0x04,
    TCP_PSH = 0x08,
    TCP_ACK = 0x10,
};

// A TCP segment. Addresses and ports in network order, numbers in the machine's.
struct segment {
    struct address source;
    struct address destination;
    __be16 source_port;
    __be16 destination_port;
    __u32 sequence;
    __u32 acknowledgement;
    // Where the IP header, the TCP header and the payload begin, bytes from the frame's start.
    __u16 network_at;
    __u16 transport_at;
    __u16 payload_at;
    // By the IP header, so without what Ethernet pads short frames with.
    __u16 payload_bytes;
    __u8 flags;
    __u8 is_ipv6;
    // The field for differentiated services (RFC 2474 §3), six bits: the only mark that a packet has before the stack.
    __u8 mark;
};

struct vlan_tag {
    __be16 control;
    __be16 protocol;
};

struct extension_header {
    __u8 next;
    __u8 length;
    __be16 fragment_offset;
};

// The `bytes` bytes at `offset`, or null if the packet ends before.
static __always_inline void *bytes_at(void *data, void *data_end, __u32 offset, __u32 bytes)
{
    if (offset > OFFSET_MAX)
        return 0;
    void *start = data + offset;
    // Keeps the compiler from comparing something equivalent that the verifier does not follow.
    asm volatile("" : "+r"(start));
    return start + bytes > data_end ? 0 : start;
}

static __always_inline struct address mapped(__be32 ipv4)
{
    struct address address = {};
    __be32 *parts = (__be32 *)&address;
    parts[2] = bpf_htonl(0xffff);
    parts[3] = ipv4;
    return address;
}

// The TCP header at `transport_at`, whose segment ends at `end_at`.
static __always_inline enum parsed parse_tcp(void *data, void *data_end, __u32 end_at, struct segment *segment)
{
    __u32 transport_at = segment->transport_at;
    struct tcphdr *tcp = bytes_at(data, data_end, transport_at, sizeof(*tcp));
    if (!tcp)
        return PARSED_MALFORMED;
    __u32 payload_at = transport_at + tcp->doff * 4;
    if (tcp->doff < 5 || payload_at > end_at)
        return PARSED_MALFORMED;
    segment->source_port = tcp->source;
    segment->destination_port = tcp->dest;
    segment->sequence = bpf_ntohl(tcp->seq);
    segment->acknowledgement = bpf_ntohl(tcp->ack_seq);
    segment->flags = ((__u8 *)tcp)[13];
    segment->payload_at = payload_at;
    segment->payload_bytes = end_at - payload_at;
    return PARSED_TCP;
}

static __always_inline enum parsed parse_ipv4(void *data, void *data_end, __u32 bytes, __u32 at,
                                              struct segment *segment)
{
    struct iphdr *ip = bytes_at(data, data_end, at, sizeof(*ip));
    if (!ip || ip->version != 4 || ip->ihl < 5)
        return PARSED_MALFORMED;
    if (ip->frag_off & bpf_htons(0x1fff))
        return PARSED_FRAGMENT;
    if (ip->protocol != IPPROTO_TCP)
        return PARSED_NOT_TCP;
    __u32 total = bpf_ntohs(ip->tot_len);
    if (at + total > bytes || total < ip->ihl * 4 + sizeof(struct tcphdr))
        return PARSED_MALFORMED;
    segment->source = mapped(ip->saddr);
    segment->destination = mapped(ip->daddr);
    segment->mark = ip->tos >> 2;
    segment->transport_at = at + ip->ihl * 4;
    return parse_tcp(data, data_end, at + total, segment);
}

static __always_inline enum parsed parse_ipv6(void *data, void *data_end, __u32 bytes, __u32 at,
                                              struct segment *segment)
{
    struct ipv6hdr *ip = bytes_at(data, data_end, at, sizeof(*ip));
    if (!ip || ip->version != 6)
        return PARSED_MALFORMED;
    __u32 end_at = at + sizeof(*ip) + bpf_ntohs(ip->payload_len);
    if (end_at > bytes)
        return PARSED_MALFORMED;
    __builtin_memcpy(&segment->source, &ip->saddr, sizeof(segment->source));
    __builtin_memcpy(&segment->destination, &ip->daddr, sizeof(segment->destination));
    segment->is_ipv6 = 1;
    segment->mark = (ip->priority << 4 | ip->flow_lbl[0] >> 4) >> 2;
    __u8 next = ip->nexthdr;
    at += sizeof(*ip);
    for (int header = 0; header <= EXTENSION_HEADERS; header++) {
        if (next == IPPROTO_TCP) {
            segment->transport_at = at;
            return parse_tcp(data, data_end, end_at, segment);
        }
        // RFC 8200 §4.1 and RFC 4302 (authentication counts in words of four bytes, less two).
        bool is_fragment = next == IPPROTO_FRAGMENT;
        bool is_authentication = next == IPPROTO_AH;
        if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS && !is_fragment &&
            !is_authentication)
            return PARSED_NOT_TCP;
        struct extension_header *extension = bytes_at(data, data_end, at, sizeof(*extension));
        if (!extension)
            return PARSED_MALFORMED;
        if (is_fragment && extension->fragment_offset & bpf_htons(0xfff8))
            return PARSED_FRAGMENT;
        next = extension->next;
        at += is_fragment ? 8 : is_authentication ? (extension->length + 2) * 4 : (extension->length + 1) * 8;
    }
    return PARSED_TOO_MANY_HEADERS;
}

// Reads the headers of a frame of `bytes` bytes, of which those up to `data_end` can be seen. `segment` holds a segment
// only when the answer is PARSED_TCP. At most 600 instructions.
static __always_inline enum parsed parse_headers(void *data, void *data_end, __u32 bytes, struct segment *segment)
{
    struct ethhdr *ethernet = bytes_at(data, data_end, 0, sizeof(*ethernet));
    if (!ethernet)
        return PARSED_MALFORMED;
    // No host speaks TCP to a group (RFC 9293 §3.9.2.3), and an answer would come from one.
    if (ethernet->h_dest[0] & 1)
        return PARSED_NOT_TCP;
    __be16 protocol = ethernet->h_proto;
    __u32 at = sizeof(*ethernet);
    for (int tag = 0; tag < VLAN_TAGS; tag++) {
        if (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD))
            break;
        struct vlan_tag *vlan = bytes_at(data, data_end, at, sizeof(*vlan));
        if (!vlan)
            return PARSED_MALFORMED;
        protocol = vlan->protocol;
        at += sizeof(*vlan);
    }
    __builtin_memset(segment, 0, sizeof(*segment));
    segment->network_at = at;
    if (protocol == bpf_htons(ETH_P_IP))
        return parse_ipv4(data, data_end, bytes, at, segment);
    if (protocol == bpf_htons(ETH_P_IPV6))
        return parse_ipv6(data, data_end, bytes, at, segment);
    return PARSED_NOT_IP;
}

// The same of a frame that can be seen whole.
static __always_inline enum parsed parse_frame(void *data, void *data_end, struct segment *segment)
{
    return parse_headers(data, data_end, data_end - data, segment);
}
