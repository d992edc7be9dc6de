//! All integration tests of the library, as one binary.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read files, start threads and processes, and measure time"
)]

mod adapter;
mod analysis;
mod arbitrary;
mod behavior;
mod choice;
mod comparison;
mod compat;
#[cfg(feature = "documents")]
mod config;
mod conformance;
mod density;
mod diversity;
mod embeddings;
mod frequency;
mod groups;
mod knapsack;
mod ladder;
mod near_duplicates;
mod oracle;
mod properties;
#[cfg(feature = "relevance")]
mod relevance;
mod slicers;
mod views;
#[cfg(feature = "serde")]
mod wire;
