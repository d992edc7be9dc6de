//! All tests of the command, one binary.
