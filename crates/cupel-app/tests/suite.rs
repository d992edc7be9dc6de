//! The integration tests in one binary.

mod agreement;
mod answers;
mod errors;
mod schema;
