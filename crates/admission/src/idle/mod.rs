//! A stage that lets every request pass.

use flashweir_core::Shed;

/// The stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Idle;

impl Idle {
    /// Nothing is ever refused.
    pub(crate) fn check(self) -> Result<(), Shed> {
        Ok(())
    }
}
