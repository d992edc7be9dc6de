//! All integration tests of cupel-chat, one binary.
