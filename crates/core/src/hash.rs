//! One keyed hash for every table that clients can fill, and a mixer for numbers that no client chooses.
//!
//! SipHash-1-3 (Aumasson and Bernstein 2012, with one round for eight bytes and three at the end), of a stream
//! in which each part has its length, eight bytes, before it. Computed here and not by a library: a request is
//! hashed ten times, and general code is slowest at streams of a few short parts. A test compares it with the
//! library.

/// SipHash-1-3 under a key drawn at start: clients cannot choose colliding keys. About 20 ns for short input.
///
/// ```
/// use flashweir_core::Hasher64;
/// let hasher = Hasher64::new(1, 2);
/// assert_eq!(hasher.hash(&[b"example.org"]), hasher.hash(&[b"example.org"]));
/// // Parts are delimited: moving a byte across a boundary changes the hash.
/// assert_ne!(hasher.hash(&[b"ab", b"c"]), hasher.hash(&[b"a", b"bc"]));
/// // First parts that many inputs share are hashed once.
/// assert_eq!(hasher.after(&[b"ab"]).hash(&[b"c"]), hasher.hash(&[b"ab", b"c"]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hasher64 {
    state: [u64; 4],
    /// Bytes that do not fill a word yet, the first one lowest.
    tail: u64,
    /// Their number in bits, a multiple of eight below 64.
    tail_bits: u32,
    /// Bytes hashed so far; the lowest eight bits count.
    length: u8,
}

impl Hasher64 {
    /// A hasher under the key (`key0`, `key1`).
    #[must_use]
    pub const fn new(key0: u64, key1: u64) -> Self {
        let state = [
            key0 ^ 0x736F_6D65_7073_6575,
            key1 ^ 0x646F_7261_6E64_6F6D,
            key0 ^ 0x6C79_6765_6E65_7261,
            key1 ^ 0x7465_6462_7974_6573,
        ];
        Self { state, tail: 0, tail_bits: 0, length: 0 }
    }

    /// The hash of the parts in order.
    #[must_use]
    pub fn hash(&self, parts: &[&[u8]]) -> u64 {
        self.after(parts).finish()
    }

    /// The hash of one part whose size is known when this is compiled: as [`hash`](Self::hash) of it, in
    /// two thirds of the instructions.
    #[must_use]
    #[inline]
    pub fn hash_fixed<const SIZE: usize>(&self, part: &[u8; SIZE]) -> u64 {
        let mut hasher = *self;
        hasher.take(part);
        hasher.finish()
    }

    /// A hasher of what follows these parts: its hashes are those of these parts and its own.
    #[must_use]
    pub fn after(&self, parts: &[&[u8]]) -> Self {
        let mut hasher = *self;
        parts.iter().for_each(|part| hasher.take(part));
        hasher
    }

    // The state stays in registers from part to part.
    #[inline(always)]
    fn take(&mut self, part: &[u8]) {
        self.length = self.length.wrapping_add(8).wrapping_add(part.len() as u8);
        self.take_word(part.len() as u64);
        let (words, rest) = part.as_chunks();
        words.iter().for_each(|word| self.take_word(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.take_bytes(little_endian(rest), 8 * rest.len() as u32);
        }
    }

    #[inline]
    fn take_word(&mut self, word: u64) {
        self.compress(self.tail | word << self.tail_bits);
        // In two steps: without a tail all 64 bits go.
        self.tail = word >> 1 >> (63 - self.tail_bits);
    }

    /// Takes the lowest `bits`, 8 to 56; the others of `bytes` are 0.
    #[inline]
    fn take_bytes(&mut self, bytes: u64, bits: u32) {
        let word = self.tail | bytes << self.tail_bits;
        let filled = self.tail_bits + bits;
        if filled < u64::BITS {
            (self.tail, self.tail_bits) = (word, filled);
            return;
        }
        self.compress(word);
        // There was a tail, or they would not have filled the word.
        self.tail = bytes >> (u64::BITS - self.tail_bits);
        self.tail_bits = filled - u64::BITS;
    }

    #[inline]
    fn compress(&mut self, word: u64) {
        self.state[3] ^= word;
        round(&mut self.state);
        self.state[0] ^= word;
    }

    #[inline]
    fn finish(mut self) -> u64 {
        self.compress(self.tail | u64::from(self.length) << 56);
        self.state[2] ^= 0xFF;
        (0..3).for_each(|_| round(&mut self.state));
        let [v0, v1, v2, v3] = self.state;
        v0 ^ v1 ^ v2 ^ v3
    }
}

/// The bytes, one to seven of them, as a number, the first one lowest.
#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        // Bytes in both are the same in both.
        return u64::from(first) | u64::from(last) << (8 * (bytes.len() - 4));
    }
    // One to three: first, middle and last are all of them.
    let middle = bytes.len() / 2;
    let at = |place: usize| u64::from(bytes[place]) << (8 * place);
    at(0) | at(middle) | at(bytes.len() - 1)
}

#[inline]
fn round(state: &mut [u64; 4]) {
    let [mut v0, mut v1, mut v2, mut v3] = *state;
    v0 = v0.wrapping_add(v1);
    v2 = v2.wrapping_add(v3);
    v1 = v1.rotate_left(13) ^ v0;
    v3 = v3.rotate_left(16) ^ v2;
    v0 = v0.rotate_left(32).wrapping_add(v3);
    v2 = v2.wrapping_add(v1);
    v1 = v1.rotate_left(17) ^ v2;
    v3 = v3.rotate_left(21) ^ v0;
    v2 = v2.rotate_left(32);
    *state = [v0, v1, v2, v3];
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit of the input changes about half of the
/// output's. One to one and without a key: not for what clients choose. A few integer operations.
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::hash::Hasher as _;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use siphasher::sip::SipHasher13;

    fn by_library(key: (u64, u64), parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(key.0, key.1);
        for part in parts {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        hasher.finish()
    }

    /// Goal: what a state file says of classes of URLs holds for the next version. Method: known hashes.
    #[test]
    fn the_hash_is_the_same_in_every_version() {
        let hasher = Hasher64::new(1, 2);
        let parts: [&[&[u8]]; 3] = [&[], &[b"GET", b"/index.html"], &[b"", b"", b"a"]];
        let expected = [7_760_257_379_124_798_368, 13_346_965_376_021_824_420, 14_137_524_738_962_045_699];
        assert_eq!(parts.map(|parts| hasher.hash(parts)), expected);
    }

    proptest! {
        #[test]
        fn it_is_siphash_1_3_of_the_parts_and_their_lengths(
            key: (u64, u64), parts in vec(vec(any::<u8>(), 0..40), 0..7), cut in 0_usize..7
        ) {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let hasher = Hasher64::new(key.0, key.1);
            let expected = by_library(key, &parts);
            prop_assert_eq!(hasher.hash(&parts), expected);
            let (first, rest) = parts.split_at(cut.min(parts.len()));
            prop_assert_eq!(hasher.after(first).hash(rest), expected);
            let fixed = (hasher.after(first).hash_fixed(&[7; 4]), hasher.after(first).hash_fixed(&[7; 16]));
            let of = |last: &[u8]| by_library(key, &[first, &[last]].concat());
            prop_assert_eq!(fixed, (of(&[7; 4]), of(&[7; 16])));
        }

        #[test]
        fn bytes_make_numbers(bytes in vec(any::<u8>(), 1..8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(&bytes);
            prop_assert_eq!(little_endian(&bytes), u64::from_le_bytes(word));
        }
    }
}
