//! Numbers that JavaScript reads exactly.

use serde::{Serialize, Serializer};

/// An integer that a binary64 reader keeps exact: beyond 2^53 it is a string.
#[derive(Clone, Copy)]
pub(super) struct Int(pub(super) i64);

impl Serialize for Int {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const LARGEST_SAFE: u64 = (1 << 53) - 1;
        if self.0.unsigned_abs() <= LARGEST_SAFE {
            serializer.serialize_i64(self.0)
        } else {
            serializer.collect_str(&self.0)
        }
    }
}

/// A number; one that is not finite is a string that JavaScript parses.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Float(pub(super) f64);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else if self.0.is_nan() {
            serializer.serialize_str("NaN")
        } else if self.0 > 0.0 {
            serializer.serialize_str("Infinity")
        } else {
            serializer.serialize_str("-Infinity")
        }
    }
}
