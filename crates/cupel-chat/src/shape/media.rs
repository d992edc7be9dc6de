//! Images, audio and files in the content of a message.

use crate::message::{ContentPart, Image};
use crate::tokens::image;

/// Returns the part of a medium: its type as a MIME type, and the data as base64 or a `data:` URL.
pub(super) fn part(mime_type: &str, data: Option<&str>) -> ContentPart {
    let data = data.map(|data| data.split_once(";base64,").map_or(data, |(_, data)| data));
    match mime_type.split('/').next() {
        Some("image") => ContentPart::Image(Image {
            size: data.and_then(image::size),
            low_detail: false,
        }),
        Some("audio") => ContentPart::Audio,
        _ => ContentPart::File,
    }
}
