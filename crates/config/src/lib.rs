//! The configuration file: what was written, checked into what cannot be wrong.
