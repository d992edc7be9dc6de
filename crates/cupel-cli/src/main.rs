//! The command `cupel`.

#[cfg_attr(not(test), expect(dead_code, reason = "`explain` writes it"))]
mod page;

fn main() {}
