//! Searches over eight or sixteen bytes at a time, for places that are near: the colon of a field line, the
//! end of a value.
//!
//! A call of `memchr` costs more than the ten bytes of a name; for whole lines it is used as it is.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Position of the first `needle`. Cost: about one instruction for each byte.
#[inline]
pub(crate) fn position_of(needle: u8, bytes: &[u8]) -> Option<usize> {
    let pattern = ONES * u64::from(needle);
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = zeros(u64::from_le_bytes(*word) ^ pattern);
        if found != 0 {
            return Some(index * 8 + first(found));
        }
    }
    let start = words.len() * 8;
    rest.iter().position(|&byte| byte == needle).map(|index| start + index)
}

/// Position of the first control byte that a field value may not hold: all below SP but HTAB, and DEL (RFC
/// 9110 §5.5). Cost: about one instruction for each byte, and ten for each HTAB.
#[inline]
pub(crate) fn position_of_control(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + position_of_control_or_tab(bytes.get(from..)?)?;
        if bytes.get(at) != Some(&b'\t') {
            return Some(at);
        }
        from = at + 1;
    }
}

#[inline]
fn position_of_control_or_tab(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = below_space(word) | zeros(word ^ (ONES * 0x7f));
        if found != 0 {
            return Some(index * 8 + first(found));
        }
    }
    let start = words.len() * 8;
    rest.iter().position(|&byte| byte < b' ' || byte == 0x7f).map(|index| start + index)
}

/// High bits of the zero bytes. Only the lowest one set is exact: a borrow may mark bytes above it.
#[inline]
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// High bits of the bytes below SP; only the lowest one set is exact.
#[inline]
const fn below_space(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word & HIGHS
}

/// Index of the byte with the lowest high bit set.
#[inline]
const fn first(found: u64) -> usize {
    (found.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place of a few words, beside bytes that a borrow could confuse with it.
    #[test]
    fn a_search_finds_the_first_place_only() {
        let is_control = |byte: u8| (byte < 0x20 && byte != b'\t') || byte == 0x7f;
        for filler in [b'a', b' ', b'!', 0x80, 0xff, b'~', b'\t'] {
            for length in 0..20 {
                for (at, byte) in (0..length).flat_map(|at| (0..=255u8).map(move |byte| (at, byte))) {
                    let mut bytes = vec![filler; length];
                    bytes[at] = byte;
                    let control = bytes.iter().position(|&byte| is_control(byte));
                    assert_eq!(position_of_control(&bytes), control, "{}", bytes.escape_ascii());
                    let colon = bytes.iter().position(|&byte| byte == b':');
                    assert_eq!(position_of(b':', &bytes), colon, "{}", bytes.escape_ascii());
                }
            }
        }
    }
}
