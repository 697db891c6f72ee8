//! Pictures of a desktop as PNG.

use std::sync::Arc;

use handover_rfb::frame::Frame;
use png::{BitDepth, ColorType, Compression, Encoder, Filter};
use sha2::{Digest, Sha256};

/// A picture of a whole desktop. Clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Screenshot {
    /// The PNG file.
    pub png: Arc<[u8]>,
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
    /// SHA-256 of the file in lower-case hexadecimal.
    pub sha256: String,
}

impl std::fmt::Debug for Screenshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { width, height, .. } = self;
        write!(f, "Screenshot({width}x{height}, {} bytes)", self.png.len())
    }
}

impl Screenshot {
    /// Compresses a frame, which takes some milliseconds of computing: not for an async task.
    ///
    /// # Errors
    /// What the encoder says, as when memory is short.
    pub fn encode(frame: &Frame) -> Result<Self, png::EncodingError> {
        // A third of a byte a pixel is what desktops take; photographs make it grow.
        let mut png = Vec::with_capacity(frame.rgb.len() / 8);
        let mut encoder = Encoder::new(&mut png, frame.width.into(), frame.height.into());
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        // Of the levels tried on desktops these two give the best size under 10 ms.
        encoder.set_compression(Compression::Fast);
        encoder.set_filter(Filter::Adaptive);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&frame.rgb)?;
        writer.finish()?;
        Ok(Self {
            sha256: hex::encode(Sha256::digest(&png)),
            png: png.into(),
            width: frame.width,
            height: frame.height,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_keeps_every_pixel() {
        let frame = Frame {
            width: 5,
            height: 3,
            rgb: (0..45).collect(),
        };
        let picture = Screenshot::encode(&frame).expect("encoded");
        assert_eq!((picture.width, picture.height), (5, 3));
        assert_eq!(picture.sha256, hex::encode(Sha256::digest(&picture.png)));
        let decoder = png::Decoder::new(std::io::Cursor::new(&picture.png[..]));
        let mut reader = decoder.read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("small")];
        reader.next_frame(&mut pixels).expect("whole");
        assert_eq!(pixels, frame.rgb);
    }
}
