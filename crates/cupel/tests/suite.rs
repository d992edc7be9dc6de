//! All integration tests of the library, as one binary.

mod adapter;
mod conformance;
mod oracle;
