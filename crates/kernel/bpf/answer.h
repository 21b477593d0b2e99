// Refusals that a client understands: a reset, or a whole HTTP response, with nothing remembered in between.
//
// SYN -> SYN-ACK whose sequence number is a keyed hash of the connection, its lowest bit telling which of two keys. A
// segment that acknowledges exactly that number plus one belongs to a connection answered here: the bare
// acknowledgement of the handshake is dropped, the first data gets the whole response and a FIN in one segment.
// Acknowledging that too means one number more, so it is known as well, and its FIN acknowledged. The response's length
// must not change meanwhile; where it does, the rest goes to the stack, which resets what it does not know.
#pragma once

#include "hash.h"
#include "maps.h"
#include "reply.h"

// How long after its last SYN-ACK a service's other segments are looked at: within it a client whose handshake
// succeeded has sent its request, or will be reset by the stack. Without refusals nothing here can hit an innocent
// connection.
#define ANSWERING_FOR_NS 75000000000LL
#define TLS_HANDSHAKE 0x16

enum tcp_state_number {
    // include/net/tcp_states.h: neither has a peer that gets anything new.
    STATE_TIME_WAIT = 6,
    STATE_CLOSE = 7,
    STATE_LISTEN = 10,
};

static __always_inline __u32 answer_sequence(const struct control *control, const struct segment *segment, __u32 key)
{
    return ((__u32)hash_of(&control->answer_keys[key & 1], segment, 0) & ~1U) | (key & 1);
}

static __always_inline const struct answer *answer_of(__u32 service, __u32 sequence)
{
    // Which variant is a matter of the connection alone: a retransmitted request gets the same bytes.
    __u32 index = service * ANSWER_VARIANTS + (sequence >> 1) % ANSWER_VARIANTS;
    return bpf_map_lookup_elem(&answers, &index);
}

// Refuses a SYN with a reset (RFC 9293 §3.10.7.1).
static __always_inline int reset_syn(struct xdp_md *context, const struct segment *segment)
{
    struct reply reply = {
        .acknowledgement = segment->sequence + 1 + segment->payload_bytes + (segment->flags & TCP_FIN ? 1 : 0),
        .flags = TCP_RST | TCP_ACK,
    };
    return send_back(context, segment, &reply);
}

static __always_inline int answer_syn(struct xdp_md *context, const struct control *control, __u32 service,
                                      const struct segment *segment, __u64 now_ns)
{
    __u64 *last_ns = bpf_map_lookup_elem(&answered_at, &service);
    struct recent *times = recent_times();
    if (!last_ns || !times)
        return XDP_DROP;
    note_time(last_ns, now_ns);
    note_time(&times->answered_ns, now_ns);
    struct reply reply = {
        .sequence = answer_sequence(control, segment, control->key_index),
        // What came with the SYN (RFC 7413) will be sent again.
        .acknowledgement = segment->sequence + 1,
        .flags = TCP_SYN | TCP_ACK,
        .with_mss = 1,
    };
    return send_back(context, segment, &reply);
}

static __always_inline bool answers_lately(__u32 service, __u64 now_ns)
{
    __u64 *last_ns = bpf_map_lookup_elem(&answered_at, &service);
    return last_ns && is_within(*last_ns, now_ns, ANSWERING_FOR_NS);
}

// Whether the stack of this machine has a living connection of these addresses: then the hash matched by chance.
static __noinline int has_connection(struct xdp_md *context, const struct segment *segment)
{
    if (!context || !segment)
        return 0;
    struct bpf_sock_tuple tuple = {};
    __u32 tuple_bytes;
    if (segment->is_ipv6) {
        __builtin_memcpy(tuple.ipv6.saddr, &segment->source, sizeof(tuple.ipv6.saddr));
        __builtin_memcpy(tuple.ipv6.daddr, &segment->destination, sizeof(tuple.ipv6.daddr));
        tuple.ipv6.sport = segment->source_port;
        tuple.ipv6.dport = segment->destination_port;
        tuple_bytes = sizeof(tuple.ipv6);
    } else {
        tuple.ipv4.saddr = segment->source.words[1] >> 32;
        tuple.ipv4.daddr = segment->destination.words[1] >> 32;
        tuple.ipv4.sport = segment->source_port;
        tuple.ipv4.dport = segment->destination_port;
        tuple_bytes = sizeof(tuple.ipv4);
    }
    struct bpf_sock *socket = bpf_skc_lookup_tcp(context, &tuple, tuple_bytes, BPF_F_CURRENT_NETNS, 0);
    if (!socket)
        return 0;
    __u32 state = socket->state;
    bpf_sk_release(socket);
    return state != STATE_LISTEN && state != STATE_TIME_WAIT && state != STATE_CLOSE;
}

