// The observer: counts new connections and measures responses of watched servers, and never touches a packet.
//
// It stands at tc, on the side of the clients: what comes in there is for servers, what goes out are their responses. A
// connection is known by its SYN; its response is measured packet by packet, and counts in the interval's histogram
// under its latest rate. Both programs end with TC_ACT_UNSPEC, so any other filters go on to judge.
#include "cut_mark.h"
#include "endpoints.h"
#include "observe_maps.h"
#include "rate.h"

#include <linux/pkt_cls.h>

// Set before loading, by tests only: then `watching` says what time it is.
SEC(".rodata.clock") const volatile __u32 time_is_told = 0;

// Set before loading, where the classifier of a link stands before the observer: flows that it cuts are left out, as their
// rates say nothing about the servers.
SEC(".rodata.links") const volatile __u32 leaves_cut_flows_out = 0;

// Enough for Ethernet, IPv6 with some extension headers, and TCP with all its options.
#define HEADERS_BYTES 256

// To the kernel's tick, and never ahead: at a fifth of the price.
static __always_inline __u64 ticks_about(const struct watching *state)
{
    return (time_is_told ? state->test_now_ns : bpf_ktime_get_coarse_ns()) >> TICK_SHIFT;
}

static __always_inline __u64 ticks_now(const struct watching *state)
{
    return (time_is_told ? state->test_now_ns : bpf_ktime_get_ns()) >> TICK_SHIFT;
}

// An `enum parsed`. Not static, so the kernel checks it once by itself and not again at every call: that takes more than
// half off the time of loading.
__attribute__((noinline)) int parse_packet(struct __sk_buff *packet, struct segment *segment)
{
    if (!segment)
        return PARSED_MALFORMED;
    void *data = (void *)(long)packet->data, *data_end = (void *)(long)packet->data_end;
    return parse_headers(data, data_end, packet->len, segment);
}

// Reads a packet's headers. Drivers show them all; where one does not, the kernel is asked to.
static __always_inline bool is_tcp(struct __sk_buff *packet, struct segment *segment)
{
    int parsed = parse_packet(packet, segment);
    if (parsed != PARSED_MALFORMED)
        return parsed == PARSED_TCP;
    __u32 bytes = packet->len < HEADERS_BYTES ? packet->len : HEADERS_BYTES;
    __u32 shown = (void *)(long)packet->data_end - (void *)(long)packet->data;
    if (shown >= bytes || bpf_skb_pull_data(packet, bytes))
        return false;
    return parse_packet(packet, segment) == PARSED_TCP;
}

static __always_inline struct watching *watching_now(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&watching, &zero);
}

static __always_inline __u32 shard(void)
{
    return bpf_get_smp_processor_id() & (SHARDS - 1);
}

static __always_inline struct seen *seen_here(void)
{
    __u32 index = shard();
    return bpf_map_lookup_elem(&seen, &index);
}

static __always_inline void count(__u64 *counter)
{
    __sync_fetch_and_add(counter, 1);
}

// Writes a flow that begins in place of one of the same name, else into a place of the table.
static __always_inline struct flow *begin_flow(struct seen *counts, const struct connection *connection,
                                               struct flow *known, const struct flow *begun)
{
    if (known) {
        count(&counts->begun);
        *known = *begun;
        return known;
    }
    long failed = bpf_map_update_elem(&flows, connection, begun, BPF_NOEXIST);
    struct flow *flow = bpf_map_lookup_elem(&flows, connection);
    if (!failed) {
        count(&counts->begun);
        count(&counts->placed);
    } else if (!flow) {
        // Else another processor was faster: its flow is as good.
        count(&counts->flows_left_out);
    }
    return flow;
}

static __always_inline void count_attempt_at(struct seen *counts, const struct endpoint *endpoint,
                                             struct attempts_at *attempts, bool unique)
{
    if (!attempts) {
        struct attempts_at none = {};
        bpf_map_update_elem(&destinations, endpoint, &none, BPF_NOEXIST);
        attempts = bpf_map_lookup_elem(&destinations, endpoint);
    }
    if (!attempts) {
        count(&counts->attempts_left_out);
        return;
    }
    count(&attempts->offered);
    if (unique)
        count(&attempts->unique_offered);
}

// A SYN. One that repeats its flow's is a retransmission, for as long as a client goes on sending it.
static __always_inline void attempt(struct seen *counts, const struct watching *state, const struct segment *segment,
                                    const struct endpoint *endpoint, struct attempts_at *attempts)
{
    struct connection connection = {
        .client = segment->source,
        .server = segment->destination,
        .client_port = segment->source_port,
        .server_port = segment->destination_port,
    };
    struct flow *known = bpf_map_lookup_elem(&flows, &connection);
    bool repeats = known && known->flags & FLOW_OPENED && known->sequence == segment->sequence &&
                   ticks_between(known->began_ticks, ticks_about(state)) <= IDLE_TICKS;
    count(&counts->offered);
    if (!repeats) {
        __u64 now = ticks_now(state);
        count(&counts->unique_offered);
        struct flow begun = {
            .began_ticks = now,
            .front_ticks = now,
            .sequence = segment->sequence,
            .flags = FLOW_OPENED,
        };
        begin_flow(counts, &connection, known, &begun);
    }
    count_attempt_at(counts, endpoint, attempts, !repeats);
}

