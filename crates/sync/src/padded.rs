use std::ops::Deref;

/// A value alone on its cache lines, so that writing it disturbs no neighbour.
///
/// SOURCE: 128 bytes, two lines: the spatial prefetcher of x86-64 fetches lines in pairs (Intel
/// 64 and IA-32 Architectures Optimization Reference Manual, "Data Prefetching"), and lines of some
/// 64-bit ARM cores are 128 bytes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_no_line() {
        let pair = [Padded(1_u8), Padded(2_u8)];
        assert_eq!(size_of_val(&pair), 256);
        assert_eq!(*pair[0] + *pair[1], 3);
    }
}
