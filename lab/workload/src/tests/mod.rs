//! Tests of the public interface, one theme in each file.

mod recorded_logs;
mod recorded_profiles;
