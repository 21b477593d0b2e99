//! Changes bytes a little, by a seed: what the short run of every test run does in place of a fuzzer guided
//! by coverage.

use flashweir_core::Rng;

/// Changes of one mutation at most: more of them rarely leave anything that a parser reads far.
const CHANGES_MAX: u64 = 4;
/// Bytes that are inserted, removed or copied at once, at most.
const RUN_MAX: u64 = 16;
/// A mutation is not longer than this, as libFuzzer's inputs are not.
pub const INPUT_BYTES: usize = 4_096;
/// Bytes at which parsers change their minds.
const EDGES: [u8; 16] =
    [0, 1, b'\t', b'\n', b'\r', b' ', b'"', b',', b'/', b'0', b':', b';', 0x7f, 0x80, 0xfe, 0xff];

/// One mutation of `seed`; parts of `other` and of `words` may come into it.
#[must_use]
pub fn mutate(seed: &[u8], other: &[u8], words: &[&str], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=rng.below(CHANGES_MAX) {
        change(&mut bytes, other, words, rng);
    }
    bytes.truncate(INPUT_BYTES);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], words: &[&str], rng: &mut Rng) {
    let at = position(bytes.len(), rng);
    let end = (at + rng.below(RUN_MAX) as usize).min(bytes.len());
    match rng.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        1 if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
        2 => bytes.insert(at, EDGES[rng.below(EDGES.len() as u64) as usize]),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let copied = bytes[at..end].to_vec();
            let to = position(bytes.len(), rng);
            bytes.splice(to..to, copied);
        }
        5 if !other.is_empty() => {
            let from = position(other.len(), rng);
            let until = (from + rng.below(8 * RUN_MAX) as usize).min(other.len());
            bytes.splice(at..end, other[from..until].iter().copied());
        }
        6 if !words.is_empty() => {
            let word = words[rng.below(words.len() as u64) as usize];
            bytes.splice(at..at, word.bytes());
        }
        7 if !words.is_empty() => {
            let word = words[rng.below(words.len() as u64) as usize];
            bytes.splice(at..end, word.bytes());
        }
        _ => bytes.truncate(at),
    }
}

/// A place between two bytes, or at either end.
fn position(length: usize, rng: &mut Rng) -> usize {
    rng.below(length as u64 + 1) as usize
}
