//! All integration tests of the library, as one binary.

mod adapter;
mod arbitrary;
mod conformance;
mod oracle;
mod properties;
