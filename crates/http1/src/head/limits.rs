//! Bounds on heads.

/// Bounds on one head (and, likewise, on one trailer section).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes from the first of the request line to the empty line's end. At least 1.
    pub bytes_max: usize,
    /// Field lines.
    pub fields_max: usize,
}

impl HeadLimits {
    /// Part of `bytes` that a head may have.
    #[inline]
    pub(crate) fn within(self, bytes: &[u8]) -> &[u8] {
        &bytes[..bytes.len().min(self.bytes_max)]
    }
}
