//! Starts real servers and the real binary for tests, and always stops them.
