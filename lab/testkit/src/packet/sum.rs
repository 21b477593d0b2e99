//! The checksum of the internet (RFC 1071), written for being read.

/// The ones' complement sum of bytes as 16-bit words, an odd last byte filled with zero, complemented.
pub(super) fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for word in part.chunks(2) {
            sum += u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The part of the IP header in TCP's sum (RFC 9293 §3.1, RFC 8200 §8.1): addresses, length, protocol.
pub(super) fn pseudo_header(source: &[u8], destination: &[u8], segment_bytes: usize) -> Vec<u8> {
    let length = (segment_bytes as u32).to_be_bytes();
    [source, destination, &length, &[0, 0, 0, TCP]].concat()
}

/// TCP's number as a protocol of IP.
pub(super) const TCP: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_has_the_sum_of_the_rfc() {
        // RFC 1071 §3: these bytes sum to 0xddf2.
        assert_eq!(checksum(&[&[0, 1, 0xf2, 3], &[0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
        assert_eq!(checksum(&[&[0x12]]), !0x1200);
    }
}
