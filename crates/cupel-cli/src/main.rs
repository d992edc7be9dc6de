//! The command `cupel`.

fn main() {}
