//! Which vector registers the kernels use. The operations and their order are the same with any, and so are the bits.

/// A set of registers that this processor has: made by [`Registers::widest`] only, outside tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registers {
    /// What every machine of the architecture has.
    Plain,
    /// 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Registers {
    /// The widest that the processor and the operating system offer.
    pub(crate) fn widest() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                return Self::Avx512;
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Plain
    }

    /// All that this machine has, the plain ones first.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let mut found = vec![Self::Plain];
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx2") {
                found.push(Self::Avx2);
            }
            if std::arch::is_x86_feature_detected!("avx512f") {
                found.push(Self::Avx512);
            }
        }
        found
    }
}
