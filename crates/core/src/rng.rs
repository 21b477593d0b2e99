//! A small seeded generator. Ours, so that no dependency's update can change a reproduced figure.

use crate::hash::mix;

/// xoshiro256++ (Blackman and Vigna, 2019), seeded through SplitMix64. Not for secrets.
///
/// ```
/// use flashweir_core::Rng;
/// let (mut a, mut b) = (Rng::new(7), Rng::new(7));
/// assert_eq!(a.next_u64(), b.next_u64());
/// assert!(a.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// The generator of this seed; equal seeds give equal sequences on every machine.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(core::array::from_fn(|_| split_mix(&mut state)))
    }

    /// An independent generator for a numbered part (a thread, a client, a component) of the same run.
    #[must_use]
    pub fn fork(&self, part: u64) -> Self {
        let mut state = self.0[0] ^ self.0[2].rotate_left(17) ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(core::array::from_fn(|_| split_mix(&mut state)))
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound` (bias below 2^-64 · bound: multiply-shift). Zero for a zero bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in the half-open interval from 0 to 1, with 53 random bits.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with the given mean: −mean · ln(1 − u).
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log1p(-self.unit_f64())
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mix(*state)
}
