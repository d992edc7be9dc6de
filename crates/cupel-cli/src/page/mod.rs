//! The page of `cupel explain --html`: one file that needs nothing else, and no network.
//!
//! `page.html` holds the places, `page.css` and `page.js` go into it, and what the page shows goes
//! beside them as JSON ([`data`]). The page may run this script and no other: its policy names
//! the digests of both texts.

mod data;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cupel::{ContextBudget, ContextItem, CupelError, Pipeline};
use sha2::{Digest as _, Sha256};

use data::PageData;

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page about what `pipeline` makes of `items` with `budget` and every other budget within
/// reach. The same input gives the same bytes.
///
/// # Errors
///
/// As [`Pipeline::run`] with this budget.
pub(crate) fn render(
    title: &str,
    items: &[ContextItem],
    budget: &ContextBudget,
    pipeline: &Pipeline,
) -> Result<String, CupelError> {
    let data = PageData::new(title, items, budget, pipeline)?;
    Ok(assemble(&data.to_json()))
}

fn assemble(data: &str) -> String {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        source_of(SCRIPT),
        source_of(STYLE)
    );
    // Data comes last: nothing in it is taken for a place.
    HTML.replace("{{policy}}", &policy)
        .replace("{{style}}", STYLE)
        .replace("{{script}}", SCRIPT)
        .replace("{{data}}", data)
}

/// The source expression of a content security policy that allows exactly this text.
fn source_of(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
