//! Looking at pictures pixel by pixel.

use std::io::Cursor;

/// A decoded PNG.
pub struct Picture {
    /// Width and height in pixels.
    pub size: (usize, usize),
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Decodes the bytes of a PNG in colour; transparency is ignored.
    pub fn read(png: &[u8]) -> Self {
        let mut reader = png::Decoder::new(Cursor::new(png))
            .read_info()
            .expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut bytes).expect("pixels");
        let pixels = bytes
            .chunks_exact(info.color_type.samples())
            .map(|pixel| [pixel[0], pixel[1], pixel[2]])
            .collect();
        Self {
            size: (info.width as usize, info.height as usize),
            pixels,
        }
    }

    /// The colour at one place.
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        self.pixels[y * self.size.0 + x]
    }

    /// The share of pixels, from 0 to 1, whose colours are clearly not those of `other`; all when the sizes differ.
    pub fn difference(&self, other: &Self) -> f64 {
        if self.size != other.size {
            return 1.0;
        }
        // More than what a lossy encoding makes of a colour.
        let differ = |(a, b): &(&[u8; 3], &[u8; 3])| {
            a.iter().zip(b.iter()).any(|(a, b)| a.abs_diff(*b) > 32)
        };
        let pairs = self.pixels.iter().zip(&other.pixels);
        pairs.filter(differ).count() as f64 / self.pixels.len() as f64
    }
}
