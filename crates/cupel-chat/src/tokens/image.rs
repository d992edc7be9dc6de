//! The tokens and the size of an image.

use crate::message::Image;

/// An image of unknown size at OpenAI: 1024 x 1024 in high detail.
const OPENAI_FLAT: i64 = 765;
/// An image of unknown size at Anthropic: the largest that is not scaled down.
const ANTHROPIC_FLAT: i64 = 1_600;

/// An image of unknown size at Gemini: the default resolution of Gemini 3.
const GEMINI_FLAT: i64 = 1_120;
/// The tokens of one tile at Gemini.
const GEMINI_TILE: i64 = 258;

/// Returns the tokens of an image at Gemini: 258 if neither side is longer than 384; otherwise 258 per
/// tile of 768 x 768.
pub(crate) fn gemini_tokens(image: Image) -> i64 {
    match image.size {
        None => GEMINI_FLAT,
        Some((width, height)) if width.max(height) <= 384 => GEMINI_TILE,
        Some((width, height)) => {
            let tiles = |side: u32| i64::from(side.max(1).div_ceil(768));
            GEMINI_TILE * tiles(width) * tiles(height)
        }
    }
}

/// Returns the tokens of an image at Anthropic: width times height over 750, at most 1,600.
pub(crate) fn anthropic_tokens(image: Image) -> i64 {
    match image.size {
        Some((width, height)) => {
            let area = u64::from(width) * u64::from(height);
            let tokens = i64::try_from(area.div_ceil(750)).unwrap_or(i64::MAX);
            tokens.clamp(1, ANTHROPIC_FLAT)
        }
        None => ANTHROPIC_FLAT,
    }
}

