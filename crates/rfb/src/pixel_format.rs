//! The pixel format of a connection, which decides how long pixel data is.

/// How one pixel is laid out on the wire (RFC 6143, section 7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelFormat {
    /// Bits of one pixel on the wire: 8, 16 or 32.
    pub bits_per_pixel: u8,
    /// Significant bits of one pixel.
    pub depth: u8,
    /// Whether multi-byte pixels are sent most significant byte first.
    pub big_endian: bool,
    /// Whether a pixel holds its colour; if not it is an index into the colour map.
    pub true_colour: bool,
    /// The largest value of red, green and blue.
    pub max: [u16; 3],
    /// How far red, green and blue are shifted to the left.
    pub shift: [u8; 3],
}

impl PixelFormat {
    /// Bytes of a pixel format on the wire, padding included.
    pub const WIRE_LEN: usize = 16;

    /// 32 bits, little endian, blue in the lowest byte: what TigerVNC uses itself, so it copies without conversion.
    pub const BGRX: PixelFormat = PixelFormat {
        bits_per_pixel: 32,
        depth: 24,
        big_endian: false,
        true_colour: true,
        max: [255, 255, 255],
        shift: [16, 8, 0],
    };

    /// Reads a pixel format; `None` if its bits per pixel are not 8, 16 or 32.
    pub fn decode(bytes: &[u8; Self::WIRE_LEN]) -> Option<PixelFormat> {
        let max = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        matches!(bytes[0], 8 | 16 | 32).then(|| PixelFormat {
            bits_per_pixel: bytes[0],
            depth: bytes[1],
            big_endian: bytes[2] != 0,
            true_colour: bytes[3] != 0,
            max: [max(4), max(6), max(8)],
            shift: [bytes[10], bytes[11], bytes[12]],
        })
    }

    /// Appends the wire form of the pixel format.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend([
            self.bits_per_pixel,
            self.depth,
            u8::from(self.big_endian),
            u8::from(self.true_colour),
        ]);
        for max in self.max {
            out.extend(max.to_be_bytes());
        }
        out.extend(self.shift);
        out.extend([0; 3]);
    }

    /// Bytes of one pixel in raw data.
    pub fn bytes_per_pixel(&self) -> u64 {
        u64::from(self.bits_per_pixel / 8)
    }

    /// Bytes of one pixel in tight data, which leaves out the unused byte of a 24-bit colour.
    pub fn tight_pixel_bytes(&self) -> u64 {
        let packed = self.true_colour
            && self.bits_per_pixel == 32
            && self.depth == 24
            && self.max == [255, 255, 255];
        if packed { 3 } else { self.bytes_per_pixel() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_wire() {
        let mut wire = Vec::new();
        PixelFormat::BGRX.encode(&mut wire);
        let wire: [u8; PixelFormat::WIRE_LEN] = wire.try_into().expect("sixteen bytes");
        assert_eq!(PixelFormat::decode(&wire), Some(PixelFormat::BGRX));
    }

    #[test]
    fn refuses_odd_depths() {
        let mut wire = [0; PixelFormat::WIRE_LEN];
        wire[0] = 24;
        assert_eq!(PixelFormat::decode(&wire), None);
    }

    #[test]
    fn tight_packs_only_full_24_bit_colour() {
        assert_eq!(PixelFormat::BGRX.tight_pixel_bytes(), 3);
        let deep = PixelFormat {
            depth: 32,
            ..PixelFormat::BGRX
        };
        assert_eq!(deep.tight_pixel_bytes(), 4);
        let small = PixelFormat {
            bits_per_pixel: 16,
            ..PixelFormat::BGRX
        };
        assert_eq!(small.tight_pixel_bytes(), 2);
    }
}
