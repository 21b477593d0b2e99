//! HTTP intermediary mechanics: strict request heads, field hygiene, upstream pools, TLS and tunnels.
