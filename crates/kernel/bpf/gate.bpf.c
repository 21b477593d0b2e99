// The gate: judges new connections of protected services before the stack hears of them.
//
// A new connection (SYN without ACK) is charged to its service's bucket by its rank, or to that of preferred networks;
// several services may share those of one. What does not fit is dropped, reset or answered, as the plan says. Everything else
// passes, except segments of connections that were answered here. When user space has not been heard of for three
// seconds, every new connection passes.
#include "answer.h"
#include "attempts.h"
#include "bucket.h"
#include "endpoints.h"

#define SILENCE_NS 3000000000ULL

// Set before loading, by tests only: then `control` says what time it is. The verifier removes what is never reached.
SEC(".rodata.clock") const volatile __u32 time_is_told = 0;

// To the kernel's tick, 10 ms at the most, and never ahead: enough for everything but a bucket, at a fifth of the price.
static __always_inline __u64 time_about(const struct control *control)
{
    return time_is_told ? control->test_now_ns : bpf_ktime_get_coarse_ns();
}

static __always_inline __u64 time_now(const struct control *control)
{
    return time_is_told ? control->test_now_ns : bpf_ktime_get_ns();
}

static __always_inline int pass(enum passed reason)
{
    __u32 index = reason;
    __u64 *count = bpf_map_lookup_elem(&passes, &index);
    if (count)
        (*count)++;
    return XDP_PASS;
}

static __always_inline enum passed not_understood(enum parsed parsed)
{
    switch (parsed) {
    case PARSED_NOT_IP:
        return PASSED_NOT_IP;
    case PARSED_NOT_TCP:
        return PASSED_NOT_TCP;
    case PARSED_FRAGMENT:
        return PASSED_FRAGMENT;
    case PARSED_TOO_MANY_HEADERS:
        return PASSED_TOO_MANY_HEADERS;
    default:
        return PASSED_MALFORMED;
    }
}

static __always_inline bool is_preferred(const struct control *control, const struct segment *segment)
{
    if (!(control->flags & CONTROL_PREFERS))
        return false;
    struct network network = { .bits = 128, .address = segment->source };
    __u32 *is_ipv6 = bpf_map_lookup_elem(&preferred, &network);
    return is_ipv6 && *is_ipv6 == segment->is_ipv6;
}

// How important a connection is, 0 the most: by its network, else its mark, else its port (above the service in `place`).
static __always_inline __u32 rank_of(const struct control *control, const struct segment *segment, __u32 place)
{
    if (control->flags & CONTROL_RANKS_NETWORKS) {
        struct network network = { .bits = 128, .address = segment->source };
        __u32 *rank = bpf_map_lookup_elem(&tier_networks, &network);
        if (rank && (*rank & 1) == segment->is_ipv6)
            return *rank >> 1 & (TIERS - 1);
    }
    __u32 by_mark = control->mark_ranks[segment->mark & (MARKS - 1)];
    __u32 by_port = place >> PLACE_RANK_SHIFT;
    return (by_mark ? by_mark - 1 : by_port ? by_port - 1 : control->default_rank) & (TIERS - 1);
}

// The network of one subscriber: the address of IPv4, the /64 of IPv6. As `Address::subscriber` in src/plain.rs.
static __always_inline struct address subscriber(const struct segment *segment)
{
    struct address network = segment->source;
    if (segment->is_ipv6)
        network.words[1] = 0;
    return network;
}

static __always_inline bool is_purged(const struct control *control, const struct segment *segment, __u64 now_ns)
{
    if (!(control->flags & CONTROL_PURGES))
        return false;
    struct address source = subscriber(segment);
    __u64 *until_ns = bpf_map_lookup_elem(&purged, &source);
    return until_ns && now_ns < *until_ns;
}

// Does to a SYN that is refused what the plan says, and counts it.
static __always_inline int refuse(struct xdp_md *context, const struct control *control, const struct plan *plan,
                                  struct counts *counts, __u32 service, const struct segment *segment, __u64 now_ns)
{
    int verdict;
    if (plan->mode == MODE_ANSWER && !(plan->flags & SERVICE_TLS)) {
        counts->answered++;
        verdict = answer_syn(context, control, service, segment, now_ns);
    } else if (plan->mode == MODE_RESET || plan->mode == MODE_ANSWER) {
        counts->reset++;
        verdict = reset_syn(context, segment);
    } else {
        counts->dropped++;
        return XDP_DROP;
    }
    if (verdict == XDP_DROP)
        counts->unsent++;
    return verdict;
}

