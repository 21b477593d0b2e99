// The classifier of a link: counts every flow's bytes and the number of flows, drops packets of flows that are over their
// share, and marks the rest at the price of the link. It decides nothing: probabilities are user space's, written four
// times a second, and without user space for three seconds everything passes.
//
// It stands at tc before the interface's queue (egress), or behind it where a link is policed at its far end (ingress).
// A packet that it lets pass goes on to any other filters (TC_ACT_UNSPEC).
#include "cut_mark.h"
#include "flow.h"
#include "link_maps.h"

#include <linux/pkt_cls.h>

// Set before loading.
SEC(".rodata.key") const volatile struct hash_key flow_key = {};
SEC(".rodata.identity") const volatile __u32 identity = FLOW_FIVE_TUPLE;

// Enough for Ethernet, IPv6 with some extension headers, and ports.
#define HEADERS_BYTES 128

// Functions that are not static are checked by the kernel once, by themselves: together their ways would be too many for it.

// Whether the packet has a flow. `header` must be zero before.
__attribute__((noinline)) int read_packet(struct __sk_buff *packet, struct flow_header *header)
{
    if (!header)
        return 0;
    void *data = (void *)(long)packet->data, *data_end = (void *)(long)packet->data_end;
    return read_flow(data, data_end, header);
}

__attribute__((noinline)) __u64 flow_of(const struct flow_header *header)
{
    if (!header)
        return 0;
    struct hash_key key = { .words = { flow_key.words[0], flow_key.words[1] } };
    return hash_of_flow(&key, identity, header);
}

// Asks the kernel for more of a packet than it shows: drivers show the headers of nearly all. Whether there is more now.
static __always_inline bool show_more(struct __sk_buff *packet)
{
    __u32 bytes = packet->len < HEADERS_BYTES ? packet->len : HEADERS_BYTES;
    __u32 shown = (void *)(long)packet->data_end - (void *)(long)packet->data;
    return shown < bytes && !bpf_skb_pull_data(packet, bytes);
}

static __always_inline void add(__u64 *counter, __u64 number)
{
    __sync_fetch_and_add(counter, number);
}

// Puts a residue in order among those that the bucket keeps, unless it is there already or too large. Two processors of one
// shard may lose one of two residues; the flow's next packet brings it again.
static __always_inline void keep(__u32 *kept, __u32 residue)
{
    if (residue >= kept[2] || residue == kept[0] || residue == kept[1])
        return;
    if (residue > kept[1]) {
        kept[2] = residue;
        return;
    }
    kept[2] = kept[1];
    if (residue > kept[0]) {
        kept[1] = residue;
        return;
    }
    kept[1] = kept[0];
    kept[0] = residue;
}

static __always_inline void sketch(struct link_sketch *sketch, __u64 flow)
{
    __u32 residue = flow >> 22;
    keep(sketch->residues[flow >> 54], residue == ~0U ? residue - 1 : residue);
}

// Gives a flow a place in its set, in place of the one with the lowest rank, which it inherits.
static __always_inline void place(struct flow_set *set, __u64 flow, __u64 bytes)
{
    __u32 at = 0;
    __u64 least = ~0ULL;
    bool is_there = false;
    bpf_spin_lock(&set->lock);
#pragma unroll
    for (__u32 way = 0; way < FLOW_WAYS; way++) {
        // Another processor may have been faster.
        __u64 rank = set->flow[way] == flow ? 0 : set->bytes[way] + set->inherited[way];
        is_there |= set->flow[way] == flow;
        if (rank < least) {
            least = rank;
            at = way;
        }
    }
    at &= FLOW_WAYS - 1;
    if (is_there && set->flow[at] == flow) {
        set->bytes[at] += bytes;
    } else {
        set->flow[at] = flow;
        set->bytes[at] = bytes;
        set->inherited[at] = least;
    }
    bpf_spin_unlock(&set->lock);
}

// Counts a flow's bytes. A packet may be counted for a flow that takes the place at the same moment.
static __always_inline void record(struct flow_set *set, __u64 flow, __u64 bytes)
{
#pragma unroll
    for (__u32 way = 0; way < FLOW_WAYS; way++) {
        if (set->flow[way] == flow) {
            add(&set->bytes[way], bytes);
            return;
        }
    }
    place(set, flow, bytes);
}

// Counts a packet of the flow in the half that is written to.
__attribute__((noinline)) int measure(__u64 flow, __u64 bytes, __u32 half, __u32 shard)
{
    __u32 sketch_at = (half & 1) * LINK_SHARDS + (shard & (LINK_SHARDS - 1));
    __u32 set_at = (half & 1) * FLOW_SETS + (flow & (FLOW_SETS - 1));
    struct link_sketch *distinct = bpf_map_lookup_elem(&sketches, &sketch_at);
    struct flow_set *set = bpf_map_lookup_elem(&flow_sets, &set_at);
    if (!distinct || !set)
        return 0;
    sketch(distinct, flow);
    record(set, flow, bytes);
    return 0;
}

// The probability with which the flow is dropped, in 2^-32.
__attribute__((noinline)) __u32 cut_of(__u64 flow)
{
    __u32 set = flow & (FLOW_SETS - 1);
    struct cut_set *cuts = bpf_map_lookup_elem(&cut_sets, &set);
    if (!cuts)
        return 0;
#pragma unroll
    for (__u32 way = 0; way < FLOW_WAYS; way++)
        if (cuts->flow[way] == flow)
            return cuts->drop[way];
    return 0;
}

static __always_inline bool strikes(__u32 probability)
{
    return probability && bpf_get_prandom_u32() < probability;
}

SEC("tc")
int flashweir_link(struct __sk_buff *packet)
{
    __u32 zero = 0, shard = bpf_get_smp_processor_id() & (LINK_SHARDS - 1);
    struct link_orders *now = bpf_map_lookup_elem(&orders, &zero);
    struct link_counts *count = bpf_map_lookup_elem(&counts, &shard);
    if (!now || !count)
        return TC_ACT_UNSPEC;
    struct flow_header header = {};
    bool has_flow = read_packet(packet, &header);
    if (header.is_cut_off && show_more(packet)) {
        header = (struct flow_header){};
        has_flow = read_packet(packet, &header);
    }
    if (!has_flow) {
        add(&count->unread_frames, 1);
        return TC_ACT_UNSPEC;
    }
    // 0 is a free place.
    __u64 flow = flow_of(&header) ?: 1;
    // What the link sends: large packets that are cut into segments behind this count with the headers of all.
    __u64 bytes = packet->wire_len ?: packet->len, packets = packet->gso_segs ?: 1;
    add(&count->offered_packets, packets);
    add(&count->offered_bytes, bytes);
    measure(flow, bytes, now->interval & 1, shard);

    if (bpf_ktime_get_coarse_ns() >= now->expires_ns)
        return TC_ACT_UNSPEC;
    __u32 drop = cut_of(flow);
    if (strikes(drop)) {
        add(&count->purged_packets, packets);
        add(&count->purged_bytes, bytes);
        return TC_ACT_SHOT;
    }
    packet->cb[0] = drop ? CUT_MARK : 0;
    if (!strikes(now->mark))
        return TC_ACT_UNSPEC;
    if (header.is_markable && bpf_skb_ecn_set_ce(packet)) {
        add(&count->marked_packets, packets);
        return TC_ACT_UNSPEC;
    }
    add(&count->refused_packets, packets);
    add(&count->refused_bytes, bytes);
    return TC_ACT_SHOT;
}

char link_license[] SEC("license") = "Apache-2.0";
