//! The published crate, as a black box.

use ::cupel_peer as api;

#[path = "library.rs"]
#[allow(clippy::duplicate_mod, reason = "the same lines drive both libraries")]
mod library;
pub(crate) use library::*;
