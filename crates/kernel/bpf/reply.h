// Turns a received segment into a segment back, in place.
//
// The new packet is written at a new front: growing at the front works on every driver and in generic XDP (256 bytes
// are kept free there), growing at the end often does not. Ethernet addresses are exchanged and VLAN tags kept; IP
// options, TCP options and padding of the received packet are gone.
#pragma once

#include "parse.h"

enum {
    MAC_BYTES = 6,
    ETHERNET_BYTES_MAX = 22,
    TCP_BYTES = 20,
    MSS_OPTION_BYTES = 4,
    // What a segment may carry that every path takes: 1,280 bytes of IPv6 (RFC 8200 §5) less its headers.
    MSS_BYTES = 1220,
    HOPS = 64,
};

struct reply {
    __u32 sequence;
    __u32 acknowledgement;
    __u8 flags;
    // Says how much the other side may send at once; a SYN must, or it sends 536 bytes (RFC 9293 §3.7.1).
    __u8 with_mss;
    // The payload's length, its bytes (of a map) and their sum.
    __u16 payload_bytes;
    __u16 payload_sum;
    const __u8 *payload;
};

static __always_inline __u16 folded(__u64 sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

static __always_inline __u64 sum_of(const void *bytes, int words)
{
    __u64 sum = 0;
    for (int word = 0; word < words; word++)
        sum += ((const __u32 *)bytes)[word];
    return sum;
}

static __always_inline void fill_tcp(struct tcphdr *tcp, const struct segment *segment, const struct reply *reply,
                                     __be32 mss_option)
{
    __u32 header_bytes = TCP_BYTES + (reply->with_mss ? MSS_OPTION_BYTES : 0);
    tcp->source = segment->destination_port;
    tcp->dest = segment->source_port;
    tcp->seq = bpf_htonl(reply->sequence);
    tcp->ack_seq = bpf_htonl(reply->acknowledgement);
    ((__u8 *)tcp)[12] = header_bytes / 4 << 4;
    ((__u8 *)tcp)[13] = reply->flags;
    // A reset promises nothing; the largest window without scaling otherwise.
    tcp->window = reply->flags & TCP_RST ? 0 : 0xffff;
    // The pseudo header (RFC 9293 §3.1). ::ffff: before an IPv4 address adds 0xffff, which is nothing to such a sum.
    __u64 sum = sum_of(&segment->source, 8);
    sum += bpf_htons(IPPROTO_TCP) + bpf_htons(header_bytes + reply->payload_bytes);
    sum += sum_of(tcp, 5) + mss_option + reply->payload_sum;
    tcp->check = ~folded(sum);
}

static __always_inline void fill_ipv4(struct iphdr *ip, const struct segment *segment, __u32 transport_bytes)
{
    ip->version = 4;
    ip->ihl = 5;
    ip->tot_len = bpf_htons(sizeof(*ip) + transport_bytes);
    ip->frag_off = bpf_htons(0x4000);
    ip->ttl = HOPS;
    ip->protocol = IPPROTO_TCP;
    ip->saddr = ((const __be32 *)&segment->destination)[3];
    ip->daddr = ((const __be32 *)&segment->source)[3];
    ip->check = ~folded(sum_of(ip, 5));
}

static __always_inline void fill_ipv6(struct ipv6hdr *ip, const struct segment *segment, __u32 transport_bytes)
{
    ip->version = 6;
    ip->payload_len = bpf_htons(transport_bytes);
    ip->nexthdr = IPPROTO_TCP;
    ip->hop_limit = HOPS;
    __builtin_memcpy(&ip->saddr, &segment->destination, sizeof(ip->saddr));
    __builtin_memcpy(&ip->daddr, &segment->source, sizeof(ip->daddr));
}

// Makes the packet `bytes` long, with room for all of them from the front on. 0 if there is none.
static __always_inline bool resize(struct xdp_md *context, __u32 bytes)
{
    int surplus = (int)bpf_xdp_get_buff_len(context) - (int)bytes;
    if (!bpf_xdp_adjust_head(context, surplus))
        return true;
    return surplus < 0 && !bpf_xdp_adjust_tail(context, -surplus);
}

// Writes what the packet must have room for; false if it has not.
static __always_inline bool write_at(struct xdp_md *context, __u32 offset, const void *bytes, __u32 count)
{
    void *at = bytes_at((void *)(long)context->data, (void *)(long)context->data_end, offset, count);
    if (at)
        __builtin_memcpy(at, bytes, count);
    return at;
}

static __always_inline bool write_headers(struct xdp_md *context, const struct segment *segment,
                                          const struct reply *reply, const __u8 *ethernet, __u32 transport_bytes)
{
    __u32 at = segment->network_at;
    // All that an Ethernet header may have; the IP header then covers what this one has not.
    if (!write_at(context, 0, ethernet, ETHERNET_BYTES_MAX))
        return false;
    __u32 bytes = transport_bytes + reply->payload_bytes;
    if (segment->is_ipv6) {
        struct ipv6hdr ip = {};
        fill_ipv6(&ip, segment, bytes);
        if (!write_at(context, at, &ip, sizeof(ip)))
            return false;
        at += sizeof(ip);
    } else {
        struct iphdr ip = {};
        fill_ipv4(&ip, segment, bytes);
        if (!write_at(context, at, &ip, sizeof(ip)))
            return false;
        at += sizeof(ip);
    }
    struct tcphdr tcp = {};
    // Kind 2, length 4 (RFC 9293 §3.2).
    __be32 mss_option = reply->with_mss ? bpf_htonl(0x02040000 | MSS_BYTES) : 0;
    fill_tcp(&tcp, segment, reply, mss_option);
    if (!write_at(context, at, &tcp, sizeof(tcp)))
        return false;
    return !reply->with_mss || write_at(context, at + TCP_BYTES, &mss_option, sizeof(mss_option));
}

// Sends `reply` back to where `segment` came from. XDP_DROP if it does not fit.
static __noinline int send_back(struct xdp_md *context, const struct segment *segment, const struct reply *reply)
{
    if (!context || !segment || !reply)
        return XDP_DROP;
    __u8 ethernet[ETHERNET_BYTES_MAX], mac[MAC_BYTES];
    // Every frame with a segment has more.
    void *begin = bytes_at((void *)(long)context->data, (void *)(long)context->data_end, 0, ETHERNET_BYTES_MAX);
    if (!begin)
        return XDP_DROP;
    __builtin_memcpy(ethernet, begin, ETHERNET_BYTES_MAX);
    __builtin_memcpy(mac, ethernet, MAC_BYTES);
    __builtin_memcpy(ethernet, ethernet + MAC_BYTES, MAC_BYTES);
    __builtin_memcpy(ethernet + MAC_BYTES, mac, MAC_BYTES);

    __u32 transport_bytes = TCP_BYTES + (reply->with_mss ? MSS_OPTION_BYTES : 0);
    __u32 network_bytes = segment->is_ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
    __u32 payload_bytes = reply->payload_bytes;
    __u32 payload_at = segment->network_at + network_bytes + transport_bytes;
    if (!resize(context, payload_at + payload_bytes) ||
        !write_headers(context, segment, reply, ethernet, transport_bytes))
        return XDP_DROP;
    if (!payload_bytes || !reply->payload)
        return XDP_TX;
    // Two comparisons that the compiler must not make one of: the verifier follows each by itself.
    asm volatile("" : "+r"(payload_bytes));
    if (payload_bytes > ANSWER_BYTES ||
        bpf_xdp_store_bytes(context, payload_at, (void *)reply->payload, payload_bytes))
        return XDP_DROP;
    return XDP_TX;
}
