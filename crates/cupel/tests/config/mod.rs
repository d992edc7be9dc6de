//! Policies and requests as data.

mod documents;
pub(crate) mod vectors;
