//! CRC-32 as zlib defines it: reflected polynomial 0xEDB88320, inverted before and after.

/// SOURCE: ISO 3309 / ITU-T V.42, the polynomial of zlib and gzip, bits reversed.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// Remainder of every single byte (Sarwate 1988).
const REMAINDERS: [u32; 256] = remainders();

const fn remainders() -> [u32; 256] {
    let mut table = [0_u32; 256];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut remainder = byte;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 1 == 1 { (remainder >> 1) ^ POLYNOMIAL } else { remainder >> 1 };
            bit += 1;
        }
        table[byte as usize] = remainder;
        byte += 1;
    }
    table
}

/// The checksum after one more byte.
#[inline]
pub(super) const fn update(crc: u32, byte: u8) -> u32 {
    let inverted = !crc;
    !(REMAINDERS[((inverted ^ byte as u32) & 0xFF) as usize] ^ (inverted >> 8))
}

/// The checksum of a text.
pub(super) const fn checksum(text: &[u8]) -> u32 {
    let mut crc = 0;
    let mut place = 0;
    while place < text.len() {
        crc = update(crc, text[place]);
        place += 1;
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue_is_met() {
        // SOURCE: "check" of CRC-32/ISO-HDLC in the CRC RevEng catalogue.
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum(b""), 0);
    }
}
