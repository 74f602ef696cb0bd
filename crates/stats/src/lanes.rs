//! The generators of [`crate::stream::Indices`] in registers of 512 bits: one register per word of their state.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_loadu_si512, _mm512_mul_epu32, _mm512_rol_epi64, _mm512_set1_epi64,
    _mm512_slli_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_xor_si512,
};

use crate::registers::LANES;

/// Eight xoshiro256++ generators.
///
/// SOURCE: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", 2021, figure 1 with ++.
pub(crate) struct Lanes([__m512i; 4]);

impl Lanes {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn load(state: &[[u64; LANES]; 4]) -> Self {
        // SAFETY: each word of the state is 64 readable bytes; the load asks for no alignment.
        Self(state.each_ref().map(|word| unsafe { _mm512_loadu_si512(word.as_ptr().cast()) }))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn store(&self, state: &mut [[u64; LANES]; 4]) {
        for (word, register) in state.iter_mut().zip(self.0) {
            *word = as_words(register);
        }
    }

    /// One step: the products of the lower and of the upper half of each output with the bound. The upper 32 bits of a
    /// product are an index below the bound.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn products(&mut self, bound: u32) -> [__m512i; 2] {
        let [s0, s1, s2, s3] = self.0;
        let words = _mm512_add_epi64(_mm512_rol_epi64::<23>(_mm512_add_epi64(s0, s3)), s0);
        let third = _mm512_xor_si512(s2, s0);
        let fourth = _mm512_xor_si512(s3, s1);
        self.0 = [
            _mm512_xor_si512(s0, fourth),
            _mm512_xor_si512(s1, third),
            _mm512_xor_si512(third, _mm512_slli_epi64::<17>(s1)),
            _mm512_rol_epi64::<45>(fourth),
        ];
        let bound = _mm512_set1_epi64(i64::from(bound));
        [_mm512_mul_epu32(words, bound), _mm512_mul_epu32(_mm512_srli_epi64::<32>(words), bound)]
    }
}

/// The numbers in a register, the lowest first.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn as_words(register: __m512i) -> [u64; LANES] {
    let mut words = [0; LANES];
    // SAFETY: the array is 64 writable bytes; the store asks for no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), register) };
    words
}
