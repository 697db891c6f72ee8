//! Finding things on a screenshot by their colour, as the scripted agent and person do.

use thiserror::Error;

/// How far a channel may be off, for browsers that blend or convert colours.
const TOLERANCE: u8 = 3;

/// A picture of a desktop, three bytes (red, green, blue) a pixel.
pub struct Picture {
    width: usize,
    rgb: Vec<u8>,
}

/// A screenshot that cannot be read.
#[derive(Debug, Error)]
pub enum PictureError {
    /// The bytes are no PNG.
    #[error("the screenshot is no readable PNG: {0}")]
    Png(#[from] png::DecodingError),
    /// The PNG has another layout of pixels than eight-bit RGB or RGBA.
    #[error("the screenshot has an unexpected pixel format")]
    Format,
}

impl Picture {
    /// A picture from raw pixels; `rgb` holds `width` times the height times three bytes.
    pub fn from_rgb(width: usize, rgb: Vec<u8>) -> Self {
        Self { width, rgb }
    }

    /// Decodes a PNG.
    ///
    /// # Errors
    /// When it is no PNG of eight bits a channel in colour.
    pub fn from_png(bytes: &[u8]) -> Result<Self, PictureError> {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info()?;
        let size = reader.output_buffer_size().ok_or(PictureError::Format)?;
        let mut pixels = vec![0; size];
        let info = reader.next_frame(&mut pixels)?;
        if info.bit_depth != png::BitDepth::Eight {
            return Err(PictureError::Format);
        }
        pixels.truncate(info.buffer_size());
        let rgb = match info.color_type {
            png::ColorType::Rgb => pixels,
            png::ColorType::Rgba => pixels
                .chunks_exact(4)
                .flat_map(|p| [p[0], p[1], p[2]])
                .collect(),
            _ => return Err(PictureError::Format),
        };
        let width = usize::try_from(info.width).map_err(|_| PictureError::Format)?;
        Ok(Self { width, rgb })
    }

    /// The middle of the area in that colour, or nothing while fewer than `least` pixels have it.
    pub fn find(&self, colour: [u8; 3], least: usize) -> Option<(usize, usize)> {
        let (mut count, mut left, mut right, mut top, mut bottom) =
            (0, usize::MAX, 0, usize::MAX, 0);
        for (at, pixel) in self.rgb.chunks_exact(3).enumerate() {
            if pixel
                .iter()
                .zip(colour)
                .all(|(have, want)| have.abs_diff(want) <= TOLERANCE)
            {
                let (x, y) = (at % self.width, at / self.width);
                count += 1;
                (left, right) = (left.min(x), right.max(x));
                (top, bottom) = (top.min(y), bottom.max(y));
            }
        }
        (count >= least).then(|| ((left + right) / 2, (top + bottom) / 2))
    }
}

/// Whether two points are the same but for rounding.
pub fn close(one: (usize, usize), other: (usize, usize)) -> bool {
    one.0.abs_diff(other.0) <= 8 && one.1.abs_diff(other.1) <= 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_coloured_area_is_found() {
        let mut rgb = vec![0; 10 * 6 * 3];
        for (x, y) in [
            (3, 2),
            (4, 2),
            (5, 2),
            (3, 3),
            (4, 3),
            (5, 3),
            (3, 4),
            (4, 4),
            (5, 4),
        ] {
            let at = (y * 10 + x) * 3;
            rgb[at..at + 3].copy_from_slice(&[200, 101, 50]);
        }
        let picture = Picture::from_rgb(10, rgb);
        assert_eq!(picture.find([200, 100, 50], 9), Some((4, 3)));
        assert_eq!(picture.find([200, 100, 50], 10), None);
        assert_eq!(picture.find([0, 100, 50], 1), None);
    }
}