/// Returns the tokens of an image at OpenAI: 85 in low detail; otherwise 85, and 170 per tile of
/// 512 x 512 after scaling to fit 2048 x 2048 and then to 768 on the shorter side.
pub(crate) fn openai_tokens(image: Image) -> i64 {
    match image {
        Image {
            low_detail: true, ..
        } => 85,
        Image { size: None, .. } => OPENAI_FLAT,
        Image {
            size: Some((width, height)),
            ..
        } => {
            let (mut width, mut height) = (f64::from(width.max(1)), f64::from(height.max(1)));
            let fit = (2048.0 / width.max(height)).min(1.0);
            (width, height) = (width * fit, height * fit);
            let shorter = (768.0 / width.min(height)).min(1.0);
            85 + 170 * tiles(width * shorter) * tiles(height * shorter)
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "sides are at most 2048 here"
)]
fn tiles(side: f64) -> i64 {
    ((side / 512.0) - 1e-9).ceil().max(1.0) as i64
}

/// Returns width and height of a base64 image, from the header of a PNG, GIF, JPEG or WebP file.
pub(crate) fn size(base64: &str) -> Option<(u32, u32)> {
    const HEAD: usize = 64 * 1024;
    let bytes = decode(base64, HEAD);
    let word = |at: usize| -> Option<u32> {
        Some(u32::from(*bytes.get(at)?) << 8 | u32::from(*bytes.get(at + 1)?))
    };
    let little = |at: usize| -> Option<u32> {
        Some(u32::from(*bytes.get(at + 1)?) << 8 | u32::from(*bytes.get(at)?))
    };
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        let long = |at: usize| Some(word(at)? << 16 | word(at + 2)?);
        return Some((long(16)?, long(20)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((little(6)?, little(8)?));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        let triple = |at: usize| Some(little(at)? | u32::from(*bytes.get(at + 2)?) << 16);
        return match bytes.get(12..16)? {
            b"VP8 " => Some((little(26)? & 0x3fff, little(28)? & 0x3fff)),
            b"VP8X" => Some((triple(24)? + 1, triple(27)? + 1)),
            b"VP8L" => {
                let bits = little(21)? | little(23)? << 16;
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            _ => None,
        };
    }
    if bytes.starts_with(b"\xff\xd8") {
        let mut at = 2;
        while *bytes.get(at)? == 0xff {
            let marker = *bytes.get(at + 1)?;
            // Start of frame in any coding; the other three markers of the range are tables.
            if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
                return Some((word(at + 7)?, word(at + 5)?));
            }
            at += 2 + word(at + 2)? as usize;
        }
    }
    None
}

/// Decodes the first `most` bytes of base64, up to the first invalid character.
fn decode(base64: &str, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut buffer, mut bits) = (0_u32, 0);
    for sign in base64.bytes().filter(|sign| !sign.is_ascii_whitespace()) {
        let value = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        buffer = buffer << 6 & 0xffff | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(buffer >> bits & 0xff).unwrap_or(0));
        }
        if bytes.len() == most {
            break;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_cost_the_published_tokens() {
        for (size, low_detail, openai, anthropic) in [
            (Some((1024, 1024)), false, 765, 1_399),
            (Some((2048, 4096)), false, 1_105, 1_600),
            (Some((4096, 8192)), true, 85, 1_600),
            (Some((512, 512)), false, 255, 350),
            (Some((200, 200)), false, 255, 54),
            (Some((1000, 1000)), false, 765, 1_334),
            (Some((0, u32::MAX)), false, 85 + 170 * 4, 1),
            (Some((u32::MAX, u32::MAX)), false, 765, 1_600),
            (None, false, 765, 1_600),
        ] {
            let image = Image { size, low_detail };
            assert_eq!(openai_tokens(image), openai, "{size:?}");
            assert_eq!(anthropic_tokens(image), anthropic, "{size:?}");
        }
    }

    #[test]
    fn images_cost_the_published_tokens_of_gemini() {
        for (size, tokens) in [
            (Some((384, 384)), 258),
            (Some((385, 10)), 258),
            (Some((600, 400)), 258),
            (Some((769, 768)), 516),
            (Some((1024, 1024)), 1_032),
            (Some((0, 0)), 258),
            (None, 1_120),
        ] {
            let image = Image {
                size,
                low_detail: false,
            };
            assert_eq!(gemini_tokens(image), tokens, "{size:?}");
        }
    }

    #[test]
    fn sizes_are_read_from_file_headers() {
        let png = "iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAYAAAA=";
        assert_eq!(size(png), Some((1024, 768)));
        assert_eq!(size("R0lGODlhQAEPAIAAAP"), Some((320, 15)));
        assert_eq!(
            size("/9j/4AAQSkZJRgABAQAAAQABAAD/wAARCADwAUADASIAAhEBAxEB"),
            Some((320, 240))
        );
        for broken in [
            "",
            "iVBORw0KGgo",
            "R0lGODlh",
            "/9j/4AAQSkZJRg",
            "UklGRgAAAABXRUJQVlA4",
            "not base64!",
            "AAAA",
        ] {
            assert_eq!(size(broken), None, "{broken}");
        }
    }

    /// Encodes bytes as base64 (RFC 4648).
    fn encoded(bytes: &[u8]) -> String {
        const SIGNS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut base64 = String::new();
        for part in bytes.chunks(3) {
            let byte = |at: usize| u32::from(*part.get(at).unwrap_or(&0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for sign in 0..=part.len() {
                let index = bits >> (18 - 6 * sign) & 63;
                base64.push(char::from(SIGNS[index as usize]));
            }
        }
        base64
    }

    /// Returns a WebP file: a RIFF container with one chunk.
    fn webp(chunk: &[u8], data: &[u8]) -> String {
        let length = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
        let riff = [b"RIFF", &length(12 + data.len())[..], b"WEBP", chunk];
        encoded(&[&riff.concat()[..], &length(data.len()), data].concat())
    }

    #[test]
    fn sizes_are_read_from_webp_files_of_any_kind() {
        // Lossless: the signature 0x2f, then 14 bits each of width and height, less one.
        for (width, height) in [(1, 1), (550, 368), (16_384, 2), (3, 16_384)] {
            let alpha = 1 << 28;
            let bits: u32 = (width - 1) | (height - 1) << 14 | alpha;
            let data = [&[0x2f][..], &bits.to_le_bytes(), b"image"].concat();
            assert_eq!(size(&webp(b"VP8L", &data)), Some((width, height)));
        }
        // Lossy: a frame tag, a start code, then 14 bits each of width and height, and 2 of scaling.
        let lossy = b"\x30\x01\x00\x9d\x01\x2a\x26\x42\x70\x81";
        assert_eq!(size(&webp(b"VP8 ", lossy)), Some((0x226, 0x170)));
        // Extended: flags, then 24 bits each of the canvas, less one.
        let extended = b"\x10\x00\x00\x00\x2f\x01\x01\x0f\x02\x00";
        assert_eq!(size(&webp(b"VP8X", extended)), Some((0x1_0130, 0x210)));
    }

    #[test]
    fn sizes_are_read_from_jpeg_files_of_any_coding() {
        /// A segment: its marker, its length with the two bytes of the length, its data.
        fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
            let length = u16::try_from(data.len() + 2).unwrap().to_be_bytes();
            [&[0xff, marker][..], &length, data].concat()
        }
        // Precision, height, width and the number of components.
        let frame = b"\x08\x01\x70\x02\x26\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01";
        // Tables that would have another size if they were read as a frame.
        let table = b"\x08\x00\x07\x00\x09\x00\x00\x00";
        // Baseline, extended, progressive, lossless, differential and arithmetic frames.
        for marker in [0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc7, 0xc9, 0xca, 0xcf] {
            let mut jpeg = b"\xff\xd8".to_vec();
            jpeg.extend(segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"));
            for tables in [0xdb, 0xc4, 0xc8, 0xcc] {
                jpeg.extend(segment(tables, table));
            }
            jpeg.extend(segment(marker, frame));
            assert_eq!(size(&encoded(&jpeg)), Some((0x226, 0x170)), "{marker:x}");
        }
    }
}