enum progress {
    // Not a connection answered here.
    PROGRESS_NONE,
    // The handshake is done, the response not yet acknowledged.
    PROGRESS_OPEN,
    // Response and FIN are acknowledged.
    PROGRESS_ANSWERED,
};

// How far a segment's connection has come, by what it acknowledges. Both lengths of a response are odd, so all three
// numbers that fit have the same lowest bit, and one hash decides about all of them.
static __always_inline enum progress answered(const struct control *control, __u32 service,
                                              const struct segment *segment, const struct answer **answer)
{
    __u32 opened = segment->acknowledgement - 1;
    __u32 sequence = answer_sequence(control, segment, opened & 1);
    *answer = answer_of(service, sequence);
    if (opened == sequence)
        return PROGRESS_OPEN;
    if (!*answer)
        return PROGRESS_NONE;
    __u32 beyond = opened - sequence;
    bool is_whole = beyond == (*answer)->whole_bytes + 1U, is_head = beyond == (*answer)->head_bytes + 1U;
    return is_whole || is_head ? PROGRESS_ANSWERED : PROGRESS_NONE;
}

static __always_inline int reset_late(struct xdp_md *context, struct counts *counts, const struct segment *segment)
{
    struct reply reply = { .sequence = segment->acknowledgement, .flags = TCP_RST };
    counts->late_resets++;
    return send_back(context, segment, &reply);
}

static __always_inline __u32 next_sequence(const struct segment *segment)
{
    return segment->sequence + segment->payload_bytes + (segment->flags & TCP_FIN ? 1 : 0);
}

// The request is here, or its beginning: for any request the answer is the same.
static __always_inline int respond(struct xdp_md *context, struct counts *counts, const struct segment *segment,
                                   const struct answer *answer)
{
    __u8 begun[4] = {};
    __u32 bytes = segment->payload_bytes < 4 ? 1 : 4;
    if (bpf_xdp_load_bytes(context, segment->payload_at, begun, bytes))
        return XDP_DROP;
    bool is_http2 = begun[0] == 'P' && begun[1] == 'R' && begun[2] == 'I' && begun[3] == ' ';
    bool is_head = begun[0] == 'H' && begun[1] == 'E' && begun[2] == 'A' && begun[3] == 'D';
    if (!answer || begun[0] == TLS_HANDSHAKE || is_http2)
        return reset_late(context, counts, segment);
    struct reply reply = {
        .sequence = segment->acknowledgement,
        .acknowledgement = next_sequence(segment),
        .flags = TCP_ACK | TCP_FIN | TCP_PSH,
        .payload_bytes = is_head ? answer->head_bytes : answer->whole_bytes,
        .payload_sum = is_head ? answer->head_sum : answer->whole_sum,
        .payload = answer->bytes,
    };
    int verdict = send_back(context, segment, &reply);
    if (verdict == XDP_DROP) {
        counts->unsent++;
        return reset_late(context, counts, segment);
    }
    counts->responses++;
    return verdict;
}

// A segment that opens no connection, of a service that answers. XDP_PASS if it has nothing to do with an answer.
static __always_inline int go_on_answering(struct xdp_md *context, const struct control *control,
                                           struct counts *counts, __u32 service, const struct segment *segment)
{
    if (!(segment->flags & TCP_ACK) || segment->flags & TCP_SYN)
        return XDP_PASS;
    const struct answer *answer;
    enum progress progress = answered(control, service, segment, &answer);
    if (progress == PROGRESS_NONE)
        return XDP_PASS;
    bool is_bare = !segment->payload_bytes && !(segment->flags & (TCP_FIN | TCP_RST));
    // A bare acknowledgement of another socket's connection, should one ever match, is made good by the next.
    if (!is_bare && has_connection(context, segment))
        return XDP_PASS;
    if (!(segment->flags & TCP_RST)) {
        if (progress == PROGRESS_OPEN && segment->payload_bytes)
            return respond(context, counts, segment, answer);
        // Data after the end of the response, or an end without a request.
        if (segment->payload_bytes || (progress == PROGRESS_OPEN && segment->flags & TCP_FIN))
            return reset_late(context, counts, segment);
        if (segment->flags & TCP_FIN) {
            struct reply reply = {
                .sequence = segment->acknowledgement,
                .acknowledgement = next_sequence(segment),
                .flags = TCP_ACK,
            };
            counts->absorbed++;
            return send_back(context, segment, &reply);
        }
    }
    counts->absorbed++;
    return XDP_DROP;
}
