// Where servers listen, and what is known by that.
#pragma once

#include "parse.h"

// By address and port: in the gate the number of a service, in the observer nothing but that it is there.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, ENDPOINTS);
    __type(key, struct endpoint);
    __type(value, __u32);
} endpoints SEC(".maps");

// The value of an address and port, else that of the port on every address.
static __always_inline __u32 *endpoint_at(const struct address *address, __be16 port, bool is_ipv6)
{
    struct endpoint endpoint = { .address = *address, .port = port };
    __u32 *value = bpf_map_lookup_elem(&endpoints, &endpoint);
    if (value)
        return value;
    endpoint.address = is_ipv6 ? (struct address){} : mapped(0);
    return bpf_map_lookup_elem(&endpoints, &endpoint);
}
