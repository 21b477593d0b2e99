//! An open-loop load generator with a ledger that adds up.
