//! Statements of the documents hold: commands parse and run, configurations are accepted.

mod blocks;
mod commands;
mod load;
mod policy;
mod replay;
mod requirements;
mod slow_requests;

use flashweir_testkit::Flashweir;

fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}
