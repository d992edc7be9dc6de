//! The adapter's document reader, at the path the adapter expects.

#[path = "../../crates/cupel/tests/config/vectors.rs"]
pub(crate) mod vectors;
