//! Tests of the public interface, one theme in each file.

mod docs_are_current;
mod open_metrics_text;
