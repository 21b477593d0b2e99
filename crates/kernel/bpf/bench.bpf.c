// For measurements only: packets as a network card's driver hands them over, and what a run costs by itself.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

enum {
    FRAMES = 16384,
    // All are as long: what is behind the IP packet is padding.
    FRAME_BYTES = 128,
};

struct frame {
    __u8 bytes[FRAME_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, FRAMES);
    __type(key, __u32);
    __type(value, struct frame);
} frames SEC(".maps");

// Set before loading: the interface that frames leave by, and so arrive at the other end of.
SEC(".rodata.way") const volatile __u32 interface = 0;

__u32 next_frame = 0;

// Sends the next frame: run with BPF_F_TEST_XDP_LIVE_FRAMES.
SEC("xdp")
int carry(struct xdp_md *context)
{
    __u32 index = next_frame++ % FRAMES;
    struct frame *frame = bpf_map_lookup_elem(&frames, &index);
    void *data = (void *)(long)context->data, *data_end = (void *)(long)context->data_end;
    if (!frame || data + FRAME_BYTES > data_end)
        return XDP_DROP;
    __builtin_memcpy(data, frame, FRAME_BYTES);
    return bpf_redirect(interface, 0);
}

// The far end of a line without a listener.
SEC("xdp")
int discard(struct xdp_md *context)
{
    (void)context;
    return XDP_DROP;
}

// What a test run takes with nothing in it.
SEC("xdp")
int nothing(struct xdp_md *context)
{
    (void)context;
    return XDP_PASS;
}

SEC("tc")
int nothing_at_tc(struct __sk_buff *packet)
{
    (void)packet;
    return TC_ACT_UNSPEC;
}

char bench_license[] SEC("license") = "Apache-2.0";
