//! The cases, by subject. Each file is a table: what is sent, the RFC's word, and the judgement.

mod connections;
mod expectations;
mod fields;
mod framing;
mod http2;
mod interim;
mod repeats;
mod responses;
mod targets;

use crate::case::Case;

/// All rows, in the order of the page.
pub(crate) fn all() -> Vec<Case> {
    let tables = [
        repeats::cases(),
        interim::cases(),
        expectations::cases(),
        responses::cases(),
        fields::cases(),
        targets::cases(),
        framing::cases(),
        connections::cases(),
        http2::cases(),
    ];
    tables.into_iter().flatten().collect()
}
