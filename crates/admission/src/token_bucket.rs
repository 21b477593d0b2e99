//! Integer micro-token bucket.
