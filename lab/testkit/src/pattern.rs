//! Bodies whose every byte can be checked.

/// `count` bytes that differ from place to place, so that a lost, doubled or swapped part shows.
#[must_use]
pub fn pattern(count: usize) -> Vec<u8> {
    // 251 is prime: no power of two (a buffer's size) is a multiple of the period.
    (0..count).map(|index| (index % 251) as u8 ^ (index >> 16) as u8).collect()
}

/// FNV-1a: a checksum both sides can afford over many megabytes.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(OFFSET, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(PRIME))
}
