//! All integration tests of cupel-chat, one binary.

#![allow(clippy::print_stdout, reason = "figures for --nocapture")]

mod agents;
mod breakpoints;
mod budgets;
mod characters;
mod clients;
mod counting;
mod cuts;
mod generated;
mod generated_rules;
mod layouts;
mod people;
mod provider_rules;
mod reading;
mod readme;
mod relevant;
mod renderers;
mod requests;
mod sessions;
mod shapes;
mod sweeps;
mod tau_bench;
mod tool_results;
mod valid;
mod validators;
mod windows;
mod wrapped;