// Counts a flow under its rate, and no longer where it counted in this interval before. The exchange makes it exact
// independently of other processors: each place is left by the one that took it away.
static __always_inline void place(struct flow *flow, const struct watching *state)
{
    __u32 slot = rate_bucket(flow->rate >> RATE_FRACTION);
    if (flow->flags & FLOW_OPENED && flow->began_ticks >= state->plan_ticks)
        slot += RATE_BUCKETS;
    __u64 interval = state->interval, taken = interval << 32 | slot;
    if (flow->place == taken)
        return;
    __u32 index = (interval & 1) * SHARDS + shard();
    struct histogram *histogram = bpf_map_lookup_elem(&histograms, &index);
    if (!histogram)
        return;
    __u64 left = __sync_lock_test_and_set(&flow->place, taken);
    if (slot < 2 * RATE_BUCKETS)
        __sync_fetch_and_add(&histogram->flows[slot], 1);
    __u32 left_slot = left;
    if (left >> 32 == interval && left_slot < 2 * RATE_BUCKETS)
        __sync_fetch_and_add(&histogram->flows[left_slot], -1);
}

// Data of a response, or its end, or both.
static __always_inline void respond(struct seen *counts, const struct watching *state, const struct segment *segment)
{
    struct connection connection = {
        .client = segment->destination,
        .server = segment->source,
        .client_port = segment->destination_port,
        .server_port = segment->source_port,
    };
    __u64 now = ticks_now(state);
    struct flow *flow = bpf_map_lookup_elem(&flows, &connection);
    if (segment->payload_bytes) {
        bool idled = flow && flow->flags & FLOW_RESPONDS && ticks_between(flow->front_ticks, now) > IDLE_TICKS;
        if (!flow || idled) {
            if (idled)
                count(&counts->expired);
            struct flow begun = { .began_ticks = now, .front_ticks = now };
            flow = begin_flow(counts, &connection, flow, &begun);
            if (!flow)
                return;
        }
        if (!(flow->flags & FLOW_RESPONDS)) {
            // RFC 2859's window begins with the first data, the corrected one with the connection.
            if (reads_as_published)
                flow->front_ticks = now;
            __sync_fetch_and_or(&flow->flags, FLOW_RESPONDS);
        }
        measure(flow, now, segment->payload_bytes);
        place(flow, state);
    }
    if (flow && segment->flags & TCP_FIN && flow->flags & FLOW_RESPONDS &&
        !(__sync_fetch_and_or(&flow->flags, FLOW_ENDED) & FLOW_ENDED))
        count(&counts->completed);
}

SEC("tc")
int flashweir_in(struct __sk_buff *packet)
{
    struct segment segment;
    if (!is_tcp(packet, &segment) || (segment.flags & (TCP_SYN | TCP_ACK | TCP_RST)) != TCP_SYN)
        return TC_ACT_UNSPEC;
    struct endpoint endpoint = { .address = segment.destination, .port = segment.destination_port };
    struct attempts_at *attempts = bpf_map_lookup_elem(&destinations, &endpoint);
    // Who was counted since the last reading is watched, and need not be looked for.
    if (!attempts && !endpoint_at(&segment.destination, segment.destination_port, segment.is_ipv6))
        return TC_ACT_UNSPEC;
    struct watching *state = watching_now();
    struct seen *counts = seen_here();
    if (state && counts)
        attempt(counts, state, &segment, &endpoint, attempts);
    return TC_ACT_UNSPEC;
}

SEC("tc")
int flashweir_out(struct __sk_buff *packet)
{
    struct segment segment;
    if (leaves_cut_flows_out && packet->cb[0] == CUT_MARK)
        return TC_ACT_UNSPEC;
    // Neither handshakes nor bare acknowledgements say anything about a response.
    if (!is_tcp(packet, &segment) || segment.flags & (TCP_SYN | TCP_RST) ||
        (!segment.payload_bytes && !(segment.flags & TCP_FIN)) ||
        !endpoint_at(&segment.source, segment.source_port, segment.is_ipv6))
        return TC_ACT_UNSPEC;
    struct watching *state = watching_now();
    struct seen *counts = seen_here();
    if (state && counts)
        respond(counts, state, &segment);
    return TC_ACT_UNSPEC;
}

char observe_license[] SEC("license") = "Apache-2.0";
