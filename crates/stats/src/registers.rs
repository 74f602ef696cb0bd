//! Which vector registers the kernels use. The operations and their order are the same with any, and so are the bits.

/// Words of 64 bits in the widest register: so many generators stand side by side.
pub(crate) const LANES: usize = 8;

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
            if has_avx512() {
                return Self::Avx512;
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Plain
    }

    /// Executes work whose inlined parts are compiled for these registers.
    pub(crate) fn compile<T>(self, work: impl FnOnce() -> T) -> T {
        match self {
            Self::Plain => work(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor reports these registers.
            Self::Avx2 => unsafe { with_avx2(work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor reports these registers.
            Self::Avx512 => unsafe { with_avx512(work) },
        }
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
            if has_avx512() {
                found.push(Self::Avx512);
            }
        }
        found
    }
}

/// The foundation, and what makes its registers as useful for small numbers: all processors since 2017 have both or none.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn with_avx512<T>(work: impl FnOnce() -> T) -> T {
    work()
}
