//! All integration tests of cupel-chat, one binary.

#![allow(
    clippy::print_stdout,
    reason = "figures for whoever asks with --nocapture"
)]

mod budgets;
mod counting;
mod generated;
mod reading;
mod sessions;
mod tau_bench;
mod valid;
