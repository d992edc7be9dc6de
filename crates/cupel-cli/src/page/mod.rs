//! The page of `cupel explain --html`: one self-contained file.
//!
//! `page.html` is a template for `page.css`, `page.js` and the data as JSON ([`data`]). The content
//! security policy of the page allows only this style and this script, by their digests.

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

/// Renders the page of a run, with the windows of other budgets. The same input gives the same bytes.
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
    // Data comes last: a placeholder inside it is not replaced.
    HTML.replace("{{policy}}", &policy)
        .replace("{{style}}", STYLE)
        .replace("{{script}}", SCRIPT)
        .replace("{{data}}", data)
}

/// Returns the source expression of a content security policy that allows exactly this text.
fn source_of(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
