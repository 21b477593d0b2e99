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
/// 9110 §5.5). Cost: about one instruction for each byte, and thirty for each HTAB.
#[inline(always)]
pub(crate) fn position_of_control(bytes: &[u8]) -> Option<usize> {
    let at = position_of_control_or_tab(bytes, 0)?;
    if bytes.get(at) == Some(&b'\t') { position_behind_tab(bytes, at + 1) } else { Some(at) }
}

/// The same, behind an HTAB.
#[cold]
fn position_behind_tab(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        from = position_of_control_or_tab(bytes, from)?;
        if bytes.get(from) != Some(&b'\t') {
            return Some(from);
        }
        from += 1;
    }
}

#[inline(always)]
fn position_of_control_or_tab(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    // The compiler makes a vector of this: whether a block has one is found faster than where.
    for block in bytes.get(from..)?.as_chunks::<BLOCK>().0 {
        if block.iter().fold(false, |found, &byte| found | is_control_or_tab(byte)) {
            break;
        }
        at += BLOCK;
    }
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*word);
        // The lowest bit set is exact: a borrow may mark bytes above it only.
        let below_space = word.wrapping_sub(ONES * 0x20);
        let delete = (word ^ (ONES * 0x7f)).wrapping_sub(ONES);
        let found = (below_space | delete) & !word & HIGHS;
        if found != 0 {
            return Some(at + first(found));
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|&byte| is_control_or_tab(byte)).map(|index| at + index)
}

/// Bytes in a block: those of the smallest vector register in use.
const BLOCK: usize = 16;

#[inline]
const fn is_control_or_tab(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f
}

/// High bits of the zero bytes. Only the lowest one set is exact: a borrow may mark bytes above it.
#[inline]
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
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