static __always_inline int judge(struct xdp_md *context, const struct control *control, const struct plan *plan,
                                 struct counts *counts, __u32 place, const struct segment *segment, __u64 now_ns)
{
    __u32 service = place & PLACE_SERVICE_MASK;
    bool prefers = is_preferred(control, segment);
    __u32 rank = prefers ? 0 : rank_of(control, segment, place);
    __u32 index = 2 * plan->charged_to + prefers;
    struct bucket *bucket = bpf_map_lookup_elem(&buckets, &index);
    struct recent *times = recent_times();
    if (!bucket || !times)
        return XDP_PASS;
    bool silent = now_ns - control->beat_ns > SILENCE_NS && now_ns > control->beat_ns &&
                  !(control->flags & CONTROL_FAIL_CLOSED);
    bool purges = false, admits = silent || plan->mode == MODE_PASS;
    if (!admits) {
        purges = is_purged(control, segment, now_ns);
        admits = !purges && (!is_limited(bucket) || bucket_admits(bucket, rank, time_now(control)));
    }
    bool shadows = !admits && plan->flags & SERVICE_SHADOW;
    admits |= shadows;

    // Hashing costs as much as all the rest. Where nothing is refused there is nothing to recognise, nor to remember.
    __u64 attempt = 0;
    bool retry = false;
    if (!admits || is_within(times->refused_ns, now_ns, REFUSED_LATELY_NS)) {
        attempt = hash_of(&control->attempts_key, segment, segment->sequence);
        retry = is_retry(now_ns, attempt);
    }
    counts->offered++;
    // A purged source is no demand: its attempts do not depend on the capacity.
    counts->unique_offered += !retry && (admits || !purges);
    counts->preferred_offered += prefers;
    counts->tiers[rank].offered += !prefers;
    if (admits) {
        counts->admitted++;
        counts->preferred_admitted += prefers;
        counts->tiers[rank].admitted += !prefers;
        counts->failed_open += silent;
        counts->shadowed += shadows;
        if (retry)
            forget_attempt(attempt);
        return XDP_PASS;
    }
    remember_attempt(now_ns, attempt);
    note_time(&times->refused_ns, now_ns);
    if (purges) {
        counts->purged++;
        return XDP_DROP;
    }
    return refuse(context, control, plan, counts, service, segment, now_ns);
}

SEC("xdp")
int flashweir_gate(struct xdp_md *context)
{
    struct segment segment;
    enum parsed parsed = parse_frame((void *)(long)context->data, (void *)(long)context->data_end, &segment);
    if (parsed != PARSED_TCP)
        return pass(not_understood(parsed));
    __u32 zero = 0;
    struct control *state = bpf_map_lookup_elem(&control, &zero);
    struct recent *times = recent_times();
    if (!state || !times)
        return XDP_PASS;
    bool is_new = (segment.flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN;
    // Most packets by far: without answers the gate has no use for them, and they need not be looked up.
    if (!is_new && (!times->answered_ns || !is_within(times->answered_ns, time_about(state), ANSWERING_FOR_NS)))
        return pass(PASSED_NOT_NEW);
    __u32 *found = endpoint_at(&segment.destination, segment.destination_port, segment.is_ipv6);
    if (!found)
        return pass(is_new ? PASSED_NOT_PROTECTED : PASSED_NOT_NEW);
    __u32 place = *found, service = place & PLACE_SERVICE_MASK;
    struct plan *plan = bpf_map_lookup_elem(&plans, &service);
    struct counts *count = bpf_map_lookup_elem(&counts, &service);
    if (!plan || !count)
        return pass(PASSED_NOT_PROTECTED);
    __u64 now_ns = time_about(state);
    if (is_new)
        return judge(context, state, plan, count, place, &segment, now_ns);
    // Also under a plan that refuses no more: what began must end.
    if (answers_lately(service, now_ns)) {
        int verdict = go_on_answering(context, state, count, service, &segment);
        if (verdict != XDP_PASS)
            return verdict;
    }
    return pass(PASSED_NOT_NEW);
}

static long apply_plan(__u32 index, void *unused)
{
    (void)unused;
    __u32 everybody = 2 * index, preferred = everybody + 1;
    struct plan *plan = bpf_map_lookup_elem(&plans, &index);
    struct bucket *bucket = bpf_map_lookup_elem(&buckets, &everybody);
    if (plan && bucket)
        set_ceilings(bucket, plan->at_ns, plan->tiers, TIERS);
    bucket = bpf_map_lookup_elem(&buckets, &preferred);
    if (plan && bucket)
        set_ceilings(bucket, plan->at_ns, &plan->preferred, 1);
    return 0;
}

// Puts what is in `plans` into force. User space runs it on an empty frame once it has written a plan: so every bucket
// is settled at the plan's own moment and under its lock, and no packet ever sees half of a new ceiling.
SEC("xdp")
int apply_plans(struct xdp_md *context)
{
    (void)context;
    bpf_loop(SERVICES, apply_plan, 0, 0);
    return XDP_PASS;
}

char gate_license[] SEC("license") = "Apache-2.0";
