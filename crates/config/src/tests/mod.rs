//! Tests of the public interface, one theme in each file.

mod accepted;
mod builders;
mod candidate;
mod docs_are_current;
mod flash_crowd_candidate;
mod manual_is_true;
mod messages;
mod policy;
mod router;
