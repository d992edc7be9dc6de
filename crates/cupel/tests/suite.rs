//! All integration tests of the library, as one binary.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read files, start threads and processes, and measure time"
)]

#[cfg(feature = "documents")]
mod adapter;
#[cfg(feature = "documents")]
mod analysis;
#[cfg(feature = "documents")]
mod arbitrary;
mod behavior;
mod choice;
#[cfg(feature = "documents")]
mod comparison;
mod compat;
#[cfg(feature = "documents")]
mod config;
#[cfg(feature = "documents")]
mod conformance;
mod constructors;
#[cfg(feature = "documents")]
mod density;
mod diversity;
mod embeddings;
mod frequency;
#[cfg(feature = "documents")]
mod groups;
mod knapsack;
mod ladder;
mod near_duplicates;
#[cfg_attr(
    not(feature = "documents"),
    expect(dead_code, reason = "strategies are read from documents")
)]
mod oracle;
#[cfg(feature = "documents")]
mod properties;
#[cfg(feature = "relevance")]
mod relevance;
mod slicers;
mod views;
#[cfg(feature = "serde")]
mod wire;
#[cfg(all(feature = "documents", feature = "relevance"))]
mod wrapped;
