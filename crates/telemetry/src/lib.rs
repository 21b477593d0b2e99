//! The metric catalogue: every counter, gauge and histogram Flashweir exports, by name.
