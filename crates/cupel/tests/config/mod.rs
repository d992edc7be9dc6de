//! Policies and requests as data.

mod documents;
mod faults;
mod guide;
mod random;
mod schema;
